/* rdma.h - inside NVMe/RDMA, the target's side.
 *
 *   listen.c: control reactor ──request──▶ poll_group.c: pollers by adapter ─▶ conn.c … close.c
 *                                            └▶ poller.c: completion queues, receives (recvs.c),
 *                                                         MR cache (mr_cache.c)
 *
 *   receive ─▶ rx.c ─▶ command()     fetch() ─▶ RDMA READ      reply() ─▶ RDMA WRITE, SEND
 *                                    └────── tx.c, post.c: chained, one post per turn ──┘
 *
 * A poller is what the connections of one reactor share on one adapter. The first connection
 * creates it and the last one ends it, so a target without RDMA hosts holds nothing of the adapter
 * but its listeners. */
#ifndef WEFT_TRANSPORT_RDMA_RDMA_H
#define WEFT_TRANSPORT_RDMA_RDMA_H

#include "proto/rdma.h"
#include "proto/status.h"
#include "transport/rdma/cq.h"
#include "transport/rdma/dev.h"
#include "transport/rdma/async_event.h"
#include "transport/transport.h"

enum {
	RDMA_CAPSULE_DATA = 4096, /* inside an I/O command capsule */
	RDMA_COMMAND = 64,
	RDMA_DESCRIPTORS = 16,   /* of one command's SGL */
	RDMA_RECVS_MAX = 4096,   /* capsules that a poller can hold; shared, so that memory does not
				    grow with connections */
	RDMA_CQ_ENTRIES = 32768, /* of one completion queue; then another is created */
	RDMA_WRS_MAX = 4096,     /* sends under way on one queue pair */
	RDMA_BATCH = 64,         /* work requests of one post */
	RDMA_RESP_BUFS_MAX = 16384, /* response buffers in use at a time; see resp_bufs.c */
	RDMA_PRECONNECT_RECVS = 2,  /* that a connection has of its own before Connect */
	RDMA_SETUP_MS = 30000,      /* from request to a successful Connect */
	RDMA_DRAIN_MS = 2000,       /* for an adapter to flush the work requests */
	RDMA_LAST_WQE_MS = 200,     /* for LAST_WQE_REACHED: not all adapters report it */
	RDMA_RNR_TIMER = 12, /* 0.64 ms: when a host should try again that found no receive */
	RDMA_CONN_BUCKETS = 1024,
};

/* A receive: memory for a command capsule, its data on a page of its own. */
struct rdma_recv {
	struct rdma_recvs *owner;
	union nvme_sqe *sqe;
	char *data;
	struct rdma_recv *next;
};

/* Shared by the queue pairs of a poller (SRQ), or of one queue pair where the adapter cannot
 * share. */
struct rdma_recvs {
	struct rdma_mr_cache *mrs;
	struct weft_reactor *reactor;
	struct ibv_srq *srq;
	struct ibv_qp *qp; /* where there is no SRQ */
	struct weft_region *region;
	char *pages;
	uint32_t room, made, held; /* how many may exist, do exist, are held by requests */
	struct rdma_recv *recvs;
	struct rdma_recv *idle; /* to be posted at the end of the turn */
	struct weft_task post;
	struct weft_timer retry_timer; /* the adapter refused some */
	bool failing;                  /* it refused the last time; failed() has been called */
	void (*failed)(struct rdma_recvs *recvs, int rc);
};

/* Response buffers: CQEs that the adapter does not take inline with the work request. */
struct rdma_resp_bufs {
	struct weft_pool pool;
	struct weft_region *region;
};

struct rdma_poller_cq {
	struct weft_list link;
	struct rdma_poller *poller;
	struct rdma_cq cq;
	struct rdma_async_events events;
	uint32_t room; /* entries that no queue pair has claimed */
};

struct rdma_poller {
	struct weft_list link; /* poll group->pollers */
	struct rdma_poll_group *poll_group;
	struct rdma_dev *dev;
	struct rdma_async_subscriber async;
	bool async_open;
	bool broken; /* its connections end, and new ones get another poller */
	struct rdma_mr_cache mrs;
	struct rdma_recvs recvs; /* not used where the adapter cannot share */
	struct rdma_async_events srq_events;
	bool uses_srq;
	uint32_t claimed; /* commands that its connections may send */
	struct rdma_resp_bufs resp_bufs;
	struct weft_list cqs;
	unsigned conns;
	struct rdma_cm_id *last_id; /* of the connection that went last */
	struct rdma_conn *conns_by_qp_num[RDMA_CONN_BUCKETS];
};

/* A reactor's RDMA poll group: from its first connection to its last. */
struct rdma_poll_group {
	struct weft_poll_group *group;
	struct rdma_event_channel *channel;
	struct rdma_watch watch;
	struct weft_list pollers;
	unsigned conns;
};

