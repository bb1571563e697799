/* path.c - the states of a path, as a table: connect, lose, reconnect, give up.
 *
 *                 UP                 BROKEN                CLOSED
 *   CONNECTING ───────▶ LIVE ───────────────▶ RESETTING ─────────▶ RECONNECTING ──▶ DEAD
 *        │               ▲                      ▲    │                  │   │    too long, or
 *        │               └──────────────────────┼────┼─────── UP ───────┘   │    not wanted
 *        └──────────── BROKEN ──────────────────┘    └────◀──── BROKEN ─────┘
 *
 * After a loss the path reconnects. The delay before each attempt doubles and is drawn at random
 * between half and all of it, so a thousand hosts that lost the same target do not come back in
 * step.
 *
 * When an I/O queue's connection is closed by the controller, the admin queue's may be about to
 * follow. If it does, the loss is audible: the controller has ended. So the control reactor sends a
 * Keep Alive and waits, 3 s at most, for its answer or for the admin connection to close, before it
 * tears the association down. Meanwhile no I/O goes there.
 *
 * Everything here runs on the control reactor. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/internal.h"

#define STEADY_NS UINT64_C(1000000000)

/* Where I/O has another path, failover to that path comes first; reconnecting can wait. */
enum { OTHER_PATH_DELAY_MS = 2 };

/* The limit for the Keep Alive's answer; after it some more turns: this machine may be late. */
enum { ADMIN_CLOSE_MAX_MS = 3000, ADMIN_CLOSE_POLL_MS = 5, ADMIN_CLOSE_POLLS = 6 };

enum event {
	EV_UP,     /* set-up is complete */
	EV_BROKEN, /* the association has to be ended */
	EV_CLOSED, /* nothing of the old association is left */
	EV_RETRY,  /* the pause is over */
	EVENTS,
};

static void path_go_live(struct host_path *path);
static void path_tear_down(struct host_path *path);
static void path_retry_or_die(struct host_path *path);
static void path_open_admin_link(struct host_path *path);

static const struct {
	enum weft_state next;
	void (*action)(struct host_path *path); /* NULL: the event means nothing here */
} path_transitions[WEFT_DEAD + 1][EVENTS] = {
	[WEFT_CONNECTING] = {
		[EV_UP] = { WEFT_LIVE, path_go_live },
		[EV_BROKEN] = { WEFT_RESETTING, path_tear_down },
	},
	[WEFT_LIVE] = {
		[EV_BROKEN] = { WEFT_RESETTING, path_tear_down },
	},
	[WEFT_RESETTING] = {
		[EV_CLOSED] = { WEFT_RECONNECTING, path_retry_or_die },
	},
	[WEFT_RECONNECTING] = {
		[EV_RETRY] = { WEFT_RECONNECTING, path_open_admin_link },
		[EV_UP] = { WEFT_LIVE, path_go_live },
		[EV_BROKEN] = { WEFT_RESETTING, path_tear_down },
	},
};

/* The one function that changes the state. */
static void path_set_state(struct host_path *path, enum weft_state state)
{
	path->state = state;
	host_path_publish(path);
}

static void path_event(struct host_path *path, enum event event)
{
	enum weft_state now = path->state;

	if (!path_transitions[now][event].action)
		return;
	path_set_state(path, path_transitions[now][event].next);
	path_transitions[now][event].action(path);
}

/* --- actions ---------------------------------------------------------------------------------- */

static void path_go_live(struct host_path *path)
{
	path->reconnect.live_ns = weft_reactor_now_ns(path->reactor);
	path->assoc.why.text[0] = '\0';
	host_keepalive_start(path);
	host_aer_start(path);
	host_fence_path_up(path);
	host_user_admin_pump(path->ctrl);
}

/* A target that takes us in and throws us out at once has not really come back. */
static void note_loss(struct host_path *path)
{
	uint64_t now = weft_reactor_now_ns(path->reactor);

	if (path->reconnect.live_ns && now - path->reconnect.live_ns >= STEADY_NS) {
		path->reconnect.attempt = 0;
		path->reconnect.lost_ns = now;
	} else if (!path->reconnect.lost_ns) {
		path->reconnect.lost_ns = now;
	}
	path->reconnect.live_ns = 0;
}

