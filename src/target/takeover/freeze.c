/* freeze.c - freeze and thaw: the target takes no new command, waits for those under way, and
 * stands still until it is thawed.
 *
 *   SERVING ─▶ FREEZING ─▶ FREEZING_STORE ─▶ FROZEN       a successor's target begins as FROZEN
 *      ▲          │              │             │
 *      └── thaw ──┴──────────────┴─────────────┘
 *
 *   pause listeners ─▶ freeze poll groups ─▶ check: is everything idle?
 *       ├─ twice in a row ─▶ stop keep-alive ─▶ FROZEN
 *       ├─ the commands are ─▶ FREEZING_STORE, check again
 *       └─ no ─▶ check again ┄ past the limit ┄▶ thaw, and say who is busy
 *
 * A check is a barrier: every reactor counts its requests and busy connections. AERs may stay.
 * Nothing new begins, so the count only falls: when it equals the number of AERs that the control
 * reactor has, nothing else is left. The second check covers what the first one's turn had
 * deferred. A busy reactor checks again by itself for up to 100 turns before it answers.
 *
 * Connections of peers that needed no permission (before Connect, discovery) are closed if they are
 * busy for that long. The store is frozen after the commands: a reservation change ends only when
 * all members, this one too, act by it. Keep Alive runs until everything is idle, and resumes with
 * the time that was left. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/takeover/takeover.h"
#include "target/takeover/freeze_store.h"

enum {
	TURNS_MAX = 100, /* a reactor checks again so often before it answers */
	CHECKS_MIN = 10, /* whatever the time limit: threads may have waited for a CPU */
	QUICK_CHECKS = 100,
	RECHECK_MS = 1,
	KEEPALIVE_MS_MIN = 1000, /* after a thaw: reactors first read what hosts have sent */
};

/* What one reactor has found in a check. */
struct activity {
	unsigned requests; /* not parked */
	bool busy;
	bool has_io;    /* there are requests of I/O queues */
	unsigned turns; /* in which it checked again */
	char who[WEFT_NQN_MAX + 64];
};

struct freeze {
	struct tgt_barrier *barrier;
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
	uint64_t until_ns;
	unsigned checks, idle_checks; /* in all; in a row with everything idle */
	struct weft_timer timer;
	struct activity reactors[]; /* by poll group */
};

#define FROM(state) (1u << TGT_##state)

/* States that it may follow. */
static const unsigned freeze_edges[] = {
	[TGT_SERVING] = FROM(FREEZING) | FROM(FREEZING_STORE) | FROM(FROZEN),
	[TGT_FREEZING] = FROM(SERVING),
	[TGT_FREEZING_STORE] = FROM(FREEZING),
	[TGT_FROZEN] = FROM(FREEZING_STORE) | FROM(SERVING),
};

static void freeze_enter(struct weft_target *t, enum tgt_freeze_state state)
{
	assert_on_control(t);
	assert(freeze_edges[state] & 1u << t->freeze_state);
	t->freeze_state = state;
}

/* --- one reactor ------------------------------------------------------------------------------ */

static void name_busy_peer(struct activity *activity, struct weft_qpair *qp, const char *what)
{
	const struct tgt_queue *queue = qp->owner;

	snprintf(activity->who, sizeof(activity->who), "%s: %s",
		 queue && !tgt_queue_is_drained(queue) ? tgt_host_name(queue->ctrl->hostnqn) :
							 "a connection without a host",
		 what);
}

/* The first half of a fused pair has not begun either. */
static unsigned requests_begun(const struct weft_qpair *qp)
{
	return qp->inflight - qp->parked - !!qp->fused_waiting;
}

static void inspect_qpair(struct activity *activity, struct weft_qpair *qp)
{
	unsigned requests = requests_begun(qp);
	const char *moves;

	if (!qp->transport->busy_reason) /* the connection came after the poll group was frozen */
		weft_qpair_close(qp, "it cannot be handed over");
	else if (!weft_qpair_is_admitted(qp) && activity->turns >= TURNS_MAX &&
		 qp->transport->busy_reason(qp))
		weft_qpair_close(
			qp, "the target does not wait for a peer that it did not have to admit");
	moves = qp->closing ? "it is being closed" : qp->transport->busy_reason(qp);
	activity->requests += requests;
	activity->has_io |= qp->sqid && requests;
	if (!moves)
		return;
	activity->busy = true;
	name_busy_peer(activity, qp, moves);
}

