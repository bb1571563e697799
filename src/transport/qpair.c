/* qpair.c - a queue pair's beginning and end.
 *
 * Its table of requests is reserved address space, paid when first used: a deep queue that stays
 * shallow costs what it uses. Until Connect says how deep the queue is, there is one request at a
 * time. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "transport/transport.h"

enum { SLOTS_MAX = 65535 }; /* as many as a 16-bit tag can name */

static size_t table_bytes(const struct weft_qpair *qp)
{
	return qp->slots_max * (sizeof(*qp->reqs) + sizeof(*qp->spare));
}

/* Those of its transport. An odd number of cache lines each: what all commands touch is spread over
 * all sets of a cache. */
static struct weft_slots *slots_of(const struct weft_qpair *qp)
{
	size_t bytes = weft_req_priv_at(qp->transport) + qp->ops->req_priv;
	size_t size = ((bytes + 63) & ~(size_t)63) | 64;
	struct weft_slots *slots = qp->group->slots;

	if (slots->size && slots->size != size)
		slots++;
	assert(!slots->size || slots->size == size);
	slots->size = size;
	return slots;
}

int weft_qpair_init(struct weft_qpair *qp, const struct weft_transport *transport,
		    const struct weft_qpair_ops *ops, struct weft_group *group)
{
	qp->transport = transport;
	qp->ops = ops;
	qp->group = group;
	qp->slots_max = 2 * group->depth_max < SLOTS_MAX ? 2 * group->depth_max : SLOTS_MAX;
	qp->slots = slots_of(qp);
	qp->depth = 1;
	qp->in = &group->anon_in;
	qp->out = &group->anon_out;
	weft_list_init(&qp->unknown);
	if (weft_slots_want(qp->slots, qp->slots_max) < 0)
		return -ENOMEM;
	qp->reqs = weft_pages_alloc(table_bytes(qp));
	if (!qp->reqs) {
		weft_slots_unwant(qp->slots, qp->slots_max);
		return -ENOMEM;
	}
	qp->spare = (uint16_t *)(qp->reqs + qp->slots_max);
	weft_list_push(&group->qpairs, &qp->link);
	weft_unknown_add(&group->unknown, qp);
	return 0;
}

static void settle_group(struct weft_group *group)
{
	weft_timer_stop(group->reactor, &group->reclaim);
	weft_task_cancel(&group->serve);
}

static void step_over(struct weft_qpair *qp)
{
	struct weft_walk *walk;

	weft_list_for_each(walk, &qp->group->walks, link)
		if (walk->at == &qp->link)
			walk->at = qp->link.next;
}

void weft_qpair_destroy(struct weft_qpair *qp)
{
	assert(!qp->inflight);
	weft_unknown_remove(&qp->group->unknown, qp);
	step_over(qp);
	weft_list_remove(&qp->link);
	if (weft_list_empty(&qp->group->qpairs))
		settle_group(qp->group);
	weft_slots_unwant(qp->slots, qp->slots_max);
	weft_pages_free(qp->reqs, table_bytes(qp));
}

void weft_qpair_start(struct weft_qpair *qp, uint16_t sqid, uint32_t sqsize, bool sq_flow)
{
	assert(!qp->sqsize && sqsize <= qp->group->depth_max);
	qp->sqid = sqid;
	qp->sqsize = qp->depth = sqsize;
	qp->sq_flow = sq_flow;
	qp->sqhd = sq_flow ? 0 : 0xffff;
	weft_unknown_remove(&qp->group->unknown, qp);
	qp->transport->started(qp);
}

void weft_qpair_let_in(struct weft_qpair *qp, struct weft_bufs_lines *lines,
		       struct weft_keeper *keeper)
{
	qp->lines = lines;
	qp->keeper = keeper;
	qp->in = &qp->group->in;
	qp->out = &qp->group->out;
}

bool weft_qpair_is_let_in(const struct weft_qpair *qp)
{
	return qp->in == &qp->group->in;
}

struct weft_req *weft_qpair_slot(struct weft_qpair *qp, uint32_t index)
{
	assert(index < qp->touched);
	return qp->reqs[index];
}

void weft_qpair_close(struct weft_qpair *qp, const char *why, ...)
{
	va_list ap;

	if (qp->closing)
		return;
	qp->closing = true;
	weft_unknown_remove(&qp->group->unknown, qp);
	va_start(ap, why);
	vsnprintf(qp->why, sizeof(qp->why), why, ap);
	va_end(ap);
	qp->transport->close(qp);
}

bool weft_qpair_is_lost(struct weft_qpair *qp)
{
	if (!qp->closing && qp->transport->check)
		qp->transport->check(qp);
	return qp->closing;
}

void weft_qpair_hang_up(struct weft_qpair *qp, const char *why)
{
	if (qp->closing)
		return;
	qp->hang_up = why;
	qp->transport->hang_up(qp);
}

void weft_qpair_abort_all(struct weft_qpair *qp)
{
	for (uint32_t i = 0; i < qp->touched; i++)
		if (qp->reqs[i])
			weft_req_abort(qp->reqs[i], NVME_SC_ABORT_QUEUE);
}

void weft_qpair_free(struct weft_qpair *qp)
{
	qp->transport->free(qp);
}
