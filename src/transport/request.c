/* request.c - the states of a request, from slot taken to slot freed.
 *
 *            ┌────────────── then() ───────────────┐
 *   FREE ─▶ EXECUTING ─▶ NEED_BUFFER ─▶ AWAIT_DATA ─┘     EXECUTING ─▶ REPLYING ─▶ FREE
 *                                         └ aborted ─▶ … ─▶ REPLYING ─▶ DRAINING ─▶ FREE
 *
 * Invariant: inflight counts the queue's requests, which are in its table; the other indices that
 * were used are in qp->free_indices. */
#include <assert.h>
#include <string.h>

#include "transport/transport.h"

#define FROM(state) (1u << WEFT_REQ_##state)

/* States that may come before. */
static const unsigned edges[WEFT_REQ_STATES] = {
	[WEFT_REQ_FREE] = FROM(REPLYING) | FROM(DRAINING),
	[WEFT_REQ_EXECUTING] = FROM(FREE) | FROM(NEED_BUFFER) | FROM(AWAIT_DATA),
	[WEFT_REQ_NEED_BUFFER] = FROM(EXECUTING),
	[WEFT_REQ_AWAIT_DATA] = FROM(EXECUTING),
	[WEFT_REQ_REPLYING] = FROM(EXECUTING),
	[WEFT_REQ_DRAINING] = FROM(REPLYING),
};

void weft_req_enter(struct weft_req *req, enum weft_req_state state)
{
	assert(edges[state] & 1u << req->state);
	req->qp->draining += state == WEFT_REQ_DRAINING;
	req->qp->draining -= req->state == WEFT_REQ_DRAINING;
	req->state = state;
}

uint16_t weft_req_check_sgl(struct weft_req *req, uint32_t len)
{
	return req->qp->transport->check_sgl(req, len);
}

uint32_t weft_req_sgl_len(struct weft_req *req)
{
	return req->qp->transport->sgl_len(req);
}

static void table_insert(struct weft_qpair *qp, struct weft_req *req)
{
	uint32_t spare = qp->high_water - qp->inflight++;

	req->index = spare ? qp->free_indices[spare - 1] : qp->high_water++;
	qp->reqs[req->index] = req;
}

static void table_remove(struct weft_qpair *qp, const struct weft_req *req)
{
	uint32_t spare = qp->high_water - qp->inflight--;

	assert(qp->reqs[req->index] == req);
	qp->reqs[req->index] = NULL;
	qp->free_indices[spare] = (uint16_t)req->index;
}

struct weft_req *weft_req_alloc(struct weft_qpair *qp)
{
	struct weft_req *req;

	if (qp->inflight - qp->draining >= qp->depth || qp->inflight == qp->slots_max)
		return NULL;
	req = weft_req_slots_alloc(qp->slots);
	table_insert(qp, req);
	req->qp = qp;
	req->data = NULL;
	req->shared = false;
	req->data_len = req->reply_len = 0;
	req->cqe.result = cpu_to_le64(0);
	memset(weft_req_priv(req), 0, qp->ops->req_zeroed);
	weft_req_enter(req, WEFT_REQ_EXECUTING);
	return req;
}

static void put_req_buffer(struct weft_req_buf *buf)
{
	if (buf->at)
		weft_pool_give(buf->pool, buf->at);
	buf->at = NULL;
}

void weft_req_release(struct weft_req *req)
{
	struct weft_qpair *qp = req->qp;

	qp->ops->released(req);
	put_req_buffer(&req->in);
	put_req_buffer(&req->out);
	weft_req_enter(req, WEFT_REQ_FREE);
	table_remove(qp, req);
	if (weft_req_slots_free(qp->slots, req))
		weft_poll_group_trim_later(qp->group);
	qp->transport->slot_freed(qp);
}

/* --- buffers ---------------------------------------------------------------------------------- */

static void resume_request(struct weft_req *req, uint16_t sc)
{
	weft_req_enter(req, WEFT_REQ_EXECUTING);
	req->then(req, sc);
}

static void buffer_available(struct weft_pool_waiter *waiter, void *at)
{
	struct weft_req *req = container_of(waiter, struct weft_req, waiter);

	assert(req->state == WEFT_REQ_NEED_BUFFER);
	(req->awaits_in ? &req->in : &req->out)->at = req->data = at;
	resume_request(req, req->qp->closing ? NVME_SC_ABORT_QUEUE : 0);
}

static struct weft_fair_flow *flow_of_waiter(const struct weft_req *req)
{
	const struct weft_qpair *qp = req->qp;

	if (!qp->flows)
		return NULL;
	return req->awaits_in ? &qp->flows->in[req->in.pool - qp->in->pools] :
				&qp->flows->out[req->out.pool - qp->out->pools];
}

