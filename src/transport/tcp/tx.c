/* tx.c - sending: what became ready during a turn of the reactor leaves in one system call.
 *
 *   push ─▶ txq ─▶ (end of turn) ─▶ sending ─▶ sendmsg ─▶ sent()
 *
 * Invariant: one send at a time; everything on @sending has its bytes in tx_iov. */
#include <assert.h>
#include <string.h>

#include "transport/tcp/tcp.h"

static const char zeroes[128]; /* PAD, up to HPDA's largest alignment */

static void send_rest(struct tcp_conn *conn);

static void gather(struct tcp_conn *conn)
{
	struct weft_list *link;
	struct tcp_tx *tx;

	conn->tx_at = conn->tx_count = 0;
	while (conn->tx_count + TCP_TX_PARTS <= TCP_TX_IOVS) {
		link = weft_list_pop(&conn->txq);
		if (!link)
			return;
		tx = container_of(link, struct tcp_tx, link);
		conn->tx_count += tx->fill(tx, conn->tx_iov + conn->tx_count);
		weft_list_push(&conn->sending, &tx->link);
	}
}

static void flush(struct tcp_conn *conn)
{
	if (conn->tx_busy || conn->state >= TCP_CLOSING)
		return;
	gather(conn);
	conn->tx_begun_ns = weft_reactor_now_ns(conn->qp.group->reactor);
	if (conn->tx_count)
		send_rest(conn);
	else if (conn->qp.hang_up)
		weft_qpair_close(&conn->qp, "%s", conn->qp.hang_up);
}

static void flush_task(struct weft_task *task)
{
	flush(container_of(task, struct tcp_conn, flush));
}

static void finish(struct weft_list *list)
{
	struct weft_list *link;

	while ((link = weft_list_pop(list))) {
		struct tcp_tx *tx = container_of(link, struct tcp_tx, link);

		tx->sent(tx);
	}
}

static void advance(struct tcp_conn *conn, size_t bytes)
{
	while (bytes && bytes >= conn->tx_iov[conn->tx_at].iov_len)
		bytes -= conn->tx_iov[conn->tx_at++].iov_len;
	if (bytes) {
		struct iovec *iov = &conn->tx_iov[conn->tx_at];

		iov->iov_base = (char *)iov->iov_base + bytes;
		iov->iov_len -= bytes;
	}
}

static void send_done(struct weft_op *op, int res)
{
	struct tcp_conn *conn = container_of(op, struct tcp_conn, tx_op);

	conn->tx_busy = false;
	if (conn->state >= TCP_CLOSING) {
		tcp_wrap_up_soon(conn);
		return;
	}
	if (res < 0) {
		weft_qpair_close(&conn->qp, "send: %s", strerror(-res));
		return;
	}
	advance(conn, (size_t)res);
	if (conn->tx_at < conn->tx_count) {
		send_rest(conn);
		return;
	}
	finish(&conn->sending);
	flush(conn);
}

static void send_rest(struct tcp_conn *conn)
{
	conn->tx_busy = true;
	weft_sock_send(&conn->sock, &conn->tx_op, conn->tx_iov + conn->tx_at,
		       conn->tx_count - conn->tx_at);
}

void tcp_tx_init(struct tcp_conn *conn)
{
	weft_list_init(&conn->txq);
	weft_list_init(&conn->sending);
	weft_task_init(&conn->flush, flush_task);
	conn->tx_op.done = send_done;
}

void tcp_tx_stop(struct tcp_conn *conn)
{
	assert(!conn->tx_busy && conn->state >= TCP_CLOSING);
	weft_task_cancel(&conn->flush);
	finish(&conn->sending);
	finish(&conn->txq);
}

void tcp_hang_up(struct weft_qpair *qp)
{
	weft_reactor_defer(qp->group->reactor, &tcp_conn_of(qp)->flush);
}

void tcp_tx_push(struct tcp_conn *conn, struct tcp_tx *tx)
{
	assert(conn->state < TCP_CLOSING);
	weft_list_push(&conn->txq, &tx->link);
	weft_reactor_defer(conn->qp.group->reactor, &conn->flush);
}

void tcp_seal_header(struct tcp_conn *conn, struct nvme_tcp_hdr *hdr, uint32_t *hdgst)
{
	if (!conn->rules.hdgst)
		return;
	hdr->flags |= NVME_TCP_F_HDGST;
	*hdgst = htole32(nvme_tcp_crc(0, hdr, hdr->hlen));
}

/* --- replies ----------------------------------------------------------------------------------- */

static uint32_t header_digest(const struct tcp_conn *conn)
{
	return conn->rules.hdgst ? NVME_TCP_DIGEST : 0;
}

/* C2HData may stand for the completion too, where SQHD does not matter. */
static bool completes_with_data(const struct weft_req *req)
{
	return req->reply_len && !req->qp->sq_flow && !req->cqe.result;
}

