/* rx.c - the target receives: bytes become PDUs, for pdus.c.
 *
 *   recv ─▶ chunk ─▶ parse ─▶ a PDU: the data of a command stays in the chunk, which it pins
 *                         └─▶ data of H2CData: into the request's buffer; the part that is still to
 *                             come is received straight into it
 *
 * Parsing stops for more bytes, for a free slot or for a fresh chunk, and in a frozen poll group as
 * soon as no command under way needs more of the stream; for nothing else. Invariant: bytes
 * [head, tail) of conn->chunk are received and not parsed. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp.h"

enum {
	RX_ROOM_MIN = 4096, /* receive less at a time only when there is no more room */
};

static _Thread_local char sink[4096]; /* for what nobody will read */

static void parse_received(struct tcp_conn *conn);
static void start_receive(struct tcp_conn *conn);

/* --- room ------------------------------------------------------------------------------------- */

static uint32_t chunk_avail(const struct tcp_chunk *chunk)
{
	return chunk->tail - chunk->head;
}

/* Room behind the tail for the rest of the PDU at the head; false: wait for a chunk. */
static bool make_chunk_room(struct tcp_conn *conn)
{
	struct tcp_chunk *chunk = conn->chunk;

	if (chunk && chunk->refs == 1 && chunk->head == chunk->tail)
		chunk->head = chunk->tail = 0;
	if (chunk && TCP_CHUNK_DATA - chunk->tail >= RX_ROOM_MIN &&
	    TCP_CHUNK_DATA - chunk->head >= conn->want)
		return true;
	if (chunk && chunk->refs == 1)
		return tcp_chunk_compact(conn);
	if (tcp_chunk_take(conn) || tcp_chunk_compact(conn))
		return true;
	tcp_chunk_wait(conn);
	return false;
}

/* --- receiving -------------------------------------------------------------------------------- */

/* While the host owes payload, receive headers in small steps: the less payload lands in the chunk,
 * the less has to be copied out of it. */
static uint32_t receive_size(const struct tcp_conn *conn)
{
	uint32_t room = TCP_CHUNK_DATA - conn->chunk->tail;
	uint32_t want = conn->want > chunk_avail(conn->chunk) ?
				conn->want - chunk_avail(conn->chunk) :
				0;

	if (conn->owed <= RX_ROOM_MIN || room <= RX_ROOM_MIN)
		return room;
	return want > RX_ROOM_MIN ? want : RX_ROOM_MIN;
}

/* No command under way needs more bytes: the rest may stay in the socket. */
static bool may_stop_reading(const struct tcp_conn *conn)
{
	return conn->qp.group->frozen && !conn->owed;
}

static void replay(struct tcp_conn *conn)
{
	struct tcp_chunk *chunk = conn->chunk;
	uint32_t room = TCP_CHUNK_DATA - chunk->tail, left = conn->replay.end - conn->replay.at;
	uint32_t n = left < room ? left : room;

	memcpy(chunk->data + chunk->tail, conn->replay.bytes + conn->replay.at, n);
	chunk->tail += n;
	conn->replay.at += n;
	if (conn->replay.at == conn->replay.end) {
		free(conn->replay.bytes);
		conn->replay.bytes = NULL;
	}
	weft_reactor_defer(conn->qp.group->reactor, &conn->parse_again);
}

static int plan_receive(struct tcp_conn *conn)
{
	int n = 0;

	if (conn->state == TCP_TERMINATING) {
		conn->rx_iov[0] = (struct iovec){ sink, sizeof(sink) };
		return 1;
	}
	if (conn->payload.req && conn->payload.left)
		conn->rx_iov[n++] = (struct iovec){ conn->payload.at, conn->payload.left };
	conn->rx_iov[n++] = (struct iovec){ conn->chunk->data + conn->chunk->tail,
					    receive_size(conn) };
	return n;
}

static void start_receive(struct tcp_conn *conn)
{
	if (conn->rx_busy || conn->rx_waits_chunk || conn->state >= TCP_CLOSING ||
	    may_stop_reading(conn))
		return;
	if (conn->state == TCP_OPEN && !make_chunk_room(conn))
		return;
	if (conn->replay.at < conn->replay.end) {
		replay(conn);
		return;
	}
	conn->rx_busy = true;
	weft_sock_recv(&conn->sock, &conn->rx_op, conn->rx_iov, plan_receive(conn));
}

static void account_received(struct tcp_conn *conn, uint32_t bytes)
{
	uint32_t direct = 0;

	if (conn->payload.req) {
		direct = bytes < conn->payload.left ? bytes : conn->payload.left;
		conn->payload.at += direct;
		conn->payload.left -= direct;
	}
	conn->chunk->tail += bytes - direct;
	assert(conn->chunk->tail <= TCP_CHUNK_DATA);
}

static void recv_done(struct weft_op *op, int res)
{
	struct tcp_conn *conn = container_of(op, struct tcp_conn, rx_op);

	conn->rx_busy = false;
	if (conn->state >= TCP_CLOSING) {
		tcp_finish_close_soon(conn);
		return;
	}
	if (res <= 0 && res != -ECANCELED) {
		weft_qpair_close(&conn->qp, res ? "receive: %s" : "closed by the host",
				 strerror(-res));
		return;
	}
	if (conn->state == TCP_OPEN && res > 0)
		account_received(conn, (uint32_t)res);
	parse_received(conn);
}

