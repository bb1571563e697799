/* ratelimit.h - limits how often a peer's events make us act: 16 at once, then 16 per 50 ms.
 *
 *   ├──── 50 ms ────┤           16 in each
 *   ||||  || |      ||||||||
 *
 * A few events that come together are handled without delay; a storm of events is slowed down. */
#ifndef WEFT_HOST_RATELIMIT_H
#define WEFT_HOST_RATELIMIT_H

#include <stdint.h>

enum { HOST_RATELIMIT_BURST = 16, HOST_RATELIMIT_INTERVAL_MS = 50 };

/* All zeros: no event has been counted. */
struct host_ratelimit {
	uint64_t since_ns;
	unsigned spent; /* since then */
};

/* 0: the event may be handled now, and is counted; else ms until the next one may be. */
uint32_t host_ratelimit_take(struct host_ratelimit *ratelimit, uint64_t now_ns);

#endif