/* One descriptor of a command's SGL: memory of the host. */
struct rdma_block {
	uint64_t addr;
	uint32_t length, key;
};

struct rdma_req {
	struct weft_req req;    /* first */
	struct weft_list link;  /* conn->fetches or conn->replies: to be posted */
	struct rdma_recv *recv; /* the receive that holds its data; NULL: none */
	uint16_t sgl_status;    /* NVMe status of an invalid SGL; 0: it is valid */
	uint32_t sgl_len;
	uint8_t nblocks;
	bool invalidate; /* the key of the first block, with the reply */
	bool reading;    /* RDMA READs are under way */
	bool held;       /* a guarded reply: nobody writes to its data until it is sent */
	uint8_t wrs;     /* of the chain under way */
	void *resp_buf;  /* its CQE, in poller->resp_bufs; NULL: it went inline */
	struct rdma_block blocks[RDMA_DESCRIPTORS];
};

enum rdma_state {
	RDMA_ACCEPTING,
	RDMA_OPEN,
	RDMA_CLOSING,   /* disconnected; the adapter flushes the work requests */
	RDMA_UNFLUSHED, /* it has not done so within RDMA_DRAIN_MS */
	RDMA_ANSWERING, /* it holds none of our buffers; the user answers the requests that it has */
	RDMA_CLOSED,
	RDMA_AWAIT_LAST_WQE, /* freed by the user; the adapter may still hold shared receives */
};

/* Of the adapter's queue pair. */
enum rdma_qp_state {
	RDMA_QP_NONE,
	RDMA_QP_CREATED,
	RDMA_QP_LAST_WQE, /* it is in error and has no receive any more */
	RDMA_QP_DESTROYED,
};

struct rdma_conn {
	struct weft_qpair qp; /* first */
	struct rdma_poller *poller;
	struct rdma_poller_cq *cq;
	struct rdma_cm_id *id;
	struct rdma_conn *next; /* poller->conns_by_qp_num */
	uint32_t qp_num;        /* of the adapter's queue pair */
	enum rdma_state state;  /* close.c */
	enum rdma_qp_state qp_state;
	struct weft_timer timer; /* set-up, then draining */
	struct weft_task finish_close;
	struct weft_retry flush;
	uint16_t depth;            /* commands that the host may send */
	bool can_inline;           /* the adapter takes completions with their work requests */
	struct rdma_recvs recvs;   /* where the poller has none to share */
	struct weft_list fetches;  /* wait for work requests or for READs to end */
	struct weft_list replies;  /* wait for work requests */
	uint32_t replies_waiting;  /* replies that wait for a buffer first */
	uint32_t wrs_max, wrs;     /* of its send queue: all, free */
	uint32_t reads_max, reads; /* RDMA READs that may be, and are under way */
	uint32_t chains;           /* posted, their last completion not seen */
	uint64_t moved_ns;         /* when one of them was last begun or ended */
	struct rdma_async_events events;
};

static inline struct rdma_conn *rdma_conn_of(struct weft_qpair *qp)
{
	return container_of(qp, struct rdma_conn, qp);
}

static inline struct rdma_req *rdma_req_of(struct weft_req *req)
{
	return container_of(req, struct rdma_req, req);
}

/* A listener's CM event channel. Requests on their way to a reactor still use it. */
struct rdma_cm_channel {
	struct rdma_event_channel *channel;
	atomic_uint refs;
};

/* A connection request on its way from the control reactor to a reactor. */
struct rdma_conn_request {
	struct weft_msg msg;
	struct rdma_cm_channel *channel;
	struct weft_poll_group *group;
	const struct weft_qpair_ops *ops;
	struct rdma_cm_id *id;
	struct nvme_rdma_request request;
	uint8_t initiator_depth;
};

extern const struct weft_transport weft_rdma;

/* listen.c */
int rdma_target_listen(struct weft_listener **l, struct weft_reactor *control,
		       const struct sockaddr_storage *addr, const struct weft_listener_ops *ops,
		       void *user, struct weft_err *err);
void rdma_target_unlisten(struct weft_listener *l);
void rdma_cm_channel_put(struct rdma_cm_channel *channel); /* any thread */
/* Rejects with a reason in the private data. */
void rdma_target_reject(struct rdma_cm_id *id, enum nvme_rdma_status sts);

/* poll_group.c */
/* The reactor's poll group and its poller for @ctx, for one more connection. On -errno the
 * connection is no longer counted in group->nqpairs. */
int rdma_poller_get(struct weft_poll_group *group, struct ibv_context *ctx,
		    struct rdma_poller **poller, struct weft_err *err);
/* The connection is gone but for its id. The last connection's poller ends first, then the id is
 * destroyed and group->nqpairs counts one less: a removed adapter is released with its last id, and
 * nothing may use it then. @id may be NULL. */