/* --- parsing ---------------------------------------------------------------------------------- */

/* Each step returns true when it made progress and there may be more to do. */

static bool parse_payload(struct tcp_conn *conn)
{
	struct tcp_chunk *chunk = conn->chunk;
	uint32_t n = chunk_avail(chunk) < conn->payload.left ? chunk_avail(chunk) :
							       conn->payload.left;
	uint32_t len;

	memcpy(conn->payload.at, chunk->data + chunk->head, n);
	weft_counter_add(&conn->qp.stats.copied_bytes, n);
	conn->payload.at += n;
	conn->payload.left -= n;
	chunk->head += n;
	conn->want = conn->payload.ddgst ? NVME_TCP_DIGEST : 0;
	if (conn->payload.left || chunk_avail(chunk) < conn->want)
		return false;
	if (conn->payload.ddgst) {
		len = (uint32_t)(conn->payload.at - conn->payload.start);
		if (!tcp_data_digest_ok(conn->payload.start, len, chunk->data + chunk->head))
			conn->payload.req->digest_failed = true;
		chunk->head += NVME_TCP_DIGEST;
	}
	tcp_r2t_received(conn);
	tcp_run_parked(conn);
	return true;
}

static bool header_digest_ok(struct tcp_conn *conn, const struct nvme_tcp_hdr *hdr, const char *pdu)
{
	struct nvme_tcp_fault fault = { .fes = NVME_TCP_FES_HDGST, .why = "header digest" };
	uint32_t got;

	if (!conn->rules.hdgst || hdr->type == NVME_TCP_H2C_TERM)
		return true;
	memcpy(&got, pdu + hdr->hlen, sizeof(got));
	fault.fei = le32toh(got);
	if (fault.fei == nvme_tcp_crc(0, pdu, hdr->hlen))
		return true;
	tcp_terminate(conn, pdu, hdr->hlen, &fault);
	return false;
}

static bool parse_pdu(struct tcp_conn *conn)
{
	struct tcp_chunk *chunk = conn->chunk;
	const char *pdu = chunk->data + chunk->head;
	struct nvme_tcp_hdr hdr;
	struct nvme_tcp_shape shape;
	struct nvme_tcp_fault fault;

	conn->want = sizeof(hdr);
	if (chunk_avail(chunk) < conn->want)
		return false;
	memcpy(&hdr, pdu, sizeof(hdr));
	if (nvme_tcp_check_hdr(&hdr, &conn->rules, &shape, &fault) < 0) {
		tcp_terminate(conn, pdu, chunk_avail(chunk), &fault);
		return false;
	}
	conn->want = hdr.type == NVME_TCP_H2C_DATA ? shape.data_at : le32_to_cpu(hdr.plen);
	if (chunk_avail(chunk) < conn->want)
		return false;
	if (!header_digest_ok(conn, &hdr, pdu) || !tcp_handle_pdu(conn, hdr.type, pdu, &shape))
		return false;
	chunk->head += conn->want;
	return true;
}

static void parse_received(struct tcp_conn *conn)
{
	if (conn->rx_waits_slot && conn->qp.sqsize)
		weft_timer_stop(conn->qp.group->reactor, &conn->timer);
	conn->rx_waits_slot = false;
	while (conn->state == TCP_OPEN && conn->chunk && !may_stop_reading(conn))
		if (!(conn->payload.req ? parse_payload(conn) : parse_pdu(conn)))
			break;
	if (!conn->rx_waits_slot)
		start_receive(conn);
}

static void parse_task(struct weft_task *task)
{
	struct tcp_conn *conn = container_of(task, struct tcp_conn, parse_again);

	if (conn->state == TCP_OPEN)
		tcp_rx_resume(conn);
}

void tcp_slot_freed(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);

	if (conn->state >= TCP_CLOSING)
		tcp_finish_close_soon(conn);
	else if (conn->rx_waits_slot)
		weft_reactor_defer(qp->group->reactor, &conn->parse_again);
}

void tcp_rx_init(struct tcp_conn *conn)
{
	conn->rx_op.done = recv_done;
	weft_list_init(&conn->parked);
	weft_list_init(&conn->chunk_wait);
	weft_task_init(&conn->parse_again, parse_task);
	conn->rules.capsule_data_max = TCP_ADMIN_CAPSULE_BYTES;
	conn->rules.h2c_data_max = WEFT_MDTS_BYTES;
}

void tcp_rx_start(struct tcp_conn *conn)
{
	conn->want = sizeof(struct nvme_tcp_icreq);
	start_receive(conn);
}

void tcp_rx_pause(struct tcp_conn *conn)
{
	if (conn->rx_busy && may_stop_reading(conn))
		weft_sock_cancel(&conn->sock);
}

void tcp_rx_resume(struct tcp_conn *conn)
{
	if (!conn->rx_busy && !conn->rx_waits_chunk)
		parse_received(conn);
}

void tcp_rx_stop(struct tcp_conn *conn)
{
	assert(!conn->rx_busy);
	weft_task_cancel(&conn->parse_again);
	tcp_chunk_cancel_wait(conn);
	conn->payload.req = NULL;
	free(conn->replay.bytes);
	tcp_chunk_put(conn, &conn->chunk);
}
