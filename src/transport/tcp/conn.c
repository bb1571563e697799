/* conn.c - the target's TCP connection: how it starts and ends.
 *
 *   accept, or a takeover ─▶ set-up: ICReq, Connect ─▶ commands ─▶ the stream ends ─▶ every request
 *                               └ not in time ──────────────────────▲              comes back ─▶ free
 *
 * stream.c has the end's states. Here is what the connection does with its requests meanwhile. A
 * request that storage has is not aborted: its reply goes nowhere (tx.c), and the connection is freed
 * after that. What a host that connects again waits for: target/queue.c. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/uri.h"
#include "transport/tcp/tcp.h"

static void tcp_end_draining(struct weft_req *req)
{
	tcp_req_of(req)->owed = 0;
	tcp_req_done(tcp_req_of(req));
}

/* When every request is back. */
static void conn_finish_close(struct weft_task *task)
{
	struct tcp_conn *conn = container_of(task, struct tcp_conn, finish_close);

	if (weft_qpair_in_use(&conn->qp))
		return;
	weft_task_cancel(&conn->finish_close);
	conn->qp.ops->closed(&conn->qp);
}

/* Every request that waits for the host or for a buffer gets its then(). */
static void conn_closed(struct tcp_stream *stream)
{
	struct tcp_conn *conn = tcp_conn_of_stream(stream);

	tcp_rx_stop(conn);
	tcp_send_queue_clear(&stream->sendq);
	tcp_refuse_parked(conn);
	conn->qp.ops->closing(&conn->qp);
	weft_qpair_end_requests(&conn->qp);
}

static void tcp_slot_freed(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);

	if (conn->stream.state == TCP_STREAM_CLOSED)
		weft_reactor_defer(qp->group->reactor, &conn->finish_close);
	else if (conn->rx_state == TCP_RX_WAITS_SLOT)
		tcp_rx_resume_soon(conn);
}

static void conn_ended(struct tcp_stream *stream, int rc, const char *why)
{
	weft_qpair_close(&tcp_conn_of_stream(stream)->qp, "%s", rc ? why : "closed by the host");
}

static void conn_faulty(struct tcp_stream *stream, uint8_t type, const struct nvme_tcp_fault *fault)
{
	struct tcp_conn *conn = tcp_conn_of_stream(stream);
	char peer[WEFT_URI_MAX];

	weft_timer_stop(stream->sock.reactor, &conn->timer);
	weft_uri_format(NVMF_TRTYPE_TCP, &conn->qp.peer, peer, sizeof(peer));
	weft_peer_log(WEFT_LOG_WARN, "%s: %s: %s (FES %u, FEI %u); terminating the connection",
		      peer, nvme_tcp_type_text(type), fault->why, fault->fes, fault->fei);
}

static void tcp_close(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);

	weft_timer_stop(qp->group->reactor, &conn->timer);
	tcp_stream_close(&conn->stream);
}

/* What the host sent before it ended the connection is not looked at any more. */
static void tcp_check_lost(struct weft_qpair *qp)
{
	if (weft_sock_has_ended(&tcp_conn_of(qp)->stream.sock))
		weft_qpair_close(qp, "closed by the host, which connects again");
}

/* --- how long the host stalls ----------------------------------------------------------------- */

/* Only storage, or the host's own sending, delays a write or compare. Any other command may take
 * long because its host has sent many of them, or because half of a fused pair waits for the
 * other. */
static bool is_write_or_compare(const struct weft_req *req)
{
	return nvme_io_traits(req->cmd.common.opcode) & NVME_IO_BLOCKS &&
	       req != req->qp->fused_waiting;
}

/* For a request that waits for data the time counts from its R2T, for a reply from the start of the
 * send that it waits for: a peer that moves a byte now and then gains no time. */
static void tcp_look_for_stall(struct weft_req *req, struct weft_stall *stall)
{
	const struct tcp_conn *conn = tcp_conn_of(req->qp);
	const struct tcp_req *treq = tcp_req_of(req);

	stall->rx_waits |= conn->rx_state == TCP_RX_WAITS_CHUNK;
	stall->rx_waits_for_host |= treq->chunk && !is_write_or_compare(req);
	if (req->state == WEFT_REQ_AWAIT_DATA || req->state == WEFT_REQ_DRAINING)
		stall->owed_since = weft_stall_earlier(stall->owed_since, treq->asked_ns);
	else if (req->state == WEFT_REQ_REPLYING && conn->stream.sendq.busy &&
		 (req->in.at || req->out.at))
		stall->unread_since = weft_stall_earlier(stall->unread_since,
							 conn->stream.sendq.send_start_ns);
}

/* It owes nothing while we do not read from the socket and the host is not to blame: storage is slow,
 * and the chunks are full of commands that wait for it. */
static uint64_t tcp_stalled_since(struct weft_qpair *qp, const struct weft_stall *stall)
{
	bool excused = stall->rx_waits && !stall->rx_waits_for_host;

	return weft_stall_earlier(stall->unread_since, excused ? 0 : stall->owed_since);
}

