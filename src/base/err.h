/* err.h - the first cause of a failure, kept as a sentence.
 *
 * A function that can fail returns -errno and, where a user will read about it, takes a weft_err.
 * The first sentence set wins: what comes later is a consequence. */
#ifndef WEFT_BASE_ERR_H
#define WEFT_BASE_ERR_H

#include <weft/weft.h>

/* Keeps the sentence unless one is there already, and returns @rc. @err may be NULL. */
int weft_fail(struct weft_err *err, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
