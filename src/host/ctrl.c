/* ctrl.c - the life of a connection to a controller, as a table.
 *
 *                 UP                 BROKEN                CLOSED
 *   CONNECTING ───────▶ LIVE ───────────────▶ RESETTING ─────────▶ RECONNECTING ──▶ DEAD
 *        │               ▲                      ▲    │                  │   │    too long, or
 *        │               └──────────────────────┼────┼─────── UP ───────┘   │    not wanted
 *        └──────────── BROKEN ──────────────────┘    └────◀──── BROKEN ─────┘
 *
 * The first attempt is the caller's to repeat; every later one is ours, each after a pause that
 * doubles and is drawn at random between half and all of it: a thousand hosts that lost the same
 * target do not come back in step.
 *
 * Everything here runs on home. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/internal.h"

#define STEADY_NS UINT64_C(1000000000)

enum event {
	EV_UP,     /* set-up is through */
	EV_BROKEN, /* the association has to be ended */
	EV_CLOSED, /* nothing of the old one is left */
	EV_RETRY,  /* the pause is over */
	EVENTS,
};

static void publish(struct weft_ctrl *ctrl);
static void go_live(struct weft_ctrl *ctrl);
static void tear_down(struct weft_ctrl *ctrl);
static void pause_or_die(struct weft_ctrl *ctrl);
static void open_link(struct weft_ctrl *ctrl);

static const struct {
	enum weft_state next;
	void (*action)(struct weft_ctrl *ctrl); /* NULL: the event means nothing here */
} table[WEFT_DEAD + 1][EVENTS] = {
	[WEFT_CONNECTING] = {
		[EV_UP] = { WEFT_LIVE, go_live },
		[EV_BROKEN] = { WEFT_RESETTING, tear_down },
	},
	[WEFT_LIVE] = {
		[EV_BROKEN] = { WEFT_RESETTING, tear_down },
	},
	[WEFT_RESETTING] = {
		[EV_CLOSED] = { WEFT_RECONNECTING, pause_or_die },
	},
	[WEFT_RECONNECTING] = {
		[EV_RETRY] = { WEFT_RECONNECTING, open_link },
		[EV_UP] = { WEFT_LIVE, go_live },
		[EV_BROKEN] = { WEFT_RESETTING, tear_down },
	},
};

const char *weft_state_text(enum weft_state state)
{
	static const char *const texts[] = {
		[WEFT_CONNECTING] = "connecting",     [WEFT_LIVE] = "live",
		[WEFT_RESETTING] = "resetting",       [WEFT_DEAD] = "dead",
		[WEFT_RECONNECTING] = "reconnecting",
	};

	return (size_t)state < sizeof(texts) / sizeof(texts[0]) ? texts[state] : "unknown";
}

/* The one function that changes the state. */
static void enter(struct weft_ctrl *ctrl, enum weft_state state)
{
	/* That the first connection lives, weft_connect() says. */
	bool news = ctrl->state != state && (state != WEFT_LIVE || ctrl->generation > 1);

	ctrl->state = state;
	publish(ctrl);
	if (news)
		host_event_push(ctrl, WEFT_EVENT_STATE, state, 0, "%s%s%s", weft_state_text(state),
				state == WEFT_LIVE || !ctrl->why.text[0] ? "" : ": ",
				state == WEFT_LIVE ? "" : ctrl->why.text);
}

static void happen(struct weft_ctrl *ctrl, enum event event)
{
	enum weft_state now = ctrl->state;

	if (!table[now][event].action)
		return;
	enter(ctrl, table[now][event].next);
	table[now][event].action(ctrl);
}

/* --- what the others see --------------------------------------------------------------------------- */

static void publish(struct weft_ctrl *ctrl)
{
	struct weft_queue *queue;

	pthread_mutex_lock(&ctrl->lock);
	ctrl->pub.state = ctrl->state;
	ctrl->pub.generation = ctrl->generation;
	ctrl->pub.rc = ctrl->why_rc;
	if (ctrl->why.text[0])
		ctrl->pub.why = ctrl->why;
	if (ctrl->state == WEFT_LIVE)
		ctrl->pub.traits = ctrl->traits;
	weft_list_for_each(queue, &ctrl->queues, link_in_ctrl)
		host_queue_tell(queue);
	pthread_cond_broadcast(&ctrl->changed);
	pthread_mutex_unlock(&ctrl->lock);
}

/* --- actions ------------------------------------------------------------------------------------------ */

static void go_live(struct weft_ctrl *ctrl)
{
	ctrl->live_ns = weft_reactor_now_ns(ctrl->reactor);
	ctrl->why.text[0] = '\0';
	host_keepalive_start(ctrl);
	host_aer_start(ctrl);
	host_admin_pump(ctrl);
}

