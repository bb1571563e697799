/* link.h - inside NVMe/TCP, the host's side.
 *
 *   submit ─▶ link_tx.c: capsules, H2CData ─▶ line.c ─▶ socket
 *   done() ◀─ link_rx.c: completions, C2HData, R2T ◀─ socket          link.c: beginning and end */
#ifndef WEFT_TRANSPORT_TCP_LINK_H
#define WEFT_TRANSPORT_TCP_LINK_H

#include "transport/link.h"
#include "transport/tcp/line.h"

enum {
	LINK_RX_BYTES = 64 << 10, /* received and not yet parsed, at most */
	LINK_RX_BULKY = 16 << 10, /* a payload whose copy costs more than a call */
	LINK_RX_AHEAD = 256,      /* received behind such a one: a header, with digest and PAD */
	LINK_RX_IOVS = 16,        /* of a command's memory that one receive fills */
	LINK_ADMIN_CAPSULE = 8 << 10,
	LINK_LINGER_MS = 500, /* for the controller to read an H2CTermReq */
};

/* A place in a command's memory. */
struct link_cursor {
	const struct iovec *iov;
	size_t skip;
};

/* Fills at most @room parts with the next @len bytes; returns how many, moves the cursor behind
 * them and leaves in @len what did not fit. */
int link_cursor_map(struct link_cursor *cursor, struct iovec *out, int room, uint32_t *len);
void link_cursor_copy_in(struct link_cursor *cursor, const char *from, uint32_t len);
uint32_t link_cursor_crc(struct link_cursor cursor, uint32_t len);

/* Data that the controller asked for. */
struct link_r2t {
	uint16_t ttag;
	uint32_t left;
};

/* A PDU on its way out: what is not yet in the line's hands. */
struct link_out {
	struct tcp_tx tx;
	bool header_out;
	struct link_cursor at;
	uint32_t left;
	uint32_t ddgst;
};

struct link_slot {
	struct weft_slot slot; /* first */

	/* The capsule, and the data in it. */
	struct link_out capsule;
	struct {
		struct nvme_tcp_cmd pdu;
		uint32_t hdgst;
	} capsule_pdu;

	/* H2CData, one PDU at a time. @asked bytes of the command have been asked for by R2Ts. One
	 * more R2T than we allow may come before we have seen the last one's data leave. */
	struct link_out h2c;
	struct {
		struct nvme_tcp_data pdu;
		uint32_t hdgst;
	} h2c_pdu;
	struct link_r2t r2ts[2];
	uint8_t nr2ts;
	uint32_t asked;
	struct link_cursor unsent;

	uint8_t sending; /* items of this slot in the line */
	bool answered;   /* done() as soon as there are none */
};
static_assert(offsetof(struct link_slot, capsule_pdu.hdgst) ==
		      offsetof(struct link_slot, capsule_pdu) + sizeof(struct nvme_tcp_cmd),
	      "no gap before the digest");
static_assert(offsetof(struct link_slot, h2c_pdu.hdgst) ==
		      offsetof(struct link_slot, h2c_pdu) + sizeof(struct nvme_tcp_data),
	      "no gap before the digest");

enum link_state {
	LINK_SETUP, /* connecting, ICReq on its way or unanswered */
	LINK_OPEN,
	LINK_TERMINATING, /* H2CTermReq is on its way: what comes is read and dropped */
	LINK_CLOSING,     /* shut down; operations under way end */
	LINK_CLOSED,
};

struct tcp_link {
	struct weft_link link; /* first */
	struct weft_sock sock;
	enum link_state state;
	struct weft_timer timer; /* set-up, then lingering */
	struct weft_task wrap_up;
	struct nvme_tcp_rules rules;
	char why[64]; /* a fault with a number in it */
	uint8_t cpda;
	uint32_t h2c_max;

	struct tcp_line line;
	struct tcp_tx icreq_tx, term_tx;
	struct nvme_tcp_icreq icreq;
	struct {
		struct nvme_tcp_term pdu;
		char header[NVME_TCP_TERM_DATA_MAX];
	} term;

	/* Receiving: bytes [head, tail) of @buf are received and not parsed. */
	struct weft_op rx_op;
	struct iovec rx_iov[LINK_RX_IOVS + 1];
	bool rx_busy;
	char *buf;
	uint32_t head, tail;
	bool bulky;                     /* large payloads come */
	struct {                        /* C2HData under way */
		struct link_slot *slot; /* NULL: none */
		struct link_cursor start, at;
		uint32_t len, left;
		bool ddgst, success;
	} payload;
};

static inline struct tcp_link *tcp_link_of(struct weft_link *link)
{
	return container_of(link, struct tcp_link, link);
}

static inline struct link_slot *link_slot_of(struct weft_slot *slot)
{
	return container_of(slot, struct link_slot, slot);
}

/* link.c */
/* The controller broke a rule: tells it, then closes. @len bytes of the PDU at fault. */
void link_terminate(struct tcp_link *tl, const void *pdu, uint32_t len,
		    const struct nvme_tcp_fault *fault);
void link_wrap_up_soon(struct tcp_link *tl);
void link_ready(struct tcp_link *tl); /* ICResp was accepted */

/* link_rx.c */
void link_rx_init(struct tcp_link *tl);
void link_rx_start(struct tcp_link *tl);

/* link_tx.c */
void link_submit(struct weft_link *link, struct weft_slot *slot);
/* -EPROTO with @fault filled when the controller must not ask for this. */
int link_r2t(struct tcp_link *tl, const struct nvme_tcp_data *r2t, struct nvme_tcp_fault *fault);
/* The completion has come: done(), now or when nothing of it is being sent any more. */
void link_answered(struct tcp_link *tl, struct link_slot *slot);

#endif
