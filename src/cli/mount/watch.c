/* watch.c - a thread that follows the controller's events and the process's signals.
 *
 *   namespaces changed, live again ─▶ scan the table
 *   SIGINT, SIGTERM, SIGHUP        ─▶ end the session; a second one, or I/O that waits for a lost
 *                                     target for GRACE_MS, ends the process
 *
 * The session's loop runs in the main thread and sleeps there; a signal that does nothing wakes it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <syslog.h>
#include <unistd.h>

#include "cli/mount/session.h"

#define GRACE_MS 5000

static void say(const struct weft_mount *mount, const char *what, const char *text)
{
	if (mount->options->quiet)
		syslog(LOG_NOTICE, "%s: %s%s", mount->options->dir, what, text);
	else
		fprintf(stderr, "weft mount: %s%s\n", what, text);
}

static void scan(struct weft_mount *mount)
{
	struct weft_err err = {};

	if (weft_table_scan(&mount->table, &err) < 0)
		say(mount, "looking at the namespaces again: ", err.text);
}

/* Told once per loss, not once per attempt. */
static void on_state(struct weft_mount *mount, const struct weft_event *event)
{
	const char *why = strstr(event->text, ": ");
	bool lost = event->state != WEFT_LIVE;

	if (event->state == WEFT_DEAD)
		say(mount, "I/O fails from now on: ", event->text);
	else if (!lost && mount->lost)
		say(mount, "", "connected again");
	else if (lost && !mount->lost)
		say(mount, "connection lost, I/O waits: ", why ? why + 2 : event->text);
	mount->lost = lost;
}

/* Whether the namespaces are to be looked at. */
static bool on_event(struct weft_mount *mount, const struct weft_event *event)
{
	switch (event->kind) {
	case WEFT_EVENT_STATE:
		on_state(mount, event);
		return event->state == WEFT_LIVE;
	case WEFT_EVENT_NAMESPACES:
	case WEFT_EVENT_OVERFLOW:
		return true;
	case WEFT_EVENT_ERROR:
		say(mount, "", event->text);
		return false;
	default:
		return false;
	}
}

static void on_events(struct weft_mount *mount)
{
	struct weft_event event;
	bool again = false;

	while (weft_ctrl_next_event(mount->ctrl, &event))
		again |= on_event(mount, &event);
	if (again)
		scan(mount);
}

static void on_wake(int signal)
{
}

static void end_at_once(struct weft_mount *mount)
{
	say(mount, "", "I/O still waits for the target; it is given up");
	fuse_session_unmount(mount->session);
	_exit(1);
}

/* Waits for weft_watch_stop(). Threads that wait for I/O end with it, not before. */
static void end_session(struct weft_mount *mount)
{
	struct pollfd fds[] = { { .fd = mount->stop, .events = POLLIN },
				{ .fd = mount->signals, .events = POLLIN } };
	struct signalfd_siginfo info;

	if (read(mount->signals, &info, sizeof(info)) != sizeof(info))
		return;
	fuse_session_exit(mount->session);
	pthread_kill(mount->main, SIGUSR1);
	if (poll(fds, 2, GRACE_MS) < 1 || !fds[0].revents)
		end_at_once(mount);
}

static void *watch(void *arg)
{
	struct weft_mount *mount = arg;
	struct pollfd fds[] = { { .fd = mount->stop, .events = POLLIN },
				{ .fd = mount->signals, .events = POLLIN },
				{ .fd = weft_ctrl_event_fd(mount->ctrl), .events = POLLIN } };

	while (!fds[0].revents) {
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			end_session(mount);
		if (fds[2].revents)
			on_events(mount);
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
