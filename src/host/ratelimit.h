/* ratelimit.h - limits how often a peer's events make us act: 16 at once, then 16 per 50 ms.
 *
 *   ├──── 50 ms ────┤           16 in each
 *   ||||  || |      ||||||||
 *
 * News that come in a bunch are acted on without delay; of a storm so many per second are. */
#ifndef WEFT_HOST_RATELIMIT_H
#define WEFT_HOST_RATELIMIT_H

#include <stdint.h>

enum { HOST_RATELIMIT_BURST = 16, HOST_RATELIMIT_INTERVAL_MS = 50 };

/* All zeros: nothing was spent. */
struct host_ratelimit {
	uint64_t since_ns;
	unsigned spent; /* since then */
};

/* How long until something may be spent, in ms; 0: it was, just now. */
uint32_t host_ratelimit_take(struct host_ratelimit *ratelimit, uint64_t now_ns);

#endif
