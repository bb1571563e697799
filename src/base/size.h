/* size.h - sizes as people write them: 512, 4K, 10GiB, 1.5T (powers of 1024). */
#ifndef WEFT_BASE_SIZE_H
#define WEFT_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* -EINVAL when @text is not a size in whole bytes, -ERANGE when it does not fit. */
int weft_size_parse(const char *text, uint64_t *bytes);
/* Whether @text is refused because of a unit such as GB, which is ambiguous: @why gets a sentence
 * about that. */
bool weft_size_is_ambiguous(const char *text, struct weft_err *why);

/* The shortest exact form: 1G, 1536M, 1000 … */
void weft_size_format(uint64_t bytes, char *text, size_t size);

#endif
