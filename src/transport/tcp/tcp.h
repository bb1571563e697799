/* tcp.h - inside NVMe/TCP, the target's side: the connection, how it receives and how it sends.
 *
 *   socket ─▶ stream.c: PDUs ─▶ pdus.c: requests ─▶ park.c: some wait    conn.c: start and end
 *              └ rx.c: where to, when; into chunks.c
 *   socket ◀─ send_queue.c: few sends ◀─ tx.c: replies, r2t.c: R2Ts      takeover.c: freeze, export */
#ifndef WEFT_TRANSPORT_TCP_TCP_H
#define WEFT_TRANSPORT_TCP_TCP_H

#include "transport/tcp/stream.h"
#include "transport/transport.h"

enum {
	TCP_CHUNK_BYTES = 64 << 10,
	TCP_SPARE_CHUNKS = 1024,           /* chunks of a reactor beside those of its connections */
	TCP_ADMIN_CAPSULE_BYTES = 8 << 10, /* fixed by the transport, for fabrics and admin */
	TCP_CAPSULE_BYTES = 16 << 10,      /* data inside an I/O command capsule */
	TCP_R2TS_MAX = 4,                  /* outstanding per command */
	TCP_R2T_MIN = 64 << 10,            /* do not split a transfer finer than this */
	TCP_OWED_MAX = 1 << 20,            /* while a host owes that much, no more R2Ts are sent */
	TCP_COPIES_MAX = 768 << 10, /* while that much is copied and not sent, no more is copied */
	TCP_SLOT_WAIT_MS = 10000,   /* for a host that sent more commands than its queue holds */
	TCP_SETUP_MS = 30000,       /* from accept to a successful Connect */
};

/* A stream receives into a chunk. Requests with in-capsule data pin it. */
struct tcp_chunk {
	uint32_t refs;
	char data[];
};
#define TCP_CHUNK_DATA (TCP_CHUNK_BYTES - sizeof(struct tcp_chunk))

/* What the connections of a reactor share: the chunks, see chunks.c. */
struct tcp_poll_group {
	struct weft_pool chunks;
	uint32_t spare_chunks;          /* in use, beside one for each connection */
	struct weft_list quota_waiters; /* weft_rx_part.link: below quota, take turns */
	char sink[4096];                /* for what nobody will read */
};

/* The data that an R2T asked for and that has not come yet. */
struct tcp_r2t {
	uint32_t offset, left;
};

/* Headers as they are sent, each with the digest that may follow it. */
struct tcp_data_pdu {
	struct nvme_tcp_data pdu;
	uint32_t hdgst;
};
static_assert(offsetof(struct tcp_data_pdu, hdgst) == sizeof(struct nvme_tcp_data), "no gap");

/* What follows the data: its digest and the completion. */
struct tcp_tail {
	uint32_t unused;
	uint32_t ddgst;
	struct nvme_tcp_resp pdu;
	uint32_t hdgst;
};
static_assert(offsetof(struct tcp_tail, pdu) == 8, "no gap behind ddgst");
static_assert(offsetof(struct tcp_tail, hdgst) == 8 + sizeof(struct nvme_tcp_resp), "no gap");

struct tcp_req {
	struct weft_req req;     /* first: the rest of the code knows only this */
	struct tcp_chunk *chunk; /* where in-capsule data lies */
	uint32_t owed;           /* bytes that the host still has to send for R2Ts */
	uint32_t copied;         /* bytes of data that are a copy, and in resp.ddgst already */
	bool r2t_sending, reply_sent;
	bool parked;   /* on conn->parked */
	bool unparked; /* it was */
	uint8_t nr2ts;
	bool digest_failed;

	/* The reply. */
	struct tcp_tx reply_tx;
	struct tcp_data_pdu c2h;
	struct tcp_tail resp;

