/* pool.c - a bounded set of equal, page-aligned buffers. */
#include "base/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

void *weft_pages_alloc(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	/* A huge page would be allocated whole for its first byte. */
	madvise(pages, size, MADV_NOHUGEPAGE);
	return pages;
}

void weft_pages_free(void *pages, size_t size)
{
	if (pages)
		munmap(pages, size);
}

void weft_pages_discard(void *pages, size_t size)
{
	madvise(pages, size, MADV_DONTNEED);
}

int weft_pool_init(struct weft_pool *pool, uint32_t size, uint32_t count, void (*wake)(void *arg),
		   void *arg)
{
	pool->base = weft_pages_alloc((size_t)size * count);
	pool->free = calloc(count, sizeof(*pool->free));
	if (!pool->base || !pool->free) {
		weft_pages_free(pool->base, (size_t)size * count);
		free(pool->free);
		return -ENOMEM;
	}
	pool->size = size;
	pool->wake = wake;
	pool->wake_arg = arg;
	pool->count = pool->nfree = count;
	for (uint32_t i = 0; i < count; i++)
		pool->free[i] = count - 1 - i;
	weft_list_init(&pool->flows);
	weft_fair_flow_init(&pool->default_flow, NULL);
	return 0;
}

void weft_pool_destroy(struct weft_pool *pool)
{
	assert(pool->nfree == pool->count);
	weft_pages_free(pool->base, (size_t)pool->size * pool->count);
	free(pool->free);
}

static void *pop_free_buffer(struct weft_pool *pool)
{
	return pool->base + (size_t)pool->free[--pool->nfree] * pool->size;
}

void *weft_pool_take(struct weft_pool *pool)
{
	return pool->nfree && !weft_pool_wanted(pool) ? pop_free_buffer(pool) : NULL;
}

void weft_pool_wait(struct weft_pool *pool, struct weft_fair_flow *flow,
		    struct weft_pool_waiter *waiter)
{
	waiter->flow = flow ? flow : &pool->default_flow;
	weft_fair_queue_push(&pool->flows, waiter->flow, &waiter->link);
}

void weft_pool_cancel_wait(struct weft_pool_waiter *waiter)
{
	if (!weft_list_empty(&waiter->link))
		weft_fair_queue_remove(waiter->flow, &waiter->link);
}

void weft_pool_give(struct weft_pool *pool, void *buf)
{
	size_t index = (size_t)((char *)buf - pool->base) / pool->size;

	assert(index < pool->count && (char *)buf == pool->base + index * pool->size);
	assert(pool->nfree < pool->count);
	pool->free[pool->nfree++] = (uint32_t)index;
	if (weft_pool_wanted(pool))
		pool->wake(pool->wake_arg);
}

void weft_pool_serve_waiters(struct weft_pool *pool)
{
	struct weft_pool_waiter *waiter;

	while (pool->nfree && weft_pool_wanted(pool)) {
		waiter = container_of(weft_fair_queue_pop(&pool->flows), struct weft_pool_waiter,
				      link);
		waiter->got(waiter, pop_free_buffer(pool));
	}
}
