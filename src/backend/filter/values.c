/* values.c - the value of a filter in a SPEC: a number for each kind of io.
 *
 *   5ms                          of every kind
 *   read:5ms+flush:1s            of these; the others pass
 *   1ms+flush:1s+trim:0ms        of these, and of all others
 *
 * Invariant: no kind is named twice. */
#include <string.h>

#include "backend/filter/filter.h"

enum { EXTRA = WEFT_FILTER_KINDS, OTHERS, WORDS };

static const char *const kinds[WEFT_FILTER_KINDS] = {
	[WEFT_IO_READ] = "read", [WEFT_IO_WRITE] = "write", [WEFT_IO_FLUSH] = "flush",
	[WEFT_IO_ZERO] = "zero", [WEFT_IO_TRIM] = "trim",
};

/* WORDS: no such word. */
static unsigned find_word(const char *word, const char *extra)
{
	for (unsigned i = 0; i < WEFT_FILTER_KINDS; i++)
		if (!strcmp(word, kinds[i]))
			return i;
	return extra && !strcmp(word, extra) ? EXTRA : WORDS;
}

int weft_filter_values(const char *text, const char *extra,
		       int (*parse)(unsigned kind, const char *text, uint64_t *value),
		       uint64_t values[WEFT_FILTER_KINDS + 1])
{
	char words[WEFT_FILTER_MAX], *rest = words, *word, *value;
	bool given[WORDS] = { false };
	uint64_t at[WORDS] = { 0 };
	unsigned kind;
	int rc;

	if (strlen(text) >= sizeof(words))
		return -EINVAL;
	strcpy(words, text);
	while ((word = strsep(&rest, "+"))) {
		value = strchr(word, ':');
		if (value)
			*value++ = '\0';
		kind = value ? find_word(word, extra) : OTHERS;
		if (kind == WORDS || given[kind])
			return -EINVAL;
		given[kind] = true;
		rc = parse(kind, value ? value : word, &at[kind]);
		if (rc < 0)
			return rc;
	}
	for (kind = 0; kind <= EXTRA; kind++)
		values[kind] = given[kind] || kind == EXTRA ? at[kind] : at[OTHERS];
	return 0;
}