	/* Data from the host. */
	struct tcp_r2t r2ts[TCP_R2TS_MAX];
	uint64_t asked_ns; /* when they were sent */
	struct tcp_tx r2t_tx;
	struct tcp_data_pdu r2t_pdus[TCP_R2TS_MAX];
};
static_assert(offsetof(struct tcp_req, reply_tx) == 256, "a read's answer is one cache line");

enum tcp_rx_state {                   /* see rx.c */
		    TCP_RX_NEW,       /* nothing was received yet */
		    TCP_RX_RECEIVING, /* from the socket; in no other state a receive is under way */
		    TCP_RX_WAITS_SLOT,  /* the command at the head finds none */
		    TCP_RX_WAITS_CHUNK, /* commands pin its own, and no spare one is there for it */
		    TCP_RX_FROZEN,      /* as its group, and no command needs what may come */
		    TCP_RX_RESUMING,    /* it parses at the end of this turn, then receives */
		    TCP_RX_STOPPED,     /* the socket is closed */
};

struct tcp_conn {
	struct weft_qpair qp; /* first */
	struct tcp_stream stream;
	struct tcp_poll_group *poll_group;
	uint8_t hpda;
	uint32_t maxr2t; /* R2Ts that the host takes per command */

	/* Receiving: what every command touches comes first. */
	struct iovec rx_iov[2];
	struct tcp_chunk *chunk; /* stream.buf is its data */
	uint32_t nchunks;        /* that it and its commands have */
	enum tcp_rx_state rx_state;
	uint32_t owed;   /* by the host for all R2Ts */
	uint32_t copies; /* bytes of replies on their way that are copies */
	struct {         /* bytes from a takeover, to be parsed before the socket's */
		char *bytes;
		uint32_t at, end;
	} replay;
	struct weft_task resume;
	struct weft_list chunk_wait; /* rx_part->waiting */
	struct {                     /* H2CData under way */
		struct tcp_req *req;
		struct tcp_r2t *r2t;
		struct iovec memory;
	} payload;
	struct weft_list parked; /* weft_req.link: do not run yet, in their order */

	/* Sending. */
	char partial_block[WEFT_BLOCK_MAX]; /* the rest of a block that was sent in part */
	struct tcp_tx icresp_tx;
	struct nvme_tcp_icresp icresp;

	struct weft_timer timer; /* until Connect: set-up; then a wait for a slot */
	struct weft_task finish_close;
};

static inline struct tcp_conn *tcp_conn_of_stream(struct tcp_stream *stream)
{
	return container_of(stream, struct tcp_conn, stream);
}

static inline struct tcp_conn *tcp_conn_of(struct weft_qpair *qp)
{
	return container_of(qp, struct tcp_conn, qp);
}

static inline struct tcp_req *tcp_req_of(struct weft_req *req)
{
	return container_of(req, struct tcp_req, req);
}

extern const struct weft_transport weft_tcp;

/* conn.c */
/* Takes over the accepted socket @fd on the group's reactor; closes it on failure. */
int tcp_accept(struct weft_poll_group *group, int fd, const struct weft_qpair_ops *ops);
/* @conn is receiving nothing yet; @fd is its own on 0. */
int tcp_conn_new(struct tcp_conn **conn, struct weft_poll_group *group, int fd,
		 const struct weft_qpair_ops *ops);
void tcp_setup_timer_start(struct tcp_conn *conn); /* for a successful Connect */

/* rx.c */
void tcp_rx_init(struct tcp_conn *conn);
void tcp_rx_start(struct tcp_conn *conn);
uint32_t tcp_rx_make_room(struct tcp_stream *stream);
void tcp_rx_parse(struct tcp_stream *stream); /* as far as it goes, then receives */
void tcp_rx_stop(struct tcp_conn *conn);      /* nothing is being received */
void tcp_rx_freeze(struct tcp_conn *conn);    /* the group is frozen: ends a receive that may end */
void tcp_rx_thaw(struct tcp_conn *conn);
/* The one function that changes the receiver's state. */
void tcp_rx_enter(struct tcp_conn *conn, enum tcp_rx_state state);
void tcp_rx_resume_soon(struct tcp_conn *conn); /* what it waited for is here */

