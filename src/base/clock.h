/* clock.h - the monotonic clock. A reactor has its own, which a test may replace:
 * weft_reactor_now_ns(). */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t weft_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t weft_monotonic_ms(void)
{
	return weft_monotonic_ns() / 1000000;
}

#define WEFT_NO_DEADLINE UINT64_MAX

/* poll() of one descriptor. 0: one of @events, an error or a hangup is there; or -errno. After the
 * deadline it is -ETIMEDOUT, whatever is there: a peer that never stops sending is not read for
 * ever. */
int weft_poll_until(int fd, short events, uint64_t deadline_ns);

#endif
