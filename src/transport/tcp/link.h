/* link.h - inside NVMe/TCP, the host's side: the link (elsewhere: qpair).
 *
 *   submit ─▶ link_tx.c: capsules, H2CData ─▶ send_queue.c ─▶ socket
 *   done() ◀─ link_rx.c: completions, C2HData, R2T ◀─ stream.c ◀─ socket      link.c: start and end */
#ifndef WEFT_TRANSPORT_TCP_LINK_H
#define WEFT_TRANSPORT_TCP_LINK_H

#include "transport/link.h"
#include "transport/tcp/stream.h"

enum {
	TCP_LINK_RX_BYTES = 64 << 10, /* received and not yet parsed, at most */
	TCP_LINK_RX_LARGE = 16 << 10, /* a payload whose copy costs more than a call */
	TCP_LINK_RX_AHEAD = 256, /* received behind such a one: a header, with digest and PAD */
	TCP_LINK_RX_IOVS = 16,   /* of a command's memory that one receive fills */
	TCP_LINK_ADMIN_CAPSULE = 8 << 10,
};

/* Data that the controller asked for. */
struct tcp_link_r2t {
	uint16_t ttag;
	uint32_t left;
};

/* A PDU on its way out: the part that is not on the send queue yet. */
struct tcp_link_pdu {
	struct tcp_tx tx;
	bool header_out;
	struct weft_iov_iter at;
	size_t left;
	uint32_t ddgst;
};

struct tcp_link_slot {
	struct weft_link_slot slot; /* first */

	/* The capsule, and the data in it. */
	struct tcp_link_pdu capsule;
	struct {
		struct nvme_tcp_cmd pdu;
		uint32_t hdgst;
	} capsule_pdu;

	/* H2CData, one PDU at a time. R2Ts have asked for @asked bytes of the command. One more R2T
	 * than we allow may come before we have seen the last one's data leave. */
	struct tcp_link_pdu h2c;
	struct {
		struct nvme_tcp_data pdu;
		uint32_t hdgst;
	} h2c_pdu;
	struct tcp_link_r2t r2ts[2];
	uint8_t nr2ts;
	uint32_t asked;
	struct weft_iov_iter unsent;

	uint8_t sending; /* items of this slot on the send queue */
	bool answered;   /* done() as soon as there are none */
};
static_assert(offsetof(struct tcp_link_slot, capsule_pdu.hdgst) ==
		      offsetof(struct tcp_link_slot, capsule_pdu) + sizeof(struct nvme_tcp_cmd),
	      "no gap before the digest");
static_assert(offsetof(struct tcp_link_slot, h2c_pdu.hdgst) ==
		      offsetof(struct tcp_link_slot, h2c_pdu) + sizeof(struct nvme_tcp_data),
	      "no gap before the digest");

struct tcp_link {
	struct weft_link link; /* first */
	struct tcp_stream stream;
	char why[64]; /* a fault with a number in it */
	uint8_t cpda;
	uint32_t h2c_max;

	struct tcp_tx icreq_tx;
	struct nvme_tcp_icreq icreq;

	struct iovec rx_iov[TCP_LINK_RX_IOVS + 1];
	bool large_payloads; /* large payloads come */
	struct {             /* C2HData under way */
		struct tcp_link_slot *slot;
		bool success;
	} payload;

	struct weft_timer setup;
};

static inline struct tcp_link *tcp_link_of(struct weft_link *link)
{
	return container_of(link, struct tcp_link, link);
}

static inline struct tcp_link *tcp_link_of_stream(struct tcp_stream *stream)
{
	return container_of(stream, struct tcp_link, stream);
}

static inline struct tcp_link_slot *tcp_link_slot_of(struct weft_link_slot *slot)
{
	return container_of(slot, struct tcp_link_slot, slot);
}

extern const struct weft_link_transport weft_tcp_link;

/* link.c */
void tcp_link_ready(struct tcp_link *tl); /* ICResp was accepted */

/* link_rx.c */
void tcp_link_rx_init(struct tcp_link *tl);
uint32_t tcp_link_make_room(struct tcp_stream *stream);
void tcp_link_parse(struct tcp_stream *stream); /* as far as it goes, then receives */

/* link_tx.c */
void tcp_link_submit(struct weft_link *link, struct weft_link_slot *slot);
/* -EPROTO with @fault filled when the controller must not ask for this. */
int tcp_link_on_r2t(struct tcp_link *tl, const struct nvme_tcp_data *r2t,
		    struct nvme_tcp_fault *fault);
/* The completion has come: done(), now or when nothing of it is being sent any more. */
void tcp_link_answered(struct tcp_link *tl, struct tcp_link_slot *slot);

#endif
