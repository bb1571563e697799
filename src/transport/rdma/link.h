/* link.h - inside NVMe/RDMA, the host's side: the link (elsewhere: qpair).
 *
 *   submit ─▶ link_data.c: where the data is ─▶ link_io.c: SEND ─▶ adapter
 *   done() ◀─ link_io.c: RECV ◀─ adapter                     link.c, link_setup.c: start and end */
#ifndef WEFT_TRANSPORT_RDMA_LINK_H
#define WEFT_TRANSPORT_RDMA_LINK_H

#include "proto/rdma.h"
#include "transport/bufs.h"
#include "transport/link.h"
#include "transport/rdma/cq.h"
#include "transport/rdma/dev.h"
#include "transport/rdma/async_event.h"

enum {
	RDMA_LINK_BLOCKS = 16, /* descriptors of one command */
	RDMA_LINK_SGES = 4,    /* of one capsule: the command, and data in up to three pieces */
	RDMA_LINK_BUFS_DIVISOR = 2,
	RDMA_LINK_RECEIVES_MIN = 32, /* a controller may size its own queue by them: Linux's does */
};

/* A command as it travels, with room for its descriptors. */
struct rdma_link_capsule {
	union nvme_sqe sqe;
	struct nvme_keyed_sgl blocks[RDMA_LINK_BLOCKS];
};

enum rdma_slot_state {
	RDMA_SLOT_FREE,
	RDMA_SLOT_PREPARING, /* its data is looked for, or waits for a buffer; or it waits to be sent */
	RDMA_SLOT_SENDING,  /* the adapter has the SEND */
	RDMA_SLOT_SENT,     /* … and completed it */
	RDMA_SLOT_ANSWERED, /* the completion is here before that of the SEND */
};

struct rdma_link_slot {
	struct weft_link_slot slot; /* first */
	struct weft_list link;      /* rl->ready */
	struct rdma_link_capsule *capsule;
	uint32_t capsule_len;
	struct ibv_sge sge[RDMA_LINK_SGES]; /* what is sent */
	int nsge;
	enum rdma_slot_state state;

	/* Data in memory without an MR goes through a bounce buffer. */
	struct weft_pool *pool;
	char *bounce; /* NULL: none */
	struct weft_pool_waiter waiter;
};

enum rdma_link_state {
	RDMA_LINK_ADDRESS, /* looking for the adapter */
	RDMA_LINK_ROUTE,
	RDMA_LINK_CONNECTING,
	RDMA_LINK_OPEN,
	RDMA_LINK_CLOSING, /* the queue pair is gone; descriptors are being forgotten */
	RDMA_LINK_CLOSED,
};

struct rdma_link {
	struct weft_link link; /* first */
	enum rdma_link_state state;
	struct weft_timer timer; /* set-up */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rdma_watch watch;
	bool watching;
	bool opened;
	struct rdma_dev *dev;
	struct rdma_async_subscriber async;
	bool async_open;
	struct rdma_mr_cache mrs;
	struct rdma_cq cq;
	bool has_cq;
	struct rdma_async_events qp_events, cq_events;

	/* What the adapter reads commands from and writes completions to. */
	char *pages;
	size_t pages_size;
	struct ibv_mr *mr;
	struct nvme_cqe *cqes;
	uint32_t receives; /* of as many completions */

	struct weft_list ready;   /* slots to be sent at the end of the turn */
	struct weft_list refused; /* slots whose data the adapter cannot reach */
	struct weft_task flush;
	struct weft_bufs bufs;
	struct weft_task serve_buffer_waiters;
	uint32_t sges;       /* that a send may have */
	uint32_t inline_max; /* bytes that the adapter takes inline with the work request */
};

static inline struct rdma_link *rdma_link_of(struct weft_link *link)
{
	return container_of(link, struct rdma_link, link);
}

static inline struct rdma_link_slot *rdma_link_slot_of(struct weft_link_slot *slot)
{
	return container_of(slot, struct rdma_link_slot, slot);
}

extern const struct weft_link_transport weft_rdma_link;

/* link.c */
void rdma_link_enter(struct rdma_link *rl, enum rdma_link_state state);

/* link_setup.c */
/* If it fails at once, closed() follows as well. */
void rdma_link_resolve_addr(struct rdma_link *rl);
void rdma_link_cm_event(struct rdma_link *rl, const struct rdma_cm_event *event);

/* link_io.c */
void rdma_link_io_init(struct rdma_link *rl);
int rdma_link_post_receives(struct rdma_link *rl);
void rdma_link_submit(struct weft_link *link, struct weft_link_slot *slot);
void rdma_link_wc_done(struct rdma_cq *cq, const struct ibv_wc *wc);
/* The slot will complete with a data transfer error, later in this turn. */
void rdma_link_refuse(struct rdma_link *rl, struct rdma_link_slot *rs);
/* The slot's command and data are in place: sends it at the end of the turn. */
void rdma_link_send(struct rdma_link *rl, struct rdma_link_slot *rs);

/* link_data.c */
/* Finds the MRs of the data, or a bounce buffer, then calls rdma_link_send(). */
void rdma_link_map_data(struct rdma_link *rl, struct rdma_link_slot *rs);
/* The completion is here: copies data from the bounce buffer, if the command succeeded. */
void rdma_link_unmap_data(struct rdma_link *rl, struct rdma_link_slot *rs);
/* Puts the bounce buffer back, or ends the wait for one. */
void rdma_link_put_buffer(struct rdma_link *rl, struct rdma_link_slot *rs);

#endif
