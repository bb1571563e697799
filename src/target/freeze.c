/* freeze.c - the whole target stands still, or goes on.
 *
 *   listeners pause ─▶ groups freeze ─▶ look: does anything move? ─no, twice─▶ clocks stop ─▶ done
 *                                        └─ yes ─▶ look again ┄┄ too long ┄┄▶ thaw, and say who
 *                                        └─ no command does ─▶ hold state, look again
 *
 * Home asks every reactor how many requests it has and whether a connection moves. A request may
 * stay if home holds it for an event. Nothing new begins, so requests only become fewer: when those
 * that reactors counted are as many as home holds, there are no others. A second look makes sure
 * that what the first turn had deferred is done. A reactor that sees something move looks again by
 * itself for a while: where CPUs are busy, each way to home and back is a wait for two of them.
 *
 * A connection of nobody's, or of a host of the discovery service, has as long as a reactor looks by
 * itself: who had not to be let in holds up nobody. Half of a fused pair moves on as the capsule that it came in.
 *
 * What a subsystem has in common with others is held when commands have ended, not before: a change
 * of a reservation ends when all members, we too, act by it.
 *
 * Keep-alive runs on until all is still, and goes on with the time that was left. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/handover.h"
#include "target/hold.h"

enum {
	TURNS_MAX = 100, /* in which a reactor looks again before home is asked */
	LOOKS_MIN = 10,  /* where threads wait for a CPU, time alone says nothing of commands */
	QUICK_LOOKS = 100,
	LOOK_AGAIN_MS = 1,
	CLOCK_MS_MIN = 1000, /* what hosts sent while all stood still has to be taken in first */
};

/* What one reactor has found. */
struct sight {
	unsigned requests; /* that are not parked */
	bool moving;
	bool working;   /* there are requests of I/O queues */
	unsigned turns; /* that it took to look again */
	char who[WEFT_NQN_MAX + 64];
};

struct freeze {
	struct tgt_round *round;
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
	uint64_t until_ns;
	unsigned looks, still; /* in all; without a move, in a row */
	struct weft_timer timer;
	struct sight sights[]; /* by group */
};

/* --- one reactor ------------------------------------------------------------------------------ */

static void describe(struct sight *sight, struct weft_qpair *qp, const char *what)
{
	const struct tgt_queue *queue = qp->owner;

	snprintf(sight->who, sizeof(sight->who), "%s: %s",
		 queue && !queue->over ? tgt_host_name(queue->ctrl->hostnqn) :
					 "a connection without a host",
		 what);
}

/* Half of a fused pair has not begun either. */
static unsigned begun(const struct weft_qpair *qp)
{
	return qp->inflight - qp->parked - !!qp->fused_waiting;
}

static void look_at(struct sight *sight, struct weft_qpair *qp)
{
	unsigned requests = begun(qp);
	const char *moves;

	if (!qp->transport->busy_reason) /* it came about since the group was frozen */
		weft_qpair_close(qp, "it cannot be handed over");
	else if (!weft_qpair_is_admitted(qp) && sight->turns >= TURNS_MAX &&
		 qp->transport->busy_reason(qp))
		weft_qpair_close(qp, "the target does not wait for who had not to be let in");
	moves = qp->closing ? "it is being closed" : qp->transport->busy_reason(qp);
	sight->requests += requests;
	sight->working |= qp->sqid && requests;
	if (!moves)
		return;
	sight->moving = true;
	describe(sight, qp, moves);
}

static void visit(struct tgt_round *round, struct weft_poll_group *group)
{
	struct freeze *freeze = round->arg;
	struct sight *sight = &freeze->sights[group->index];
	struct weft_qpair *qp;

	if (!group->frozen)
		weft_poll_group_freeze(group);
	*sight = (struct sight){ .turns = sight->turns + 1 };
	weft_list_for_each(qp, &group->qpairs, link)
		look_at(sight, qp);
	if ((sight->moving || sight->working) && sight->turns < TURNS_MAX)
		tgt_round_again(round, group);
	else
		tgt_round_answer(round, group);
}

static void thaw_visit(struct tgt_round *round, struct weft_poll_group *group)
{
	weft_poll_group_thaw(group);
	tgt_round_answer(round, group);
}

static void freeze_visit(struct tgt_round *round, struct weft_poll_group *group)
{
	weft_poll_group_freeze(group);
	tgt_round_answer(round, group);
}

static void free_round(struct tgt_round *round)
{
	free(round);
}

static void tell_groups(struct weft_target *t,
			void (*what)(struct tgt_round *round, struct weft_poll_group *group))
{
	struct tgt_round *round = tgt_round_new(t);

	assert(round);
	round->visit = what;
	round->done = free_round;
	tgt_round_start(round);
}

/* --- controllers ------------------------------------------------------------------------------ */

