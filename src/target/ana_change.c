/* ana_change.c - new rules: from one state to the next, for all groups and controllers at once.
 *
 *   ana-set ─▶ in line ─▶ every controller that stops letting a group in shows "change"
 *     ─▶ every reactor: commands at work there are marked, and waited for
 *     ─▶ all new states are shown in one go ─▶ one event for each controller that has news
 *
 * Log pages are built on home, where all of this happens: a reader sees the time before, the
 * transition as a whole, or the time after. Nobody begins to let a group in before all who stop
 * have stopped. A command that waits for data of its host is not at work: it meets the new state
 * when the data is here.
 *
 * Invariant: a subsystem has one change under way at most. A request is marked while treq->awaited
 * points at it, and counted in left[] of its reactor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/admin/admin.h"

struct ana_change {
	struct weft_list link; /* ana->waiting */
	struct weft_subsys *s;
	struct ana_rules *given;
	bool replace; /* the rules: those of before do not count */
	bool own;     /* the groups that are served here: given->elsewhere counts, and no rule */
	struct tgt_round *round;
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
	uint32_t left[]; /* by reactor: marked commands */
};

static void free_change(struct ana_change *change)
{
	free(change->given);
	free(change->round);
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
		tgt_req(req)->awaited = change;
		marked++;
	}
	return marked;
}

static void mark(struct tgt_round *round, struct weft_poll_group *group)
{
	struct ana_change *change = round->arg;
	uint32_t *left = &change->left[group->index];
	struct weft_qpair *qp;

	weft_list_for_each(qp, &group->qpairs, link) {
		const struct tgt_queue *queue = qp->owner;

		if (queue && !queue->over && queue->ctrl->subsys == change->s)
			*left += mark_queue(qp, queue->ctrl, change);
	}
	if (!*left)
		tgt_round_answer(round, group);
}

void tgt_ana_left(struct weft_req *req)
{
	struct ana_change *change = take_ptr(&tgt_req(req)->awaited);

	if (!--change->left[req->qp->group->index])
		tgt_round_answer(change->round, req->qp->group);
}

/* --- on home: one change after the other ------------------------------------------------------ */

static void run_line(struct weft_subsys *s);

static void tell_hosts(struct weft_subsys *s)
{
	struct tgt_ctrl *ctrl;

	weft_list_for_each(ctrl, &s->ctrls, link) {
		if (ctrl->ana_news)
			tgt_event(ctrl, TGT_EVENT_ANA);
		ctrl->ana_news = false;
	}
}

void tgt_ana_lose_all(struct weft_subsys *s)
{
	struct tgt_ctrl *ctrl;

	s->ana.lost = true;
	weft_list_for_each(ctrl, &s->ctrls, link)
		tgt_ana_lose(ctrl);
	s->ana.count++;
	tell_hosts(s);
}

static void finish(struct ana_change *change)
{
	struct weft_subsys *s = change->s;
	struct tgt_ctrl *ctrl;
	bool shown = false;

	free(s->ana.rules);
	s->ana.rules = take_ptr(&s->ana.next);
	weft_list_for_each(ctrl, &s->ctrls, link)
		shown |= tgt_ana_show(ctrl);
	s->ana.count += shown;
	tell_hosts(s);
	change->done(change->arg, 0, NULL);
	free_change(change);
}

static void fail(struct ana_change *change, int rc, const struct weft_err *err)
{
	change->done(change->arg, rc, err);
	free_change(change);
}

static void all_left(struct tgt_round *round)
{
	struct ana_change *change = round->arg;
	struct weft_subsys *s = change->s;

	finish(change);
	run_line(s);
	tgt_subsys_ctrl_gone(s); /* which may have waited for us to end */
}

/* false: nobody has to be waited for. */
static bool begin(struct ana_change *change)
{
	struct weft_subsys *s = change->s;
	struct tgt_ctrl *ctrl;
	bool closed = false;

	weft_list_for_each(ctrl, &s->ctrls, link)
		closed |= tgt_ana_close_doors(ctrl);
	s->ana.count += closed;
	if (!closed)
		return false;
	change->round->arg = change;
	change->round->visit = mark;
	change->round->done = all_left;
	tgt_round_start(change->round);
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

/* On what the rules are by now. */
static int set_next(const struct ana_change *change, struct weft_err *err)
{
	struct tgt_ana *ana = &change->s->ana;

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

static void run_line(struct weft_subsys *s)
{
	struct weft_list *link;

	while (!s->ana.next && (link = weft_list_pop(&s->ana.waiting))) {
		struct ana_change *change = container_of(link, struct ana_change, link);
		struct weft_err err = { "" };
		int rc = set_next(change, &err);

		if (rc < 0)
			fail(change, rc, &err);
		else if (!begin(change))
			finish(change);
	}
}

bool tgt_ana_is_idle(const struct weft_subsys *s)
{
	return !s->ana.next && weft_list_empty(&s->ana.waiting);
}

void tgt_ana_subsys_ends(struct weft_subsys *s)
{
	const struct weft_err err = { "the subsystem is being removed" };
	struct weft_list *link;

	while ((link = weft_list_pop(&s->ana.waiting)))
		fail(container_of(link, struct ana_change, link), -ENOENT, &err);
}

static struct ana_change *change_new(struct weft_subsys *s, const struct weft_ana_rule *rules,
				     unsigned count,
				     void (*done)(void *arg, int rc, const struct weft_err *err),
				     void *arg)
{
	struct ana_change *change;

	change = calloc(1, sizeof(*change) + s->target->ngroups * sizeof(change->left[0]));
	if (!change)
		return NULL;
	change->s = s;
	change->done = done;
	change->arg = arg;
	change->given = tgt_ana_rules_with(NULL, rules, count);
	change->round = tgt_round_new(s->target);
	if (!change->given || !change->round) {
		free_change(change);
		return NULL;
	}
	return change;
}

static void line_up(struct ana_change *change)
{
	weft_list_push(&change->s->ana.waiting, &change->link);
	run_line(change->s);
}

int weft_ana_set(struct weft_subsys *s, const struct weft_ana_rule *rules, unsigned count,
		 bool replace, void (*done)(void *arg, int rc, const struct weft_err *err),
		 void *arg, struct weft_err *err)
{
	struct ana_change *change;
	int rc = tgt_ana_rules_check(rules, count, err);

	if (rc < 0)
		return rc;
	change = change_new(s, rules, count, done, arg);
	if (!change)
		return weft_fail(err, -ENOMEM, "out of memory");
	change->replace = replace;
	line_up(change);
	return 0;
}

int tgt_ana_own(struct weft_subsys *s, const bool elsewhere[WEFT_ANA_GROUP_MAX],
		void (*done)(void *arg, int rc, const struct weft_err *err), void *arg)
{
	struct ana_change *change = change_new(s, NULL, 0, done, arg);

	if (!change)
		return -ENOMEM;
	change->own = true;
	memcpy(change->given->elsewhere, elsewhere, sizeof(change->given->elsewhere));
	line_up(change);
	return 0;
}
