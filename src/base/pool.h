/* pool.h - a bounded set of equal, page-aligned buffers, used by one thread.
 *
 *   take ──▶ buffer, or NULL and the caller waits in line
 *   give ──▶ on top of the free stack; if somebody waits, the owner is woken
 *   serve ─▶ the line gets what is free, in order
 *
 * Memory is reserved at once and paid when touched; the stack is last in, first out, so a quiet
 * pool stays in the cache and mostly unpaid. Giving never runs a waiter: who gives a buffer back
 * may be deep inside something, and the waiter may give one back itself. Invariant: nobody
 * overtakes. */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include <stdint.h>

#include "base/list.h"

struct weft_pool {
	char *base;
	uint32_t *free; /* stack of indices never or no longer in use */
	uint32_t nfree, count;
	uint32_t size;
	struct weft_list waiters;
	void (*woken)(void *arg); /* call weft_pool_serve() soon */
	void *woken_arg;
};

struct weft_pool_waiter {
	struct weft_list link;
	void (*got)(struct weft_pool_waiter *waiter, void *buf); /* owns @buf now */
};

int weft_pool_init(struct weft_pool *pool, uint32_t size, uint32_t count, void (*woken)(void *arg),
		   void *arg);
void weft_pool_destroy(struct weft_pool *pool);

/* NULL when none is free, or when others wait already. */
void *weft_pool_take(struct weft_pool *pool);
void weft_pool_wait(struct weft_pool *pool, struct weft_pool_waiter *waiter);
void weft_pool_give(struct weft_pool *pool, void *buf);
void weft_pool_serve(struct weft_pool *pool);

/* Anonymous memory, page aligned, zeroed, paid when touched. NULL on failure. */
void *weft_pages_alloc(size_t size);
void weft_pages_free(void *pages, size_t size);

#endif
