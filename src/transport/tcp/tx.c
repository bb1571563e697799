/* tx.c - the target's replies: data and completion, on their way back to the host.
 *
 * A reply is one item of the send queue: C2HData with the data, then CapsuleResp; or C2HData alone
 * with SUCCESS where SQ flow control is off and the completion has no result. */
#include <string.h>

#include "transport/tcp/tcp.h"

static void all_replies_sent(struct tcp_send_queue *sendq)
{
	struct tcp_conn *conn = container_of(sendq, struct tcp_conn, stream.sendq);

	if (conn->qp.close_when_sent)
		weft_qpair_close(&conn->qp, "%s", conn->qp.close_when_sent);
}

/* --- shared data: memory that other commands write to ----------------------------------------- */

static bool hold_shared(struct tcp_tx *tx)
{
	struct weft_req *req = &container_of(tx, struct tcp_req, reply_tx)->req;

	return weft_guard_try_read(req->guard, req->data, req->reply_len);
}

/* A block that was sent in part keeps its old bytes, whatever is written there meanwhile. */
static void save_partial_block(struct tcp_conn *conn, const struct weft_req *req)
{
	const struct iovec *next = tcp_send_queue_next_part(&conn->stream.sendq);
	const char *data = req->data, *at = next->iov_base;
	size_t left = -(uintptr_t)at % WEFT_BLOCK_MAX;

	if (at <= data || at >= data + req->reply_len || !left)
		return;
	if (left > next->iov_len)
		left = next->iov_len;
	memcpy(conn->partial_block, at, left);
	tcp_send_queue_replace_part(&conn->stream.sendq, conn->partial_block, left);
}

static void release_shared(struct tcp_tx *tx)
{
	struct weft_req *req = &container_of(tx, struct tcp_req, reply_tx)->req;
	struct tcp_conn *conn = tcp_conn_of(req->qp);

	if (!tcp_send_queue_is_sent(&conn->stream.sendq, tx))
		save_partial_block(conn, req);
	weft_guard_unlock_read(req->guard, req->data, req->reply_len);
}

/* --- replies ---------------------------------------------------------------------------------- */

void tcp_tx_init(struct tcp_conn *conn)
{
	conn->stream.sendq.hold_shared = hold_shared;
	conn->stream.sendq.release_shared = release_shared;
	conn->stream.sendq.all_sent = all_replies_sent;
}

void tcp_close_when_sent(struct weft_qpair *qp)
{
	tcp_send_queue_flush_soon(&tcp_conn_of(qp)->stream.sendq);
}

/* C2HData may stand for the completion too, where SQHD does not matter. */
static bool completes_with_data(const struct weft_req *req)
{
	return req->reply_len && !req->qp->sq_flow && !req->cqe.result;
}

static void build_c2h_data(struct tcp_conn *conn, struct tcp_req *treq)
{
	uint32_t header = sizeof(treq->c2h.pdu) + tcp_header_digest_len(&conn->stream.rules);
	uint32_t pdo = tcp_data_offset(header, conn->hpda), len = treq->req.reply_len;

	treq->c2h.pdu = (struct nvme_tcp_data){
		.hdr.type = NVME_TCP_C2H_DATA,
		.hdr.flags = NVME_TCP_F_LAST | (conn->stream.rules.ddgst ? NVME_TCP_F_DDGST : 0) |
			     (completes_with_data(&treq->req) ? NVME_TCP_F_SUCCESS : 0),
		.hdr.hlen = sizeof(treq->c2h.pdu),
		.hdr.pdo = (uint8_t)pdo,
		.hdr.plen = cpu_to_le32(pdo + len +
					(conn->stream.rules.ddgst ? NVME_TCP_DIGEST : 0)),
		.cccid = treq->req.cmd.common.cid,
		.datal = cpu_to_le32(len),
	};
	tcp_set_header_digest(&conn->stream.rules, &treq->c2h.pdu.hdr, &treq->c2h.hdgst);
	if (conn->stream.rules.ddgst && !treq->copied)
		treq->resp.ddgst = htole32(nvme_tcp_crc(0, treq->req.data, len));
}

