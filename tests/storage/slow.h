/* slow.h - storage that answers when the harness says so, and checks what it is asked. */
#ifndef WEFT_TESTS_STORAGE_SLOW_H
#define WEFT_TESTS_STORAGE_SLOW_H

#include "backend/backend.h"

enum { SLOW_BYTES = 64 << 10, SLOW_BYTES_MAX = 256 << 10, SLOW_ALIGN = 512 };

struct weft_backend *slow_open(void);
void slow_clear(struct weft_backend *be); /* back to zeroes */

/* Ends up to @n of the operations that wait, oldest first, with @rc. Returns how many. */
unsigned slow_end(unsigned n, int rc);
/* The next @n are refused by submit(). */
void slow_refuse(unsigned n);

#endif
