/* suggest.c - "did you mean …?": the known word nearest to a mistyped one. */
#include "base/suggest.h"

#include <stddef.h>
#include <string.h>

#define WORD_MAX     31
#define DISTANCE_MAX 2

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Insertions, deletions and changes that turn one into the other (Levenshtein), row by row. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1], corner, above;
	size_t len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; a[i]; i++) {
		corner = row[0]++;
		for (size_t j = 0; j < len; j++) {
			above = row[j + 1];
			row[j + 1] = min3(above + 1, row[j] + 1, corner + (a[i] != b[j]));
			corner = above;
		}
	}
	return row[len];
}

const char *weft_suggest_word(const char *word, const char *const *names)
{
	const char *nearest = NULL;
	unsigned best = DISTANCE_MAX + 1, d;

	if (strlen(word) > WORD_MAX)
		return NULL;
	if (strlen(word) < best)
		best = (unsigned)strlen(word); /* at least one character must be right */
	for (; *names; names++) {
		d = strlen(*names) > WORD_MAX ? best : edit_distance(word, *names);
		if (d < best) {
			best = d;
			nearest = *names;
		}
	}
	return nearest;
}
