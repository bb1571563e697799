/* guard.h - the guard: readers-writer locks over the blocks of a memory namespace. A block is read
 * whole and written whole.
 *
 *   try_read ──▶ read ──▶ unlock_read         any number of readers, or
 *   try_write ─▶ write ─▶ unlock_write        one writer
 *
 * Nothing here waits. A caller that is refused tries again in a later turn of its reactor. A
 * refused writer keeps new readers out, so that it cannot starve; a holder never waits for another
 * lock, so there is no deadlock. */
#ifndef WEFT_LOCK_GUARD_H
#define WEFT_LOCK_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#define WEFT_BLOCK_MAX 4096u /* the largest that is read whole; blocks are aligned to their size */

struct weft_guard;

/* Of memory that begins at @base, aligned to WEFT_BLOCK_MAX. */
int weft_guard_create(struct weft_guard **guard, const void *base);
void weft_guard_destroy(struct weft_guard *guard); /* NULL is allowed */

/* Locks all of [@at, @at + @len), or nothing. */
bool weft_guard_try_read(struct weft_guard *guard, const void *at, size_t len);
void weft_guard_unlock_read(struct weft_guard *guard, const void *at, size_t len);
/* A writer was refused there, and will try again. */
bool weft_guard_writer_waits(struct weft_guard *guard, const void *at, size_t len);
/* If refused, new readers are kept out until a writer was let in there: the caller must try
 * again. */
bool weft_guard_try_write(struct weft_guard *guard, const void *at, size_t len);
void weft_guard_unlock_write(struct weft_guard *guard, const void *at, size_t len);

#endif
