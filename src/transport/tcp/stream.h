/* stream.h - an NVMe/TCP connection as a stream of PDUs, for both ends.
 *
 *   socket ─▶ @buf ─▶ stream_parse.h ─▶ a PDU, whole but for data of C2HData and H2CData
 *        └──────────▶ the memory that such data belongs in
 *   socket ◀─ @sendq ◀─ PDUs of the owner, and the last one: a termination request
 *
 * The owner, the target's connection or the host's link, says where to receive, what a PDU means
 * and what it sends. Its end is the stream's: see stream.c. */
#ifndef WEFT_TRANSPORT_TCP_STREAM_H
#define WEFT_TRANSPORT_TCP_STREAM_H

#include "base/iov_iter.h"
#include "transport/tcp/send_queue.h"

enum tcp_stream_state {
	TCP_STREAM_OPEN,        /* ICReq and ICResp, then everything */
	TCP_STREAM_TERMINATING, /* C2HTermReq or H2CTermReq is on its way: what comes is dropped */
	TCP_STREAM_CLOSING,     /* the socket is shut down; operations under way end */
	TCP_STREAM_CLOSED,
};

struct tcp_stream;

struct tcp_stream_ops {
	/* Makes room behind @tail for the rest of the PDU at @head. Returns how many bytes to
	 * receive into it; 0: there is none now, and the owner calls tcp_stream_receive() later. */
	uint32_t (*make_room)(struct tcp_stream *stream);
	/* Something was received: the owner steps as far as it can, then receives again. */
	void (*received)(struct tcp_stream *stream);
	/* The peer broke a rule; a termination request follows. */
	void (*faulty)(struct tcp_stream *stream, uint8_t type, const struct nvme_tcp_fault *fault);
	/* The peer has closed (@rc 0), the socket failed, or the peer had its time to read the
	 * termination request: the owner calls tcp_stream_close(). */
	void (*ended)(struct tcp_stream *stream, int rc, const char *why);
	/* The socket is closed, and the kernel has let go of all memory: the owner aborts what is
	 * left. The last call. */
	void (*closed)(struct tcp_stream *stream);
};

struct tcp_stream {
	const struct tcp_stream_ops *ops;
	struct weft_sock sock;
	enum tcp_stream_state state;
	struct nvme_tcp_rules rules; /* rules.host: which end this is */

	/* Receiving: bytes [head, tail) of @buf, which is the owner's, are received and not
	 * parsed. */
	bool rx_busy;
	uint32_t size, head, tail;
	uint32_t want; /* bytes that the PDU at @head needs, as far as known */
	char *buf;
	struct weft_op rx_op;
	struct iovec *rx_iov; /* the owner's: @rx_iovs parts */
	int rx_iovs;
	struct iovec sink; /* the owner's: for what is dropped while TERMINATING */
	struct {           /* data of C2HData or H2CData under way */
		bool under_way, ddgst;
		uint32_t len, left;
		uint32_t copied; /* of it, out of @buf */
		struct weft_iov_iter start, at;
	} payload;

	struct tcp_send_queue sendq;

	/* The end. */
	struct weft_timer linger;
	struct weft_task finish_close;
	struct tcp_tx term_tx;
	struct {
		struct nvme_tcp_term pdu;
		char header[NVME_TCP_TERM_DATA_MAX]; /* of the PDU at fault */
	} term;
};

/* @stream is zeroed. @fd is the stream's on 0. Nothing is received before tcp_stream_receive(). */
int tcp_stream_open(struct tcp_stream *stream, struct weft_reactor *r, int fd,
		    const struct tcp_stream_ops *ops);
/* Receives, unless that is under way, there is no room, or the stream is closing. */
void tcp_stream_receive(struct tcp_stream *stream);
/* The peer broke a rule: tells it with @len bytes of the PDU at fault, waits a little for it to
 * close, and ends. Nothing happens if the stream is ending already. */
void tcp_stream_terminate(struct tcp_stream *stream, const void *pdu, uint32_t len,
			  const struct nvme_tcp_fault *fault);
/* Shuts the socket down; ops->closed() follows, never from inside this call. Once. */
void tcp_stream_close(struct tcp_stream *stream);

/* Of a PDU, in a stream with header digests; terminates the stream if it is wrong. */
bool tcp_stream_header_digest_ok(struct tcp_stream *stream, const struct nvme_tcp_hdr *hdr,
				 const char *pdu);
/* A header that breaks a rule, of which @have bytes are here: terminates the stream with @fault, or
 * because of the header's digest if that is wrong; waits until it is here. */
void tcp_stream_refuse_header(struct tcp_stream *stream, const struct nvme_tcp_hdr *hdr,
			      const char *pdu, uint32_t have, const struct nvme_tcp_fault *fault);
/* Of the payload, whose data is in its place; the digest is at @head. */
bool tcp_stream_payload_digest_ok(const struct tcp_stream *stream);
/* Of the next @len bytes. */
uint32_t tcp_iov_crc(struct weft_iov_iter iter, size_t len);

#endif
