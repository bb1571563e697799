/* qpair.c - a queue pair's slots, its beginning and its end.
 *
 * Slots are reserved address space, paid when first used: a deep queue that stays shallow costs
 * what it uses. Until Connect says how deep the queue is, only the first one is handed out. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "transport/transport.h"

int weft_qpair_init(struct weft_qpair *qp, const struct weft_transport *transport,
		    const struct weft_qpair_ops *ops, struct weft_group *group)
{
	qp->transport = transport;
	qp->ops = ops;
	qp->group = group;
	qp->slot_size = (transport->req_size + ops->req_priv + 63) & ~(size_t)63;
	qp->slots = weft_pages_alloc(group->depth_max * qp->slot_size);
	qp->depth = 1;
	if (!qp->slots)
		return -ENOMEM;
	weft_list_push(&group->qpairs, &qp->link);
	return 0;
}

void weft_qpair_destroy(struct weft_qpair *qp)
{
	assert(!qp->inflight);
	weft_list_remove(&qp->link);
	if (weft_list_empty(&qp->group->qpairs))
		weft_timer_stop(qp->group->reactor, &qp->group->reclaim);
	weft_pages_free(qp->slots, qp->group->depth_max * qp->slot_size);
}

void weft_qpair_start(struct weft_qpair *qp, uint16_t sqid, uint32_t sqsize, bool sq_flow)
{
	assert(!qp->sqsize && sqsize <= qp->group->depth_max);
	qp->sqid = sqid;
	qp->sqsize = qp->depth = sqsize;
	qp->sq_flow = sq_flow;
	qp->sqhd = sq_flow ? 0 : 0xffff;
	qp->transport->started(qp);
}

struct weft_req *weft_qpair_slot(struct weft_qpair *qp, uint32_t index)
{
	return (struct weft_req *)(qp->slots + index * qp->slot_size);
}

uint32_t weft_req_index(const struct weft_req *req)
{
	return (uint32_t)((size_t)((const char *)req - req->qp->slots) / req->qp->slot_size);
}

void weft_qpair_close(struct weft_qpair *qp, const char *why, ...)
{
	va_list ap;

	if (qp->closing)
		return;
	qp->closing = true;
	va_start(ap, why);
	vsnprintf(qp->why, sizeof(qp->why), why, ap);
	va_end(ap);
	qp->transport->close(qp);
}

void weft_qpair_hang_up(struct weft_qpair *qp, const char *why)
{
	if (qp->closing)
		return;
	qp->hang_up = why;
	qp->transport->hang_up(qp);
}

static void abort_all_in(struct weft_qpair *qp, enum weft_req_state state)
{
	for (uint32_t i = 0; i < qp->touched; i++) {
		struct weft_req *req = weft_qpair_slot(qp, i);

		if (req->state == state)
			weft_req_abort(req, NVME_SC_ABORT_QUEUE);
	}
}

/* Those in line for a buffer first: what the others give back is not for them any more. */
void weft_qpair_abort_all(struct weft_qpair *qp)
{
	abort_all_in(qp, WEFT_REQ_NEED_BUFFER);
	abort_all_in(qp, WEFT_REQ_AWAIT_DATA);
}

void weft_qpair_free(struct weft_qpair *qp)
{
	qp->transport->free(qp);
}
