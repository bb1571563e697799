/* qpair.c - a queue pair: what all transports' have in common. What its end waits for is told where
 * it is waited for: the transport's in tcp/conn.c and rdma/close.c, the target's in target/queue.c.
 *
 * Its table of requests is reserved address space; memory is used when an entry first is, so a deep
 * queue that stays shallow costs little. Until Connect says how deep the queue is, there is one
 * request at a time. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "transport/transport.h"

enum { SLOTS_MAX = 65535 }; /* as many as a 16-bit tag can name */

static size_t table_bytes(const struct weft_qpair *qp)
{
	return qp->slots_max * (sizeof(*qp->reqs) + sizeof(*qp->free_indices));
}

/* A slot's size is an odd number of cache lines: the parts that all commands touch are spread over
 * all sets of a cache. */
static struct weft_req_slots *req_slots_of(const struct weft_qpair *qp)
{
	size_t bytes = weft_req_priv_at(qp->transport) + qp->ops->req_priv;
	size_t size = ((bytes + 63) & ~(size_t)63) | 64;
	struct weft_req_slots *slots = &qp->group->slots[weft_transport_index(qp->transport)];

	assert(!slots->size || slots->size == size);
	slots->size = size;
	return slots;
}

int weft_qpair_init(struct weft_qpair *qp, const struct weft_transport *transport,
		    const struct weft_qpair_ops *ops, struct weft_poll_group *group)
{
	assert_on_group(group);
	qp->transport = transport;
	qp->ops = ops;
	qp->group = group;
	qp->slots_max = 2 * group->depth_max < SLOTS_MAX ? 2 * group->depth_max : SLOTS_MAX;
	qp->slots = req_slots_of(qp);
	qp->depth = 1;
	qp->in = &group->anon_in;
	qp->out = &group->anon_out;
	weft_list_init(&qp->preconnect);
	weft_list_init(&qp->req_iters);
	if (weft_req_slots_reserve(qp->slots, qp->slots_max) < 0)
		return -ENOMEM;
	qp->reqs = weft_pages_alloc(table_bytes(qp));
	if (!qp->reqs) {
		weft_req_slots_unreserve(qp->slots, qp->slots_max);
		return -ENOMEM;
	}
	qp->free_indices = (uint16_t *)(qp->reqs + qp->slots_max);
	weft_list_push(&group->qpairs, &qp->link);
	return 0;
}

void weft_qpair_accepted(struct weft_qpair *qp)
{
	weft_preconnect_add(&qp->group->preconnect, qp);
}

static void stop_group_work(struct weft_poll_group *group)
{
	assert(!weft_bufs_has_waiters(&group->in) && !weft_bufs_has_waiters(&group->out));
	weft_reclaim_stop(group);
	weft_poll_group_trim_now(group);
	weft_task_cancel(&group->serve_waiters);
}

static void iters_skip(struct weft_qpair *qp)
{
	struct weft_qpair_iter *iter;

	weft_list_for_each(iter, &qp->group->iters, link)
		if (iter->at == &qp->link)
			iter->at = qp->link.next;
	while (!weft_list_empty(&qp->req_iters))
		weft_req_iter_end(container_of(qp->req_iters.next, struct weft_req_iter, link));
}

void weft_qpair_destroy(struct weft_qpair *qp)
{
	assert_on_group(qp->group);
	assert(!qp->inflight && !qp->ending && !qp->draining && !qp->guarded_replies);
	weft_preconnect_remove(&qp->group->preconnect, qp);
	iters_skip(qp);
	weft_reclaim_qpair_gone(&qp->group->reclaim, qp);
	weft_list_remove(&qp->link);
	if (weft_list_empty(&qp->group->qpairs))
		stop_group_work(qp->group);
	weft_req_slots_unreserve(qp->slots, qp->slots_max);
	weft_pages_free(qp->reqs, table_bytes(qp));
}

void weft_qpair_start(struct weft_qpair *qp, uint16_t sqid, uint32_t sqsize, bool sq_flow)
{
	assert_on_group(qp->group);
	assert(!qp->sqsize && sqsize && sqsize <= qp->group->depth_max);
	qp->sqid = sqid;
	qp->sqsize = qp->depth = sqsize;
	qp->sq_flow = sq_flow;
	qp->sqhd = sq_flow ? 0 : 0xffff;
	weft_preconnect_remove(&qp->group->preconnect, qp);
	qp->transport->started(qp);
}

