/* link.c - the host's TCP connection: how it starts and ends.
 *
 *   SETUP ─ICResp─▶ OPEN ─fault─▶ TERMINATING ─read or timed out─▶ CLOSING ─all is back─▶ CLOSED
 *     └───────────────┴──── lost, or closed by its user ─────────────▲
 *
 * Connecting needs no step of its own: the socket is non-blocking, and the first send waits for it
 * or brings its error. */
#include "transport/tcp/link.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "proto/uri.h"
#include "transport/tcp/socket.h"

/* --- the end ---------------------------------------------------------------------------------- */

static void finish_close(struct weft_task *task)
{
	struct tcp_link *tl = container_of(task, struct tcp_link, finish_close);

	if (tl->rx_busy || tl->sendq.busy)
		return;
	weft_sock_close(&tl->sock);
	tcp_send_queue_clear(&tl->sendq);
	tl->state = TCP_LINK_CLOSED;
	tl->link.ops->closed(&tl->link);
}

void tcp_link_finish_close_soon(struct tcp_link *tl)
{
	if (tl->state == TCP_LINK_CLOSING)
		weft_reactor_defer(tl->link.reactor, &tl->finish_close);
}

static void begin_close(struct tcp_link *tl)
{
	tl->state = TCP_LINK_CLOSING;
	weft_timer_stop(tl->link.reactor, &tl->timer);
	tcp_send_queue_stop(&tl->sendq);
	shutdown(tl->sock.fd, SHUT_RDWR);
	tcp_link_finish_close_soon(tl);
}

/* Also while an H2CTermReq lingers: a user that closes then does not wait for it. */
static void tcp_link_close(struct weft_link *link)
{
	struct tcp_link *tl = tcp_link_of(link);

	if (tl->state < TCP_LINK_CLOSING)
		begin_close(tl);
}

static void tcp_link_free(struct weft_link *link)
{
	struct tcp_link *tl = tcp_link_of(link);

	assert(tl->state == TCP_LINK_CLOSED);
	weft_pages_free(tl->buf, TCP_LINK_RX_BYTES);
	weft_link_destroy(link);
	free(tl);
}

/* --- termination ------------------------------------------------------------------------------ */

static int fill_term(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct tcp_link *tl = container_of(tx, struct tcp_link, term_tx);

	*iov = (struct iovec){ &tl->term, le32_to_cpu(tl->term.pdu.hdr.plen) };
	return 1;
}

static void term_sent(struct tcp_tx *tx)
{
	struct tcp_link *tl = container_of(tx, struct tcp_link, term_tx);

	if (tl->state == TCP_LINK_TERMINATING)
		shutdown(tl->sock.fd, SHUT_WR);
}

static void linger_expired(struct weft_timer *timer)
{
	begin_close(container_of(timer, struct tcp_link, timer));
}

void tcp_link_terminate(struct tcp_link *tl, const void *pdu, uint32_t len,
			const struct nvme_tcp_fault *fault)
{
	uint8_t type = *(const uint8_t *)pdu;

	if (tl->link.closing)
		return;
	if (len > NVME_TCP_TERM_DATA_MAX)
		len = NVME_TCP_TERM_DATA_MAX;
	tl->term.pdu = (struct nvme_tcp_term){
		.hdr.type = NVME_TCP_H2C_TERM,
		.hdr.hlen = sizeof(tl->term.pdu),
		.hdr.plen = cpu_to_le32(sizeof(tl->term.pdu) + len),
		.fes = cpu_to_le16(fault->fes),
		.feil = cpu_to_le16((uint16_t)fault->fei),
		.feiu = cpu_to_le16((uint16_t)(fault->fei >> 16)),
	};
	memcpy(tl->term.header, pdu, len);
	tl->state = TCP_LINK_TERMINATING;
	tl->payload.slot = NULL;
	weft_link_record_fault(&tl->link, -EPROTO, "%s: %s", nvme_tcp_type_text(type), fault->why);
	tl->timer.fn = linger_expired;
	weft_timer_set(tl->link.reactor, &tl->timer, TCP_LINK_LINGER_MS);
	tcp_send_queue_drop_unsent(&tl->sendq);
	tl->term_tx.fill = fill_term;
	tl->term_tx.sent = term_sent;
	tcp_send_queue_push(&tl->sendq, &tl->term_tx);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void setup_expired(struct weft_timer *timer)
{
	struct tcp_link *tl = container_of(timer, struct tcp_link, timer);

	if (tl->rx_busy)
		weft_link_close(&tl->link, -ETIMEDOUT,
				"no ICResp within %u ms: something listens there that does not "
				"answer as an NVMe/TCP target",
				tl->link.options.setup_ms);
	else
		weft_link_close(&tl->link, -ETIMEDOUT, "no connection within %u ms",
				tl->link.options.setup_ms);
}

static void fill_path_info(struct tcp_link *tl)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);

	strcpy(tl->link.path.transport, "tcp");
	if (!getsockname(tl->sock.fd, (struct sockaddr *)&local, &len))
		weft_addr_format(&local, tl->link.path.local, sizeof(tl->link.path.local));
}

