/* range_lock.h - range locks: a thread that changes blocks locks them. */
#ifndef WEFT_VOLUME_RANGE_LOCK_H
#define WEFT_VOLUME_RANGE_LOCK_H

#include <pthread.h>
#include <stdint.h>

#include "base/list.h"

struct weft_range_locks {
	pthread_mutex_t lock;
	pthread_cond_t released;
	struct weft_list held;
};

/* Lives on the stack of the thread that holds it. */
struct weft_range_lock {
	struct weft_list link;
	uint64_t start, end;
};

void weft_range_locks_init(struct weft_range_locks *ranges);
void weft_range_locks_destroy(struct weft_range_locks *ranges); /* nothing is locked */

/* Waits until no locked range overlaps; a thread locks one at a time. */
void weft_range_lock_acquire(struct weft_range_locks *ranges, struct weft_range_lock *range,
			     uint64_t start, uint64_t length);
void weft_range_lock_release(struct weft_range_locks *ranges, struct weft_range_lock *range);

#endif