void weft_qpair_admit(struct weft_qpair *qp, struct weft_bufs_flows *flows,
		      struct weft_fair_flow *walks, struct weft_rx_quota *rx_quota)
{
	assert_on_group(qp->group);
	assert(!weft_qpair_is_admitted(qp));
	qp->flows = flows;
	qp->walks = walks;
	qp->rx_part = &rx_quota->parts[weft_transport_index(qp->transport)];
	qp->in = &qp->group->in;
	qp->out = &qp->group->out;
}

bool weft_qpair_is_admitted(const struct weft_qpair *qp)
{
	return qp->in == &qp->group->in;
}

struct weft_req *weft_qpair_req(struct weft_qpair *qp, uint32_t index)
{
	assert(index < qp->high_water);
	return qp->reqs[index];
}

void weft_qpair_close(struct weft_qpair *qp, const char *why, ...)
{
	va_list ap;

	assert_on_group(qp->group);
	if (qp->closing)
		return;
	qp->closing = true;
	weft_preconnect_remove(&qp->group->preconnect, qp);
	va_start(ap, why);
	vsnprintf(qp->why, sizeof(qp->why), why, ap);
	va_end(ap);
	qp->transport->close(qp);
}

bool weft_qpair_is_lost(struct weft_qpair *qp)
{
	if (!qp->closing)
		qp->transport->check_lost(qp);
	return qp->closing;
}

void weft_qpair_close_when_sent(struct weft_qpair *qp, const char *why)
{
	assert_on_group(qp->group);
	if (qp->closing)
		return;
	qp->close_when_sent = why;
	qp->transport->close_when_sent(qp);
}

static enum weft_walk_step end_request(struct weft_req_walk *walk, struct weft_req *req)
{
	struct weft_qpair *qp = container_of(walk, struct weft_qpair, end_walk);

	if (req->state == WEFT_REQ_DRAINING && qp->transport->end_draining)
		qp->transport->end_draining(req);
	else if (!weft_req_abort(req, NVME_SC_ABORT_QUEUE))
		qp->ops->closing_req(req);
	return WEFT_WALK_ON;
}

static void requests_ended(struct weft_req_walk *walk)
{
	struct weft_qpair *qp = container_of(walk, struct weft_qpair, end_walk);

	qp->ending = false;
	qp->transport->slot_freed(qp);
}

void weft_qpair_end_requests(struct weft_qpair *qp)
{
	assert(qp->closing && !qp->ending);
	qp->ending = true;
	qp->end_walk.visit = end_request;
	qp->end_walk.done = requests_ended;
	weft_req_walk_begin(&qp->end_walk, qp, qp->walks);
}

bool weft_qpair_in_use(const struct weft_qpair *qp)
{
	return qp->inflight || qp->ending;
}

void weft_qpair_free(struct weft_qpair *qp)
{
	assert_on_group(qp->group);
	assert(!qp->inflight);
	qp->transport->free(qp);
}

/* --- takeover --------------------------------------------------------------------------------- */

int weft_qpair_export(struct weft_qpair *qp, struct weft_qpair_state *state)
{
	assert(qp->group->frozen);
	*state = (struct weft_qpair_state){
		.trtype = qp->transport->trtype,
		.sqid = qp->sqid,
		.sqhd = qp->sqhd,
		.sqsize = qp->sqsize,
		.sq_flow = qp->sq_flow,
	};
	return qp->transport->export(qp, state);
}

int weft_qpair_import(struct weft_qpair **qp, struct weft_poll_group *group,
		      struct weft_qpair_state *state, const struct weft_qpair_ops *ops, void *owner)
{
	const struct weft_transport *transport = weft_transport_find(state->trtype);
	int rc;

	assert(group->frozen && transport && transport->import);
	rc = transport->import(qp, group, state, ops);
	if (rc < 0)
		return rc;
	(*qp)->owner = owner;
	if (!state->sqsize) {
		weft_qpair_accepted(*qp);
		return 0;
	}
	weft_qpair_start(*qp, (uint16_t)state->sqid, state->sqsize, state->sq_flow);
	(*qp)->sqhd = (uint16_t)state->sqhd;
	return 0;
}
