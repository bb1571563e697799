/* link.h - a link, the host's end of one queue (elsewhere: qpair): commands go, completions come.
 *
 *   open ─▶ ready() ─▶ get slot, fill, submit ══▶ controller ══▶ done(), then the slot is free
 *             └────────── lost, a fault, closed by its user ──▶ closed(): slots in flight are void
 *
 * A link belongs to one reactor. It moves capsules and data and does not interpret commands: its
 * user judges a completion, and decides whether to retry.
 *
 * Invariant: nothing is read from or written to a slot's data after its done(), or after
 * closed(). */
#ifndef WEFT_TRANSPORT_LINK_H
#define WEFT_TRANSPORT_LINK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <weft/host.h>

#include "base/err.h"
#include "base/iov_iter.h"
#include "proto/nvme.h"
#include "reactor/reactor.h"

struct weft_link;

/* One command in flight. */
struct weft_link_slot {
	struct weft_link *link;
	union nvme_sqe cmd;        /* the user's; CID and SGL are the link's */
	struct nvme_cqe cqe;       /* the completion */
	struct weft_iov_iter data; /* where the command's data begins */
	uint32_t data_len;
	uint32_t moved; /* bytes of the data, so far */
	bool corrupt;   /* data came with a wrong digest */
	bool busy;      /* submitted and not done */

	/* The user's. */
	struct weft_list user_link;
	void *user;
	struct iovec scratch_iov; /* for data that is nobody else's */
	char scratch[64];
	uint64_t since_ns;

	struct weft_link_slot *next_free;
};

struct weft_link_ops {
	void (*ready)(struct weft_link *link);
	/* @slot is free again when this returns. */
	void (*done)(struct weft_link *link, struct weft_link_slot *slot);
	/* The link has ended: link->rc and link->err say why. It may be freed from here. */
	void (*closed)(struct weft_link *link);
};

struct weft_link_options {
	struct sockaddr_storage addr;
	uint32_t depth; /* slots */
	uint16_t qid, cntlid;
	bool hdgst, ddgst;
	uint32_t setup_ms; /* until ready() */

	/* RDMA. */
	uint32_t tos; /* type of service; 0: the system's */
	uint32_t retries, rnr_retries;
	uint32_t ack_timeout; /* 4.096 us * 2^n; 0: the system's */
	uint32_t inline_bytes;
};

struct weft_link_transport {
	uint8_t trtype;
	/* Begins to connect. On -errno there is no link. */
	int (*open)(struct weft_link **link, struct weft_reactor *r,
		    const struct weft_link_options *options, const struct weft_link_ops *ops,
		    void *user, struct weft_err *err);
	bool takes_dmabuf;
	size_t slot_size; /* of the transport's slot, which starts with a weft_link_slot */
	void (*submit)(struct weft_link *link, struct weft_link_slot *slot);
	void (*close)(struct weft_link *link); /* at once; twice is harmless */
	void (*free)(struct weft_link *link);
};

struct weft_link {
	const struct weft_link_transport *transport;
	const struct weft_link_ops *ops;
	struct weft_reactor *reactor;
	struct weft_link_options options;
	void *user;
	uint32_t capsule_max; /* data that may ride in a command capsule; the user's to raise */
	uint32_t blocks_max;  /* descriptors that the controller takes; the user's to raise */
	struct weft_path path;
	struct weft_queue_stats stats;
	bool closing;
	bool peer_closed;    /* the controller closed it (an audible loss) */
	int rc;              /* -errno of the end */
	struct weft_err err; /* its first cause */

	char *slots;
	uint32_t cid_stride; /* between two CIDs of a slot: a late answer is recognized */
	struct weft_link_slot *free;
};

/* NULL: it is not built in. */
const struct weft_link_transport *weft_link_transport_find(uint8_t trtype);

/* A free slot, its command zeroed; NULL: all are in flight. */
struct weft_link_slot *weft_link_get_slot(struct weft_link *link);
void weft_link_submit(struct weft_link *link, struct weft_link_slot *slot);
/* Puts back a slot that was not submitted. */
void weft_link_put_slot(struct weft_link *link, struct weft_link_slot *slot);
/* Starts to close; the first cause is kept. closed() follows, never from inside this call. */
void weft_link_close(struct weft_link *link, int rc, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* After closed(). */
void weft_link_free(struct weft_link *link);

/* --- for transports --------------------------------------------------------------------------- */

int weft_link_init(struct weft_link *link, const struct weft_link_transport *transport,
		   struct weft_reactor *r, const struct weft_link_options *options,
		   const struct weft_link_ops *ops, void *user);
void weft_link_destroy(struct weft_link *link);
/* The slot in flight under @cid; NULL: there is none. */
struct weft_link_slot *weft_link_find_slot(struct weft_link *link, uint16_t cid);
/* The transport is closing the link: records why, the first cause is kept. */
void weft_link_record_fault(struct weft_link *link, int rc, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* Calls done(). */
void weft_link_complete(struct weft_link *link, struct weft_link_slot *slot);

#endif
