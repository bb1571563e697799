/* tx.c - fetches and replies of the target, and the completions of their work requests.
 *
 *   fetch() ─▶ fetches ─▶ post.c ─▶ RDMA READ ─▶ the data is here
 *   reply() ─▶ replies ─▶ post.c ─▶ RDMA WRITE, SEND ─▶ the slot is free
 *        └ data in memory without an MR: waits for a buffer ─▶ replies */
#include <assert.h>
#include <string.h>

#include "base/count.h"
#include "transport/rdma/rdma.h"

static void rdma_flush_soon(struct rdma_conn *conn)
{
	weft_reactor_defer(conn->qp.group->reactor, &conn->flush.task);
}

void rdma_tx_init(struct rdma_conn *conn)
{
	weft_list_init(&conn->fetches);
	weft_list_init(&conn->replies);
	weft_retry_init(&conn->flush, rdma_flush);
}

void rdma_close_when_sent(struct weft_qpair *qp)
{
	rdma_flush_soon(rdma_conn_of(qp));
}

/* --- fetch and reply -------------------------------------------------------------------------- */

void rdma_fetch(struct weft_req *req, uint32_t len)
{
	struct rdma_conn *conn = rdma_conn_of(req->qp);

	(void)len;
	if (conn->state >= RDMA_CLOSING) {
		weft_req_fetched(req, SC_GENERIC(ABORT_QUEUE));
		return;
	}
	assert(req->state == WEFT_REQ_AWAIT_DATA);
	assert(weft_list_empty(&rdma_req_of(req)->link));
	weft_list_push(&conn->fetches, &rdma_req_of(req)->link);
	rdma_flush_soon(conn);
}

bool rdma_abort_fetch(struct weft_req *req)
{
	struct rdma_req *rreq = rdma_req_of(req);

	if (rreq->reading)
		return false;
	weft_list_remove(&rreq->link);
	return true;
}

static void release_receive(struct rdma_req *rreq)
{
	if (!rreq->recv)
		return;
	weft_count_down(rreq->recv->owner->held);
	if (rdma_carries_ranges(&rreq->req))
		weft_count_down(rreq->req.qp->rx_part->pinned);
	rdma_recv_put(rreq->recv);
	rreq->recv = NULL;
}

/* Is every byte in a memory region of the adapter? */
static bool is_registered(struct rdma_mr_cache *mrs, const char *at, size_t len)
{
	struct ibv_mr *mr;
	size_t n = 1;

	for (; len && n; at += n, len -= n)
		n = rdma_mr_cache_find(mrs, at, len, &mr);
	return n;
}

static void queue_reply(struct rdma_conn *conn, struct rdma_req *rreq)
{
	assert(!rreq->reading && weft_list_empty(&rreq->link));
	rreq->wrs = 0;
	weft_list_push(&conn->replies, &rreq->link);
	rdma_flush_soon(conn);
}

static void drop_reply(struct rdma_conn *conn, struct rdma_req *rreq)
{
	weft_req_release(&rreq->req);
	rdma_finish_close_soon(conn);
}

static void reply_buffer_available(struct weft_pool_waiter *waiter, void *at)
{
	struct weft_req *req = container_of(waiter, struct weft_req, waiter);
	struct rdma_conn *conn = rdma_conn_of(req->qp);

	weft_count_down(conn->replies_waiting);
	req->out.at = at;
	if (conn->state < RDMA_CLOSING)
		queue_reply(conn, rdma_req_of(req));
	else
		drop_reply(conn, rdma_req_of(req));
}

/* The data is copied when the reply is posted. */
static void reply_through_buffer(struct rdma_conn *conn, struct weft_req *req)
{
	req->out.pool = weft_bufs_pool(req->qp->out, req->reply_len);
	req->out.at = weft_pool_take(req->out.pool);
	if (req->out.at) {
		queue_reply(conn, rdma_req_of(req));
		return;
	}
	conn->replies_waiting++;
	weft_req_wait_buffer(req, &req->out, reply_buffer_available);
}

