/* stream.c - the stream of an NVMe/TCP connection: receives, terminates, closes.
 *
 *   OPEN ──fault──▶ TERMINATING ──read or timed out──▶ CLOSING ──the kernel is done──▶ CLOSED
 *     └──────────────── lost, or closed by its owner ────▲
 *
 * The end has an order: the socket is shut down; the receive and the send under way finish, so that
 * the kernel uses no buffer; the socket is closed and the owner aborts what is left.
 *
 * Many small PDUs come with one call and are parsed where they are. The data of C2HData and H2CData
 * belongs elsewhere: what has come of it is copied out of the buffer once, the rest is received
 * straight into its place, and the PDUs behind it into the buffer. */
#include "transport/tcp/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
	HOST_LINGER_MS = 500,    /* for the controller to read an H2CTermReq */
	TARGET_LINGER_MS = 3000, /* for the host to read a C2HTermReq */
};

/* --- the end ---------------------------------------------------------------------------------- */

static void finish_close(struct weft_task *task)
{
	struct tcp_stream *stream = container_of(task, struct tcp_stream, finish_close);

	assert(stream->state == TCP_STREAM_CLOSING);
	if (stream->rx_busy || stream->sendq.busy)
		return;
	weft_sock_close(&stream->sock);
	stream->sock.fd = -1;
	stream->state = TCP_STREAM_CLOSED;
	stream->ops->closed(stream);
}

static void finish_close_soon(struct tcp_stream *stream)
{
	if (stream->state == TCP_STREAM_CLOSING)
		weft_reactor_defer(stream->sock.reactor, &stream->finish_close);
}

void tcp_stream_close(struct tcp_stream *stream)
{
	assert(stream->state < TCP_STREAM_CLOSING);
	stream->state = TCP_STREAM_CLOSING;
	stream->payload.under_way = false;
	weft_timer_stop(stream->sock.reactor, &stream->linger);
	tcp_send_queue_stop(&stream->sendq);
	shutdown(stream->sock.fd, SHUT_RDWR);
	finish_close_soon(stream);
}

static void socket_failed(struct tcp_stream *stream, int rc, const char *doing)
{
	char why[128];

	snprintf(why, sizeof(why), "%s: %s", doing, strerror(-rc));
	stream->ops->ended(stream, rc, why);
}

/* --- termination ------------------------------------------------------------------------------ */

static int fill_term(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct tcp_stream *stream = container_of(tx, struct tcp_stream, term_tx);

	*iov = (struct iovec){ &stream->term, le32_to_cpu(stream->term.pdu.hdr.plen) };
	return 1;
}

/* The peer reads the termination request and closes; if it does not, we do. */
static void term_sent(struct tcp_tx *tx)
{
	struct tcp_stream *stream = container_of(tx, struct tcp_stream, term_tx);

	if (stream->state == TCP_STREAM_TERMINATING)
		shutdown(stream->sock.fd, SHUT_WR);
}

static void linger_expired(struct weft_timer *timer)
{
	struct tcp_stream *stream = container_of(timer, struct tcp_stream, linger);

	stream->ops->ended(stream, -ETIMEDOUT, "terminated");
}

static void build_term(struct tcp_stream *stream, const void *pdu, uint32_t len,
		       const struct nvme_tcp_fault *fault)
{
	stream->term.pdu = (struct nvme_tcp_term){
		.hdr.type = stream->rules.host ? NVME_TCP_H2C_TERM : NVME_TCP_C2H_TERM,
		.hdr.hlen = sizeof(stream->term.pdu),
		.hdr.plen = cpu_to_le32(sizeof(stream->term.pdu) + len),
		.fes = cpu_to_le16(fault->fes),
		.feil = cpu_to_le16((uint16_t)fault->fei),
		.feiu = cpu_to_le16((uint16_t)(fault->fei >> 16)),
	};
	memcpy(stream->term.header, pdu, len);
	stream->term_tx.fill = fill_term;
	stream->term_tx.sent = term_sent;
}

/* A host's commands that have not left yet would be lost without a word; a target's replies are
 * worth their way. */
void tcp_stream_terminate(struct tcp_stream *stream, const void *pdu, uint32_t len,
			  const struct nvme_tcp_fault *fault)
{
	if (stream->state != TCP_STREAM_OPEN)
		return;
	if (len > NVME_TCP_TERM_DATA_MAX)
		len = NVME_TCP_TERM_DATA_MAX;
	stream->state = TCP_STREAM_TERMINATING;
	stream->payload.under_way = false;
	build_term(stream, pdu, len, fault);
	stream->ops->faulty(stream, *(const uint8_t *)pdu, fault);
	weft_timer_set(stream->sock.reactor, &stream->linger,
		       stream->rules.host ? HOST_LINGER_MS : TARGET_LINGER_MS);
	if (stream->rules.host)
		tcp_send_queue_drop_unsent(&stream->sendq);
	tcp_send_queue_push(&stream->sendq, &stream->term_tx);
}

/* --- receiving -------------------------------------------------------------------------------- */

