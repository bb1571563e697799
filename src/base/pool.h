/* pool.h - a bounded set of equal, page-aligned buffers, used by one thread.
 *
 *   take ──▶ buffer, or NULL and the caller waits
 *   give ──▶ on top of the free stack; if somebody waits, the owner is woken
 *   serve ─▶ waiters get free buffers: one waiter of each flow in turn
 *
 * Memory is reserved at once and allocated when touched; the stack is last in, first out, so a
 * quiet pool stays in the cache and mostly unallocated. Giving never runs a waiter: the caller may
 * be deep inside something, and the waiter may give a buffer back itself.
 *
 * Waiters of one tenant wait in one flow, and flows take turns (fair queueing, base/fair_queue.h).
 *
 * Invariant: within a flow nobody overtakes, and nobody takes a buffer while others wait for
 * one. */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include <stdint.h>

#include "base/fair_queue.h"
#include "base/list.h"

struct weft_pool {
	char *base;
	uint32_t *free; /* stack of indices never or no longer in use */
	uint32_t nfree, count;
	uint32_t size;
	struct weft_list flows;             /* in which somebody waits */
	struct weft_fair_flow default_flow; /* of waiters without one */
	void (*wake)(void *arg);            /* call weft_pool_serve_waiters() soon */
	void *wake_arg;
};

struct weft_pool_waiter {
	struct weft_list link;
	struct weft_fair_flow *flow;                             /* the pool's, while it waits */
	void (*got)(struct weft_pool_waiter *waiter, void *buf); /* owns @buf now */
};

int weft_pool_init(struct weft_pool *pool, uint32_t size, uint32_t count, void (*wake)(void *arg),
		   void *arg);
void weft_pool_destroy(struct weft_pool *pool);

/* NULL when none is free, or when others wait already. */
void *weft_pool_take(struct weft_pool *pool);
/* Waits in @flow, which is for this pool alone and must not move while somebody waits in it; NULL:
 * in one flow with all others that have none. */
void weft_pool_wait(struct weft_pool *pool, struct weft_fair_flow *flow,
		    struct weft_pool_waiter *waiter);
/* Stops waiting; does nothing if @waiter does not wait. */
void weft_pool_cancel_wait(struct weft_pool_waiter *waiter);
void weft_pool_give(struct weft_pool *pool, void *buf);
void weft_pool_serve_waiters(struct weft_pool *pool);

/* Does anybody wait? */
static inline bool weft_pool_wanted(const struct weft_pool *pool)
{
	return !weft_list_empty(&pool->flows);
}

/* Anonymous memory, page aligned, zeroed, allocated when touched. NULL on failure. */
void *weft_pages_alloc(size_t size);
void weft_pages_free(void *pages, size_t size);
/* Gives whole pages back, which are zeroed when they are touched again. */
void weft_pages_discard(void *pages, size_t size);

#endif
