/* bufs.c - data buffers in three sizes. Address space is reserved at once; memory, and its
 * registration with adapters, follows the use. */
#include "transport/bufs.h"

#include <assert.h>

/* Every buffer lies in one granule: it has one key. */
#define GRANULE WEFT_MDTS_BYTES

/* 16 MiB of the first two sizes, 32 MiB of the last: more data in flight would miss the cache, and
 * stay resident. */
static const struct {
	uint32_t size, count;
} classes[WEFT_BUFS_CLASSES] = {
	{ 8u << 10, 2048 },
	{ 128u << 10, 128 },
	{ WEFT_MDTS_BYTES, 32 },
};

static int init_class(struct weft_bufs *bufs, int i, uint32_t divisor, void (*woken)(void *arg),
		      void *arg)
{
	struct weft_pool *pool = &bufs->pools[i];
	int rc = weft_pool_init(pool, classes[i].size, classes[i].count / divisor, woken, arg);

	if (rc < 0)
		return rc;
	rc = weft_region_add(&bufs->regions[i], pool->base, (size_t)pool->size * pool->count,
			     GRANULE, NULL);
	if (rc < 0)
		weft_pool_destroy(pool);
	return rc;
}

static void destroy_class(struct weft_bufs *bufs, int i)
{
	weft_region_remove(bufs->regions[i]);
	weft_pool_destroy(&bufs->pools[i]);
}

int weft_bufs_init(struct weft_bufs *bufs, uint32_t divisor, uint32_t largest, bool sink,
		   void (*woken)(void *arg), void *arg)
{
	assert(divisor && largest >= classes[0].size && !bufs->classes);
	for (int i = 0; i < WEFT_BUFS_CLASSES && classes[i].size <= largest; i++) {
		int rc = init_class(bufs, i, divisor, woken, arg);

		if (rc < 0) {
			while (i--)
				destroy_class(bufs, i);
			return rc;
		}
		bufs->regions[i]->sink = sink;
		bufs->classes = i + 1;
	}
	return 0;
}

void weft_bufs_destroy(struct weft_bufs *bufs)
{
	for (int i = 0; i < bufs->classes; i++)
		destroy_class(bufs, i);
}

uint32_t weft_bufs_largest(const struct weft_bufs *bufs)
{
	return bufs->pools[bufs->classes - 1].size;
}

struct weft_pool *weft_bufs_pool(struct weft_bufs *bufs, uint32_t len)
{
	int i = 0;

	assert(len <= weft_bufs_largest(bufs));
	while (len > bufs->pools[i].size)
		i++;
	return &bufs->pools[i];
}

void weft_bufs_flows_init(struct weft_bufs_flows *flows, struct weft_bufs_flows *within)
{
	for (int i = 0; i < WEFT_BUFS_CLASSES; i++) {
		weft_fair_flow_init(&flows->in[i], within ? &within->in[i] : NULL);
		weft_fair_flow_init(&flows->out[i], within ? &within->out[i] : NULL);
	}
}

void weft_bufs_serve_waiters(struct weft_bufs *bufs)
{
	for (int i = 0; i < bufs->classes; i++)
		weft_pool_serve_waiters(&bufs->pools[i]);
}

bool weft_bufs_has_waiters(const struct weft_bufs *bufs)
{
	for (int i = 0; i < bufs->classes; i++)
		if (weft_pool_wanted(&bufs->pools[i]))
			return true;
	return false;
}
