/* version.c - the version of the library. */
#include <weft/weft.h>

#include <assert.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
#define HEADER_VERSION \
	TEXT(WEFT_VERSION_MAJOR) "." TEXT(WEFT_VERSION_MINOR) "." TEXT(WEFT_VERSION_PATCH)

/* The build file and the public header each say it; they must not drift apart. */
static_assert(!__builtin_strcmp(WEFT_VERSION, HEADER_VERSION), "version of <weft/weft.h>");

const char *weft_version(void)
{
	return WEFT_VERSION;
}
