/* poison.c - a pool's free buffers are poisoned, so that the address sanitizer sees who touches a
 * buffer that is not his, or runs over the end of his own. The linker puts these in the place of
 * the pool's functions (--wrap). */
#include <sanitizer/asan_interface.h>

#include "base/pool.h"

int __real_weft_pool_init(struct weft_pool *pool, uint32_t size, uint32_t count,
			  void (*woken)(void *arg), void *arg);
void __real_weft_pool_destroy(struct weft_pool *pool);
void *__real_weft_pool_take(struct weft_pool *pool);
void __real_weft_pool_give(struct weft_pool *pool, void *buf);

int __wrap_weft_pool_init(struct weft_pool *pool, uint32_t size, uint32_t count,
			  void (*woken)(void *arg), void *arg);
void __wrap_weft_pool_destroy(struct weft_pool *pool);
void *__wrap_weft_pool_take(struct weft_pool *pool);
void __wrap_weft_pool_give(struct weft_pool *pool, void *buf);
void __wrap_weft_pool_serve_waiters(struct weft_pool *pool);

/* Buffers of a pool that are poisoned from the start, or were given back since: the lowest. */
static uint32_t poisoned = 8;

static size_t poisoned_bytes(const struct weft_pool *pool)
{
	return (size_t)pool->size * (pool->count < poisoned ? pool->count : poisoned);
}

int __wrap_weft_pool_init(struct weft_pool *pool, uint32_t size, uint32_t count,
			  void (*woken)(void *arg), void *arg)
{
	int rc = __real_weft_pool_init(pool, size, count, woken, arg);

	if (rc == 0)
		ASAN_POISON_MEMORY_REGION(pool->base, poisoned_bytes(pool));
	return rc;
}

void __wrap_weft_pool_destroy(struct weft_pool *pool)
{
	ASAN_UNPOISON_MEMORY_REGION(pool->base, poisoned_bytes(pool));
	__real_weft_pool_destroy(pool);
}

void *__wrap_weft_pool_take(struct weft_pool *pool)
{
	void *buf = __real_weft_pool_take(pool);

	if (buf)
		ASAN_UNPOISON_MEMORY_REGION(buf, pool->size);
	return buf;
}

void __wrap_weft_pool_give(struct weft_pool *pool, void *buf)
{
	uint32_t index = (uint32_t)((size_t)((char *)buf - pool->base) / pool->size);

	ASAN_POISON_MEMORY_REGION(buf, pool->size);
	poisoned = index < poisoned ? poisoned : index + 1;
	__real_weft_pool_give(pool, buf);
}

/* As the pool does it: what leaves the stack here does not go through take(). */
void __wrap_weft_pool_serve_waiters(struct weft_pool *pool)
{
	struct weft_pool_waiter *waiter;

	while (pool->nfree && weft_pool_wanted(pool)) {
		char *buf = pool->base + (size_t)pool->free[--pool->nfree] * pool->size;

		ASAN_UNPOISON_MEMORY_REGION(buf, pool->size);
		waiter = container_of(weft_fair_queue_pop(&pool->flows), struct weft_pool_waiter,
				      link);
		waiter->got(waiter, buf);
	}
}
