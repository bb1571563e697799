/* internal.h - what the parts of the fabric know of each other.
 *
 * The public structs of libibverbs and librdmacm come first in ours. One mutex guards everything;
 * functions declared here, but for those that say otherwise, are called with it held. */
#ifndef WEFT_TESTS_FABRIC_INTERNAL_H
#define WEFT_TESTS_FABRIC_INTERNAL_H

#include <errno.h>
#include <infiniband/sa.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "fabric/fabric.h"

enum {
	FABRIC_DEVICES = 32,   /* those that were removed count as well */
	FABRIC_DATA_MAX = 255, /* private data */
	FABRIC_REJ_CONSUMER = 28,
	FABRIC_REJ_NO_SERVICE = 8,
	FABRIC_RNR_FOREVER = 7,
};

/* A queue behind a descriptor that polls readable while something is in it. */
struct fabric_fifo {
	int fd;
	struct weft_list items;
};

int fabric_fifo_open(struct fabric_fifo *fifo);
void fabric_fifo_close(struct fabric_fifo *fifo);
void fabric_fifo_push(struct fabric_fifo *fifo, struct weft_list *item);
void fabric_fifo_remove(struct fabric_fifo *fifo, struct weft_list *item);
/* The first item; waits for one unless the descriptor is non-blocking. NULL: EAGAIN. */
struct weft_list *fabric_fifo_take(struct fabric_fifo *fifo);

struct fabric_pd {
	struct ibv_pd pub;
	unsigned users;
};

struct fabric_dev {
	struct ibv_device dev;
	struct ibv_context ctx;
	struct fabric_device conf;
	struct fabric_fifo async;
	struct fabric_pd pd; /* what librdmacm gives an id */
	bool iwarp, removed;
	unsigned srqs;
};

struct fabric_async_event {
	struct weft_list link;
	struct ibv_async_event event;
};

struct fabric_mr {
	struct ibv_mr pub;
	struct weft_list link;
	uint64_t base; /* the address that requests name */
	char *at;      /* where that is */
	int access;
	bool invalid; /* by SEND_WITH_INV */
	void *map;    /* of a dma-buf */
	size_t map_size;
};

struct fabric_channel {
	struct rdma_event_channel pub;
	struct fabric_fifo events;
	unsigned ids;
};

struct fabric_comp_channel {
	struct ibv_comp_channel pub;
	struct fabric_fifo events;
};

struct fabric_cq_event {
	struct weft_list link;
	struct fabric_cq *cq;
};

struct fabric_cqe {
	struct ibv_wc wc;
	uint64_t slot; /* of the send queue; 0: a receive */
};

struct fabric_cq {
	struct ibv_cq pub;
	struct fabric_cqe *ring;
	unsigned first, count;
	bool armed, solicited_only;
	unsigned users, unacked;
};

struct fabric_recv {
	struct weft_list link;
	struct ibv_recv_wr wr;
	struct ibv_sge sge[];
};

struct fabric_rq {
	struct weft_list recvs;
	unsigned count, max, max_sge;
};

struct fabric_srq {
	struct ibv_srq pub;
	struct fabric_rq rq;
	unsigned users;
};

struct fabric_send {
	struct weft_list link;
	struct ibv_send_wr wr;
	uint64_t slot, serial;
	uint32_t len;
	bool met_rnr;
	char *inlined;
	struct ibv_sge sge[];
};

struct fabric_qp {
	struct ibv_qp pub;
	struct weft_list link;
	struct fabric_dev *dev;
	struct fabric_id *id;
	struct ibv_qp_cap cap;
	bool sig_all;
	struct fabric_rq rq;
	struct weft_list sends;
	uint64_t posted, freed; /* slots of the send queue */
	struct fabric_qp *peer;
	uint32_t peer_num;
	enum ibv_mtu path_mtu;
	uint8_t responder_resources, initiator_depth, retries, rnr_retries, rnr_met;
	bool cut;
	unsigned hold;
	enum ibv_wc_status fail_send, fail_recv;
	struct fabric_rq taken; /* of the SRQ's, ahead of what they are for */
	unsigned unacked_async;
	pthread_t async_taker; /* of the last one */
};

enum fabric_id_state {
	ID_IDLE,
	ID_BOUND,
	ID_ADDR_QUERY,
	ID_ADDR_RESOLVED,
	ID_ROUTE_QUERY,
	ID_ROUTE_RESOLVED,
	ID_CONNECTING,
	ID_LISTENING,
	ID_REQUESTED, /* a peer connects to it, and it has not answered */
	ID_ACCEPTED,  /* it has; its peer does not know yet */
	ID_CONNECTED,
	ID_OVER,
};

struct fabric_id {
	struct rdma_cm_id pub;
	struct weft_list link;
	struct fabric_dev *dev; /* known before pub.verbs tells */
	enum fabric_id_state state;
	struct fabric_id *peer;
	bool passive, born;    /* born: its CONNECT_REQUEST was taken */
	bool over_told;        /* DISCONNECTED was queued */
	bool cut;              /* its peer hears nothing of it */
	int backlog, requests; /* of a listener; those not taken */
	unsigned unacked;
	uint8_t tos, ack_timeout;
	bool afonly, reuse;
	struct rdma_conn_param param; /* of connect() */
	struct ibv_sa_path_rec path;
};

struct fabric_cm_event {
	struct weft_list link;
	struct rdma_cm_event pub;
	struct fabric_id *owner; /* whom it counts for */
	struct fabric_id *id;    /* whom it is about */
	bool injected;
	char data[FABRIC_DATA_MAX + 1];
};