static void build_c2h_data(struct tcp_conn *conn, struct tcp_req *treq)
{
	uint32_t align = (conn->hpda + 1u) * 4, len = treq->req.reply_len;
	uint32_t header = sizeof(treq->c2h.pdu) + header_digest(conn);
	uint32_t pdo = (header + align - 1) / align * align;

	treq->c2h.pdu = (struct nvme_tcp_data){
		.hdr.type = NVME_TCP_C2H_DATA,
		.hdr.flags = NVME_TCP_F_LAST | (conn->rules.ddgst ? NVME_TCP_F_DDGST : 0) |
			     (completes_with_data(&treq->req) ? NVME_TCP_F_SUCCESS : 0),
		.hdr.hlen = sizeof(treq->c2h.pdu),
		.hdr.pdo = (uint8_t)pdo,
		.hdr.plen = cpu_to_le32(pdo + len + (conn->rules.ddgst ? NVME_TCP_DIGEST : 0)),
		.cccid = treq->req.cmd.common.cid,
		.datal = cpu_to_le32(len),
	};
	tcp_seal_header(conn, &treq->c2h.pdu.hdr, &treq->c2h.hdgst);
	if (conn->rules.ddgst)
		treq->resp.ddgst = htole32(nvme_tcp_crc(0, treq->req.data, len));
}

static void build_resp(struct tcp_conn *conn, struct tcp_req *treq)
{
	treq->resp.pdu = (struct nvme_tcp_resp){
		.hdr.type = NVME_TCP_RESP,
		.hdr.hlen = sizeof(treq->resp.pdu),
		.hdr.plen = cpu_to_le32(sizeof(treq->resp.pdu) + header_digest(conn)),
		.cqe = treq->req.cqe,
	};
	tcp_seal_header(conn, &treq->resp.pdu.hdr, &treq->resp.hdgst);
}

static int fill_data(struct tcp_conn *conn, struct tcp_req *treq, struct iovec *iov)
{
	uint32_t header = sizeof(treq->c2h.pdu) + header_digest(conn);
	uint32_t pad = treq->c2h.pdu.hdr.pdo - header;
	int n = 0;

	iov[n++] = (struct iovec){ &treq->c2h, header };
	if (pad)
		iov[n++] = (struct iovec){ (void *)zeroes, pad };
	iov[n++] = (struct iovec){ treq->req.data, treq->req.reply_len };
	return n;
}

/* The data digest lies right before the response: together they are one part. */
static int fill_tail(struct tcp_conn *conn, struct tcp_req *treq, struct iovec *iov)
{
	bool ddgst = treq->req.reply_len && conn->rules.ddgst;
	char *start = ddgst ? (char *)&treq->resp.ddgst : (char *)&treq->resp.pdu;
	char *end = (char *)&treq->resp.pdu;

	if (!completes_with_data(&treq->req))
		end += sizeof(treq->resp.pdu) + header_digest(conn);
	if (start == end)
		return 0;
	*iov = (struct iovec){ start, (size_t)(end - start) };
	return 1;
}

static int fill_reply(struct tcp_tx *tx, struct iovec *iov)
{
	struct tcp_req *treq = container_of(tx, struct tcp_req, reply_tx);
	struct tcp_conn *conn = tcp_conn_of(treq->req.qp);
	int n = treq->req.reply_len ? fill_data(conn, treq, iov) : 0;

	return n + fill_tail(conn, treq, iov + n);
}

static void reply_sent(struct tcp_tx *tx)
{
	struct tcp_req *treq = container_of(tx, struct tcp_req, reply_tx);

	treq->reply_sent = true;
	tcp_req_done(treq);
}

void tcp_req_done(struct tcp_req *treq)
{
	if (!treq->reply_sent || treq->r2t_sending)
		return;
	/* Once the socket is closed nothing comes any more. */
	if (!treq->owed || tcp_conn_of(treq->req.qp)->sock.fd < 0)
		weft_req_release(&treq->req);
	else if (treq->req.state == WEFT_REQ_REPLYING)
		weft_req_enter(&treq->req, WEFT_REQ_DRAINING);
}

void tcp_reply(struct weft_req *req)
{
	struct tcp_req *treq = tcp_req_of(req);
	struct tcp_conn *conn = tcp_conn_of(req->qp);

	tcp_chunk_put(conn, &treq->chunk);
	if (conn->state != TCP_OPEN) {
		reply_sent(&treq->reply_tx);
		return;
	}
	if (req->reply_len)
		build_c2h_data(conn, treq);
	if (!completes_with_data(req))
		build_resp(conn, treq);
	treq->reply_tx.fill = fill_reply;
	treq->reply_tx.sent = reply_sent;
	tcp_tx_push(conn, &treq->reply_tx);
}