static void inspect_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct freeze *freeze = barrier->arg;
	struct activity *activity = &freeze->reactors[group->index];
	struct weft_qpair *qp;

	if (!group->frozen)
		weft_poll_group_freeze(group);
	*activity = (struct activity){ .turns = activity->turns + 1 };
	weft_list_for_each(qp, &group->qpairs, link)
		inspect_qpair(activity, qp);
	if ((activity->busy || activity->has_io) && activity->turns < TURNS_MAX)
		tgt_barrier_requeue(barrier, group);
	else
		tgt_barrier_arrive(barrier, group);
}

static void thaw_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	assert(group->frozen);
	weft_poll_group_thaw(group);
	tgt_barrier_arrive(barrier, group);
}

static void freeze_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	weft_poll_group_freeze(group);
	tgt_barrier_arrive(barrier, group);
}

static void freeze_barrier_free(struct tgt_barrier *barrier)
{
	free(barrier);
}

static void ignore_thawed(struct tgt_barrier *barrier)
{
	(void)barrier;
}

/* --- controllers ------------------------------------------------------------------------------ */

static void for_each_ctrl(struct weft_target *t, void (*fn)(struct tgt_ctrl *ctrl, void *arg),
			  void *arg)
{
	struct weft_subsys *s;
	struct tgt_ctrl *ctrl;

	weft_list_for_each(s, &t->subsystems, link)
		weft_list_for_each(ctrl, &s->ctrls, link)
			fn(ctrl, arg);
	weft_list_for_each(ctrl, &t->discovery->ctrls, link)
		fn(ctrl, arg);
}

struct ctrl_activity {
	unsigned held; /* requests that wait for an event */
	bool busy;
};

static void inspect_ctrl(struct tgt_ctrl *ctrl, void *arg)
{
	struct ctrl_activity *activity = arg;

	activity->held += ctrl->naers;
	if (ctrl->dying || ctrl->resetting)
		activity->busy = true;
}

static void pause_keepalive(struct tgt_ctrl *ctrl, void *arg)
{
	struct weft_target *t = arg;

	ctrl->ka_left_ms = (uint32_t)weft_timer_left_ms(t->control, &ctrl->ka_timer);
	weft_timer_stop(t->control, &ctrl->ka_timer);
}

static void resume_keepalive(struct tgt_ctrl *ctrl, void *arg)
{
	struct weft_target *t = arg;

	if (ctrl->kato_ms && !weft_heap_has(&ctrl->ka_timer.node))
		weft_timer_set(t->control, &ctrl->ka_timer,
			       ctrl->ka_left_ms > KEEPALIVE_MS_MIN ? ctrl->ka_left_ms :
								     KEEPALIVE_MS_MIN);
}

/* --- listeners -------------------------------------------------------------------------------- */

static void pause_listeners(struct weft_target *t, bool pause)
{
	struct tgt_listener *l;

	weft_list_for_each(l, &t->listeners, link) {
		const struct weft_transport *transport = l->l->transport;

		if (pause && transport->pause)
			transport->pause(l->l);
		else if (!pause && transport->resume)
			transport->resume(l->l);
	}
}

/* --- the target ------------------------------------------------------------------------------- */

static void freeze_finish(struct freeze *freeze, int rc, const struct weft_err *err)
{
	void (*done)(void *arg, int rc, const struct weft_err *err) = freeze->done;
	void *arg = freeze->arg;

	assert(!freeze->barrier->pending && !weft_heap_has(&freeze->timer.node));
	free(freeze->barrier);
	free(freeze);
	done(arg, rc, err);
}

static void freeze_fail(struct weft_target *t, struct freeze *freeze)
{
	const char *state = tgt_store_busy_reason(t);
	const char *who = state ? state : "storage has commands in hand";
	struct weft_err err = { "" };

	for (unsigned i = 0; i < t->npoll_groups; i++)
		if (freeze->reactors[i].busy)
			who = freeze->reactors[i].who;
	weft_fail(&err, -ETIMEDOUT, "the target does not come to rest: %s", who);
	weft_target_thaw(t);
	freeze_finish(freeze, -ETIMEDOUT, &err);
}