static void build_resp(struct tcp_conn *conn, struct tcp_req *treq)
{
	treq->resp.pdu = (struct nvme_tcp_resp){
		.hdr.type = NVME_TCP_RESP,
		.hdr.hlen = sizeof(treq->resp.pdu),
		.hdr.plen = cpu_to_le32(sizeof(treq->resp.pdu) +
					tcp_header_digest_len(&conn->stream.rules)),
		.cqe = treq->req.cqe,
	};
	tcp_set_header_digest(&conn->stream.rules, &treq->resp.pdu.hdr, &treq->resp.hdgst);
}

static int fill_data(struct tcp_conn *conn, struct tcp_req *treq, struct iovec *iov)
{
	uint32_t header = sizeof(treq->c2h.pdu) + tcp_header_digest_len(&conn->stream.rules);
	uint32_t pad = treq->c2h.pdu.hdr.pdo - header;
	int n = 0;

	iov[n++] = (struct iovec){ &treq->c2h, header };
	if (pad)
		iov[n++] = (struct iovec){ (void *)tcp_zeroes, pad };
	iov[n++] = (struct iovec){ treq->req.data, treq->req.reply_len };
	return n;
}

/* The data digest lies right before the response: together they are one part. */
static int fill_tail(struct tcp_conn *conn, struct tcp_req *treq, struct iovec *iov)
{
	bool ddgst = treq->req.reply_len && conn->stream.rules.ddgst;
	char *start = ddgst ? (char *)&treq->resp.ddgst : (char *)&treq->resp.pdu;
	char *end = (char *)&treq->resp.pdu;

	if (!completes_with_data(&treq->req))
		end += sizeof(treq->resp.pdu) + tcp_header_digest_len(&conn->stream.rules);
	if (start == end)
		return 0;
	*iov = (struct iovec){ start, (size_t)(end - start) };
	return 1;
}

static int fill_reply(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct tcp_req *treq = container_of(tx, struct tcp_req, reply_tx);
	struct tcp_conn *conn = tcp_conn_of(treq->req.qp);
	int n = treq->req.reply_len ? fill_data(conn, treq, iov) : 0;

	return n + fill_tail(conn, treq, iov + n);
}

static void reply_sent(struct tcp_tx *tx)
{
	struct tcp_req *treq = container_of(tx, struct tcp_req, reply_tx);
	struct tcp_conn *conn = tcp_conn_of(treq->req.qp);

	conn->copies -= treq->copied;
	treq->reply_sent = true;
	tcp_req_done(treq);
	if (conn->qp.parked)
		tcp_run_parked(conn);
}

void tcp_req_done(struct tcp_req *treq)
{
	if (!treq->reply_sent || treq->r2t_sending)
		return;
	/* Once the socket is closed no owed data comes any more. */
	if (!treq->owed || tcp_conn_of(treq->req.qp)->stream.sock.fd < 0)
		weft_req_release(&treq->req);
	else if (treq->req.state == WEFT_REQ_REPLYING)
		weft_req_enter(&treq->req, WEFT_REQ_DRAINING);
}

void tcp_copy(struct weft_req *req, const void *from)
{
	struct tcp_req *treq = tcp_req_of(req);

	treq->resp.ddgst = htole32(nvme_tcp_crc_copy(req->data, from, req->reply_len));
	treq->copied = req->reply_len;
	tcp_conn_of(req->qp)->copies += treq->copied;
}

void tcp_reply(struct weft_req *req)
{
	struct tcp_req *treq = tcp_req_of(req);
	struct tcp_conn *conn = tcp_conn_of(req->qp);

	tcp_chunk_put(conn, &treq->chunk);
	if (conn->stream.state != TCP_STREAM_OPEN) {
		reply_sent(&treq->reply_tx);
		return;
	}
	if (req->reply_len)
		build_c2h_data(conn, treq);
	if (!completes_with_data(req))
		build_resp(conn, treq);
	treq->reply_tx.fill = fill_reply;
	treq->reply_tx.sent = reply_sent;
	treq->reply_tx.shared = req->shared;
	tcp_send_queue_push(&conn->stream.sendq, &treq->reply_tx);
}
