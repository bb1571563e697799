/* path.c - the states of a path, as a table: connect, lose, reconnect, give up, stop.
 *
 *   NEW ─▶ CONNECTING ── up ──▶ LIVE ─ an I/O connection is closed ─▶ CLOSE_WAIT
 *               │ broken         ▲ │ broken                               │ broken
 *               ├────────────────┼─┴──────────────────────────────────────┘
 *               ▼                │ up
 *           RESETTING ─ closed ─▶│BACKOFF ─ the pause is over ─▶ RECONNECTING
 *               ▲                │   └ too long, or not wanted ─▶ DEAD │ │
 *               └── broken ──────┼─────────────────────────────────────┘ │
 *                                └───────────────────────────────────────┘
 *
 *   stop:  LIVE ─▶ SHUTDOWN ─ answered, or broken ─┐
 *          any other with a connection ────────────┴─▶ STOPPING ─ closed ─┐
 *          BACKOFF, DEAD ─────────────────────────────────────────────────┴─▶ STOPPED
 *
 * The program sees five of these states (enum weft_state): each has the public state that it counts
 * as. Whatever is not in the table does not happen.
 *
 * "broken" is host_path_broken(). It is called where a command is not answered in time (admin.c,
 * probe.c; queue/timeout.c by way of queue/control_request.c), where a connection ends, and where an
 * answer makes no sense (setup.c, setup_steps.c, ana.c).
 *
 * Invariant: there is a connection (assoc.link) from CONNECTING, LIVE or RECONNECTING on until
 * "closed"; in NEW, BACKOFF, DEAD and STOPPED there is none. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "host/internal.h"

enum event {
	EV_START,
	EV_UP,        /* set-up is complete */
	EV_IO_CLOSED, /* the controller has closed an I/O queue's connection */
	EV_BROKEN,    /* the association has to be ended */
	EV_CLOSED,    /* nothing of the old association is left */
	EV_RETRY,     /* the pause is over */
	EV_FINAL,     /* there will be no other attempt */
	EV_STOP,      /* the path is removed, or its controller is disconnected */
	EVENTS,
};

static void path_open_admin_link(struct host_path *path);
static void path_go_live(struct host_path *path);
static void path_tear_down(struct host_path *path);
static void path_retry_or_die(struct host_path *path);
static void path_shut_down(struct host_path *path);
static void path_await_closed(struct host_path *path);

static const enum weft_state public_states[] = {
	[HOST_PATH_NEW] = WEFT_CONNECTING,
	[HOST_PATH_CONNECTING] = WEFT_CONNECTING,
	[HOST_PATH_LIVE] = WEFT_LIVE,
	[HOST_PATH_CLOSE_WAIT] = WEFT_LIVE,
	[HOST_PATH_RESETTING] = WEFT_RESETTING,
	[HOST_PATH_BACKOFF] = WEFT_RECONNECTING,
	[HOST_PATH_RECONNECTING] = WEFT_RECONNECTING,
	[HOST_PATH_DEAD] = WEFT_DEAD,
	[HOST_PATH_SHUTDOWN] = WEFT_LIVE,
	[HOST_PATH_STOPPING] = WEFT_RESETTING,
	[HOST_PATH_STOPPED] = WEFT_RESETTING,
};

static const struct {
	enum host_path_state next;
	void (*action)(struct host_path *path); /* NULL: the event means nothing here */
} path_transitions[HOST_PATH_STATES][EVENTS] = {
	[HOST_PATH_NEW] = {
		[EV_START] = { HOST_PATH_CONNECTING, path_open_admin_link },
	},
	[HOST_PATH_CONNECTING] = {
		[EV_UP] = { HOST_PATH_LIVE, path_go_live },
		[EV_BROKEN] = { HOST_PATH_RESETTING, path_tear_down },
		[EV_STOP] = { HOST_PATH_STOPPING, path_tear_down },
	},
	[HOST_PATH_LIVE] = {
		[EV_IO_CLOSED] = { HOST_PATH_CLOSE_WAIT, host_close_wait_start },
		[EV_BROKEN] = { HOST_PATH_RESETTING, path_tear_down },
		[EV_STOP] = { HOST_PATH_SHUTDOWN, path_shut_down },
	},
	[HOST_PATH_CLOSE_WAIT] = {
		[EV_BROKEN] = { HOST_PATH_RESETTING, path_tear_down },
		[EV_STOP] = { HOST_PATH_STOPPING, path_tear_down },
	},
	[HOST_PATH_RESETTING] = {
		[EV_CLOSED] = { HOST_PATH_BACKOFF, path_retry_or_die },
		[EV_STOP] = { HOST_PATH_STOPPING, path_await_closed },
	},
	[HOST_PATH_BACKOFF] = {
		[EV_RETRY] = { HOST_PATH_RECONNECTING, path_open_admin_link },
		[EV_FINAL] = { HOST_PATH_DEAD, host_fence_path_dead },
		[EV_STOP] = { HOST_PATH_STOPPED, host_path_stopped },
	},
	[HOST_PATH_RECONNECTING] = {
		[EV_UP] = { HOST_PATH_LIVE, path_go_live },
		[EV_BROKEN] = { HOST_PATH_RESETTING, path_tear_down },
		[EV_STOP] = { HOST_PATH_STOPPING, path_tear_down },
	},
	[HOST_PATH_DEAD] = {
		[EV_STOP] = { HOST_PATH_STOPPED, host_path_stopped },
	},
	[HOST_PATH_SHUTDOWN] = {
		[EV_BROKEN] = { HOST_PATH_STOPPING, path_tear_down },
	},
	[HOST_PATH_STOPPING] = {
		[EV_CLOSED] = { HOST_PATH_STOPPED, host_path_stopped },
	},
};