static void path_tear_down(struct host_path *path)
{
	note_loss(path);
	weft_timer_stop(path->reactor, &path->setup.timer);
	weft_timer_stop(path->reactor, &path->reconnect.timer);
	weft_timer_stop(path->reactor, &path->close_wait.timer);
	host_keepalive_stop(path);
	host_aer_stop(path);
	host_ana_stop(path);
	host_scan_stop(path);
	host_fence_path_lost(path);
	if (path->assoc.link)
		weft_link_close(path->assoc.link, path->assoc.rc, "%s", path->assoc.why.text);
	else
		path_event(path, EV_CLOSED);
}

static void die(struct host_path *path)
{
	path_set_state(path, WEFT_DEAD);
	host_fence_path_dead(path);
}

static uint64_t reconnect_delay_ms(struct host_path *path)
{
	const struct weft_options *o = &path->config.options;
	uint64_t pause = o->reconnect_ms;

	for (unsigned i = 2; i < path->reconnect.attempt && pause < o->reconnect_max_ms; i++)
		pause *= 2;
	if (pause > o->reconnect_max_ms)
		pause = o->reconnect_max_ms;
	return pause / 2 + (uint64_t)rand_r(&path->reconnect.random) % (pause / 2 + 1);
}

/* loss_timeout limits how long I/O waits. A follower has no I/O, and never gives up. */
static uint64_t loss_timeout_left_ms(const struct host_path *path)
{
	uint64_t lost_ms = (weft_reactor_now_ns(path->reactor) - path->reconnect.lost_ns) / 1000000;
	uint64_t most = path->ctrl->follower ? UINT64_MAX : path->config.options.loss_ms;

	return lost_ms < most ? most - lost_ms : 0;
}

/* A controller that says "do not retry" to Connect means it. Where there is only one path, the
 * first attempt is the caller's to repeat. */
static bool loss_is_final(const struct host_path *path)
{
	const struct weft_ctrl *ctrl = path->ctrl;

	if (ctrl->follower)
		return false;
	return path->assoc.refused || !loss_timeout_left_ms(path) ||
	       (!path->assoc.generation && host_path_is_only(path) &&
		weft_list_empty(&ctrl->followers));
}

/* Another address of the name may work where this one does not answer. */
static bool next_address(struct host_path *path)
{
	int rc = path->assoc.rc;
	bool unreachable = rc == -ECONNREFUSED || rc == -EHOSTUNREACH || rc == -ENETUNREACH ||
			   rc == -ETIMEDOUT || rc == -EADDRNOTAVAIL;

	if (path->reconnect.tried || !unreachable || path->addrs.current + 1 == path->addrs.count)
		return false;
	path->config.addr = path->addrs.list[++path->addrs.current];
	return true;
}

static void path_retry_or_die(struct host_path *path)
{
	uint64_t pause;

	if (path->stopping) {
		host_path_stopped(path);
		return;
	}
	if (next_address(path)) {
		weft_timer_set(path->reactor, &path->reconnect.timer, 0);
		return;
	}
	path->reconnect.tried = true;
	if (loss_is_final(path)) {
		die(path);
		return;
	}
	host_path_publish(path);
	pause = path->reconnect.attempt++       ? reconnect_delay_ms(path) :
		host_path_find_other_live(path) ? OTHER_PATH_DELAY_MS :
						  0;
	weft_timer_set(path->reactor, &path->reconnect.timer,
		       pause < loss_timeout_left_ms(path) ? pause : loss_timeout_left_ms(path));
}

static void path_open_admin_link(struct host_path *path)
{
	const struct host_config *config = &path->config;
	struct weft_link_options options;
	struct weft_err why = { "" };
	int rc;

	path->broken = path->assoc.hung_up = false;
	host_link_options(config, 0, 0, HOST_ADMIN_DEPTH, &options);
	rc = config->transport->open(&path->assoc.link, path->reactor, &options,
				     &host_admin_link_ops, path, &why);
	if (rc < 0)
		host_path_broken(path, rc, "%s", why.text);
}

