/* post.c - requests become work requests, which are posted as one chain.
 *
 *   fetches ─┐
 *   replies ─┴─ end of the turn ─▶ batch ─▶ the adapter
 *
 * A request's work requests are a chain of its own: the last one is signaled, and its completion
 * stands for all. A request waits in its list while the send queue is full, or too many READs are
 * under way. Shared data is held from here until the adapter has sent it: the adapter reads the
 * memory at any time.
 *
 * Invariant: wrs is what the send queue has free; chains counts the last ones not yet completed. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "transport/rdma/rdma.h"

struct batch {
	struct rdma_conn *conn;
	unsigned n, nsge;
	struct ibv_send_wr wr[RDMA_BATCH];
	struct ibv_sge sge[2 * RDMA_BATCH];
};

/* --- work requests ---------------------------------------------------------------------------- */

/* Soft iWARP hands the pages of an unsignaled WRITE to TCP and reports it as done: TCP would send
 * what is in the pages by then. */
static bool is_signaled(const struct rdma_conn *conn, enum ibv_wr_opcode opcode, unsigned kind)
{
	return kind != RDMA_WR_PART || (conn->poller->dev->iwarp && opcode == IBV_WR_RDMA_WRITE);
}

static struct ibv_send_wr *add_wr(struct batch *b, struct rdma_req *rreq, enum ibv_wr_opcode opcode,
				  unsigned kind)
{
	struct ibv_send_wr *wr = &b->wr[b->n];

	if (b->n)
		b->wr[b->n - 1].next = wr;
	*wr = (struct ibv_send_wr){
		.wr_id = (uintptr_t)rreq | kind,
		.opcode = opcode,
		.sg_list = &b->sge[b->nsge],
		.send_flags = is_signaled(b->conn, opcode, kind) ? IBV_SEND_SIGNALED : 0,
	};
	b->n++;
	rreq->wrs++;
	return wr;
}

/* Local memory may need two keys, where it crosses from one granule to the next. */
static int add_sges(struct batch *b, struct ibv_send_wr *wr, const char *at, uint32_t len)
{
	struct ibv_mr *mr;

	while (len) {
		size_t n = rdma_mr_cache_find(&b->conn->poller->mrs, at, len, &mr);

		if (!n || wr->num_sge == 2)
			return -EFAULT;
		b->sge[b->nsge++] = (struct ibv_sge){ (uintptr_t)at, (uint32_t)n, mr->lkey };
		wr->num_sge++;
		at += n;
		len -= (uint32_t)n;
	}
	return 0;
}

/* One work request per block of the host's memory, for the first @len bytes. */
static int add_blocks(struct batch *b, struct rdma_req *rreq, enum ibv_wr_opcode opcode,
		      uint32_t len)
{
	const struct rdma_block *block = rreq->blocks;
	const char *at = rreq->req.data;
	int rc = 0;

	for (; len && rc == 0; block++) {
		uint32_t n = block->length < len ? block->length : len;
		struct ibv_send_wr *wr;

		assert(block < rreq->blocks + rreq->nblocks);
		if (!n)
			continue;
		wr = add_wr(b, rreq, opcode, RDMA_WR_PART);
		wr->wr.rdma.remote_addr = block->addr;
		wr->wr.rdma.rkey = block->key;
		rc = add_sges(b, wr, at, n);
		at += n;
		len -= n;
	}
	return rc;
}

/* --- requests --------------------------------------------------------------------------------- */

static void undo_wrs(struct batch *b, struct rdma_req *rreq, unsigned n, unsigned nsge)
{
	b->n = n;
	b->nsge = nsge;
	rreq->wrs = 0;
	if (n)
		b->wr[n - 1].next = NULL;
}

static void chain_started(struct rdma_conn *conn)
{
	if (!conn->chains++)
		conn->moved_ns = weft_reactor_now_ns(conn->qp.group->reactor);
}

