/* suggest.c - "did you mean …?": the known word nearest to a mistyped one. */
#include "base/suggest.h"

#include <stddef.h>
#include <string.h>

#define WORD_MAX 31

/* Mistakes in a word of that length. More would be another word: "foo" is not "log". */
static unsigned mistakes_max(size_t len)
{
	return len < 2 ? 0 : len < 6 ? 1 : 2;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, changes and swaps of neighbours that turn one into the other (optimal
 * string alignment), row by row. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2], *swap;
	size_t len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; a[i]; i++) {
		swap = before;
		before = above;
		above = row;
		row = swap;
		row[0] = (unsigned)i + 1;
		for (size_t j = 0; j < len; j++) {
			row[j + 1] = least(least(above[j + 1], row[j]) + 1,
					   above[j] + (a[i] != b[j]));
			if (i && j && a[i] == b[j - 1] && a[i - 1] == b[j])
				row[j + 1] = least(row[j + 1], before[j - 1] + 1);
		}
	}
	return row[len];
}

const char *weft_suggest_word(const char *word, const char *const *names)
{
	unsigned best = mistakes_max(strlen(word)) + 1, d;
	const char *nearest = NULL;

	if (strlen(word) > WORD_MAX)
		return NULL;
	for (; *names; names++) {
		d = strlen(*names) > WORD_MAX ? best : edit_distance(word, *names);
		if (d < best) {
			best = d;
			nearest = *names;
		}
	}
	return nearest;
}