static void each_ctrl(struct weft_target *t, void (*fn)(struct tgt_ctrl *ctrl, void *arg),
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

struct home_sight {
	unsigned held; /* requests that wait for an event */
	bool moving;
};

static void look_at_ctrl(struct tgt_ctrl *ctrl, void *arg)
{
	struct home_sight *sight = arg;

	sight->held += ctrl->naers;
	if (ctrl->dying || ctrl->resetting)
		sight->moving = true;
}

static void stop_clock(struct tgt_ctrl *ctrl, void *arg)
{
	struct weft_target *t = arg;

	ctrl->ka_left_ms = (uint32_t)weft_timer_left_ms(t->home, &ctrl->ka_timer);
	weft_timer_stop(t->home, &ctrl->ka_timer);
}

static void start_clock(struct tgt_ctrl *ctrl, void *arg)
{
	struct weft_target *t = arg;

	if (ctrl->kato_ms && !weft_heap_has(&ctrl->ka_timer.node))
		weft_timer_set(t->home, &ctrl->ka_timer,
			       ctrl->ka_left_ms > CLOCK_MS_MIN ? ctrl->ka_left_ms : CLOCK_MS_MIN);
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

static void finish(struct freeze *freeze, int rc, const struct weft_err *err)
{
	void (*done)(void *arg, int rc, const struct weft_err *err) = freeze->done;
	void *arg = freeze->arg;

	free(freeze->round);
	free(freeze);
	done(arg, rc, err);
}

static void give_up(struct weft_target *t, struct freeze *freeze)
{
	const char *state = tgt_hold_moves(t);
	const char *who = state ? state : "storage has commands in hand";
	struct weft_err err = { "" };

	for (unsigned i = 0; i < t->ngroups; i++)
		if (freeze->sights[i].moving)
			who = freeze->sights[i].who;
	weft_fail(&err, -ETIMEDOUT, "the target does not come to rest: %s", who);
	weft_target_thaw(t);
	finish(freeze, -ETIMEDOUT, &err);
}

static bool commands_are_still(struct weft_target *t, const struct freeze *freeze)
{
	struct home_sight home = { 0 };
	unsigned requests = 0;

	each_ctrl(t, look_at_ctrl, &home);
	for (unsigned i = 0; i < t->ngroups; i++) {
		home.moving |= freeze->sights[i].moving;
		requests += freeze->sights[i].requests;
	}
	return !home.moving && !t->parts && weft_list_empty(&t->overs) && requests == home.held;
}

static bool is_still(struct weft_target *t, const struct freeze *freeze)
{
	bool still = commands_are_still(t, freeze) && !tgt_hold_moves(t);

	if (!still || t->held)
		return still;
	tgt_hold(t);
	return !tgt_hold_moves(t);
}

static bool is_hopeless(const struct weft_target *t, const struct freeze *freeze)
{
	return !freeze->still && freeze->looks >= LOOKS_MIN &&
	       weft_reactor_now_ns(t->home) >= freeze->until_ns;
}

static void looked(struct tgt_round *round)
{
	struct freeze *freeze = round->arg;
	struct weft_target *t = round->target;

	freeze->looks++;
	freeze->still = is_still(t, freeze) ? freeze->still + 1 : 0;
	if (freeze->still == 2) {
		each_ctrl(t, stop_clock, t);
		finish(freeze, 0, NULL);
	} else if (is_hopeless(t, freeze)) {
		give_up(t, freeze);
	} else if (freeze->still || freeze->looks < QUICK_LOOKS) {
		tgt_round_start(round);
	} else {
		weft_timer_set(t->home, &freeze->timer, LOOK_AGAIN_MS);
	}
}

static void look_again(struct weft_timer *timer)
{
	tgt_round_start(container_of(timer, struct freeze, timer)->round);
}

void weft_target_freeze(struct weft_target *t, uint32_t limit_ms,
			void (*done)(void *arg, int rc, const struct weft_err *err), void *arg)
{
	size_t size = sizeof(struct freeze) + t->ngroups * sizeof(struct sight);
	struct freeze *freeze = calloc(1, size);
	struct tgt_round *round = tgt_round_new(t);

	assert(!t->frozen);
	if (!freeze || !round) {
		free(freeze);
		free(round);
		done(arg, -ENOMEM, &(struct weft_err){ "out of memory" });
		return;
	}
	freeze->round = round;
	freeze->done = done;
	freeze->arg = arg;
	freeze->until_ns = weft_reactor_now_ns(t->home) + limit_ms * 1000000ull;
	freeze->timer.fn = look_again;
	round->arg = freeze;
	round->visit = visit;
	round->done = looked;
	t->frozen = true;
	pause_listeners(t, true);
	tgt_round_start(round);
}

void weft_target_start_frozen(struct weft_target *t)
{
	t->frozen = t->held = true;
	tell_groups(t, freeze_visit);
}

void weft_target_thaw(struct weft_target *t)
{
	assert(t->frozen);
	t->frozen = false;
	if (t->held)
		tgt_unhold(t);
	each_ctrl(t, start_clock, t);
	tell_groups(t, thaw_visit);
	pause_listeners(t, false);
}