void weft_req_wait_buffer(struct weft_req *req, struct weft_req_buf *buf,
			  void (*got)(struct weft_pool_waiter *waiter, void *at))
{
	assert(!buf->at && (buf == &req->in || buf == &req->out));
	req->awaits_in = buf == &req->in;
	req->waiter.got = got;
	weft_pool_wait(buf->pool, flow_of_waiter(req), &req->waiter);
	weft_poll_group_start_reclaim(req->qp->group);
}

static bool take_free_buffer(struct weft_req *req, struct weft_req_buf *buf, struct weft_bufs *bufs,
			     uint32_t len)
{
	assert(len && len <= WEFT_MDTS_BYTES && !buf->at);
	buf->pool = weft_bufs_pool(bufs, len);
	buf->at = weft_pool_take(buf->pool);
	if (!buf->at)
		return false;
	req->data = buf->at;
	req->data_len = len;
	return true;
}

/* @then runs now, or when a buffer is free. */
static void get_req_buffer(struct weft_req *req, struct weft_req_buf *buf, struct weft_bufs *bufs,
			   uint32_t len, weft_req_fn *then)
{
	req->then = then;
	if (take_free_buffer(req, buf, bufs, len)) {
		then(req, 0);
		return;
	}
	req->data_len = len;
	weft_req_enter(req, WEFT_REQ_NEED_BUFFER);
	weft_req_wait_buffer(req, buf, buffer_available);
}

bool weft_req_get_free_buffer(struct weft_req *req, uint32_t len)
{
	return take_free_buffer(req, &req->out, req->qp->out, len);
}

void weft_req_get_buffer(struct weft_req *req, uint32_t len, weft_req_fn *then)
{
	get_req_buffer(req, &req->out, req->qp->out, len, then);
}

void weft_req_put_buffer(struct weft_req *req)
{
	put_req_buffer(&req->out);
}

/* --- data from the host ----------------------------------------------------------------------- */

static void start_fetch(struct weft_req *req, weft_req_fn *then)
{
	req->then = then;
	weft_req_enter(req, WEFT_REQ_AWAIT_DATA);
	req->qp->transport->fetch(req, req->data_len);
}

static void fetch_into_buffer(struct weft_req *req, uint16_t sc)
{
	if (sc)
		req->fetch_then(req, sc);
	else
		start_fetch(req, req->fetch_then);
}

static void fetch_both_into_buffers(struct weft_req *first, uint16_t sc)
{
	struct weft_req *second = first->fetch_with;
	weft_req_fn *then = first->fetch_then;

	if (!sc && !take_free_buffer(second, &second->in, second->qp->in, first->data_len))
		sc = NVME_SC_CMD_INTERRUPTED;
	if (sc) {
		put_req_buffer(&first->in);
		first->data = NULL;
		then(first, sc);
		then(second, sc);
		return;
	}
	start_fetch(first, then);
	start_fetch(second, then);
}

void weft_req_fetch(struct weft_req *req, uint32_t len, weft_req_fn *then)
{
	if (req->data) { /* came with the capsule */
		req->data_len = len;
		then(req, 0);
		return;
	}
	req->fetch_then = then;
	get_req_buffer(req, &req->in, req->qp->in, len, fetch_into_buffer);
}

void weft_req_fetch_both(struct weft_req *first, struct weft_req *second, uint32_t len,
			 weft_req_fn *then)
{
	assert(first->qp == second->qp && first != second);
	if (first->data || second->data) {
		weft_req_fetch(first, len, then);
		weft_req_fetch(second, len, then);
		return;
	}
	first->fetch_then = then;
	first->fetch_with = second;
	get_req_buffer(first, &first->in, first->qp->in, len, fetch_both_into_buffers);
}

void weft_req_fetched(struct weft_req *req, uint16_t sc)
{
	assert(req->state == WEFT_REQ_AWAIT_DATA);
	resume_request(req, sc);
}

bool weft_req_abort(struct weft_req *req, uint16_t status)
{
	switch (req->state) {
	case WEFT_REQ_NEED_BUFFER:
		weft_pool_cancel_wait(&req->waiter);
		resume_request(req, status);
		return true;
	case WEFT_REQ_AWAIT_DATA:
		if (!req->qp->transport->abort_fetch(req))
			return false;
		resume_request(req, status);
		return true;
	default:
		return false;
	}
}

void weft_req_reply(struct weft_req *req, uint16_t status)
{
	struct weft_qpair *qp = req->qp;

	weft_req_enter(req, WEFT_REQ_REPLYING);
	if (status)
		req->reply_len = req->shared = 0;
	req->cqe.cid = req->cmd.common.cid;
	req->cqe.sqid = cpu_to_le16(qp->sqid);
	req->cqe.status = cpu_to_le16((uint16_t)(status << 1));
	if (qp->sq_flow)
		qp->sqhd = (uint16_t)((qp->sqhd + 1) % qp->sqsize);
	req->cqe.sqhd = cpu_to_le16(qp->sqhd);
	qp->transport->reply(req);
}
