/* send_queue.h - PDUs that wait to be sent on a socket, for both sides of NVMe/TCP. */
#ifndef WEFT_TRANSPORT_TCP_SEND_QUEUE_H
#define WEFT_TRANSPORT_TCP_SEND_QUEUE_H

#include "proto/tcp.h"
#include "reactor/reactor.h"

enum {
	TCP_SEND_QUEUE_IOVS = 128,
	TCP_TX_PARTS = 4, /* room that fill() always finds */
};

/* An item of the send queue. Its owner keeps it in place until sent(). */
struct tcp_tx {
	struct weft_list link;
	/* Puts at most @room parts of it into @iov; returns how many. */
	int (*fill)(struct tcp_tx *tx, struct iovec *iov, int room);
	void (*sent)(struct tcp_tx *tx); /* also when the connection has ended */
	bool more;                       /* fill() had more than @room: it is called again */
	bool shared;                     /* others write to its data: see hold_shared() */
	int16_t end;                     /* the queue's: where its parts end in sendq->iov */
};

struct tcp_send_queue {
	struct weft_sock *sock;
	/* The owner's. The socket refused: -errno. */
	void (*failed)(struct tcp_send_queue *sendq, int rc);
	void (*all_sent)(struct tcp_send_queue *sendq); /* nothing is left to send; may be NULL */
	void (*send_stopped)(
		struct tcp_send_queue *sendq); /* stopped, and the last send has ended */
	/* Around every send of a @shared item: from hold_shared() to release_shared() nobody writes
	 * to its data. false: somebody does, try later. May be NULL if no item is shared. */
	bool (*hold_shared)(struct tcp_tx *tx);
	void (*release_shared)(struct tcp_tx *tx);

	struct weft_op op;
	struct weft_retry flush;
	struct weft_list waiting, sending;
	struct iovec iov[TCP_SEND_QUEUE_IOVS];
	int at, count; /* parts sent, parts in all */
	int offered;   /* end of the send under way; items that end before it are held */
	bool shared;   /* some items are */
	bool busy, stopping;
	uint64_t send_start_ns; /* when the parts in @iov were first sent */
};

void tcp_send_queue_init(struct tcp_send_queue *sendq, struct weft_sock *sock);
void tcp_send_queue_push(struct tcp_send_queue *sendq, struct tcp_tx *tx);
/* Sends, at the end of this turn, if there is something to send. */
void tcp_send_queue_flush_soon(struct tcp_send_queue *sendq);
/* Have all parts of @tx, which is on @sending, left? */
static inline bool tcp_send_queue_is_sent(const struct tcp_send_queue *sendq,
					  const struct tcp_tx *tx)
{
	return tx->end <= sendq->at;
}
/* For release_shared(), while not all is sent: the part that is sent next. */
const struct iovec *tcp_send_queue_next_part(const struct tcp_send_queue *sendq);
/* The first @len bytes of that part come from @at instead. It is not the first part of its
 * tcp_tx. */
void tcp_send_queue_replace_part(struct tcp_send_queue *sendq, void *at, size_t len);
/* Everything has been sent. */
bool tcp_send_queue_idle(const struct tcp_send_queue *sendq);
/* Drops the items that are not being sent yet; their sent() is called. */
void tcp_send_queue_drop_unsent(struct tcp_send_queue *sendq);
/* Nothing more is sent; the socket has been shut down. */
void tcp_send_queue_stop(struct tcp_send_queue *sendq);
/* After send_stopped(): calls sent() of all items that are left. */
void tcp_send_queue_clear(struct tcp_send_queue *sendq);

/* Flags, and the header's digest behind it, where they were agreed upon. */
void tcp_set_header_digest(const struct nvme_tcp_rules *rules, struct nvme_tcp_hdr *hdr,
			   uint32_t *hdgst);
static inline uint32_t tcp_header_digest_len(const struct nvme_tcp_rules *rules)
{
	return rules->hdgst ? NVME_TCP_DIGEST : 0;
}
/* Where data starts in a PDU with @header bytes, padded as the peer asked (CPDA, HPDA). */
uint32_t tcp_data_offset(uint32_t header, uint8_t pda);
extern const char tcp_zeroes[128]; /* PAD, up to the largest alignment */

#endif
