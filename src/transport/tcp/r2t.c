/* r2t.c - asking the host for a command's data, and placing what comes.
 *
 * weft_req_fetch() (transport/request.c) asks here if the data is not in the capsule and there is a
 * buffer for it; park.c bounds what all commands of a connection are owed.
 *
 * All of a command's R2Ts leave together, as many as the host takes at a time: its buffer is there
 * already, so there is nothing to wait for in between. A transfer tag is the request's slot and the
 * R2T's number in it: ttag = slot * r2ts per command + number.
 *
 * Invariant: treq->owed is the sum of its R2Ts' left; conn->owed the sum over requests. */
#include <assert.h>

#include "proto/status.h"
#include "transport/tcp/tcp.h"

static uint32_t r2ts_per_command(const struct tcp_conn *conn)
{
	uint32_t most = conn->maxr2t < TCP_R2TS_MAX ? conn->maxr2t : TCP_R2TS_MAX;

	return conn->qp.slots_max * most <= UINT16_MAX ? most : 1;
}

static int fill_r2ts(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct tcp_req *treq = container_of(tx, struct tcp_req, r2t_tx);
	struct tcp_conn *conn = tcp_conn_of(treq->req.qp);

	for (int i = 0; i < treq->nr2ts; i++) {
		iov[i].iov_base = &treq->r2t_pdus[i];
		iov[i].iov_len = sizeof(treq->r2t_pdus[i].pdu) +
				 tcp_header_digest_len(&conn->stream.rules);
	}
	return treq->nr2ts;
}
static_assert((int)TCP_R2TS_MAX <= (int)TCP_TX_PARTS, "the R2Ts of a command fit into one item");

static void r2ts_sent(struct tcp_tx *tx)
{
	struct tcp_req *treq = container_of(tx, struct tcp_req, r2t_tx);

	treq->r2t_sending = false;
	tcp_req_done(treq);
}

static void r2t_build(struct tcp_conn *conn, struct tcp_req *treq, uint32_t number)
{
	struct nvme_tcp_data *pdu = &treq->r2t_pdus[number].pdu;
	uint32_t tag = treq->req.index * r2ts_per_command(conn) + number;
	uint32_t header = sizeof(*pdu) + tcp_header_digest_len(&conn->stream.rules);

	*pdu = (struct nvme_tcp_data){
		.hdr.type = NVME_TCP_R2T,
		.hdr.hlen = sizeof(*pdu),
		.hdr.plen = cpu_to_le32(header),
		.cccid = treq->req.cmd.common.cid,
		.ttag = cpu_to_le16((uint16_t)tag),
		.datao = cpu_to_le32(treq->r2ts[number].offset),
		.datal = cpu_to_le32(treq->r2ts[number].left),
	};
	tcp_set_header_digest(&conn->stream.rules, &pdu->hdr, &treq->r2t_pdus[number].hdgst);
}

/* Even parts, whole pages, none but the last below TCP_R2T_MIN. The last that fits into @r2ts takes
 * all that is left: whatever a peer's number makes of the division, the array is where it ends. */
uint32_t tcp_r2t_split(struct tcp_r2t *r2ts, uint32_t most, uint32_t len)
{
	uint32_t part = ((len + most - 1) / most + 4095) & ~4095u, at = 0, n;

	assert(most && most <= TCP_R2TS_MAX && len && len <= WEFT_MDTS_BYTES);
	if (part < TCP_R2T_MIN)
		part = TCP_R2T_MIN;
	for (n = 0; n < most && at < len; n++) {
		bool last = n + 1 == most || len - at <= part;

		r2ts[n] = (struct tcp_r2t){ .offset = at, .left = last ? len - at : part };
		at += r2ts[n].left;
	}
	return n;
}