/* chunks.c */
/* conn->chunk becomes a fresh one, with the bytes that are not parsed; false: there is none. */
bool tcp_chunk_take(struct tcp_conn *conn);
/* Makes room in conn->chunk; false: commands pin it. */
bool tcp_chunk_compact(struct tcp_conn *conn);
void tcp_chunk_wait(struct tcp_conn *conn); /* until it has room: tcp_rx_resume_soon() */
void tcp_chunk_cancel_wait(struct tcp_conn *conn);
void tcp_chunk_recheck(struct tcp_conn *conn); /* the commands that pin it may have ended */
void tcp_chunk_put(struct tcp_conn *conn, struct tcp_chunk **chunk);
struct tcp_poll_group *tcp_poll_group_of(const struct weft_poll_group *group);
int tcp_poll_group_create(struct weft_poll_group *group, uint32_t qpairs_max);
void tcp_poll_group_destroy(struct weft_poll_group *group);
bool tcp_has_chunk_waiters(const struct weft_poll_group *group);
void tcp_serve_chunk_waiters(struct weft_poll_group *group); /* gives them spare chunks */

/* pdus.c */
/* Handles a PDU. false: no slot is free for a command, which stays where it is. */
bool tcp_handle_pdu(struct tcp_stream *stream, uint8_t type, const char *pdu,
		    const struct nvme_tcp_shape *shape);
uint16_t tcp_check_sgl(struct weft_req *req, uint32_t len);
uint32_t tcp_sgl_len(struct weft_req *req);

/* park.c */
bool tcp_must_park(const struct tcp_conn *conn, const struct tcp_req *treq);
void tcp_park(struct tcp_conn *conn, struct tcp_req *treq);
void tcp_run_parked(struct tcp_conn *conn);    /* as far as they may */
void tcp_refuse_parked(struct tcp_conn *conn); /* replies to them without running them */

/* takeover.c */
void tcp_freeze(struct weft_qpair *qp);
const char *tcp_busy_reason(struct weft_qpair *qp);
int tcp_export(struct weft_qpair *qp, struct weft_qpair_state *state);
int tcp_import(struct weft_qpair **qp, struct weft_poll_group *group,
	       struct weft_qpair_state *state, const struct weft_qpair_ops *ops);
void tcp_thaw(struct weft_qpair *qp);

/* listen.c */
int tcp_listen(struct weft_listener **l, struct weft_reactor *control,
	       const struct sockaddr_storage *addr, const struct weft_listener_ops *ops, void *user,
	       struct weft_err *err);
void tcp_unlisten(struct weft_listener *l);
void tcp_listener_pause(struct weft_listener *l);
void tcp_listener_resume(struct weft_listener *l);
int tcp_listener_fd(const struct weft_listener *l);
int tcp_listener_import(struct weft_listener **l, struct weft_reactor *control, int fd,
			const struct weft_listener_ops *ops, void *user, struct weft_err *err);

/* r2t.c */
/* Parts that together are @len bytes, at most @most; returns how many. */
uint32_t tcp_r2t_split(struct tcp_r2t *r2ts, uint32_t most, uint32_t len);
void tcp_fetch(struct weft_req *req, uint32_t len);
bool tcp_abort_fetch(struct weft_req *req);
int tcp_r2t_match(struct tcp_conn *conn, const struct nvme_tcp_data *pdu,
		  struct nvme_tcp_fault *fault);                  /* sets conn->payload */
void tcp_r2t_received(struct tcp_stream *stream, bool digest_ok); /* conn->payload is complete */

/* tx.c */
void tcp_tx_init(struct tcp_conn *conn);
void tcp_copy(struct weft_req *req, const void *from);
void tcp_reply(struct weft_req *req);
void tcp_close_when_sent(struct weft_qpair *qp);
void tcp_req_done(struct tcp_req *treq); /* releases the slot unless something still holds it */

#endif