/* fabric.c */
extern struct fabric_counts fabric_count;
extern struct weft_list fabric_qps, fabric_ids, fabric_mrs;
extern bool fabric_is_manual;
extern unsigned fabric_hold_all;
extern pthread_mutex_t fabric_mutex;

int fabric_lock(void); /* not held */
void fabric_unlock(int *locked);
#define FABRIC_LOCKED _cleanup_(fabric_unlock) __attribute__((unused)) int locked = fabric_lock()

/* The error that the next call of @entry is to fail with; 0: none. */
int fabric_fault(const char *entry);
#define FABRIC_FAULT_RDMA(entry)              \
	do {                                  \
		errno = fabric_fault(#entry); \
		if (errno)                    \
			return -1;            \
	} while (0)
#define FABRIC_FAULT_NULL(entry)              \
	do {                                  \
		errno = fabric_fault(#entry); \
		if (errno)                    \
			return NULL;          \
	} while (0)
#define FABRIC_FAULT_IBV(entry)                    \
	do {                                       \
		int fault_ = fabric_fault(#entry); \
		if (fault_)                        \
			return fault_;             \
	} while (0)

void fabric_misuse(const char *what, ...) __attribute__((format(printf, 1, 2)));
void *fabric_new(size_t size); /* zeroed; aborts rather than fail */
uint32_t fabric_number(void);  /* never the same twice */

/* device.c */
void fabric_devices_begin(void);
void fabric_devices_end(void);
struct fabric_dev *fabric_dev_of(struct ibv_context *ctx);

/* async.c */
void fabric_async_push(struct fabric_dev *dev, struct ibv_async_event event);
void fabric_async_forget(struct fabric_dev *dev, const void *thing);
void fabric_async_wait(struct fabric_qp *qp); /* until nobody has an event of it in hand */

/* addr.c */
void fabric_addrs_begin(void);
bool fabric_addr_any(const struct sockaddr *addr);
bool fabric_addr_same(const struct sockaddr *a, const struct sockaddr *b); /* ports aside */
uint16_t fabric_addr_port(const struct sockaddr *addr);
void fabric_addr_set_port(struct sockaddr *addr, uint16_t port);
size_t fabric_addr_size(const struct sockaddr *addr);
void fabric_addr_gid(const struct sockaddr *addr, union ibv_gid *gid);
struct fabric_dev *fabric_addr_dev(const struct sockaddr *addr);
enum rdma_cm_event_type fabric_addr_fate(const struct sockaddr *addr, int *status);

/* mem.c: the memory that @pd has there, with these rights, under an lkey or (@remote) an
 * rkey; NULL: it has none. */
char *fabric_mem_at(struct ibv_pd *pd, bool remote, uint32_t key, uint64_t addr, uint32_t len,
		    int access);
bool fabric_mem_invalidate(struct ibv_pd *pd, uint32_t rkey);

/* cq.c */
void fabric_cq_push(struct ibv_cq *cq, const struct fabric_cqe *cqe, bool solicited);
void fabric_cq_forget(struct ibv_cq *cq, uint32_t qp_num);

/* rq.c */
int fabric_rq_post(struct fabric_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct fabric_rq *fabric_rq_of(struct fabric_qp *qp);
struct fabric_recv *fabric_rq_pop(struct fabric_rq *rq);

/* qp.c */
static inline struct fabric_qp *fabric_qp_in(struct ibv_qp *qp)
{
	return container_of(qp, struct fabric_qp, pub);
}
void fabric_qp_error(struct fabric_qp *qp); /* to ERR, everything flushed */
void fabric_qp_connected(struct fabric_qp *qp);
void fabric_qp_send_done(struct fabric_qp *qp, struct fabric_send *send, enum ibv_wc_status status);
void fabric_qp_recv_done(struct fabric_qp *qp, struct fabric_recv *recv, struct ibv_wc wc,
			 bool solicited);

/* transfer.c: whatever can move, moves. */
void fabric_progress(void);

/* event.c */
struct fabric_cm_event *fabric_event_new(struct fabric_id *id, enum rdma_cm_event_type type,
					 int status);
void fabric_event_fill(struct fabric_cm_event *event, const void *data, uint8_t size,
		       uint8_t padded);
void fabric_event_push(struct fabric_cm_event *event);
void fabric_event_tell(struct fabric_id *id, enum rdma_cm_event_type type, int status);
void fabric_events_drop(struct fabric_id *id);
void fabric_events_move(struct fabric_id *id, struct rdma_event_channel *to);
void fabric_events_begin(void);

/* cm.c, route.c, conn.c, disconnect.c */
static inline struct fabric_id *fabric_id_in(struct rdma_cm_id *id)
{
	return container_of(id, struct fabric_id, pub);
}
struct fabric_id *fabric_id_new(struct rdma_event_channel *channel, void *context,
				enum rdma_port_space ps);
void fabric_id_bind_dev(struct fabric_id *id);
struct fabric_id *fabric_listener(const struct sockaddr *addr); /* who listens there */
void fabric_id_free(struct fabric_id *id);
void fabric_conn_refused(struct fabric_id *id, int ib_status, int iw_status);
void fabric_conn_established(struct fabric_id *id); /* its ESTABLISHED was taken */
void fabric_conn_end(struct fabric_id *id);         /* tells both ends, once */
void fabric_conn_refuse(struct fabric_id *id, const void *data, uint8_t size);

#endif
