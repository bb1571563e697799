/* takeover.c - freezes a connection, then thaws it here or exports it to the successor.
 *
 *   freeze ─▶ data that the host owes comes, commands end, replies leave ─▶ quiesced ─▶ export
 *                └ a command that comes meanwhile is parked in its slot        └▶ thaw: it is run
 *
 * Once no command under way needs the stream, it is not read any further: what the host sends waits
 * in the socket, which the successor gets. What was read is exported as bytes: the capsules of the
 * commands that are held (for events) or parked, of the first half of a fused pair, then what was
 * not parsed, perhaps half a PDU. The successor parses them as if they had just come, and trusts them no more than a
 * host's.
 *
 * Invariant: a quiesced connection owes its host nothing but replies to the commands in those
 * bytes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/status.h"
#include "transport/tcp/state.h"
#include "transport/tcp/tcp.h"

/* --- freezing --------------------------------------------------------------------------------- */

/* A connection that is terminating because of a fault is closed at once. */
void tcp_freeze(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);

	weft_timer_stop(qp->group->reactor, &conn->timer);
	if (conn->stream.state == TCP_STREAM_TERMINATING)
		weft_qpair_close(qp, "terminated");
	else
		tcp_rx_freeze(conn);
}

/* Of its host; what comes first is to blame. One that has not read an R2T cannot send the data. */
const char *tcp_busy_reason(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);

	if (!tcp_send_queue_idle(&conn->stream.sendq))
		return "it does not read what it is sent";
	if (conn->owed)
		return "it owes the data of its writes";
	if (qp->close_when_sent || conn->stream.state != TCP_STREAM_OPEN)
		return "it is being closed";
	return conn->stream.rx_busy ? "a receive from it is under way" : NULL;
}

void tcp_thaw(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);

	if (!qp->sqsize && conn->stream.state == TCP_STREAM_OPEN)
		tcp_setup_timer_start(conn);
	tcp_run_parked(conn);
	tcp_chunk_recheck(conn);
	tcp_rx_thaw(conn);
}

/* --- export ----------------------------------------------------------------------------------- */

/* The capsule is as the host sent it, except the offset of its data. */
static void write_capsule(FILE *out, const struct tcp_conn *conn, const struct tcp_req *treq)
{
	uint32_t len = treq->chunk ? le32_to_cpu(treq->req.cmd.common.sgl.length) : 0;
	uint32_t header = sizeof(struct nvme_tcp_cmd) + tcp_header_digest_len(&conn->stream.rules);
	bool ddgst = len && conn->stream.rules.ddgst;
	struct {
		struct nvme_tcp_cmd pdu;
		uint32_t hdgst;
	} head = { .pdu.hdr = {
			   .type = NVME_TCP_CMD,
			   .flags = ddgst ? NVME_TCP_F_DDGST : 0,
			   .hlen = sizeof(head.pdu),
			   .pdo = len ? (uint8_t)header : 0,
			   .plen = cpu_to_le32(header + len + (ddgst ? NVME_TCP_DIGEST : 0)),
		   } };
	uint32_t crc;

	head.pdu.sqe = treq->req.cmd;
	if (len)
		head.pdu.sqe.common.sgl.addr = cpu_to_le64(0);
	tcp_set_header_digest(&conn->stream.rules, &head.pdu.hdr, &head.hdgst);
	fwrite(&head, header, 1, out);
	if (len)
		fwrite(treq->req.data, len, 1, out);
	crc = ddgst ? htole32(nvme_tcp_crc(0, treq->req.data, len)) : 0;
	if (ddgst)
		fwrite(&crc, sizeof(crc), 1, out);
}

static void write_replay(FILE *out, struct tcp_conn *conn)
{
	const struct tcp_stream *stream = &conn->stream;
	struct weft_req *req;

	for (uint32_t i = 0; i < conn->qp.high_water; i++) {
		req = weft_qpair_req(&conn->qp, i);
		if (req && !tcp_req_of(req)->parked && req != conn->qp.fused_waiting)
			write_capsule(out, conn, tcp_req_of(req));
	}
	weft_list_for_each(req, &conn->parked, link)
		write_capsule(out, conn, tcp_req_of(req));
	if (conn->qp.fused_waiting)
		write_capsule(out, conn, tcp_req_of(conn->qp.fused_waiting));
	if (stream->head < stream->tail)
		fwrite(stream->buf + stream->head, 1, stream->tail - stream->head, out);
	if (conn->replay.bytes)
		fwrite(conn->replay.bytes + conn->replay.at, 1, conn->replay.end - conn->replay.at,
		       out);
}

int tcp_export(struct weft_qpair *qp, struct weft_qpair_state *state)
{
	struct tcp_conn *conn = tcp_conn_of(qp);
	size_t size = 0;
	FILE *out;

	*tcp_conn_state(state) = (struct tcp_conn_state){
		.fd = conn->stream.sock.fd,
		.ready = conn->stream.rules.ready,
		.hdgst = conn->stream.rules.hdgst,
		.ddgst = conn->stream.rules.ddgst,
		.hpda = conn->hpda,
		.maxr2t = conn->maxr2t,
	};
	out = open_memstream(&state->bytes, &size);
	if (!out)
		return -ENOMEM;
	write_replay(out, conn);
	if (fclose(out) || size > UINT32_MAX)
		return -ENOMEM;
	state->nbytes = (uint32_t)size;
	return 0;
}

/* --- import ----------------------------------------------------------------------------------- */

static bool is_valid_state(const struct tcp_conn_state *own, bool connected)
{
	if (own->hpda > NVME_TCP_HPDA_MAX || own->maxr2t > TCP_R2TS_MAX)
		return false;
	return !connected || (own->ready && own->maxr2t);
}

static void restore_state(struct tcp_conn *conn, struct weft_qpair_state *state)
{
	const struct tcp_conn_state *own = tcp_conn_state(state);

	conn->stream.rules.ready = own->ready;
	conn->stream.rules.hdgst = own->hdgst;
	conn->stream.rules.ddgst = own->ddgst;
	conn->qp.stable_data = own->ddgst;
	conn->hpda = (uint8_t)own->hpda;
	conn->maxr2t = own->maxr2t;
	conn->replay.bytes = state->bytes;
	conn->replay.end = state->nbytes;
	state->bytes = NULL;
}

int tcp_import(struct weft_qpair **qp, struct weft_poll_group *group,
	       struct weft_qpair_state *state, const struct weft_qpair_ops *ops)
{
	const struct tcp_conn_state *own = tcp_conn_state(state);
	struct tcp_conn *conn;
	int rc = -EINVAL;

	if (is_valid_state(own, state->sqsize))
		rc = tcp_conn_new(&conn, group, own->fd, ops);
	if (rc < 0) {
		close(own->fd);
		free(state->bytes);
		atomic_fetch_sub(&group->nqpairs, 1);
		return rc;
	}
	restore_state(conn, state);
	*qp = &conn->qp;
	return 0;
}
