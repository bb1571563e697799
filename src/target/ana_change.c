/* ana_change.c - ANA change: new rules bring all groups and controllers from one state to the next
 * at once.
 *
 *   ana-set ─▶ queued ─▶ every controller that stops giving access to a group shows "change"
 *     ─▶ every reactor marks the commands at work there, and the change waits for them
 *     ─▶ all new states are shown at once ─▶ one event for each controller whose states changed
 *
 * Log pages are built on the control reactor, where all of this happens: a reader sees the time
 * before, the whole transition, or the time after. No controller begins to give access to a group
 * before all that stop have stopped. A command that waits for data of its host is not at work: it
 * meets the new state when the data is here.
 *
 * Invariant: a subsystem has at most one change under way. A request is marked while treq->awaited
 * points at the change, and counted in nmarked[] of its reactor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "target/admin/admin.h"

struct ana_change {
	struct weft_list link; /* ana->waiting */
	struct weft_subsys *s;
	struct ana_rules *given;
	bool replace; /* the old rules do not count any more */
	/* Which groups are served here changes: given->elsewhere counts, and no rule. */
	bool own;
	struct tgt_barrier *barrier;
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
	uint32_t nmarked[]; /* by reactor: marked commands */
};

static void ana_change_free(struct ana_change *change)
{
	assert(weft_list_empty(&change->link));
	free(change->given);
	free(change->barrier);
	free(change);
}

/* --- on the reactors: commands under way ------------------------------------------------------ */

static uint32_t mark_queue(struct weft_qpair *qp, const struct tgt_ctrl *ctrl,
			   struct ana_change *change)
{
	uint32_t marked = 0;

	for (uint32_t i = 0; i < qp->high_water; i++) {
		struct weft_req *req = weft_qpair_req(qp, i);
		const struct tgt_ns *ns;

		if (!req)
			continue;
		ns = tgt_ns_at_work(req);
		if (!ns || !tgt_ana_check(ctrl, ns))
			continue;
		assert(!tgt_req(req)->awaited);
		tgt_req(req)->awaited = change;
		marked++;
	}
	return marked;
}

static void mark_commands_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct ana_change *change = barrier->arg;
	uint32_t *left = &change->nmarked[group->index];
	struct weft_qpair *qp;

	assert(!*left);
	weft_list_for_each(qp, &group->qpairs, link) {
		const struct tgt_queue *queue = qp->owner;

		if (queue && !tgt_queue_is_drained(queue) && queue->ctrl->subsys == change->s)
			*left += mark_queue(qp, queue->ctrl, change);
	}
	if (!*left)
		tgt_barrier_arrive(barrier, group);
}

void tgt_ana_command_left(struct weft_req *req)
{
	struct ana_change *change = take_ptr(&tgt_req(req)->awaited);

	assert_on(req->qp->group->reactor);
	if (!weft_count_down(change->nmarked[req->qp->group->index]))
		tgt_barrier_arrive(change->barrier, req->qp->group);
}

/* --- on the control reactor: one change after the other --------------------------------------- */

static void ana_change_start_next(struct weft_subsys *s);

static void send_ana_events(struct weft_subsys *s)
{
	struct tgt_ctrl *ctrl;

	weft_list_for_each(ctrl, &s->ctrls, link) {
		if (ctrl->ana_event_due)
			tgt_event_raise(ctrl, TGT_EVENT_ANA);
		ctrl->ana_event_due = false;
	}
}

void tgt_ana_persistent_loss_all(struct weft_subsys *s)
{
	struct tgt_ctrl *ctrl;

	assert_on_control(s->target);
	s->ana.lost = true;
	weft_list_for_each(ctrl, &s->ctrls, link)
		tgt_ana_persistent_loss(ctrl);
	s->ana.count++;
	send_ana_events(s);
}

static void ana_change_finish(struct ana_change *change)
{
	struct weft_subsys *s = change->s;
	struct tgt_ctrl *ctrl;
	bool shown = false;

	assert_on_control(s->target);
	free(s->ana.rules);
	s->ana.rules = take_ptr(&s->ana.next);
	weft_list_for_each(ctrl, &s->ctrls, link)
		shown |= tgt_ana_show_states(ctrl);
	s->ana.count += shown;
	send_ana_events(s);
	change->done(change->arg, 0, NULL);
	ana_change_free(change);
}

static void ana_change_fail(struct ana_change *change, int rc, const struct weft_err *err)
{
	change->done(change->arg, rc, err);
	ana_change_free(change);
}

static uint32_t marked_commands(const struct ana_change *change)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < change->s->target->npoll_groups; i++)
		sum += change->nmarked[i];
	return sum;
}

static void transition_drained(struct tgt_barrier *barrier)
{
	struct ana_change *change = barrier->arg;
	struct weft_subsys *s = change->s;

	assert(!marked_commands(change));
	ana_change_finish(change);
	ana_change_start_next(s);
	tgt_subsys_ctrl_gone(s); /* its removal may have waited for us */
}