static bool commands_are_idle(struct weft_target *t, const struct freeze *freeze)
{
	struct ctrl_activity control = { 0 };
	unsigned requests = 0;

	for_each_ctrl(t, inspect_ctrl, &control);
	for (unsigned i = 0; i < t->npoll_groups; i++) {
		control.busy |= freeze->reactors[i].busy;
		requests += freeze->reactors[i].requests;
	}
	return !control.busy && !t->teardowns && weft_list_empty(&t->drain_waits) &&
	       requests == control.held;
}

static bool target_is_idle(struct weft_target *t, const struct freeze *freeze)
{
	bool still = commands_are_idle(t, freeze) && !tgt_store_busy_reason(t);

	if (!still || tgt_store_is_frozen(t))
		return still;
	freeze_enter(t, TGT_FREEZING_STORE);
	tgt_freeze_store(t);
	return !tgt_store_busy_reason(t);
}

static bool freeze_timed_out(const struct weft_target *t, const struct freeze *freeze)
{
	return !freeze->idle_checks && freeze->checks >= CHECKS_MIN &&
	       weft_reactor_now_ns(t->control) >= freeze->until_ns;
}

static void freeze_check(struct tgt_barrier *barrier)
{
	struct freeze *freeze = barrier->arg;
	struct weft_target *t = barrier->target;

	assert(t->freeze_state == TGT_FREEZING || t->freeze_state == TGT_FREEZING_STORE);
	freeze->checks++;
	freeze->idle_checks = target_is_idle(t, freeze) ? freeze->idle_checks + 1 : 0;
	if (freeze->idle_checks == 2) {
		for_each_ctrl(t, pause_keepalive, t);
		freeze_enter(t, TGT_FROZEN);
		freeze_finish(freeze, 0, NULL);
	} else if (freeze_timed_out(t, freeze)) {
		freeze_fail(t, freeze);
	} else if (freeze->idle_checks || freeze->checks < QUICK_CHECKS) {
		tgt_barrier_start(barrier);
	} else {
		weft_timer_set(t->control, &freeze->timer, RECHECK_MS);
	}
}

static void freeze_recheck(struct weft_timer *timer)
{
	tgt_barrier_start(container_of(timer, struct freeze, timer)->barrier);
}

void weft_target_freeze(struct weft_target *t, uint32_t limit_ms,
			void (*done)(void *arg, int rc, const struct weft_err *err), void *arg)
{
	size_t size = sizeof(struct freeze) + t->npoll_groups * sizeof(struct activity);
	struct freeze *freeze = calloc(1, size);
	struct tgt_barrier *barrier = tgt_barrier_new(t);

	assert_on_control(t);
	assert(t->freeze_state == TGT_SERVING);
	if (!freeze || !barrier) {
		free(freeze);
		free(barrier);
		done(arg, -ENOMEM, &(struct weft_err){ "out of memory" });
		return;
	}
	freeze->barrier = barrier;
	freeze->done = done;
	freeze->arg = arg;
	freeze->until_ns = weft_reactor_now_ns(t->control) + limit_ms * 1000000ull;
	freeze->timer.fn = freeze_recheck;
	barrier->arg = freeze;
	barrier->on_reactor = inspect_on_reactor;
	barrier->done = freeze_check;
	freeze_enter(t, TGT_FREEZING);
	pause_listeners(t, true);
	tgt_barrier_start(barrier);
}

int weft_target_start_frozen(struct weft_target *t)
{
	struct tgt_barrier *barrier = tgt_barrier_new(t);

	assert_on_control(t);
	if (!barrier)
		return -ENOMEM;
	freeze_enter(t, TGT_FROZEN);
	barrier->on_reactor = freeze_on_reactor;
	barrier->done = freeze_barrier_free;
	tgt_barrier_start(barrier);
	return 0;
}

/* The barrier is free: messages arrive in their order, so the last thaw has ended on every reactor
 * before the freeze after it has. */
void weft_target_thaw(struct weft_target *t)
{
	bool store_frozen = tgt_store_is_frozen(t);

	assert_on_control(t);
	freeze_enter(t, TGT_SERVING);
	if (store_frozen)
		tgt_thaw_store(t);
	for_each_ctrl(t, resume_keepalive, t);
	t->thaw_barrier->on_reactor = thaw_on_reactor;
	t->thaw_barrier->done = ignore_thawed;
	tgt_barrier_start(t->thaw_barrier);
	pause_listeners(t, false);
}
