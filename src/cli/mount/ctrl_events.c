/* ctrl_events.c - a thread that reads the controller's events: rescans the namespaces, and reports
 * when I/O waits for a path. It may block on the target.
 *
 *   namespaces changed, live again ─▶ scan the table
 *   I/O waits for a path           ─▶ message
 *
 * It waits for the target as I/O does; signals.c does not. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <syslog.h>

#include "cli/mount/session.h"
#include "cli/progress.h"

enum { LOOK_MS = 500, LOOKS = 10 };

void weft_mount_log(const struct weft_mount *mount, const char *what, const char *text)
{
	if (mount->options->quiet)
		syslog(LOG_NOTICE, "%s: %s%s", mount->options->dir, what, text);
	else
		fprintf(stderr, "weft mount: %s%s\n", what, text);
}

/* Reported when it changes, not once per scan. */
static void report_left_out(struct weft_mount *mount)
{
	unsigned left_out = mount->table.left_out;
	char text[96];

	if (left_out == mount->left_out)
		return;
	mount->left_out = left_out;
	snprintf(text, sizeof(text), "%u namespace%s not shown: it has %d files at most", left_out,
		 left_out == 1 ? " is" : "s are", WEFT_MOUNT_NODES_MAX);
	weft_mount_log(mount, "", text);
}

int weft_mount_scan(struct weft_mount *mount, struct weft_err *err)
{
	int rc = weft_mount_table_rescan(&mount->table, err);

	report_left_out(mount);
	return rc;
}

static void scan_retry_timer(struct weft_mount *mount)
{
	struct weft_err err = {};

	if (weft_mount_scan(mount, &err) < 0)
		weft_mount_log(mount, "looking at the namespaces again: ", err.text);
}

/* Reported once per loss, not once per attempt. */
static void on_state_event(struct weft_mount *mount, const struct weft_event *event)
{
	const char *why = strstr(event->text, ": ");
	bool lost = event->state != WEFT_LIVE;

	if (event->state == WEFT_DEAD)
		weft_mount_log(mount, "I/O fails until the target is back: ", event->text);
	else if (!lost && mount->ctrl_lost)
		weft_mount_log(mount, "", "connected again");
	else if (lost && !mount->ctrl_lost)
		weft_mount_log(mount, "connection lost, I/O waits: ", why ? why + 2 : event->text);
	mount->ctrl_lost = lost;
}

/* Whether the namespaces are to be scanned. */
static bool on_ctrl_event(struct weft_mount *mount, const struct weft_event *event)
{
	switch (event->kind) {
	case WEFT_EVENT_STATE:
		on_state_event(mount, event);
		return event->state == WEFT_LIVE;
	case WEFT_EVENT_NAMESPACES:
	case WEFT_EVENT_OVERFLOW:
		return true;
	case WEFT_EVENT_ERROR:
	case WEFT_EVENT_QUEUE:
		weft_mount_log(mount, "", event->text);
		return false;
	default:
		return false;
	}
}

static void read_ctrl_events(struct weft_mount *mount)
{
	struct weft_event event;
	bool again = false;

	while (weft_volume_conn_next_event(mount->conn, &event))
		again |= on_ctrl_event(mount, &event);
	if (again)
		scan_retry_timer(mount);
}

/* --- I/O without a path ----------------------------------------------------------------------- */

struct path_check {
	struct weft_mount *mount;
	bool closed; /* a namespace has no path now */
};

/* I/O that nobody waits for has no need of a path. */
static void check_node_path(struct weft_mount *mount, struct weft_mount_node *node,
			    const struct weft_volume_view *view)
{
	const struct weft_options *options = &mount->options->connect;
	struct weft_path_wait *w = &node->path_wait;
	char text[WEFT_PATH_WAIT_TEXT];

	w->ctrl = view->ctrl;
	w->ns = view->ns;
	w->loss_ms = options->loss_ms;
	w->fast_io_fail_ms = options->fast_io_fail_ms;
	if (!w->ns || (!view->nr_running && !w->told))
		w->since_s = 0;
	else if (weft_path_wait_poll(w, weft_now_s(), text))
		weft_mount_log(mount, "", text);
}

static void check_volume_path(void *arg, const struct weft_volume_view *view)
{
	struct weft_mount_node *node = view->user;
	struct path_check *check = arg;

	if (node) {
		check_node_path(check->mount, node, view);
		check->closed |= node->path_wait.told;
	}
	check->closed |= view->ns && !weft_has_path(view->ns);
}

/* True: check again soon, a namespace has no path now. Otherwise wait for an event: only an event
 * can take a path away. */
static bool check_volume_paths(struct weft_mount *mount)
{
	struct path_check check = { .mount = mount };

	weft_volume_conn_for_each(mount->conn, check_volume_path, &check);
	return check.closed;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* The library needs a moment to see what an event has changed: some checks follow it. */
static void *events_thread_main(void *arg)
{
	struct weft_mount *mount = arg;
	struct pollfd fds[] = { { .fd = mount->events_stop_fd, .events = POLLIN },
				{ .fd = weft_volume_conn_event_fd(mount->conn),
				  .events = POLLIN } };
	unsigned looks = LOOKS;

	while (!fds[0].revents) {
		if (poll(fds, 2, looks ? LOOK_MS : -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			read_ctrl_events(mount);
		looks = check_volume_paths(mount) || fds[1].revents ? LOOKS : looks ? looks - 1 : 0;
	}
	return NULL;
}

int weft_mount_events_start(struct weft_mount *mount)
{
	mount->events_stop_fd = eventfd(0, EFD_CLOEXEC);
	if (mount->events_stop_fd < 0)
		return -errno;
	return -pthread_create(&mount->events_thread, NULL, events_thread_main, mount);
}

void weft_mount_events_stop(struct weft_mount *mount)
{
	eventfd_write(mount->events_stop_fd, 1);
	pthread_join(mount->events_thread, NULL);
}
