/* stream_parse.h - the loop that finds the PDUs of a stream, compiled into each end's rx: what comes
 * with every command costs no call through a pointer.
 *
 *   [head, tail) of @buf ─┬─ a header ─▶ check ─▶ on_pdu() ─▶ data of its own? tcp_stream_expect()
 *                         └─ expected data ─▶ its memory ─▶ on_payload()
 *
 * The peer is not trusted: what on_pdu() gets fits its type, and the rest is for on_pdu() to check.
 * Nor is the cable: a header digest is checked as soon as it is here, before PLEN is waited for, and
 * a header that breaks a rule is first asked for it. */
#ifndef WEFT_TRANSPORT_TCP_STREAM_PARSE_H
#define WEFT_TRANSPORT_TCP_STREAM_PARSE_H

#include <assert.h>
#include <string.h>

#include "transport/tcp/stream.h"

/* Handles a PDU, which lies at any address. Of C2HData and H2CData only the header is here, and
 * tcp_stream_expect() is called for the data. A PDU that breaks a rule ends in
 * tcp_stream_terminate(). false: it cannot be handled now, and stays where it is. */
typedef bool tcp_pdu_fn(struct tcp_stream *stream, uint8_t type, const char *pdu,
			const struct nvme_tcp_shape *shape);
/* All data that was expected is in its place. */
typedef void tcp_payload_fn(struct tcp_stream *stream, bool digest_ok);

/* In on_pdu(): @len bytes of data follow, which belong at @at, and perhaps their digest. */
static inline void tcp_stream_expect(struct tcp_stream *stream, struct weft_iov_iter at,
				     uint32_t len, bool ddgst)
{
	assert(!stream->payload.under_way);
	stream->payload.under_way = true;
	stream->payload.ddgst = ddgst;
	stream->payload.start = stream->payload.at = at;
	stream->payload.len = stream->payload.left = len;
	stream->payload.copied = 0;
}

static inline void tcp_stream_copy_payload(struct tcp_stream *stream, uint32_t len)
{
	const char *from = stream->buf + stream->head;
	struct iovec part;

	stream->payload.copied += len;
	stream->payload.left -= len;
	stream->head += len;
	for (; len; len -= (uint32_t)part.iov_len, from += part.iov_len) {
		part = weft_iov_iter_next(&stream->payload.at, len);
		memcpy(part.iov_base, from, part.iov_len);
	}
}

static inline bool tcp_stream_payload_step(struct tcp_stream *stream, tcp_payload_fn *on_payload)
{
	uint32_t have = stream->tail - stream->head;
	bool ok = true;

	tcp_stream_copy_payload(stream, have < stream->payload.left ? have : stream->payload.left);
	stream->want = stream->payload.ddgst ? NVME_TCP_DIGEST : 0;
	if (stream->payload.left || stream->tail - stream->head < stream->want)
		return false;
	if (stream->payload.ddgst) {
		ok = tcp_stream_payload_digest_ok(stream);
		stream->head += NVME_TCP_DIGEST;
	}
	stream->payload.under_way = false;
	on_payload(stream, ok);
	return true;
}

static inline bool tcp_stream_pdu_step(struct tcp_stream *stream, tcp_pdu_fn *on_pdu)
{
	uint32_t have = stream->tail - stream->head;
	struct nvme_tcp_fault fault;
	struct nvme_tcp_shape shape;
	struct nvme_tcp_hdr hdr;
	const char *pdu;

	stream->want = sizeof(hdr);
	if (have < stream->want)
		return false;
	pdu = stream->buf + stream->head;
	memcpy(&hdr, pdu, sizeof(hdr));
	if (nvme_tcp_check_hdr(&hdr, &stream->rules, &shape, &fault) < 0) {
		tcp_stream_refuse_header(stream, &hdr, pdu, have, &fault);
		return false;
	}
	stream->want = nvme_tcp_data_is_apart(hdr.type) ? shape.data_at : le32_to_cpu(hdr.plen);
	if (have < stream->want) {
		if (stream->rules.hdgst && have >= shape.header)
			tcp_stream_header_digest_ok(stream, &hdr, pdu);
		return false;
	}
	if ((stream->rules.hdgst && !tcp_stream_header_digest_ok(stream, &hdr, pdu)) ||
	    !on_pdu(stream, hdr.type, pdu, &shape))
		return false;
	stream->head += stream->want;
	return true;
}

/* The PDU that comes next, or data that is expected. false: more bytes have to come first, or
 * on_pdu() said so. */
static inline bool tcp_stream_step(struct tcp_stream *stream, tcp_pdu_fn *on_pdu,
				   tcp_payload_fn *on_payload)
{
	return stream->payload.under_way ? tcp_stream_payload_step(stream, on_payload) :
					   tcp_stream_pdu_step(stream, on_pdu);
}

#endif
