/* size.h - sizes as people write them: 512, 4K, 10G, 1T (powers of 1024). */
#ifndef WEFT_BASE_SIZE_H
#define WEFT_BASE_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* -EINVAL when @text is not a size, -ERANGE when it does not fit. */
int weft_size_parse(const char *text, uint64_t *bytes);

/* The shortest exact form: 1G, 1536M, 1000 … */
void weft_size_format(uint64_t bytes, char *text, size_t size);

#endif