void rdma_poller_put(struct rdma_poller *poller, struct rdma_cm_id *id);
/* A poller has ended. */
void rdma_poll_group_poller_gone(struct rdma_poll_group *poll_group);

/* poller.c */
int rdma_poller_create(struct rdma_poll_group *poll_group, struct rdma_dev *dev,
		       struct rdma_poller **out, struct weft_err *err);
void rdma_poller_close(struct rdma_poller *poller); /* takes several turns */
/* A completion queue with @entries to spare, which are the caller's then. */
int rdma_poller_claim_cq(struct rdma_poller *poller, uint32_t entries, struct rdma_poller_cq **cq,
			 struct weft_err *err);
void rdma_poller_add_conn(struct rdma_conn *conn);
void rdma_poller_remove_conn(struct rdma_conn *conn);

/* recvs.c */
/* Shared when @pd is given. */
int rdma_recvs_init(struct rdma_recvs *recvs, struct rdma_mr_cache *mrs, struct weft_reactor *r,
		    uint32_t room, struct ibv_pd *pd, struct weft_err *err);
void rdma_recvs_end(struct rdma_recvs *recvs);
/* Its queue pair takes no more: receives that come back stay idle. */
void rdma_recvs_stop(struct rdma_recvs *recvs);
/* At least @count exist and are posted, as far as there is room. */
int rdma_recvs_grow(struct rdma_recvs *recvs, uint32_t count);
void rdma_recv_put(struct rdma_recv *recv);
/* Posts the idle receives now: before the reply that lets the host send its next command. */
void rdma_recvs_post(struct rdma_recvs *recvs);

/* resp_bufs.c */
int rdma_resp_bufs_init(struct rdma_resp_bufs *resp_bufs);
void rdma_resp_bufs_destroy(struct rdma_resp_bufs *resp_bufs);
/* Copies the CQE to a response buffer and fills in @sge; -ENOMEM: all are in use. */
int rdma_resp_buf_get(struct rdma_poller *poller, struct rdma_req *rreq, struct ibv_sge *sge);
void rdma_resp_buf_put(struct rdma_poller *poller, struct rdma_req *rreq);

/* accept.c */
void rdma_conn_accept(struct weft_msg *msg); /* struct rdma_conn_request */

/* conn.c */
struct rdma_conn *rdma_conn_create(const struct rdma_conn_request *conn_req,
				   struct rdma_poller *poller);
void rdma_conn_cm_event(struct rdma_conn *conn, const struct rdma_cm_event *event);
void rdma_conn_async_event(struct rdma_async_events *events,
			   enum ibv_event_type type); /* of conn->events */
/* A work request failed. */
void rdma_conn_wc_error(struct rdma_conn *conn, const struct ibv_wc *wc);

/* close.c */
void rdma_conn_enter(struct rdma_conn *conn, enum rdma_state state);
void rdma_conn_qp_enter(struct rdma_conn *conn, enum rdma_qp_state state);
void rdma_close_init(struct rdma_conn *conn);
/* Destroys the queue pair, and gives back what it had claimed. */
void rdma_conn_destroy_qp(struct rdma_conn *conn);
/* The queue pair is in error, and the adapter holds no receive of it any more. */
void rdma_conn_last_wqe_reached(struct rdma_conn *conn);
void rdma_finish_close_soon(struct rdma_conn *conn);
void rdma_close(struct weft_qpair *qp);
void rdma_slot_freed(struct weft_qpair *qp);
void rdma_free(struct weft_qpair *qp);

/* rx.c */
void rdma_recv_completed(struct rdma_poller *poller, const struct ibv_wc *wc);
uint16_t rdma_check_sgl(struct weft_req *req, uint32_t len);
uint32_t rdma_sgl_len(struct weft_req *req);
/* Copy or Dataset Management of an admitted host: its range list counts in the tenant's rx
 * quota. */
bool rdma_carries_ranges(const struct weft_req *req);

/* post.c */
/* In a work request's wr_id, beside its request. Receives have none of them. */
enum { RDMA_WR_PART = 1, RDMA_WR_LAST_READ = 3, RDMA_WR_RESPONSE = 5, RDMA_WR_KIND_MASK = 7 };
void rdma_flush(struct weft_task *task); /* conn->flush.task */

/* tx.c */
void rdma_tx_init(struct rdma_conn *conn);
void rdma_fetch(struct weft_req *req, uint32_t len);
void rdma_hold_shared(struct rdma_conn *conn, struct rdma_req *rreq); /* until it has been sent */
bool rdma_abort_fetch(struct weft_req *req);
void rdma_reply(struct weft_req *req);
void rdma_close_when_sent(struct weft_qpair *qp);
void rdma_send_completed(const struct ibv_wc *wc);
/* The queue pair is destroyed: its work requests will not complete any more. */
void rdma_tx_abort_all(struct rdma_conn *conn);

#endif
