/* successor.c - make a successor that does not take over give up our descriptors.
 *
 * It holds copies of our descriptors, and so our locks. If it hung with them, no process could
 * open this storage again. So the old process waits a second for it to close the channel, and
 * then kills it. */
#include "daemon/takeover/successor.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/log.h"

enum { RELEASE_MS = 1000 };

void weft_successor_open(struct weft_successor *successor, pid_t pid)
{
	successor->pid = pid;
	successor->fd = pidfd_open(pid, 0);
}

static bool wait_for_hangup(int channel)
{
	struct pollfd poll_fd = { .fd = channel }; /* POLLHUP comes unasked */

	return poll(&poll_fd, 1, RELEASE_MS) == 1;
}

void weft_successor_release(struct weft_successor *successor, int channel)
{
	if (successor->fd < 0)
		return;
	if (!wait_for_hangup(channel)) {
		weft_warn("pid %d is killed: it was told that it does not take over, and keeps "
			  "what it was given",
			  (int)successor->pid);
		if (pidfd_send_signal(successor->fd, SIGKILL, NULL, 0) < 0)
			weft_error("cannot kill pid %d: %m", (int)successor->pid);
	}
	close(successor->fd);
}
