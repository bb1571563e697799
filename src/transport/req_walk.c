/* req_walk.c - walks over the requests of queue pairs: slices, and whose turn it is.
 *
 * Invariant: a walk waits in its flow, or for its retry, from weft_req_walk_begin() until done();
 * while one waits in a flow the group's task is deferred. */
#include "transport/req_walk.h"

#include <assert.h>

#include "transport/transport.h"

/* --- one after the other ---------------------------------------------------------------------- */

void weft_req_iter_begin(struct weft_req_iter *iter, struct weft_qpair *qp)
{
	assert_on_group(qp->group);
	iter->qp = qp;
	iter->at = 0;
	weft_list_push(&qp->req_iters, &iter->link);
}

void weft_req_iter_end(struct weft_req_iter *iter)
{
	if (!iter->qp)
		return;
	iter->qp = NULL;
	weft_list_remove(&iter->link);
}

struct weft_req *weft_req_iter_next(struct weft_req_iter *iter, uint32_t *budget)
{
	struct weft_req *req = NULL;

	while (iter->qp && *budget && !req) {
		if (iter->at == iter->qp->high_water) {
			weft_req_iter_end(iter);
			break;
		}
		req = weft_qpair_req(iter->qp, iter->at++);
		--*budget;
	}
	return req;
}

/* --- in slices -------------------------------------------------------------------------------- */

static void wait_for_turn(struct weft_req_walk *walk)
{
	struct weft_poll_group *group = walk->group;

	weft_fair_queue_push(&group->walks.flows, walk->flow, &walk->link);
	weft_reactor_defer(group->reactor, &group->walks.task);
}

static void retry_walk(struct weft_task *task)
{
	wait_for_turn(&container_of(task, struct weft_req_retry_walk, retry.task)->walk);
}

static struct weft_retry *retry_of(struct weft_req_walk *walk)
{
	return &container_of(walk, struct weft_req_retry_walk, walk)->retry;
}

static void run_slice(struct weft_req_walk *walk, uint32_t *budget)
{
	enum weft_walk_step step = WEFT_WALK_ON;
	struct weft_req *req;

	while (step == WEFT_WALK_ON && (req = weft_req_iter_next(&walk->iter, budget)))
		step = walk->visit(walk, req);
	if (step == WEFT_WALK_BUSY) {
		walk->iter.at--;
		assert(walk->may_retry);
		weft_retry_later(walk->group->reactor, retry_of(walk));
	} else if (step == WEFT_WALK_ENDS || !walk->iter.qp) {
		weft_req_iter_end(&walk->iter);
		walk->done(walk);
	} else {
		if (walk->may_retry)
			weft_retry_reset(retry_of(walk));
		wait_for_turn(walk);
	}
}

/* A walk costs an entry at least: there may be thousands over empty tables. */
static void run_walks(struct weft_task *task)
{
	struct weft_req_walks *walks = container_of(task, struct weft_req_walks, task);
	uint32_t budget = WEFT_REQS_PER_TURN, before;

	while (budget && !weft_list_empty(&walks->flows)) {
		before = budget;
		run_slice(container_of(weft_fair_queue_pop(&walks->flows), struct weft_req_walk,
				       link),
			  &budget);
		budget -= budget == before;
	}
}

void weft_req_walks_init(struct weft_req_walks *walks)
{
	weft_list_init(&walks->flows);
	weft_fair_flow_init(&walks->default_flow, NULL);
	weft_task_init(&walks->task, run_walks);
}

static void begin_walk(struct weft_req_walk *walk, struct weft_qpair *qp,
		       struct weft_fair_flow *flow, bool may_retry)
{
	walk->may_retry = may_retry;
	walk->group = qp->group;
	walk->flow = flow ? flow : &qp->group->walks.default_flow;
	weft_req_iter_begin(&walk->iter, qp);
	wait_for_turn(walk);
}

void weft_req_walk_begin(struct weft_req_walk *walk, struct weft_qpair *qp,
			 struct weft_fair_flow *flow)
{
	begin_walk(walk, qp, flow, false);
}

void weft_req_retry_walk_begin(struct weft_req_retry_walk *walk, struct weft_qpair *qp,
			       struct weft_fair_flow *flow)
{
	weft_retry_init(&walk->retry, retry_walk);
	begin_walk(&walk->walk, qp, flow, true);
}