void tcp_link_ready(struct tcp_link *tl)
{
	weft_timer_stop(tl->link.reactor, &tl->timer);
	tl->state = TCP_LINK_OPEN;
	fill_path_info(tl);
	tl->link.ops->ready(&tl->link);
}

static int fill_icreq(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct tcp_link *tl = container_of(tx, struct tcp_link, icreq_tx);

	*iov = (struct iovec){ &tl->icreq, sizeof(tl->icreq) };
	return 1;
}

/* Receiving starts here and not earlier: while the socket connects, the send reports its one
 * error. */
static void icreq_sent(struct tcp_tx *tx)
{
	struct tcp_link *tl = container_of(tx, struct tcp_link, icreq_tx);

	if (tl->state == TCP_LINK_SETUP)
		tcp_link_rx_start(tl);
}

static void send_icreq(struct tcp_link *tl)
{
	const struct weft_link_options *o = &tl->link.options;

	tl->icreq = (struct nvme_tcp_icreq){
		.hdr.type = NVME_TCP_ICREQ,
		.hdr.hlen = sizeof(tl->icreq),
		.hdr.plen = cpu_to_le32(sizeof(tl->icreq)),
		.dgst = (uint8_t)((o->hdgst ? NVME_TCP_DGST_HDR : 0) |
				  (o->ddgst ? NVME_TCP_DGST_DATA : 0)),
	};
	tl->icreq_tx.fill = fill_icreq;
	tl->icreq_tx.sent = icreq_sent;
	tcp_send_queue_push(&tl->sendq, &tl->icreq_tx);
}

static void sendq_failed(struct tcp_send_queue *sendq, int rc)
{
	struct tcp_link *tl = container_of(sendq, struct tcp_link, sendq);

	tl->link.peer_closed |= rc == -EPIPE || rc == -ECONNRESET;
	if (tl->state == TCP_LINK_TERMINATING)
		begin_close(tl);
	else
		weft_link_close(&tl->link, rc, "%s: %s", tl->rules.ready ? "send" : "connect",
				strerror(-rc));
}

static void sendq_stopped(struct tcp_send_queue *sendq)
{
	tcp_link_finish_close_soon(container_of(sendq, struct tcp_link, sendq));
}

static int connect_socket(const struct sockaddr_storage *addr)
{
	_cleanup_(weft_closep) int fd = -1;
	int rc;

	fd = socket(addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	rc = tcp_set_connection_options(fd);
	if (rc == 0)
		rc = tcp_set_abortive(fd);
	if (rc < 0)
		return rc;
	if (connect(fd, (const struct sockaddr *)addr, weft_addr_len(addr)) < 0 &&
	    errno != EINPROGRESS)
		return -errno;
	return take_fd(&fd);
}

static int open_socket(struct tcp_link *tl)
{
	int fd = connect_socket(&tl->link.options.addr), rc;

	if (fd < 0)
		return fd;
	rc = weft_sock_open(tl->link.reactor, &tl->sock, fd);
	if (rc < 0)
		close(fd);
	return rc;
}

static void begin_setup(struct tcp_link *tl)
{
	tl->rules.host = true;
	tl->link.capsule_max = TCP_LINK_ADMIN_CAPSULE;
	weft_task_init(&tl->finish_close, finish_close);
	tcp_send_queue_init(&tl->sendq, &tl->sock);
	tl->sendq.failed = sendq_failed;
	tl->sendq.send_stopped = sendq_stopped;
	tcp_link_rx_init(tl);
	tl->timer.fn = setup_expired;
	weft_timer_set(tl->link.reactor, &tl->timer, tl->link.options.setup_ms);
	send_icreq(tl);
}

static int tcp_link_init(struct tcp_link *tl, struct weft_reactor *r,
			 const struct weft_link_options *options, const struct weft_link_ops *ops,
			 void *user)
{
	int rc = weft_link_init(&tl->link, &weft_tcp_link, r, options, ops, user);

	if (rc < 0)
		return rc;
	tl->buf = weft_pages_alloc(TCP_LINK_RX_BYTES);
	rc = tl->buf ? open_socket(tl) : -ENOMEM;
	if (rc < 0) {
		weft_pages_free(tl->buf, TCP_LINK_RX_BYTES);
		weft_link_destroy(&tl->link);
	}
	return rc;
}

static int tcp_link_open(struct weft_link **link, struct weft_reactor *r,
			 const struct weft_link_options *options, const struct weft_link_ops *ops,
			 void *user, struct weft_err *err)
{
	struct tcp_link *tl = calloc(1, sizeof(*tl));
	int rc = tl ? tcp_link_init(tl, r, options, ops, user) : -ENOMEM;

	if (rc < 0) {
		free(tl);
		return weft_fail(err, rc, "connect: %s", strerror(-rc));
	}
	begin_setup(tl);
	*link = &tl->link;
	return 0;
}

const struct weft_link_transport weft_tcp_link = {
	.trtype = NVMF_TRTYPE_TCP,
	.open = tcp_link_open,
	.slot_size = sizeof(struct tcp_link_slot),
	.submit = tcp_link_submit,
	.close = tcp_link_close,
	.free = tcp_link_free,
};