/* Into the payload's memory first, then what follows into the buffer. */
static int plan_receive(struct tcp_stream *stream, uint32_t room)
{
	struct weft_iov_iter at = stream->payload.at;
	size_t left = stream->payload.under_way ? stream->payload.left : 0;
	int n = weft_iov_iter_map(&at, stream->rx_iov, stream->rx_iovs - 1, &left);

	if (!left)
		stream->rx_iov[n++] = (struct iovec){ stream->buf + stream->tail, room };
	return n;
}

static int plan_drop(struct tcp_stream *stream)
{
	stream->rx_iov[0] = stream->sink;
	return 1;
}

void tcp_stream_receive(struct tcp_stream *stream)
{
	uint32_t room = 0;
	int n;

	if (stream->rx_busy || stream->state >= TCP_STREAM_CLOSING)
		return;
	if (stream->state == TCP_STREAM_OPEN && !(room = stream->ops->make_room(stream)))
		return;
	n = stream->state == TCP_STREAM_OPEN ? plan_receive(stream, room) : plan_drop(stream);
	stream->rx_busy = true;
	weft_sock_recv(&stream->sock, &stream->rx_op, stream->rx_iov, n);
}

static void account_received(struct tcp_stream *stream, uint32_t bytes)
{
	uint32_t direct = 0;

	if (stream->payload.under_way) {
		direct = bytes < stream->payload.left ? bytes : stream->payload.left;
		weft_iov_iter_advance(&stream->payload.at, direct);
		stream->payload.left -= direct;
	}
	stream->tail += bytes - direct;
	assert(stream->tail <= stream->size);
}

static void recv_done(struct weft_op *op, int res)
{
	struct tcp_stream *stream = container_of(op, struct tcp_stream, rx_op);

	stream->rx_busy = false;
	if (stream->state >= TCP_STREAM_CLOSING) {
		finish_close_soon(stream);
	} else if (!res) {
		stream->ops->ended(stream, 0, "closed by the peer");
	} else if (res < 0 && res != -ECANCELED) {
		socket_failed(stream, res, "receive");
	} else {
		if (stream->state == TCP_STREAM_OPEN && res > 0)
			account_received(stream, (uint32_t)res);
		stream->ops->received(stream);
	}
}

/* --- digests: of headers, and of data that comes as a PDU's payload. Data in a capsule is checked
 * where it lies (pdus.c). ----------------------------------------------------------------------- */

uint32_t tcp_iov_crc(struct weft_iov_iter iter, size_t len)
{
	uint32_t crc = 0;
	struct iovec part;

	for (; len; len -= part.iov_len) {
		part = weft_iov_iter_next(&iter, len);
		crc = nvme_tcp_crc(crc, part.iov_base, part.iov_len);
	}
	return crc;
}

bool tcp_stream_payload_digest_ok(const struct tcp_stream *stream)
{
	uint32_t crc = htole32(tcp_iov_crc(stream->payload.start, stream->payload.len));

	return !memcmp(&crc, stream->buf + stream->head, sizeof(crc));
}

/* Termination requests have none. */
bool tcp_stream_header_digest_ok(struct tcp_stream *stream, const struct nvme_tcp_hdr *hdr,
				 const char *pdu)
{
	struct nvme_tcp_fault fault;
	uint32_t got;

	if (hdr->type == NVME_TCP_H2C_TERM || hdr->type == NVME_TCP_C2H_TERM)
		return true;
	memcpy(&got, pdu + hdr->hlen, sizeof(got));
	if (le32toh(got) == nvme_tcp_crc(0, pdu, hdr->hlen))
		return true;
	nvme_tcp_refuse(&fault, NVME_TCP_FES_HDGST, le32toh(got), "the header digest is wrong");
	tcp_stream_terminate(stream, pdu, hdr->hlen, &fault);
	return false;
}

void tcp_stream_refuse_header(struct tcp_stream *stream, const struct nvme_tcp_hdr *hdr,
			      const char *pdu, uint32_t have, const struct nvme_tcp_fault *fault)
{
	uint32_t digested = nvme_tcp_digested_header(hdr, &stream->rules);

	if (digested)
		stream->want = digested + NVME_TCP_DIGEST;
	if (have >= stream->want && (!digested || tcp_stream_header_digest_ok(stream, hdr, pdu)))
		tcp_stream_terminate(stream, pdu, have, fault);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void sendq_failed(struct tcp_send_queue *sendq, int rc)
{
	struct tcp_stream *stream = container_of(sendq, struct tcp_stream, sendq);

	/* While a host's socket connects, the first send waits, and brings the error. */
	socket_failed(stream, rc, stream->rules.host && !stream->rules.ready ? "connect" : "send");
}

static void sendq_stopped(struct tcp_send_queue *sendq)
{
	finish_close_soon(container_of(sendq, struct tcp_stream, sendq));
}

int tcp_stream_open(struct tcp_stream *stream, struct weft_reactor *r, int fd,
		    const struct tcp_stream_ops *ops)
{
	int rc = weft_sock_open(r, &stream->sock, fd);

	if (rc < 0)
		return rc;
	stream->ops = ops;
	stream->rx_op.done = recv_done;
	stream->linger.fn = linger_expired;
	weft_task_init(&stream->finish_close, finish_close);
	tcp_send_queue_init(&stream->sendq, &stream->sock);
	stream->sendq.failed = sendq_failed;
	stream->sendq.send_stopped = sendq_stopped;
	return 0;
}
