/* pdus.c - handles a host's PDUs: set-up, a command, data for one, termination.
 *
 *   stream.c: a PDU, whole but for the data of H2CData ─▶ ICReq: answered      CapsuleCmd: a request
 *                                                     H2CData: its R2T     H2CTermReq: the end
 *
 * PDUs lie in the chunk at any address: each handler takes an aligned copy of what it reads. */
#include <string.h>

#include "proto/status.h"
#include "transport/tcp/stream_parse.h"
#include "transport/tcp/tcp.h"

/* --- set-up ----------------------------------------------------------------------------------- */

static int fill_icresp(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct tcp_conn *conn = container_of(tx, struct tcp_conn, icresp_tx);

	*iov = (struct iovec){ &conn->icresp, sizeof(conn->icresp) };
	return 1;
}

static void icresp_sent(struct tcp_tx *tx)
{
	(void)tx;
}

static void send_icresp(struct tcp_conn *conn, uint8_t dgst)
{
	conn->icresp = (struct nvme_tcp_icresp){
		.hdr.type = NVME_TCP_ICRESP,
		.hdr.hlen = sizeof(conn->icresp),
		.hdr.plen = cpu_to_le32(sizeof(conn->icresp)),
		.dgst = dgst,
		.maxh2cdata = cpu_to_le32(conn->stream.rules.h2c_data_max),
	};
	conn->icresp_tx.fill = fill_icresp;
	conn->icresp_tx.sent = icresp_sent;
	tcp_send_queue_push(&conn->stream.sendq, &conn->icresp_tx);
}

static void on_icreq(struct tcp_conn *conn, const char *pdu)
{
	struct nvme_tcp_icreq icreq;
	struct nvme_tcp_fault fault;
	uint32_t maxr2t;

	memcpy(&icreq, pdu, sizeof(icreq));
	if (nvme_tcp_check_icreq(&icreq, &fault) < 0) {
		tcp_stream_terminate(&conn->stream, pdu, sizeof(icreq), &fault);
		return;
	}
	maxr2t = le32_to_cpu(icreq.maxr2t); /* 0's based */
	conn->hpda = icreq.hpda;
	conn->maxr2t = maxr2t < TCP_R2TS_MAX ? maxr2t + 1 : TCP_R2TS_MAX;
	conn->stream.rules.hdgst = icreq.dgst & NVME_TCP_DGST_HDR;
	conn->stream.rules.ddgst = icreq.dgst & NVME_TCP_DGST_DATA;
	conn->stream.rules.ready = true;
	conn->qp.stable_data = conn->stream.rules.ddgst;
	send_icresp(conn, icreq.dgst & (NVME_TCP_DGST_HDR | NVME_TCP_DGST_DATA));
}

/* --- commands --------------------------------------------------------------------------------- */

/* In-capsule data, if the SGL points at it: that is where the request finds it. */
static void locate_capsule_data(struct tcp_conn *conn, struct tcp_req *treq, const char *data,
				uint32_t len)
{
	const struct nvme_sgl *sgl = &treq->req.cmd.common.sgl;
	uint64_t offset = le64_to_cpu(sgl->addr);
	uint32_t sgl_len = le32_to_cpu(sgl->length);

	if (nvme_cmd_direction(&treq->req.cmd) != NVME_DIR_TO_CTRL)
		return;
	if (sgl->type != NVME_SGL_IN_CAPSULE || offset > len || sgl_len > len - offset || !sgl_len)
		return;
	treq->req.data = (char *)data + offset;
	treq->chunk = conn->chunk;
	treq->chunk->refs++;
}

uint32_t tcp_sgl_len(struct weft_req *req)
{
	return le32_to_cpu(req->cmd.common.sgl.length);
}

uint16_t tcp_check_sgl(struct weft_req *req, uint32_t len)
{
	const struct nvme_sgl *sgl = &req->cmd.common.sgl;

	switch (sgl->type) {
	case NVME_SGL_IN_CAPSULE:
		if (nvme_cmd_direction(&req->cmd) != NVME_DIR_TO_CTRL)
			return SC_GENERIC(SGL_INVALID_TYPE) | SC_DNR;
		if (le32_to_cpu(sgl->length) < len)
			return SC_GENERIC(SGL_INVALID_DATA) | SC_DNR;
		return req->data ? 0 : SC_GENERIC(SGL_INVALID_OFFSET) | SC_DNR;
	case NVME_SGL_TRANSPORT:
		if (le32_to_cpu(sgl->length) < len)
			return SC_GENERIC(SGL_INVALID_DATA) | SC_DNR;
		return 0;
	default:
		return SC_GENERIC(SGL_INVALID_TYPE) | SC_DNR;
	}
}

