/* reclaim.c - reclaim: peers that keep what others wait for have to go.
 *
 *   somebody waits ─▶ timer ─▶ connections, and their requests, some in each turn ─▶ judged
 *       ▲                                                                           │
 *       └──────────────────────── somebody still waits ─────────────────────────────┘
 *
 * A peer that does not read its replies, or does not send the data of its writes, keeps buffers;
 * over RDMA it also keeps blocks of a namespace's memory from being written. It may do so until
 * others wait for them, and then for RECLAIM_MS at most. The removal of a namespace waits as long
 * for replies that leave from the namespace's memory.
 *
 * Invariant: while a walk is under way the task is deferred; the timer is not set meanwhile. */
#include "transport/reclaim.h"

#include <assert.h>

#include "base/cleanup.h"
#include "transport/transport.h"

enum { RECLAIM_MS = 10000 };

/* --- does anybody wait? ----------------------------------------------------------------------- */

/* For what a transport's connections share. */
static bool transports_have_waiters(const struct weft_poll_group *group)
{
	const struct weft_transport *transport;

	for (unsigned i = 0; (transport = weft_transport_at(i)); i++)
		if (transport->has_waiters && transport->has_waiters(group))
			return true;
	return false;
}

static bool buffers_have_waiters(const struct weft_poll_group *group, const struct weft_bufs *in,
				 const struct weft_bufs *out)
{
	return weft_bufs_has_waiters(in) || weft_bufs_has_waiters(out) ||
	       transports_have_waiters(group);
}

static bool has_any_waiter(const struct weft_poll_group *group)
{
	return buffers_have_waiters(group, &group->in, &group->out) ||
	       buffers_have_waiters(group, &group->anon_in, &group->anon_out);
}

/* --- a peer ----------------------------------------------------------------------------------- */

void weft_stall_look(struct weft_stall *stall, struct weft_req *req)
{
	const struct weft_qpair *qp = req->qp;

	stall->awaited_since = weft_stall_earlier(stall->awaited_since,
						  qp->ops->awaited_since(req));
	stall->blocks_writer |= qp->guarded_replies && req->shared &&
				weft_guard_writer_waits(req->guard, req->data, req->reply_len);
	if (qp->transport->look_for_stall)
		qp->transport->look_for_stall(req, stall);
}

/* @since may be from another reactor, whose turn began later than ours. */
static bool is_overdue(const struct weft_qpair *qp, uint64_t since)
{
	return since && weft_reactor_now_ns(qp->group->reactor) >= since + RECLAIM_MS * 1000000ull;
}

/* true: check this queue pair again later. */
static bool reclaim_from(struct weft_qpair *qp, const struct weft_stall *stall)
{
	bool overdue = !qp->closing && is_overdue(qp, qp->transport->stalled_since(qp, stall));

	if (overdue && buffers_have_waiters(qp->group, qp->in, qp->out))
		weft_qpair_close(qp, "keeps buffers that others wait for");
	else if (overdue && stall->blocks_writer)
		weft_qpair_close(qp, "keeps blocks that others write to");
	else if (is_overdue(qp, stall->awaited_since))
		weft_qpair_close(qp, "keeps a namespace from being removed");
	return qp->guarded_replies || stall->awaited_since;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void reclaim_ended(struct weft_poll_group *group)
{
	struct weft_reclaim *reclaim = &group->reclaim;

	reclaim->walking = false;
	if (reclaim->again || has_any_waiter(group))
		weft_poll_group_start_reclaim(group);
}

/* False: there are no more. */
static bool review_next_qpair(struct weft_poll_group *group, uint32_t *budget)
{
	struct weft_reclaim *reclaim = &group->reclaim;

	if (reclaim->qp)
		reclaim->again |= reclaim_from(take_ptr(&reclaim->qp), &reclaim->stall);
	reclaim->qp = weft_qpair_iter_next(group, &reclaim->conns);
	if (!reclaim->qp)
		return false;
	--*budget;
	reclaim->stall = (struct weft_stall){ 0 };
	weft_req_iter_begin(&reclaim->reqs, reclaim->qp);
	return true;
}

static void reclaim_slice(struct weft_task *task)
{
	struct weft_reclaim *reclaim = container_of(task, struct weft_reclaim, task);
	struct weft_poll_group *group = container_of(reclaim, struct weft_poll_group, reclaim);
	uint32_t budget = WEFT_REQS_PER_TURN; /* connections, too */
	struct weft_req *req;

	assert(reclaim->walking);
	while (budget) {
		while ((req = weft_req_iter_next(&reclaim->reqs, &budget)))
			weft_stall_look(&reclaim->stall, req);
		if (budget && !review_next_qpair(group, &budget)) {
			reclaim_ended(group);
			return;
		}
	}
	weft_reactor_defer(group->reactor, &reclaim->task);
}

static void reclaim_expired(struct weft_timer *timer)
{
	struct weft_reclaim *reclaim = container_of(timer, struct weft_reclaim, timer);
	struct weft_poll_group *group = container_of(reclaim, struct weft_poll_group, reclaim);

	assert_on(group->reactor);
	assert(!reclaim->walking && !reclaim->qp);
	reclaim->walking = true;
	reclaim->again = false;
	weft_qpair_iter_begin(group, &reclaim->conns);
	weft_reactor_defer(group->reactor, &reclaim->task);
}

void weft_poll_group_start_reclaim(struct weft_poll_group *group)
{
	assert_on(group->reactor);
	if (group->reclaim.walking) /* it may have passed the one that keeps it */
		group->reclaim.again = true;
	else if (!weft_heap_has(&group->reclaim.timer.node))
		weft_timer_set(group->reactor, &group->reclaim.timer, RECLAIM_MS / 5);
}

/* --- beginning and end ------------------------------------------------------------------------ */

void weft_reclaim_init(struct weft_reclaim *reclaim)
{
	reclaim->timer.fn = reclaim_expired;
	weft_task_init(&reclaim->task, reclaim_slice);
}

bool weft_reclaim_is_idle(const struct weft_reclaim *reclaim)
{
	return !reclaim->walking && !weft_heap_has(&reclaim->timer.node);
}

void weft_reclaim_qpair_gone(struct weft_reclaim *reclaim, const struct weft_qpair *qp)
{
	if (reclaim->qp == qp)
		reclaim->qp = NULL;
}

void weft_reclaim_stop(struct weft_poll_group *group)
{
	struct weft_reclaim *reclaim = &group->reclaim;

	assert(weft_list_empty(&group->qpairs) && !reclaim->qp);
	weft_timer_stop(group->reactor, &reclaim->timer);
	weft_task_cancel(&reclaim->task);
	if (reclaim->walking)
		weft_list_remove(&reclaim->conns.link);
	reclaim->walking = false;
}
