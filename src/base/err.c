/* err.c - the first cause of a failure, kept as a sentence. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

int weft_fail(struct weft_err *err, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err || err->text[0])
		return rc;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return rc;
}