static bool capsule_digest_ok(const char *data, uint32_t len)
{
	uint32_t expected = htole32(nvme_tcp_crc(0, data, len));

	return !memcmp(&expected, data + len, sizeof(expected));
}

static void tcp_req_init(struct tcp_req *treq, const char *pdu)
{
	memcpy(&treq->req.cmd, pdu + offsetof(struct nvme_tcp_cmd, sqe), sizeof(treq->req.cmd));
	treq->chunk = NULL;
	treq->owed = treq->copied = 0;
	treq->nr2ts = 0;
	treq->r2t_sending = treq->reply_sent = treq->parked = treq->unparked = false;
}

static void slot_wait_expired(struct weft_timer *timer)
{
	struct tcp_conn *conn = container_of(timer, struct tcp_conn, timer);

	weft_qpair_close(&conn->qp, "more commands than the queue holds");
}

/* This is normal for a moment: the host has a reply before we see that its send has completed. */
static void wait_for_slot(struct tcp_conn *conn)
{
	tcp_rx_enter(conn, TCP_RX_WAITS_SLOT);
	if (!conn->qp.sqsize) /* the timer runs already, for Connect */
		return;
	conn->timer.fn = slot_wait_expired;
	weft_timer_set(conn->qp.group->reactor, &conn->timer, TCP_SLOT_WAIT_MS);
}

/* false: no slot is free, the capsule stays where it is. */
static bool on_capsule(struct tcp_conn *conn, const char *pdu, const struct nvme_tcp_shape *shape)
{
	struct weft_req *req = weft_req_alloc(&conn->qp);
	const char *data = pdu + shape->data_at;

	if (!req) {
		wait_for_slot(conn);
		return false;
	}
	tcp_req_init(tcp_req_of(req), pdu);
	if (shape->ddgst && !capsule_digest_ok(data, shape->data_len)) {
		weft_req_reply(req, SC_GENERIC(TRAN_TPORT_ERROR));
		return true;
	}
	if (shape->data_len)
		locate_capsule_data(conn, tcp_req_of(req), data, shape->data_len);
	if (tcp_must_park(conn, tcp_req_of(req))) {
		tcp_park(conn, tcp_req_of(req));
	} else {
		conn->qp.ops->command(req);
		if (conn->qp.parked) /* they may have waited for this half of a pair */
			tcp_run_parked(conn);
	}
	return true;
}

/* --- data, and the end ------------------------------------------------------------------------ */

static void on_h2c_data(struct tcp_conn *conn, const char *pdu, const struct nvme_tcp_shape *shape)
{
	struct nvme_tcp_data data;
	struct nvme_tcp_fault fault = {
		.fes = NVME_TCP_FES_FIELD,
		.fei = offsetof(struct nvme_tcp_data, datal),
		.why = "DATAL and PLEN disagree",
	};

	memcpy(&data, pdu, sizeof(data));
	if (le32_to_cpu(data.datal) != shape->data_len || tcp_r2t_match(conn, &data, &fault) < 0)
		tcp_stream_terminate(&conn->stream, pdu, sizeof(data), &fault);
	else
		tcp_stream_expect(&conn->stream, (struct weft_iov_iter){ &conn->payload.memory },
				  shape->data_len, shape->ddgst);
}

static void on_term(struct tcp_conn *conn, const char *pdu)
{
	struct nvme_tcp_term term;

	memcpy(&term, pdu, sizeof(term));
	weft_qpair_close(&conn->qp, "terminated by the host: FES %u, FEI %u", le16_to_cpu(term.fes),
			 le16_to_cpu(term.feil) | (unsigned)le16_to_cpu(term.feiu) << 16);
}

bool tcp_handle_pdu(struct tcp_stream *stream, uint8_t type, const char *pdu,
		    const struct nvme_tcp_shape *shape)
{
	struct tcp_conn *conn = tcp_conn_of_stream(stream);

	switch (type) {
	case NVME_TCP_ICREQ:
		on_icreq(conn, pdu);
		return true;
	case NVME_TCP_CMD:
		return on_capsule(conn, pdu, shape);
	case NVME_TCP_H2C_DATA:
		on_h2c_data(conn, pdu, shape);
		return true;
	default:
		on_term(conn, pdu);
		return true;
	}
}