/* --- what happens ----------------------------------------------------------------------------- */

static void path_on_retry_timer(struct weft_timer *timer)
{
	path_event(container_of(timer, struct host_path, reconnect.timer), EV_RETRY);
}

void host_path_address(const struct host_path *path, char *text, size_t size)
{
	weft_uri_format(path->config.transport->trtype, &path->config.addr, text, size);
}

void host_path_start(struct host_path *path)
{
	path->reconnect.timer.fn = path_on_retry_timer;
	path_open_admin_link(path);
}

void host_path_up(struct host_path *path)
{
	path->assoc.generation++;
	path->reconnect.tried = true;
	path_event(path, EV_UP);
}

/* false: there is a cause already. */
static bool path_set_cause(struct host_path *path, int rc, const char *fmt, va_list ap)
{
	if (path->broken)
		return false;
	path->broken = true;
	path->assoc.rc = rc;
	vsnprintf(path->assoc.why.text, sizeof(path->assoc.why.text), fmt, ap);
	return true;
}

void host_path_broken(struct host_path *path, int rc, const char *fmt, ...)
{
	bool first;
	va_list ap;

	va_start(ap, fmt);
	first = path_set_cause(path, rc, fmt, ap);
	va_end(ap);
	if (first)
		path_event(path, EV_BROKEN);
}

static void on_admin_close_timer(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, close_wait.timer);

	if (++path->close_wait.polls < ADMIN_CLOSE_POLLS)
		weft_timer_set(path->reactor, timer, ADMIN_CLOSE_POLL_MS);
	else
		path_event(path, EV_BROKEN);
}

/* The controller answers, unless it is about to close the admin queue as well. */
static void on_admin_close_keepalive(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;

	if (weft_heap_has(&path->close_wait.timer.node))
		weft_timer_set(path->reactor, &path->close_wait.timer, ADMIN_CLOSE_POLL_MS);
}

static void await_admin_close(struct host_path *path)
{
	struct host_admin *a = &path->close_wait.cmd;

	path->close_wait.polls = 0;
	path->close_wait.timer.fn = on_admin_close_timer;
	weft_timer_set(path->reactor, &path->close_wait.timer, ADMIN_CLOSE_MAX_MS);
	memset(a, 0, sizeof(*a));
	a->name = "Keep Alive, as an I/O queue was closed";
	a->done = on_admin_close_keepalive;
	a->cmd.common.opcode = nvme_admin_keep_alive;
	host_admin_start(path, a, 0);
}

void host_path_io_link_closed(struct host_path *path, int rc, const char *fmt, ...)
{
	bool first;
	va_list ap;

	va_start(ap, fmt);
	first = path_set_cause(path, rc, fmt, ap);
	va_end(ap);
	if (!first)
		return;
	host_path_publish(path); /* the path is lost, whatever the admin queue does */
	await_admin_close(path);
}

void host_path_link_closed(struct host_path *path)
{
	struct weft_link *link = path->assoc.link;

	path->assoc.hung_up = link->peer_closed;
	host_path_broken(path, link->rc, "%s", link->err.text);
	path_event(path, EV_BROKEN); /* await_admin_close() may have waited for this */
	path->assoc.link = NULL;
	host_admin_lost(path);
	weft_link_free(link);
	host_user_admin_pump(path->ctrl);
	path_event(path, EV_CLOSED);
}

/* --- stopping --------------------------------------------------------------------------------- */

static void on_shutdown_done(struct host_admin *a, int rc)
{
	if (!a->path->broken)
		host_path_broken(a->path, -ESHUTDOWN, "disconnected");
}

void host_path_stop(struct host_path *path)
{
	if (path->stopping)
		return;
	path->stopping = true;
	host_fence_stop(path);
	weft_timer_stop(path->reactor, &path->reconnect.timer);
	if (path->state == WEFT_LIVE)
		host_setup_shutdown(path, on_shutdown_done);
	else if (path->assoc.link)
		host_path_broken(path, -ESHUTDOWN, "disconnected");
	else
		host_path_stopped(path);
}
