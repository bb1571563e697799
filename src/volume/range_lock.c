/* range_lock.c - range locks: a thread that changes blocks locks them.
 *
 * So a block that is read, changed in part and written back loses nobody's bytes, and no two writes
 * to one block are ever in flight, which NVMe would not order. There are about as many ranges as
 * threads: a list will do. */
#include "volume/internal.h"

#include <assert.h>

void weft_range_locks_init(struct weft_range_locks *ranges)
{
	pthread_mutex_init(&ranges->lock, NULL);
	pthread_cond_init(&ranges->released, NULL);
	weft_list_init(&ranges->held);
}

void weft_range_locks_destroy(struct weft_range_locks *ranges)
{
	assert(weft_list_empty(&ranges->held));
	pthread_cond_destroy(&ranges->released);
	pthread_mutex_destroy(&ranges->lock);
}

static bool overlaps_held(struct weft_range_locks *ranges, const struct weft_range_lock *range)
{
	struct weft_range_lock *other;

	weft_list_for_each(other, &ranges->held, link) {
		if (other->start < range->end && range->start < other->end)
			return true;
	}
	return false;
}

void weft_range_lock_acquire(struct weft_range_locks *ranges, struct weft_range_lock *range,
			     uint64_t start, uint64_t length)
{
	range->start = start;
	range->end = start + length;
	assert(range->start < range->end); /* an empty one would exclude nobody */
	pthread_mutex_lock(&ranges->lock);
	while (overlaps_held(ranges, range))
		pthread_cond_wait(&ranges->released, &ranges->lock);
	weft_list_push(&ranges->held, &range->link);
	pthread_mutex_unlock(&ranges->lock);
}

void weft_range_lock_release(struct weft_range_locks *ranges, struct weft_range_lock *range)
{
	pthread_mutex_lock(&ranges->lock);
	assert(!weft_list_empty(&ranges->held) && range->link.next != &range->link);
	weft_list_remove(&range->link);
	pthread_cond_broadcast(&ranges->released);
	pthread_mutex_unlock(&ranges->lock);
}
