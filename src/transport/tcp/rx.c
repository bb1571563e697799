/* rx.c - the target receives: where to, how much, and when it stops.
 *
 *   stream.c: recv ─▶ chunk ─▶ PDUs: the data of a command stays in the chunk, which it pins
 *   (stream_parse.h takes them apart; a wrong header or digest ends the stream: stream.c)
 *
 *   NEW ─▶ RECEIVING ─┬─ a command finds no slot ──────▶ WAITS_SLOT ── one is free ────────────┐
 *            ▲  ▲     ├─ there is no room ─────────────▶ WAITS_CHUNK ─ there is room ──────────┤
 *            │  │     ├─ frozen, and no data is owed ──▶ FROZEN ────── a command asks for data ┤
 *            │  │     └─ bytes from a takeover come first ─────────────────────────────────────┤
 *            │  └─ thaw: WAITS_SLOT, FROZEN                                                    │
 *            └─ parse, at the end of the turn ── RESUMING ◀────────────────────────────────────┘
 *
 * From each of them to STOPPED, when the socket is closed. What is parsed has no part in this: it
 * goes on where it was, be that a capsule without a slot or the data of H2CData.
 *
 * Invariant: the stream's buffer is the data of conn->chunk. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/stream_parse.h"
#include "transport/tcp/tcp.h"

enum {
	RX_ROOM_MIN = 4096, /* receive less at a time only when there is no more room */
};

/* --- states ----------------------------------------------------------------------------------- */

#define FROM(state) (1u << TCP_RX_##state)

/* States that may come before. */
static const unsigned rx_edges[] = {
	[TCP_RX_RECEIVING] = FROM(NEW) | FROM(WAITS_SLOT) | FROM(FROZEN) | FROM(RESUMING),
	[TCP_RX_WAITS_SLOT] = FROM(RECEIVING),
	[TCP_RX_WAITS_CHUNK] = FROM(RECEIVING),
	[TCP_RX_FROZEN] = FROM(RECEIVING),
	[TCP_RX_RESUMING] = FROM(RECEIVING) | FROM(WAITS_SLOT) | FROM(WAITS_CHUNK) | FROM(FROZEN),
	[TCP_RX_STOPPED] = FROM(NEW) | FROM(RECEIVING) | FROM(WAITS_SLOT) | FROM(WAITS_CHUNK) |
			   FROM(FROZEN) | FROM(RESUMING),
};

void tcp_rx_enter(struct tcp_conn *conn, enum tcp_rx_state state)
{
	assert(rx_edges[state] & 1u << conn->rx_state);
	assert(!conn->stream.rx_busy);
	conn->rx_state = state;
}

void tcp_rx_resume_soon(struct tcp_conn *conn)
{
	tcp_rx_enter(conn, TCP_RX_RESUMING);
	weft_reactor_defer(conn->qp.group->reactor, &conn->resume);
}

/* --- room ------------------------------------------------------------------------------------- */

/* Room behind the tail for the rest of the PDU at the head; false: no chunk has it. */
static bool make_chunk_room(struct tcp_conn *conn)
{
	struct tcp_stream *stream = &conn->stream;
	struct tcp_chunk *chunk = conn->chunk;

	if (chunk && chunk->refs == 1 && stream->head == stream->tail)
		stream->head = stream->tail = 0;
	if (chunk && TCP_CHUNK_DATA - stream->tail >= RX_ROOM_MIN &&
	    TCP_CHUNK_DATA - stream->head >= stream->want)
		return true;
	if (chunk && chunk->refs == 1)
		return tcp_chunk_compact(conn);
	return tcp_chunk_take(conn) || tcp_chunk_compact(conn);
}

/* While the host owes payload, receive headers in small steps: the less payload lands in the chunk,
 * the less has to be copied out of it. */
