/* heir.c - the process that was to take our place lets go of what it was given, or is ended.
 *
 * It has our descriptors, and with them our locks: while it hangs with them, nobody could serve
 * this storage after us, not even we ourselves after a restart. */
#include "daemon/heir.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/log.h"

enum { PART_MS = 1000 };

void weft_heir_meet(struct weft_heir *heir, pid_t pid)
{
	heir->pid = pid;
	heir->fd = pidfd_open(pid, 0);
}

static bool hangs_up(int channel)
{
	struct pollfd poll_fd = { .fd = channel }; /* POLLHUP comes unasked */

	return poll(&poll_fd, 1, PART_MS) == 1;
}

void weft_heir_part(struct weft_heir *heir, int channel)
{
	if (heir->fd < 0)
		return;
	if (!hangs_up(channel)) {
		weft_warn("pid %d is killed: it was told that it does not take over, and keeps "
			  "what it was given",
			  (int)heir->pid);
		if (pidfd_send_signal(heir->fd, SIGKILL, NULL, 0) < 0)
			weft_error("cannot kill pid %d: %m", (int)heir->pid);
	}
	close(heir->fd);
}