enum weft_state host_path_public_state(const struct host_path *path)
{
	return public_states[path->state];
}

/* Two causes may end an association: what the second one reports is late, and so is the last answer
 * of a set-up. Every other event is for a state that waits for it. */
static bool event_may_be_late(enum event event)
{
	return event == EV_UP || event == EV_IO_CLOSED || event == EV_BROKEN;
}

/* The one function that changes the state. Nobody is told of a path that has stopped, nor of a
 * state that looks the same from outside. */
static void path_enter(struct host_path *path, enum host_path_state state)
{
	bool was_up = host_path_is_up(path);
	enum weft_state before = host_path_public_state(path);

	path->state = state;
	if (state == HOST_PATH_LIVE) {
		path->assoc.generation++;
		path->reconnect.tried = true;
	}
	if (state != HOST_PATH_STOPPED &&
	    (before != host_path_public_state(path) || was_up != host_path_is_up(path)))
		host_path_publish(path);
}

static void path_event(struct host_path *path, enum event event)
{
	enum host_path_state now = path->state;

	assert_on(path->reactor);
	if (!path_transitions[now][event].action) {
		assert(event_may_be_late(event));
		return;
	}
	path_enter(path, path_transitions[now][event].next);
	path_transitions[now][event].action(path);
}

/* --- actions ---------------------------------------------------------------------------------- */

static void path_open_admin_link(struct host_path *path)
{
	const struct host_config *config = &path->config;
	struct weft_link_options options;
	struct weft_err why = { "" };
	int rc;

	assert(!path->assoc.link);
	path->assoc.hung_up = false;
	host_link_options(config, 0, 0, HOST_ADMIN_DEPTH, &options);
	rc = config->transport->open(&path->assoc.link, path->reactor, &options,
				     &host_admin_link_ops, path, &why);
	if (rc < 0)
		host_path_broken(path, rc, "%s", why.text);
}

static void path_go_live(struct host_path *path)
{
	assert(path->assoc.link);
	host_reconnect_live(path);
	path->assoc.why.text[0] = '\0';
	host_keepalive_start(path);
	host_aer_start(path);
	host_fence_path_up(path);
	host_user_admin_pump(path->ctrl);
}

static void path_tear_down(struct host_path *path)
{
	host_reconnect_lost(path);
	weft_timer_stop(path->reactor, &path->setup.timer);
	host_close_wait_stop(path);
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

static void path_retry_or_die(struct host_path *path)
{
	assert(!path->assoc.link);
	if (host_reconnect_is_final(path))
		path_event(path, EV_FINAL);
	else
		host_reconnect_later(path);
}

static void on_shutdown_done(struct host_admin *a, int rc)
{
	host_path_broken(a->path, -ESHUTDOWN, "disconnected");
}

static void path_shut_down(struct host_path *path)
{
	assert(path->assoc.link);
	host_setup_shutdown(path, on_shutdown_done);
}

/* The connection is being closed already. */
static void path_await_closed(struct host_path *path)
{
	assert(path->assoc.link);
}

/* --- what happens ----------------------------------------------------------------------------- */

void host_path_address(const struct host_path *path, char *text, size_t size)
{
	weft_uri_format(path->config.transport->trtype, &path->config.addr, text, size);
}

void host_path_start(struct host_path *path)
{
	path_event(path, EV_START);
}

void host_path_retry(struct host_path *path)
{
	path_event(path, EV_RETRY);
}

void host_path_up(struct host_path *path)
{
	path_event(path, EV_UP);
}

/* The first cause is kept. */
static void path_lose(struct host_path *path, enum event event, int rc, const char *fmt, va_list ap)
{
	assert_on(path->reactor);
	if (host_path_is_lost(path))
		return;
	path->assoc.rc = rc;
	vsnprintf(path->assoc.why.text, sizeof(path->assoc.why.text), fmt, ap);
	path_event(path, event);
}

void host_path_broken(struct host_path *path, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	path_lose(path, EV_BROKEN, rc, fmt, ap);
	va_end(ap);
}

void host_path_io_link_closed(struct host_path *path, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	path_lose(path, EV_IO_CLOSED, rc, fmt, ap);
	va_end(ap);
}

void host_path_close_wait_over(struct host_path *path)
{
	path_event(path, EV_BROKEN);
}

void host_path_link_closed(struct host_path *path)
{
	struct weft_link *link = path->assoc.link;

	assert_on(path->reactor);
	assert(link);
	path->assoc.hung_up = link->peer_closed;
	host_path_broken(path, link->rc, "%s", link->err.text);
	path_event(path, EV_BROKEN); /* CLOSE_WAIT has waited for this */
	path->assoc.link = NULL;
	host_admin_lost(path);
	weft_link_free(link);
	host_user_admin_pump(path->ctrl);
	path_event(path, EV_CLOSED);
}

void host_path_stop(struct host_path *path)
{
	assert_on(path->reactor);
	if (host_path_is_stopping(path))
		return;
	host_fence_stop(path);
	host_reconnect_stop(path);
	if (host_path_is_setting_up(path)) {
		path->assoc.rc = -ESHUTDOWN;
		snprintf(path->assoc.why.text, sizeof(path->assoc.why.text), "disconnected");
	}
	path_event(path, EV_STOP);
}
