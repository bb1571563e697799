/* guard.h - memory whose blocks several threads read and write: a block is read whole, and written
 * whole.
 *
 *   share ─▶ read ─▶ unshare         any number of readers, or
 *   take ──▶ write ─▶ give           one writer
 *
 * Nobody waits inside: who is refused does something else and asks again in a later turn. Whoever
 * got in leaves without waiting for anybody, so all who ask get in. */
#ifndef WEFT_BASE_GUARD_H
#define WEFT_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#define WEFT_BLOCK_MAX 4096u /* the largest that is kept whole; blocks are aligned to their size */

struct weft_guard;

/* Of memory that begins at @base, aligned to WEFT_BLOCK_MAX. */
int weft_guard_create(struct weft_guard **guard, const void *base);
void weft_guard_destroy(struct weft_guard *guard); /* NULL is none */

/* All of [@at, @at + @len), or nothing. */
bool weft_guard_share(struct weft_guard *guard, const void *at, size_t len);
void weft_guard_unshare(struct weft_guard *guard, const void *at, size_t len);
/* A writer there was refused, and will come again. */
bool weft_guard_wanted(struct weft_guard *guard, const void *at, size_t len);
/* Refused, it keeps new readers out until it, or another writer there, has been let in: the caller
 * must ask again. */
bool weft_guard_take(struct weft_guard *guard, const void *at, size_t len);
void weft_guard_give(struct weft_guard *guard, const void *at, size_t len);

#endif