static void add_fetch(struct batch *b, struct rdma_req *rreq)
{
	unsigned n = b->n, nsge = b->nsge;
	struct rdma_conn *conn = b->conn;
	struct ibv_send_wr *last;

	if (add_blocks(b, rreq, IBV_WR_RDMA_READ, rreq->req.data_len) < 0) {
		undo_wrs(b, rreq, n, nsge);
		weft_req_fetched(&rreq->req, SC_GENERIC(DATA_XFER_ERROR));
		return;
	}
	last = &b->wr[b->n - 1];
	last->wr_id = (uintptr_t)rreq | RDMA_WR_LAST_READ;
	last->send_flags = IBV_SEND_SIGNALED;
	rreq->reading = true;
	assert(conn->wrs >= rreq->wrs);
	conn->reads += rreq->wrs;
	conn->wrs -= rreq->wrs;
	chain_started(conn);
}

static bool completion_fits_inline(const struct rdma_conn *conn, bool invalidates)
{
	return conn->can_inline && !(invalidates && conn->poller->dev->iwarp);
}

/* To invalidate the host's key is a courtesy: where there is no room for it, the host does it
 * itself. */
static void add_response(struct batch *b, struct rdma_req *rreq)
{
	bool invalidates = rreq->invalidate && b->conn->poller->dev->invalidates;
	struct ibv_send_wr *wr = add_wr(b, rreq, IBV_WR_SEND, RDMA_WR_RESPONSE);
	struct ibv_sge *sge = &b->sge[b->nsge++];

	wr->num_sge = 1;
	if (completion_fits_inline(b->conn, invalidates) ||
	    rdma_resp_buf_get(b->conn->poller, rreq, sge) < 0) {
		*sge = (struct ibv_sge){ (uintptr_t)&rreq->req.cqe, sizeof(rreq->req.cqe), 0 };
		wr->send_flags |= IBV_SEND_INLINE;
		invalidates = invalidates && completion_fits_inline(b->conn, true);
	}
	if (!invalidates)
		return;
	wr->opcode = IBV_WR_SEND_WITH_INV;
	wr->invalidate_rkey = rreq->blocks[0].key;
	wr->wr.rdma.rkey = rreq->blocks[0].key; /* where soft iWARP's provider looks for it */
}

static void add_reply(struct batch *b, struct rdma_req *rreq)
{
	unsigned n = b->n, nsge = b->nsge;

	if (add_blocks(b, rreq, IBV_WR_RDMA_WRITE, rreq->req.reply_len) < 0) {
		undo_wrs(b, rreq, n, nsge);
		rreq->req.cqe.status = cpu_to_le16(SC_GENERIC(DATA_XFER_ERROR) << 1);
	}
	add_response(b, rreq);
	assert(b->conn->wrs >= rreq->wrs && b->n <= RDMA_BATCH);
	b->conn->wrs -= rreq->wrs;
	chain_started(b->conn);
	/* The host may have the reply, and its next command may be here, before we see that the
	 * reply has left. */
	weft_req_enter(&rreq->req, WEFT_REQ_DRAINING);
}

/* --- posting ---------------------------------------------------------------------------------- */

static bool batch_has_room(const struct batch *b, const struct rdma_req *rreq)
{
	unsigned most = rreq->nblocks + 1u;

	return b->n + most <= RDMA_BATCH && b->conn->wrs >= most;
}

/* The first READ goes in any case: if a command has more blocks than READs may be under way, the
 * adapter paces them. */
static bool may_read(const struct rdma_conn *conn, const struct rdma_req *rreq)
{
	return !conn->reads || conn->reads + rreq->nblocks <= conn->reads_max;
}

static struct rdma_req *first_request_of(struct weft_list *list)
{
	return weft_list_empty(list) ? NULL : container_of(list->next, struct rdma_req, link);
}

/* If the adapter refuses to register a namespace's own memory, the data is copied to a buffer. */
static void copy_to_buffer(struct rdma_conn *conn, struct weft_req *req)
{
	assert(req->shared && req->data != req->out.at);
	memcpy(req->out.at, req->data, req->reply_len);
	weft_guard_unlock_read(req->guard, req->data, req->reply_len);
	weft_counter_add(&conn->qp.stats.copied_bytes, req->reply_len);
	req->data = req->out.at;
	req->shared = false;
}

