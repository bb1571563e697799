/* watch.c - inotify on the state file: calls back when a process writes to it or closes it, on the
 * control reactor.
 *
 *   CLOSED ─▶ CREATED ─▶ ACTIVE ◀─ a cycle ─▶ PAUSED ─ an event comes ─▶ MISSED
 *     ▲          │         │  ▲                                            │
 *     ├── free ◀─┘         │  └──────── the cycle is over: reported ◀──────┘
 *     └── CLOSING ◀────────┘
 *
 * It reports processes of this kernel only, and our own writes, too: a cycle drains the events of
 * its own writes.
 *
 * The kernel closes descriptors of a killed process from the highest number down, and an inotify
 * descriptor takes milliseconds. So open it before the files whose locks others wait for. */
#include "store/watch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FROM(state) (1u << STORE_WATCH_##state)

/* States that may come before. */
static const unsigned watch_edges[] = {
	[STORE_WATCH_CLOSED] = FROM(CREATED) | FROM(CLOSING),
	[STORE_WATCH_CREATED] = FROM(CLOSED),
	[STORE_WATCH_ACTIVE] = FROM(CREATED) | FROM(PAUSED) | FROM(MISSED),
	[STORE_WATCH_PAUSED] = FROM(ACTIVE),
	[STORE_WATCH_MISSED] = FROM(PAUSED),
	[STORE_WATCH_CLOSING] = FROM(ACTIVE),
};

static void watch_enter(struct store_watch *watch, enum store_watch_state state)
{
	assert(watch_edges[state] & 1u << watch->state);
	watch->state = state;
}

static void note_inotify_event(const struct store_watch *watch, const struct inotify_event *event,
			       struct store_file_events *file_events)
{
	if (event->mask & IN_Q_OVERFLOW) { /* events were lost: assume all of them */
		*file_events = (struct store_file_events){ true, true, true };
		return;
	}
	if (event->wd != watch->file) {
		file_events->let_go |= !!(event->mask & IN_CLOSE);
		return;
	}
	file_events->written |= !!(event->mask & IN_MODIFY);
	file_events->closed |= !!(event->mask & IN_CLOSE_WRITE);
}

bool store_watch_drain(struct store_watch *watch, struct store_file_events *file_events)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *event;
	bool any = false;
	ssize_t n;

	while ((n = read(watch->sock.fd, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + n; at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)at;
			note_inotify_event(watch, event, file_events);
		}
		any = true;
	}
	return any;
}

static void report_file_events(struct store_watch *watch)
{
	struct store_file_events file_events = { false };
	bool any = store_watch_drain(watch, &file_events);

	weft_sock_poll(&watch->sock, &watch->op);
	if (any)
		watch->on_file_events(watch, &file_events);
}

static void on_inotify_readable(struct weft_op *op, int res)
{
	struct store_watch *watch = container_of(op, struct store_watch, op);

	(void)res;
	switch (watch->state) {
	case STORE_WATCH_CLOSING:
		watch_enter(watch, STORE_WATCH_CLOSED);
		watch->ended(watch);
		break;
	case STORE_WATCH_PAUSED:
		watch_enter(watch, STORE_WATCH_MISSED);
		break;
	default:
		assert(watch->state == STORE_WATCH_ACTIVE);
		report_file_events(watch);
	}
}

void store_watch_pause(struct store_watch *watch)
{
	assert_on(watch->sock.reactor);
	watch_enter(watch, STORE_WATCH_PAUSED);
}

void store_watch_resume(struct store_watch *watch)
{
	bool missed = watch->state == STORE_WATCH_MISSED;

	assert_on(watch->sock.reactor);
	watch_enter(watch, STORE_WATCH_ACTIVE);
	if (missed)
		report_file_events(watch);
}

static int add_inotify_watch(int fd, int file, uint32_t what)
{
	char path[32];
	int watched;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	watched = inotify_add_watch(fd, path, what);
	return watched < 0 ? -errno : watched;
}

int store_watch_create(struct store_watch *watch)
{
	assert(watch->fd < 0);
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->fd < 0)
		return -errno;
	watch_enter(watch, STORE_WATCH_CREATED);
	return 0;
}

int store_watch_open(struct store_watch *watch, struct weft_reactor *control_reactor, int file)
{
	int rc;

	assert_on(control_reactor);
	assert(watch->state == STORE_WATCH_CREATED);
	watch->file = add_inotify_watch(watch->fd, file, IN_MODIFY | IN_CLOSE_WRITE);
	if (watch->file < 0)
		return watch->file;
	rc = weft_sock_open(control_reactor, &watch->sock, watch->fd);
	if (rc < 0)
		return rc;
	take_fd(&watch->fd);
	watch_enter(watch, STORE_WATCH_ACTIVE);
	watch->op.done = on_inotify_readable;
	weft_sock_poll(&watch->sock, &watch->op);
	return 0;
}

void store_watch_free(struct store_watch *watch)
{
	if (watch->state == STORE_WATCH_CLOSED)
		return;
	watch_enter(watch, STORE_WATCH_CLOSED);
	close(take_fd(&watch->fd));
}

/* One time only: a killed process with many watches takes longer to end. */
void store_watch_next_close(struct store_watch *watch, int file)
{
	assert(store_watch_is_open(watch));
	add_inotify_watch(watch->sock.fd, file, IN_CLOSE | IN_ONESHOT);
}

void store_watch_close(struct store_watch *watch)
{
	assert_on(watch->sock.reactor);
	watch_enter(watch, STORE_WATCH_CLOSING);
	weft_sock_close(&watch->sock);
}