void rdma_reply(struct weft_req *req)
{
	struct rdma_conn *conn = rdma_conn_of(req->qp);
	struct rdma_req *rreq = rdma_req_of(req);

	release_receive(rreq);
	if (conn->state >= RDMA_CLOSING)
		drop_reply(conn, rreq);
	else if (req->out.at || is_registered(&conn->poller->mrs, req->data, req->reply_len))
		queue_reply(conn, rreq);
	else
		reply_through_buffer(conn, req);
}

/* --- shared data: memory that other commands write to ----------------------------------------- */

void rdma_hold_shared(struct rdma_conn *conn, struct rdma_req *rreq)
{
	assert(!rreq->held);
	rreq->held = true;
	if (!conn->qp.guarded_replies++)
		weft_poll_group_start_reclaim(conn->qp.group);
}

static void release_shared(struct rdma_conn *conn, struct rdma_req *rreq)
{
	if (!rreq->held)
		return;
	rreq->held = false;
	weft_count_down(conn->qp.guarded_replies);
	weft_guard_unlock_read(rreq->req.guard, rreq->req.data, rreq->req.reply_len);
}

/* --- completions ------------------------------------------------------------------------------ */

static void read_completed(struct rdma_conn *conn, struct rdma_req *rreq, bool well)
{
	assert(conn->reads >= rreq->wrs && conn->wrs + rreq->wrs <= conn->wrs_max);
	conn->reads -= rreq->wrs;
	conn->wrs += rreq->wrs;
	weft_count_down(conn->chains);
	rreq->reading = false;
	rreq->wrs = 0;
	if (well && conn->state < RDMA_CLOSING)
		weft_req_fetched(&rreq->req, 0);
}

static void response_completed(struct rdma_conn *conn, struct rdma_req *rreq)
{
	conn->wrs += rreq->wrs;
	assert(conn->wrs <= conn->wrs_max);
	weft_count_down(conn->chains);
	rdma_resp_buf_put(conn->poller, rreq);
	release_shared(conn, rreq);
	weft_req_release(&rreq->req);
}

void rdma_send_completed(const struct ibv_wc *wc)
{
	struct rdma_req *rreq = (struct rdma_req *)(uintptr_t)(wc->wr_id &
							       ~(uint64_t)RDMA_WR_KIND_MASK);
	struct rdma_conn *conn = rdma_conn_of(rreq->req.qp);
	bool well = wc->status == IBV_WC_SUCCESS;

	conn->moved_ns = weft_reactor_now_ns(conn->qp.group->reactor);
	weft_counter_add(&conn->qp.stats.completed, 1);
	if (!well)
		rdma_conn_wc_error(conn, wc);
	if ((wc->wr_id & RDMA_WR_KIND_MASK) == RDMA_WR_LAST_READ)
		read_completed(conn, rreq, well);
	else if ((wc->wr_id & RDMA_WR_KIND_MASK) == RDMA_WR_RESPONSE)
		response_completed(conn, rreq);
	rdma_flush_soon(conn);
	rdma_finish_close_soon(conn);
}

static void abort_request(struct rdma_conn *conn, struct rdma_req *rreq)
{
	rreq->reading = false;
	if (rreq->req.state == WEFT_REQ_REPLYING || rreq->req.state == WEFT_REQ_DRAINING) {
		weft_list_remove(&rreq->link);
		weft_pool_cancel_wait(&rreq->req.waiter);
		rdma_resp_buf_put(conn->poller, rreq);
		release_shared(conn, rreq);
		weft_req_release(&rreq->req);
	}
}

void rdma_tx_abort_all(struct rdma_conn *conn)
{
	assert(conn->state == RDMA_ANSWERING);
	weft_retry_cancel(&conn->flush);
	conn->chains = conn->replies_waiting = 0;
	for (uint32_t i = 0; i < conn->qp.high_water; i++) {
		struct weft_req *req = weft_qpair_req(&conn->qp, i);

		if (req)
			abort_request(conn, rdma_req_of(req));
	}
}
