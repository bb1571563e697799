/* ranges.h - locks on ranges of bytes. */
#ifndef WEFT_CLI_MOUNT_RANGES_H
#define WEFT_CLI_MOUNT_RANGES_H

#include <pthread.h>
#include <stdint.h>

#include "base/list.h"

struct weft_ranges {
	pthread_mutex_t lock;
	pthread_cond_t released;
	struct weft_list held;
};

/* Lives on the stack of the thread that holds it. */
struct weft_range {
	struct weft_list link;
	uint64_t start, end;
};

void weft_ranges_init(struct weft_ranges *ranges);
void weft_ranges_destroy(struct weft_ranges *ranges); /* nothing is held */

/* Waits until no range that is held overlaps; a thread holds one at a time. */
void weft_range_hold(struct weft_ranges *ranges, struct weft_range *range, uint64_t start,
		     uint64_t length);
void weft_range_release(struct weft_ranges *ranges, struct weft_range *range);

#endif