static uint32_t receive_size(const struct tcp_conn *conn)
{
	const struct tcp_stream *stream = &conn->stream;
	uint32_t room = TCP_CHUNK_DATA - stream->tail, have = stream->tail - stream->head;
	uint32_t want = stream->want > have ? stream->want - have : 0;

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
	struct tcp_stream *stream = &conn->stream;
	uint32_t room = TCP_CHUNK_DATA - stream->tail, left = conn->replay.end - conn->replay.at;
	uint32_t n = left < room ? left : room;

	memcpy(stream->buf + stream->tail, conn->replay.bytes + conn->replay.at, n);
	stream->tail += n;
	conn->replay.at += n;
	if (conn->replay.at == conn->replay.end) {
		free(conn->replay.bytes);
		conn->replay.bytes = NULL;
	}
	tcp_rx_resume_soon(conn);
}

uint32_t tcp_rx_make_room(struct tcp_stream *stream)
{
	struct tcp_conn *conn = tcp_conn_of_stream(stream);

	if (may_stop_reading(conn))
		tcp_rx_enter(conn, TCP_RX_FROZEN);
	else if (!make_chunk_room(conn))
		tcp_chunk_wait(conn);
	else if (conn->replay.at != conn->replay.end)
		replay(conn);
	else
		return receive_size(conn);
	return 0;
}

/* --- parsing ---------------------------------------------------------------------------------- */

void tcp_rx_parse(struct tcp_stream *stream)
{
	struct tcp_conn *conn = tcp_conn_of_stream(stream);

	while (stream->state == TCP_STREAM_OPEN && !may_stop_reading(conn))
		if (!tcp_stream_step(stream, tcp_handle_pdu, tcp_r2t_received))
			break;
	if (conn->rx_state == TCP_RX_RECEIVING)
		tcp_stream_receive(stream);
}

/* The time for a slot ends; that for Connect does not. */
static void resume(struct tcp_conn *conn)
{
	if (conn->qp.sqsize)
		weft_timer_stop(conn->qp.group->reactor, &conn->timer);
	tcp_rx_enter(conn, TCP_RX_RECEIVING);
	tcp_rx_parse(&conn->stream);
}

/* A thaw may have come before. */
static void resume_task(struct weft_task *task)
{
	struct tcp_conn *conn = container_of(task, struct tcp_conn, resume);

	if (conn->stream.state == TCP_STREAM_OPEN && conn->rx_state == TCP_RX_RESUMING)
		resume(conn);
}

void tcp_rx_init(struct tcp_conn *conn)
{
	conn->stream.rx_iov = conn->rx_iov;
	conn->stream.rx_iovs = sizeof(conn->rx_iov) / sizeof(conn->rx_iov[0]);
	conn->stream.sink = (struct iovec){ conn->poll_group->sink,
					    sizeof(conn->poll_group->sink) };
	conn->stream.rules.capsule_data_max = TCP_ADMIN_CAPSULE_BYTES;
	conn->stream.rules.h2c_data_max = WEFT_MDTS_BYTES;
	weft_list_init(&conn->parked);
	weft_list_init(&conn->chunk_wait);
	weft_task_init(&conn->resume, resume_task);
}

void tcp_rx_start(struct tcp_conn *conn)
{
	conn->stream.want = sizeof(struct nvme_tcp_icreq);
	tcp_rx_enter(conn, TCP_RX_RECEIVING);
	tcp_stream_receive(&conn->stream);
}

void tcp_rx_freeze(struct tcp_conn *conn)
{
	if (conn->stream.rx_busy && may_stop_reading(conn))
		weft_sock_cancel(&conn->stream.sock);
}

void tcp_rx_thaw(struct tcp_conn *conn)
{
	if (conn->rx_state != TCP_RX_RECEIVING && conn->rx_state != TCP_RX_WAITS_CHUNK)
		resume(conn);
}

void tcp_rx_stop(struct tcp_conn *conn)
{
	tcp_chunk_cancel_wait(conn);
	tcp_rx_enter(conn, TCP_RX_STOPPED);
	weft_task_cancel(&conn->resume);
	free(conn->replay.bytes);
	tcp_chunk_put(conn, &conn->chunk);
	conn->stream.buf = NULL;
}
