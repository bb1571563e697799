/* ratelimit.c - see ratelimit.h. */
#include "host/ratelimit.h"

#define NS_PER_MS UINT64_C(1000000)

uint32_t host_ratelimit_take(struct host_ratelimit *ratelimit, uint64_t now_ns)
{
	uint64_t past_ms = (now_ns - ratelimit->since_ns) / NS_PER_MS;

	if (past_ms >= HOST_RATELIMIT_INTERVAL_MS)
		*ratelimit = (struct host_ratelimit){ .since_ns = now_ns };
	else if (ratelimit->spent == HOST_RATELIMIT_BURST)
		return HOST_RATELIMIT_INTERVAL_MS - (uint32_t)past_ms;
	ratelimit->spent++;
	return 0;
}
