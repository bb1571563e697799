/* watch.c - a thread that never waits for the target, but for those who do not want to wait either.
 *
 *   a call is interrupted   ─▶ calls.c
 *   unmounted               ─▶ I/O that waits for a lost target for the grace ends the process
 *   SIGINT, SIGTERM, SIGHUP ─▶ the same, and the session ends; a second one ends the process
 *
 * The session's loop runs in the main thread and sleeps there; a signal that does nothing wakes
 * it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/echo.h"
#include "cli/mount/session.h"

#define GRACE_MS      1000
#define GRACE_LIVE_MS 5000

static void on_wake(int signal)
{
}

static void end_at_once(struct weft_mount *mount)
{
	weft_mount_say(mount, "", "I/O still waits for the target; it is given up");
	fuse_session_unmount(mount->session);
	_exit(1);
}

/* Whether what has come counts for nothing. */
static bool take_signal(struct weft_mount *mount)
{
	static weft_echo last;
	struct signalfd_siginfo info;

	return read(mount->signals, &info, sizeof(info)) != sizeof(info) || weft_is_echo_now(&last);
}

/* Waits for weft_watch_stop(). Threads that wait for I/O end with it, not before. */
static void wait_for_end(struct weft_mount *mount)
{
	struct pollfd fds[] = { { .fd = mount->stop, .events = POLLIN },
				{ .fd = mount->signals, .events = POLLIN } };
	bool live = weft_uplink_is_live(&mount->uplink);
	int grace_ms = live ? GRACE_LIVE_MS : GRACE_MS, events;

	do
		events = poll(fds, 2, grace_ms);
	while (events > 0 && !fds[0].revents && take_signal(mount));
	if (events < 1 || !fds[0].revents)
		end_at_once(mount);
}

static void on_signal(struct weft_mount *mount)
{
	if (take_signal(mount))
		return;
	fuse_session_exit(mount->session);
	pthread_kill(mount->main, SIGUSR1);
	wait_for_end(mount);
}

static void *watch(void *arg)
{
	struct weft_mount *mount = arg;
	struct pollfd fds[] = { { .fd = mount->stop, .events = POLLIN },
				{ .fd = mount->signals, .events = POLLIN },
				{ .fd = mount->calls.interrupted, .events = POLLIN },
				{ .fd = fuse_session_fd(mount->session) } }; /* POLLERR: unmounted */
	int again = -1;

	while (!fds[0].revents) {
		if (poll(fds, 4, again) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			on_signal(mount);
		else if (fds[3].revents)
			wait_for_end(mount);
		else if (fds[2].revents || again >= 0)
			again = weft_calls_look(&mount->calls, weft_uplink_is_live(&mount->uplink));
	}
	return NULL;
}

int weft_watch_prepare(struct weft_mount *mount)
{
	const struct sigaction wake = { .sa_handler = on_wake }, ignore = { .sa_handler = SIG_IGN };
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	sigaction(SIGUSR1, &wake, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	mount->main = pthread_self();
	mount->stop = eventfd(0, EFD_CLOEXEC);
	mount->signals = signalfd(-1, &ours, SFD_CLOEXEC);
	return mount->stop < 0 || mount->signals < 0 ? -errno : 0;
}

int weft_watch_start(struct weft_mount *mount)
{
	return -pthread_create(&mount->watcher, NULL, watch, mount);
}

void weft_watch_stop(struct weft_mount *mount)
{
	eventfd_write(mount->stop, 1);
	pthread_join(mount->watcher, NULL);
}