/* false: somebody writes there now; the reply goes in a later turn. */
static bool hold_reply_data(struct rdma_conn *conn, struct rdma_req *rreq)
{
	struct weft_req *req = &rreq->req;

	if (!req->shared)
		return true;
	if (!weft_guard_try_read(req->guard, req->data, req->reply_len)) {
		weft_retry_later(conn->qp.group->reactor, &conn->flush);
		return false;
	}
	weft_retry_reset(&conn->flush);
	if (req->out.at)
		copy_to_buffer(conn, req);
	else
		rdma_hold_shared(conn, rreq);
	return true;
}

static void gather_batch(struct batch *b)
{
	struct rdma_conn *conn = b->conn;
	struct rdma_req *rreq;

	while ((rreq = first_request_of(&conn->replies)) && batch_has_room(b, rreq) &&
	       hold_reply_data(conn, rreq)) {
		weft_list_remove(&rreq->link);
		add_reply(b, rreq);
	}
	while ((rreq = first_request_of(&conn->fetches)) && batch_has_room(b, rreq) &&
	       may_read(conn, rreq)) {
		weft_list_remove(&rreq->link);
		add_fetch(b, rreq);
	}
}

/* Work requests from @bad on were refused: their chains do not count. Those of such a chain that
 * were accepted come back flushed, and are ignored. NULL: all were accepted, but the post
 * failed. */
static void uncount_refused(struct batch *b, const struct ibv_send_wr *bad)
{
	for (; bad; bad = bad->next)
		if ((bad->wr_id & RDMA_WR_KIND_MASK) != RDMA_WR_PART)
			weft_count_down(b->conn->chains);
}

/* Some providers report that the adapter can invalidate keys, but do not implement it. */
static bool cannot_invalidate(const struct rdma_dev *dev, const struct ibv_send_wr *bad, int rc)
{
	return dev->invalidates && bad && bad->opcode == IBV_WR_SEND_WITH_INV &&
	       (abs(rc) == EINVAL || abs(rc) == EOPNOTSUPP);
}

static int post_without_invalidate(struct rdma_conn *conn, struct ibv_send_wr **bad)
{
	conn->poller->dev->invalidates = false;
	for (struct ibv_send_wr *wr = *bad; wr; wr = wr->next)
		if (wr->opcode == IBV_WR_SEND_WITH_INV)
			wr->opcode = IBV_WR_SEND;
	return rdma_verbs->post_send(conn->id->qp, *bad, bad);
}

static void post_batch(struct batch *b)
{
	struct rdma_conn *conn = b->conn;
	struct ibv_send_wr *bad = b->wr;
	int rc = rdma_verbs->post_send(conn->id->qp, b->wr, &bad);

	if (rc && cannot_invalidate(conn->poller->dev, bad, rc))
		rc = post_without_invalidate(conn, &bad);
	weft_counter_add(&conn->qp.stats.posted, b->n);
	if (!rc)
		return;
	uncount_refused(b, bad);
	weft_qpair_close(&conn->qp, "post: %s", strerror(abs(rc)));
}

void rdma_flush(struct weft_task *task)
{
	struct rdma_conn *conn = container_of(task, struct rdma_conn, flush.task);
	struct rdma_mr_cache *mrs = &conn->poller->mrs;
	uint64_t hits = mrs->hits, registrations = mrs->registrations;
	struct batch b;

	if (conn->state < RDMA_CLOSING)
		rdma_recvs_post(conn->poller->uses_srq ? &conn->poller->recvs : &conn->recvs);
	while (conn->state < RDMA_CLOSING) {
		b.conn = conn;
		b.n = b.nsge = 0;
		gather_batch(&b);
		if (!b.n)
			break;
		post_batch(&b);
	}
	weft_counter_add(&conn->qp.stats.key_hits, mrs->hits - hits);
	weft_counter_add(&conn->qp.stats.registrations, mrs->registrations - registrations);
	if (conn->qp.close_when_sent && !conn->chains && !conn->replies_waiting &&
	    weft_list_empty(&conn->replies))
		weft_qpair_close(&conn->qp, "%s", conn->qp.close_when_sent);
}
