/* follow.c - a thread that follows the controller's events.
 *
 *   namespaces changed, live again ─▶ scan the table
 *
 * It waits for the target as I/O does; watch.c does not. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <syslog.h>

#include "cli/mount/session.h"

void weft_mount_say(const struct weft_mount *mount, const char *what, const char *text)
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
		weft_mount_say(mount, "looking at the namespaces again: ", err.text);
}

/* Told once per loss, not once per attempt. */
static void on_state(struct weft_mount *mount, const struct weft_event *event)
{
	const char *why = strstr(event->text, ": ");
	bool lost = event->state != WEFT_LIVE;

	if (event->state == WEFT_DEAD)
		weft_mount_say(mount, "I/O fails until the target is back: ", event->text);
	else if (!lost && mount->lost)
		weft_mount_say(mount, "", "connected again");
	else if (lost && !mount->lost)
		weft_mount_say(mount, "connection lost, I/O waits: ", why ? why + 2 : event->text);
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
		weft_mount_say(mount, "", event->text);
		return false;
	default:
		return false;
	}
}

static void on_events(struct weft_mount *mount)
{
	struct weft_event event;
	bool again = false;

	while (weft_uplink_next_event(&mount->uplink, &event))
		again |= on_event(mount, &event);
	if (again)
		scan(mount);
}

static void *follow(void *arg)
{
	struct weft_mount *mount = arg;
	struct pollfd fds[] = { { .fd = mount->unfollow, .events = POLLIN },
				{ .fd = mount->uplink.events, .events = POLLIN } };

	while (!fds[0].revents) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			on_events(mount);
	}
	return NULL;
}

int weft_follow_start(struct weft_mount *mount)
{
	mount->unfollow = eventfd(0, EFD_CLOEXEC);
	if (mount->unfollow < 0)
		return -errno;
	return -pthread_create(&mount->follower, NULL, follow, mount);
}

void weft_follow_stop(struct weft_mount *mount)
{
	eventfd_write(mount->unfollow, 1);
	pthread_join(mount->follower, NULL);
}