static void tcp_free(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);
	struct weft_poll_group *group = qp->group;

	assert(conn->stream.state == TCP_STREAM_CLOSED);
	weft_qpair_destroy(qp);
	free(conn);
	atomic_fetch_sub(&group->nqpairs, 1); /* the poll group may be destroyed now */
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void setup_expired(struct weft_timer *timer)
{
	struct tcp_conn *conn = container_of(timer, struct tcp_conn, timer);

	weft_qpair_close(&conn->qp, "no Connect within %d s", TCP_SETUP_MS / 1000);
}

static void tcp_started(struct weft_qpair *qp)
{
	struct tcp_conn *conn = tcp_conn_of(qp);

	weft_timer_stop(qp->group->reactor, &conn->timer);
	if (qp->sqid)
		conn->stream.rules.capsule_data_max = TCP_CAPSULE_BYTES;
}

static const struct tcp_stream_ops stream_ops = {
	.make_room = tcp_rx_make_room,
	.received = tcp_rx_parse,
	.faulty = conn_faulty,
	.ended = conn_ended,
	.closed = conn_closed,
};

static int conn_open(struct tcp_conn *conn, struct weft_poll_group *group, int fd,
		     const struct weft_qpair_ops *ops)
{
	socklen_t len = sizeof(conn->qp.peer);
	int rc;

	/* One that was reset meanwhile has no peer any more. Its end shows with the first
	 * receive. */
	if (getpeername(fd, (struct sockaddr *)&conn->qp.peer, &len) < 0 && errno != ENOTCONN)
		return -errno;
	len = sizeof(conn->qp.local);
	if (getsockname(fd, (struct sockaddr *)&conn->qp.local, &len) < 0)
		return -errno;
	rc = weft_qpair_init(&conn->qp, &weft_tcp, ops, group);
	if (rc < 0)
		return rc;
	rc = tcp_stream_open(&conn->stream, group->reactor, fd, &stream_ops);
	if (rc < 0)
		weft_qpair_destroy(&conn->qp);
	return rc;
}

int tcp_conn_new(struct tcp_conn **out, struct weft_poll_group *group, int fd,
		 const struct weft_qpair_ops *ops)
{
	struct tcp_conn *conn = calloc(1, sizeof(*conn));
	int rc = conn ? conn_open(conn, group, fd, ops) : -ENOMEM;

	if (rc < 0) {
		free(conn);
		return rc;
	}
	conn->poll_group = tcp_poll_group_of(group);
	weft_task_init(&conn->finish_close, conn_finish_close);
	tcp_tx_init(conn);
	tcp_rx_init(conn);
	*out = conn;
	return 0;
}

void tcp_setup_timer_start(struct tcp_conn *conn)
{
	conn->timer.fn = setup_expired;
	weft_timer_set(conn->qp.group->reactor, &conn->timer, TCP_SETUP_MS);
}

int tcp_accept(struct weft_poll_group *group, int fd, const struct weft_qpair_ops *ops)
{
	struct tcp_conn *conn;
	int rc = tcp_conn_new(&conn, group, fd, ops);

	if (rc < 0) {
		close(fd);
		atomic_fetch_sub(&group->nqpairs, 1);
		return rc;
	}
	weft_qpair_accepted(&conn->qp);
	tcp_setup_timer_start(conn);
	tcp_rx_start(conn);
	return 0;
}

const struct weft_transport weft_tcp = {
	.trtype = NVMF_TRTYPE_TCP,
	.capsule_data = TCP_CAPSULE_BYTES,
	.sgls = NVME_CTRL_SGLS_TPORT,
	.sgl_descriptors_max = 1,
	.listen = tcp_listen,
	.unlisten = tcp_unlisten,
	.pause = tcp_listener_pause,
	.resume = tcp_listener_resume,
	.listener_fd = tcp_listener_fd,
	.listener_import = tcp_listener_import,
	.group_create = tcp_poll_group_create,
	.group_destroy = tcp_poll_group_destroy,
	.has_waiters = tcp_has_chunk_waiters,
	.serve_waiters = tcp_serve_chunk_waiters,
	.req_size = sizeof(struct tcp_req),
	.check_sgl = tcp_check_sgl,
	.sgl_len = tcp_sgl_len,
	.fetch = tcp_fetch,
	.abort_fetch = tcp_abort_fetch,
	.copy = tcp_copy,
	.reply = tcp_reply,
	.started = tcp_started,
	.slot_freed = tcp_slot_freed,
	.end_draining = tcp_end_draining,
	.stalled_since = tcp_stalled_since,
	.check_lost = tcp_check_lost,
	.look_for_stall = tcp_look_for_stall,
	.freeze = tcp_freeze,
	.busy_reason = tcp_busy_reason,
	.export = tcp_export,
	.import = tcp_import,
	.thaw = tcp_thaw,
	.close_when_sent = tcp_close_when_sent,
	.close = tcp_close,
	.free = tcp_free,
};
