/* signals.c - a thread that never blocks on the target: it handles signals, unmounting and
 * interrupted requests, and ends the process when I/O keeps it from ending.
 *
 *   a call is interrupted   ─▶ interrupt.c
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

#include "base/debounce.h"
#include "cli/mount/session.h"

#define GRACE_MS      1000
#define GRACE_LIVE_MS 5000

static void on_sigusr1(int signal)
{
}

static void end_at_once(struct weft_mount *mount)
{
	weft_mount_log(mount, "", "I/O still waits for the target; it is given up");
	fuse_session_unmount(mount->session);
	_exit(1);
}

/* Whether the signal is a bounce of the last one (base/debounce.h). */
static bool signal_is_repeat(struct weft_mount *mount)
{
	static weft_signal_debounce last;
	struct signalfd_siginfo info;

	return read(mount->signal_fd, &info, sizeof(info)) != sizeof(info) ||
	       weft_signal_is_bounce_now(&last);
}

/* Waits for weft_mount_signals_stop(). Threads that wait for I/O end with it, not before. */
static void wait_for_end(struct weft_mount *mount)
{
	struct pollfd fds[] = { { .fd = mount->stop_fd, .events = POLLIN },
				{ .fd = mount->signal_fd, .events = POLLIN } };
	bool live = weft_volume_conn_is_live(mount->conn);
	int grace_ms = live ? GRACE_LIVE_MS : GRACE_MS, events;

	do
		events = poll(fds, 2, grace_ms);
	while (events > 0 && !fds[0].revents && signal_is_repeat(mount));
	if (events < 1 || !fds[0].revents)
		end_at_once(mount);
}

static void on_mount_signal(struct weft_mount *mount)
{
	if (signal_is_repeat(mount))
		return;
	fuse_session_exit(mount->session);
	pthread_kill(mount->main, SIGUSR1);
	wait_for_end(mount);
}

static void *signals_thread_main(void *arg)
{
	struct weft_mount *mount = arg;
	/* POLLERR: unmounted. */
	struct pollfd fds[] = { { .fd = mount->stop_fd, .events = POLLIN },
				{ .fd = mount->signal_fd, .events = POLLIN },
				{ .fd = mount->calls.interrupt_fd, .events = POLLIN },
				{ .fd = fuse_session_fd(mount->session) } };
	int again = -1;

	while (!fds[0].revents) {
		if (poll(fds, 4, again) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			on_mount_signal(mount);
		else if (fds[3].revents)
			wait_for_end(mount);
		else if (fds[2].revents || again >= 0)
			again = weft_mount_calls_expire(&mount->calls,
							weft_volume_conn_is_live(mount->conn));
	}
	return NULL;
}

int weft_mount_signals_prepare(struct weft_mount *mount)
{
	const struct sigaction wake = { .sa_handler = on_sigusr1 },
			       ignore = { .sa_handler = SIG_IGN };
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	sigaction(SIGUSR1, &wake, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	mount->main = pthread_self();
	mount->stop_fd = eventfd(0, EFD_CLOEXEC);
	mount->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC);
	return mount->stop_fd < 0 || mount->signal_fd < 0 ? -errno : 0;
}

int weft_mount_signals_start(struct weft_mount *mount)
{
	return -pthread_create(&mount->signals_thread, NULL, signals_thread_main, mount);
}

void weft_mount_signals_stop(struct weft_mount *mount)
{
	eventfd_write(mount->stop_fd, 1);
	pthread_join(mount->signals_thread, NULL);
}
