/* rx.c - the target receives: where to, how much, and when it stops.
 *
 *   stream.c: recv ─▶ chunk ─▶ PDUs: the data of a command stays in the chunk, which it pins
 *
 * Parsing stops for more bytes, for a free slot or for a fresh chunk, and in a frozen poll group as
 * soon as no command under way needs more of the stream; for nothing else. Invariant: the stream's
 * buffer is the data of conn->chunk. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/stream_parse.h"
#include "transport/tcp/tcp.h"

enum {
	RX_ROOM_MIN = 4096, /* receive less at a time only when there is no more room */
};

/* --- room ------------------------------------------------------------------------------------- */

/* Room behind the tail for the rest of the PDU at the head; false: wait for a chunk. */
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
	if (tcp_chunk_take(conn) || tcp_chunk_compact(conn))
		return true;
	tcp_chunk_wait(conn);
	return false;
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
	weft_reactor_defer(conn->qp.group->reactor, &conn->parse_again);
}

uint32_t tcp_rx_make_room(struct tcp_stream *stream)
{
	struct tcp_conn *conn = tcp_conn_of_stream(stream);

	if (conn->rx_waits_chunk || may_stop_reading(conn) || !make_chunk_room(conn))
		return 0;
	if (conn->replay.at == conn->replay.end)
		return receive_size(conn);
	replay(conn);
	return 0;
}

/* --- parsing ---------------------------------------------------------------------------------- */

void tcp_rx_parse(struct tcp_stream *stream)
{
	struct tcp_conn *conn = tcp_conn_of_stream(stream);

	if (conn->rx_waits_slot && conn->qp.sqsize)
		weft_timer_stop(conn->qp.group->reactor, &conn->timer);
	conn->rx_waits_slot = false;
	while (stream->state == TCP_STREAM_OPEN && !may_stop_reading(conn))
		if (!tcp_stream_step(stream, tcp_handle_pdu, tcp_r2t_received))
			break;
	if (!conn->rx_waits_slot)
		tcp_stream_receive(stream);
}

static void parse_task(struct weft_task *task)
{
	struct tcp_conn *conn = container_of(task, struct tcp_conn, parse_again);

	if (conn->stream.state == TCP_STREAM_OPEN)
		tcp_rx_resume(conn);
}

void tcp_slot_freed(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);

	if (conn->stream.state >= TCP_STREAM_CLOSING)
		tcp_stream_finish_close_soon(&conn->stream);
	else if (conn->rx_waits_slot)
		weft_reactor_defer(qp->group->reactor, &conn->parse_again);
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
	weft_task_init(&conn->parse_again, parse_task);
}

void tcp_rx_start(struct tcp_conn *conn)
{
	conn->stream.want = sizeof(struct nvme_tcp_icreq);
	tcp_stream_receive(&conn->stream);
}

void tcp_rx_pause(struct tcp_conn *conn)
{
	if (conn->stream.rx_busy && may_stop_reading(conn))
		weft_sock_cancel(&conn->stream.sock);
}

void tcp_rx_resume(struct tcp_conn *conn)
{
	if (!conn->stream.rx_busy && !conn->rx_waits_chunk)
		tcp_rx_parse(&conn->stream);
}

void tcp_rx_stop(struct tcp_conn *conn)
{
	assert(!conn->stream.rx_busy);
	weft_task_cancel(&conn->parse_again);
	tcp_chunk_cancel_wait(conn);
	free(conn->replay.bytes);
	tcp_chunk_put(conn, &conn->chunk);
	conn->stream.buf = NULL;
}