void tcp_fetch(struct weft_req *req, uint32_t len)
{
	struct tcp_req *treq = tcp_req_of(req);
	struct tcp_conn *conn = tcp_conn_of(req->qp);

	if (conn->stream.state != TCP_STREAM_OPEN) {
		weft_req_fetched(req, SC_GENERIC(ABORT_QUEUE));
		return;
	}
	treq->nr2ts = (uint8_t)tcp_r2t_split(treq->r2ts, r2ts_per_command(conn), len);
	for (uint32_t i = 0; i < treq->nr2ts; i++)
		r2t_build(conn, treq, i);
	treq->asked_ns = weft_reactor_now_ns(req->qp->group->reactor);
	treq->owed = len;
	conn->owed += len;
	if (conn->rx_state == TCP_RX_FROZEN)
		tcp_rx_resume_soon(conn);
	treq->digest_failed = false;
	treq->r2t_sending = true;
	treq->r2t_tx.fill = fill_r2ts;
	treq->r2t_tx.sent = r2ts_sent;
	tcp_send_queue_push(&conn->stream.sendq, &treq->r2t_tx);
}

/* A host that is still there sends what it was asked for, and it must go somewhere: the request
 * keeps its buffer until then, or until the kernel cannot receive into it any more. */
bool tcp_abort_fetch(struct weft_req *req)
{
	struct tcp_req *treq = tcp_req_of(req);
	struct tcp_conn *conn = tcp_conn_of(req->qp);

	if (conn->stream.state == TCP_STREAM_CLOSED) {
		conn->owed -= treq->owed;
		treq->owed = 0;
	}
	return true;
}

static struct tcp_req *req_by_ttag(struct tcp_conn *conn, uint32_t tag, uint32_t *number)
{
	uint32_t slot = tag / r2ts_per_command(conn);
	struct weft_req *req = slot < conn->qp.high_water ? weft_qpair_req(&conn->qp, slot) : NULL;
	struct tcp_req *treq;

	if (!req)
		return NULL;
	treq = tcp_req_of(req);
	*number = tag % r2ts_per_command(conn);
	if (!treq->owed || *number >= treq->nr2ts)
		return NULL;
	return treq->r2ts[*number].left ? treq : NULL;
}

int tcp_r2t_match(struct tcp_conn *conn, const struct nvme_tcp_data *pdu,
		  struct nvme_tcp_fault *fault)
{
	uint32_t offset = le32_to_cpu(pdu->datao), len = le32_to_cpu(pdu->datal), number;
	struct tcp_req *treq = req_by_ttag(conn, le16_to_cpu(pdu->ttag), &number);
	struct tcp_r2t *r2t;

	if (!treq)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_data, ttag),
				       "no R2T has this TTAG");
	if (pdu->cccid != treq->req.cmd.common.cid)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_data, cccid),
				       "CCCID is not the R2T's");
	r2t = &treq->r2ts[number];
	if (offset != r2t->offset)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_RANGE, 0,
				       "DATAO is not where the R2T goes on");
	if (len % 4)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_data, datal),
				       "DATAL is not a multiple of 4");
	if (len > r2t->left)
		return nvme_tcp_refuse(fault, NVME_TCP_FES_RANGE, 0, "data beyond the R2T");
	if (!!(pdu->hdr.flags & NVME_TCP_F_LAST) != (len == r2t->left))
		return nvme_tcp_refuse(fault, NVME_TCP_FES_FIELD,
				       offsetof(struct nvme_tcp_hdr, flags),
				       "LAST_PDU is not on the R2T's last PDU");
	conn->payload.req = treq;
	conn->payload.r2t = r2t;
	conn->payload.memory = (struct iovec){ (char *)treq->req.in.at + offset, len };
	return 0;
}

static void req_received(struct tcp_req *treq)
{
	if (treq->req.state == WEFT_REQ_AWAIT_DATA)
		weft_req_fetched(&treq->req,
				 treq->digest_failed ? SC_GENERIC(TRAN_TPORT_ERROR) : 0);
	else
		tcp_req_done(treq);
}

void tcp_r2t_received(struct tcp_stream *stream, bool digest_ok)
{
	struct tcp_conn *conn = tcp_conn_of_stream(stream);
	struct tcp_req *treq = conn->payload.req;
	uint32_t len = stream->payload.len;

	weft_counter_add(&conn->qp.stats.copied_bytes, stream->payload.copied);
	if (!digest_ok)
		treq->digest_failed = true;
	conn->payload.r2t->offset += len;
	conn->payload.r2t->left -= len;
	treq->owed -= len;
	conn->owed -= len;
	if (!treq->owed)
		req_received(treq);
	tcp_run_parked(conn);
}