/* A target that takes us in and throws us out at once has not really come back. */
static void note_loss(struct weft_ctrl *ctrl)
{
	uint64_t now = weft_reactor_now_ns(ctrl->reactor);

	if (ctrl->live_ns && now - ctrl->live_ns >= STEADY_NS) {
		ctrl->attempt = 0;
		ctrl->lost_ns = now;
	} else if (!ctrl->lost_ns) {
		ctrl->lost_ns = now;
	}
	ctrl->live_ns = 0;
}

static void tear_down(struct weft_ctrl *ctrl)
{
	note_loss(ctrl);
	weft_timer_stop(ctrl->reactor, &ctrl->poll);
	weft_timer_stop(ctrl->reactor, &ctrl->retry);
	host_keepalive_stop(ctrl);
	host_aer_stop(ctrl);
	if (ctrl->link)
		weft_link_close(ctrl->link, ctrl->why_rc, "%s", ctrl->why.text);
	else
		happen(ctrl, EV_CLOSED);
}

static void die(struct weft_ctrl *ctrl)
{
	enter(ctrl, WEFT_DEAD);
	host_admin_fail_waiting(ctrl, ctrl->why_rc);
}

static uint64_t pause_ms(struct weft_ctrl *ctrl)
{
	const struct weft_options *o = &ctrl->config.options;
	uint64_t pause = o->reconnect_ms;

	for (unsigned i = 2; i < ctrl->attempt && pause < o->reconnect_max_ms; i++)
		pause *= 2;
	if (pause > o->reconnect_max_ms)
		pause = o->reconnect_max_ms;
	return pause / 2 + (uint64_t)rand_r(&ctrl->random) % (pause / 2 + 1);
}

/* Of loss_timeout. */
static uint64_t left_ms(const struct weft_ctrl *ctrl)
{
	uint64_t lost_ms = (weft_reactor_now_ns(ctrl->reactor) - ctrl->lost_ns) / 1000000;
	uint64_t most = ctrl->config.options.loss_ms;

	return lost_ms < most ? most - lost_ms : 0;
}

/* A controller that says "do not retry" to Connect means it. */
static bool is_final(const struct weft_ctrl *ctrl)
{
	return !ctrl->generation || ctrl->refused || !left_ms(ctrl);
}

static void pause_or_die(struct weft_ctrl *ctrl)
{
	uint64_t pause;

	if (ctrl->stopping) {
		weft_reactor_stop(ctrl->reactor);
		return;
	}
	if (is_final(ctrl)) {
		die(ctrl);
		return;
	}
	pause = ctrl->attempt++ ? pause_ms(ctrl) : 0;
	weft_timer_set(ctrl->reactor, &ctrl->retry, pause < left_ms(ctrl) ? pause : left_ms(ctrl));
}

static void open_link(struct weft_ctrl *ctrl)
{
	const struct host_config *config = &ctrl->config;
	struct weft_link_options options;
	struct weft_err why = { "" };
	int rc;

	ctrl->broken = false;
	host_link_options(config, 0, 0, HOST_ADMIN_DEPTH, &options);
	rc = config->transport->open(&ctrl->link, ctrl->reactor, &options, &host_admin_link_ops,
				     ctrl, &why);
	if (rc < 0)
		host_ctrl_broken(ctrl, rc, "%s", why.text);
}

/* --- what happens -------------------------------------------------------------------------------------- */

static void on_retry(struct weft_timer *timer)
{
	happen(container_of(timer, struct weft_ctrl, retry), EV_RETRY);
}

void host_ctrl_start(struct weft_ctrl *ctrl)
{
	ctrl->retry.fn = on_retry;
	open_link(ctrl);
}

void host_ctrl_up(struct weft_ctrl *ctrl)
{
	pthread_mutex_lock(&ctrl->lock);
	ctrl->pub.reconnects += ctrl->generation++ > 0;
	ctrl->pub.path = ctrl->link->path;
	pthread_mutex_unlock(&ctrl->lock);
	happen(ctrl, EV_UP);
}

void host_ctrl_broken(struct weft_ctrl *ctrl, int rc, const char *fmt, ...)
{
	va_list ap;

	if (ctrl->broken)
		return;
	ctrl->broken = true;
	ctrl->why_rc = rc;
	va_start(ap, fmt);
	vsnprintf(ctrl->why.text, sizeof(ctrl->why.text), fmt, ap);
	va_end(ap);
	happen(ctrl, EV_BROKEN);
}

void host_ctrl_link_closed(struct weft_ctrl *ctrl)
{
	struct weft_link *link = ctrl->link;

	host_ctrl_broken(ctrl, link->rc, "%s", link->err.text);
	ctrl->link = NULL;
	host_admin_lost(ctrl);
	weft_link_free(link);
	happen(ctrl, EV_CLOSED);
}
