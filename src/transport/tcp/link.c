/* link.c - the host's TCP connection: how it starts and ends.
 *
 *   connect, ICReq ─▶ ICResp: ready ─▶ commands ─▶ the stream ends ─▶ its user's commands come back
 *
 * Connecting needs no step of its own: the socket is non-blocking, and the first send waits for it
 * or brings its error. stream.c has the end's states. */
#include "transport/tcp/link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "proto/uri.h"
#include "transport/tcp/socket.h"

/* --- the end ---------------------------------------------------------------------------------- */

static void link_closed(struct tcp_stream *stream)
{
	struct weft_link *link = &tcp_link_of_stream(stream)->link;

	tcp_send_queue_clear(&stream->sendq);
	link->ops->closed(link);
}

static void link_ended(struct tcp_stream *stream, int rc, const char *why)
{
	struct weft_link *link = &tcp_link_of_stream(stream)->link;

	/* It is receiving: so it was connected. */
	bool mute = !stream->rules.ready && (!rc || !strncmp(why, "receive", strlen("receive")));

	link->peer_closed |= !rc || rc == -EPIPE || rc == -ECONNRESET;
	weft_link_close(link, rc ? rc : -ECONNRESET, "%s%s",
			rc ? why : "the target closed the connection",
			mute ? " before it had answered with an ICResp" : "");
}

/* What the other end has sent first is no PDU: an HTTP or SSH server, perhaps. */
static void refuse_other_protocol(struct tcp_stream *stream)
{
	struct weft_link *link = &tcp_link_of_stream(stream)->link;
	const unsigned char *said = (const unsigned char *)stream->term.header;
	char text[sizeof(struct nvme_tcp_hdr) + 1] = "";
	unsigned n = 0;

	while (n < sizeof(text) - 1 && said[n] >= ' ' && said[n] <= '~') {
		text[n] = (char)said[n];
		n++;
	}
	if (n)
		weft_link_record_fault(link, -EPROTO,
				       "what listens there does not speak NVMe/TCP: it began with "
				       "\"%s\", not with an ICResp",
				       text);
	else
		weft_link_record_fault(link, -EPROTO,
				       "what listens there does not speak NVMe/TCP: it began with a "
				       "byte 0x%02x, not with an ICResp",
				       said[0]);
}

static void link_faulty(struct tcp_stream *stream, uint8_t type, const struct nvme_tcp_fault *fault)
{
	struct tcp_link *tl = tcp_link_of_stream(stream);

	weft_timer_stop(tl->link.reactor, &tl->setup);
	if (!stream->rules.ready && !nvme_tcp_type_is_known(type)) {
		refuse_other_protocol(stream);
		return;
	}
	weft_link_record_fault(&tl->link, -EPROTO, "%s: %s", nvme_tcp_type_text(type), fault->why);
}

/* Also while an H2CTermReq lingers: a user that closes then does not wait for it. */
static void tcp_link_close(struct weft_link *link)
{
	struct tcp_link *tl = tcp_link_of(link);

	weft_timer_stop(link->reactor, &tl->setup);
	if (tl->stream.state < TCP_STREAM_CLOSING)
		tcp_stream_close(&tl->stream);
}

static void tcp_link_free(struct weft_link *link)
{
	struct tcp_link *tl = tcp_link_of(link);

	assert(tl->stream.state == TCP_STREAM_CLOSED);
	weft_pages_free(tl->stream.buf, TCP_LINK_RX_BYTES);
	weft_link_destroy(link);
	free(tl);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void setup_expired(struct weft_timer *timer)
{
	struct tcp_link *tl = container_of(timer, struct tcp_link, setup);

	if (tl->stream.rx_busy)
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
	if (!getsockname(tl->stream.sock.fd, (struct sockaddr *)&local, &len))
		weft_addr_format(&local, tl->link.path.local, sizeof(tl->link.path.local));
}

void tcp_link_ready(struct tcp_link *tl)
{
	weft_timer_stop(tl->link.reactor, &tl->setup);
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

	if (tl->stream.state == TCP_STREAM_OPEN)
		tcp_stream_receive(&tl->stream);
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
	tcp_send_queue_push(&tl->stream.sendq, &tl->icreq_tx);
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

static const struct tcp_stream_ops stream_ops = {
	.make_room = tcp_link_make_room,
	.received = tcp_link_parse,
	.faulty = link_faulty,
	.ended = link_ended,
	.closed = link_closed,
};

static int open_stream(struct tcp_link *tl)
{
	int fd = connect_socket(&tl->link.options.addr), rc;

	if (fd < 0)
		return fd;
	rc = tcp_stream_open(&tl->stream, tl->link.reactor, fd, &stream_ops);
	if (rc < 0)
		close(fd);
	return rc;
}

static void begin_setup(struct tcp_link *tl)
{
	tl->stream.rules.host = true;
	tl->link.capsule_max = TCP_LINK_ADMIN_CAPSULE;
	tcp_link_rx_init(tl);
	tl->setup.fn = setup_expired;
	weft_timer_set(tl->link.reactor, &tl->setup, tl->link.options.setup_ms);
	send_icreq(tl);
}

static int tcp_link_init(struct tcp_link *tl, struct weft_reactor *r,
			 const struct weft_link_options *options, const struct weft_link_ops *ops,
			 void *user)
{
	int rc = weft_link_init(&tl->link, &weft_tcp_link, r, options, ops, user);

	if (rc < 0)
		return rc;
	tl->stream.buf = weft_pages_alloc(TCP_LINK_RX_BYTES);
	rc = tl->stream.buf ? open_stream(tl) : -ENOMEM;
	if (rc < 0) {
		weft_pages_free(tl->stream.buf, TCP_LINK_RX_BYTES);
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
