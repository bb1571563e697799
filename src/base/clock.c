/* clock.c - wait for a descriptor until a moment of the monotonic clock. */
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

static int poll_timeout_ms(uint64_t now_ns, uint64_t deadline_ns)
{
	uint64_t ms = (deadline_ns - now_ns + 999999) / 1000000;

	if (deadline_ns == WEFT_NO_DEADLINE)
		return -1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

int weft_poll_until(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	uint64_t now = weft_monotonic_ns();
	int n = 0;

	while (now < deadline_ns && n <= 0) {
		n = poll(&poll_fd, 1, poll_timeout_ms(now, deadline_ns));
		if (n < 0 && errno != EINTR)
			return -errno;
		now = weft_monotonic_ns();
	}
	return n > 0 ? 0 : -ETIMEDOUT;
}
