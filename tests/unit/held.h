/* held.h - storage that keeps every operation until the test lets it go; data moves only then.
 *
 * It has no header in common with <weft/host.h>, see target_thread.h. May be called from any
 * thread. */
#ifndef WEFT_TESTS_HELD_H
#define WEFT_TESTS_HELD_H

#include <stdbool.h>

struct weft_backend;

enum { HELD_BYTES = 64 << 10 };

/* Zeroed; one at a time. It starts by letting everything through. */
struct weft_backend *held_open(void);

void held_hold(bool hold); /* from now on, or no longer; what it has stays */
unsigned held_count(void); /* operations that it has in hand */
void held_let_go(void);    /* of all that it has */
/* Its first bytes, as they are on the storage. */
const char *held_bytes(void);

#endif