/* false: there is no command to wait for. */
static bool start_transition(struct ana_change *change)
{
	struct weft_subsys *s = change->s;
	struct tgt_ctrl *ctrl;
	bool closed = false;

	weft_list_for_each(ctrl, &s->ctrls, link)
		closed |= tgt_ana_show_transition(ctrl);
	s->ana.count += closed;
	if (!closed)
		return false;
	change->barrier->arg = change;
	change->barrier->on_reactor = mark_commands_on_reactor;
	change->barrier->done = transition_drained;
	tgt_barrier_start(change->barrier);
	return true;
}

static struct ana_rules *next_rules(const struct ana_change *change)
{
	const struct ana_rules *now = change->s->ana.rules, *given = change->given;
	struct ana_rules *next;

	next = tgt_ana_rules_with(change->replace ? NULL : now, given->at, given->count);
	if (next)
		memcpy(next->elsewhere, change->own ? given->elsewhere : now->elsewhere,
		       sizeof(next->elsewhere));
	return next;
}

/* The new rules start from those that are in force by now. */
static int set_next_rules(const struct ana_change *change, struct weft_err *err)
{
	struct tgt_ana *ana = &change->s->ana;

	assert(!ana->next);
	ana->next = next_rules(change);
	if (!ana->next)
		return weft_fail(err, -ENOMEM, "out of memory");
	if (ana->next->count <= TGT_ANA_RULES_MAX)
		return 0;
	free(take_ptr(&ana->next));
	return weft_fail(err, -ENOSPC,
			 "more than %d ANA rules; replace=true leaves out those that are not given",
			 TGT_ANA_RULES_MAX);
}

static void ana_change_start_next(struct weft_subsys *s)
{
	struct weft_list *link;

	while (!s->ana.next && (link = weft_list_pop(&s->ana.waiting))) {
		struct ana_change *change = container_of(link, struct ana_change, link);
		struct weft_err err = { "" };
		int rc = set_next_rules(change, &err);

		if (rc < 0)
			ana_change_fail(change, rc, &err);
		else if (!start_transition(change))
			ana_change_finish(change);
	}
}

bool tgt_ana_is_idle(const struct weft_subsys *s)
{
	assert_on_control(s->target);
	return !s->ana.next && weft_list_empty(&s->ana.waiting);
}

void tgt_ana_cancel_waiting(struct weft_subsys *s)
{
	const struct weft_err err = { "the subsystem is being removed" };
	struct weft_list *link;

	assert_on_control(s->target);
	assert(s->removing);
	while ((link = weft_list_pop(&s->ana.waiting)))
		ana_change_fail(container_of(link, struct ana_change, link), -ENOENT, &err);
}

static struct ana_change *
ana_change_new(struct weft_subsys *s, const struct weft_ana_rule *rules, unsigned count,
	       void (*done)(void *arg, int rc, const struct weft_err *err), void *arg)
{
	struct ana_change *change;

	change = calloc(1, sizeof(*change) + s->target->npoll_groups * sizeof(change->nmarked[0]));
	if (!change)
		return NULL;
	weft_list_init(&change->link);
	change->s = s;
	change->done = done;
	change->arg = arg;
	change->given = tgt_ana_rules_with(NULL, rules, count);
	change->barrier = tgt_barrier_new(s->target);
	if (!change->given || !change->barrier) {
		ana_change_free(change);
		return NULL;
	}
	return change;
}

static void ana_change_enqueue(struct ana_change *change)
{
	weft_list_push(&change->s->ana.waiting, &change->link);
	ana_change_start_next(change->s);
}

int weft_ana_set(struct weft_subsys *s, const struct weft_ana_rule *rules, unsigned count,
		 bool replace, void (*done)(void *arg, int rc, const struct weft_err *err),
		 void *arg, struct weft_err *err)
{
	struct ana_change *change;
	int rc = tgt_ana_rules_check(rules, count, err);

	assert_on_control(s->target);
	if (rc < 0)
		return rc;
	change = ana_change_new(s, rules, count, done, arg);
	if (!change)
		return weft_fail(err, -ENOMEM, "out of memory");
	change->replace = replace;
	ana_change_enqueue(change);
	return 0;
}

int tgt_ana_set_served_groups(struct weft_subsys *s, const bool elsewhere[WEFT_ANA_GROUP_MAX],
			      void (*done)(void *arg, int rc, const struct weft_err *err),
			      void *arg)
{
	struct ana_change *change = ana_change_new(s, NULL, 0, done, arg);

	assert_on_control(s->target);
	if (!change)
		return -ENOMEM;
	change->own = true;
	memcpy(change->given->elsewhere, elsewhere, sizeof(change->given->elsewhere));
	ana_change_enqueue(change);
	return 0;
}
