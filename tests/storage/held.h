/* held.h - storage that keeps every operation until the test lets it go; data moves only then. It
 * fails when it is told to, and knows what it was asked for.
 *
 * It has no header in common with <weft/host.h>, see world/target_thread.h. May be called from any
 * thread. */
#ifndef WEFT_TESTS_STORAGE_HELD_H
#define WEFT_TESTS_STORAGE_HELD_H

#include <stdbool.h>

struct weft_backend;

enum { HELD_BYTES = 512 << 10 };

/* Zeroed; one at a time. It starts by letting everything through. */
struct weft_backend *held_open(void);
/* The same, and its locks are this machine's. */
struct weft_backend *held_open_here(void);
/* One that nobody took. */
void held_drop(struct weft_backend *be);

void held_hold(bool hold); /* from now on, or no longer; what it has stays */
unsigned held_count(void); /* operations that it has in hand */
void held_let_go(void);    /* of all that it has */
/* Operations of these kinds, letters as below, are answered with @rc, and nothing is done. NULL:
 * none are any more. */
void held_fail(const char *kinds, int rc);
/* As after a sync that failed, until it is opened anew; what it answers stays as it was. */
void held_sync_failed(void);
/* What was asked for since the last call: R(ead), W(rite), F(lush), Z(eroes), T(rim), each with a
 * "!" behind it if it is to be durable at once. */
const char *held_asked(void);
/* Its first bytes, as they are on the storage. */
const char *held_bytes(void);

#endif
