/* transport.h - the target's transports: capsules and data, whatever carries them.
 *
 *   host ══▶ transport ──command()──▶ user (the target)
 *                      ◀──fetch()───  get the command's data
 *                      ───then()───▶  it is here
 *                      ◀──reply()───  data and completion, back to the host
 *                      ─released()─▶  the last byte has left, the slot is free
 *
 * A queue pair belongs to one reactor, and so do its requests. A request is a slot of those that
 * the reactor's queue pairs share, and has an index in its queue's table.
 *
 * Invariant: a request handed to command() comes back through weft_req_reply() once, also when its
 * connection is gone by then. */
#ifndef WEFT_TRANSPORT_TRANSPORT_H
#define WEFT_TRANSPORT_TRANSPORT_H

#include <assert.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/guard.h"
#include "proto/nvme.h"
#include "reactor/reactor.h"
#include "transport/bufs.h"
#include "transport/req_slots.h"
#include "transport/reclaim.h"
#include "transport/req_walk.h"
#include "transport/preconnect.h"

struct weft_qpair;
struct weft_req;

enum { WEFT_TRANSPORTS_MAX = 2 };

/* --- poll groups: what a reactor's queue pairs share ------------------------------------------ */

/* Sized by the deepest queue and the number of queues. Buffers for data on its way in wait for the
 * peer, those for data on its way out for storage: there are two sets, so that they never wait for
 * each other in a circle. */
struct weft_poll_group {
	struct weft_reactor *reactor;
	struct weft_reactor *control; /* the target's control reactor */
	void *user;
	unsigned index;     /* among the target's groups */
	uint32_t depth_max; /* entries of its deepest queue */
	/* Each transport's, at its weft_transport_index(). */
	struct weft_req_slots slots[WEFT_TRANSPORTS_MAX];
	void *own[WEFT_TRANSPORTS_MAX];     /* what its connections share */
	struct weft_bufs in, out;           /* for admitted hosts */
	struct weft_bufs anon_in, anon_out; /* for all other peers: fewer */
	struct weft_preconnect preconnect;
	struct weft_task serve_waiters; /* buffers came back, others wait for them */
	struct weft_list qpairs, iters;
	bool frozen;         /* see weft_poll_group_freeze() */
	atomic_uint nqpairs; /* also those on their way here: for choose_group() */
	/* What few commands need. */
	struct weft_reclaim reclaim; /* runs while somebody waits for what peers may keep */
	struct weft_timer trim;      /* runs when slots have memory to give back */
	struct weft_req_walks walks;
};

/* Its reactor's, but while it is frozen the control reactor hands its queue pairs over. */
#define assert_on_group(group) assert((group)->frozen || weft_reactor_is_here((group)->reactor))

/* What the commands of one tenant keep of a reactor's receive memory, which all its connections
 * share: of each transport's, at its weft_transport_index(). */
struct weft_rx_part {
	uint32_t pinned;          /* pieces of it, as the transport counts them */
	struct weft_list waiting; /* connections that wait for one more */
	struct weft_list link;    /* parts of tenants that wait for one more, and may have it */
};
struct weft_rx_quota {
	struct weft_rx_part parts[WEFT_TRANSPORTS_MAX];
};
void weft_rx_quota_init(struct weft_rx_quota *rx_quota);

/* @unknown_max: pre-connect connections, of at most @qpairs_max. */
int weft_poll_group_create(struct weft_poll_group **group, struct weft_reactor *r, unsigned index,
			   uint32_t depth_max, uint32_t qpairs_max, uint32_t unknown_max);
void weft_poll_group_destroy(struct weft_poll_group *group); /* no queue pair is left */
void weft_poll_group_close_all(struct weft_poll_group *group, const char *why); /* on its reactor */
/* On its reactor. The connections of a frozen poll group start no new command, and those under way
 * end: when all are quiesced, another process can take them over. Connections that cannot be frozen
 * are closed. A connection that comes to a frozen poll group waits. */
void weft_poll_group_freeze(struct weft_poll_group *group);
void weft_poll_group_thaw(struct weft_poll_group *group);
/* Somebody waits for a buffer, or may wait for blocks that a queue pair holds: closes peers that
 * keep them and have not moved for a while; also those whose replies the user waits for. */
void weft_poll_group_start_reclaim(struct weft_poll_group *group);
/* Slots of a burst of requests are free: gives their memory back, if they still are then. */
void weft_poll_group_trim_later(struct weft_poll_group *group);
void weft_poll_group_trim_now(struct weft_poll_group *group); /* its last queue pair is gone */

/* Iterates over its queue pairs: see transport/req_walk.h. */
void weft_qpair_iter_begin(struct weft_poll_group *group, struct weft_qpair_iter *iter);
/* NULL: that was all, and the iteration has ended. */
struct weft_qpair *weft_qpair_iter_next(struct weft_poll_group *group,
					struct weft_qpair_iter *iter);

/* --- requests --------------------------------------------------------------------------------- */

enum weft_req_state {
	WEFT_REQ_FREE,
	WEFT_REQ_EXECUTING,   /* the user has it */
	WEFT_REQ_NEED_BUFFER, /* waits for a buffer */
	WEFT_REQ_AWAIT_DATA,  /* the host owes data */
	WEFT_REQ_REPLYING,    /* on its way out */
	WEFT_REQ_DRAINING,    /* replied, and the transport still uses its buffers */
	WEFT_REQ_STATES,
};

struct weft_req_buf {
	struct weft_pool *pool;
	void *at; /* NULL: none */
};

/* @sc is 0, or the NVMe status that the user must reply with now. */
typedef void weft_req_fn(struct weft_req *req, uint16_t sc);

/* Thousands of slots do not stay in a cache: what every command touches lies in the first lines of
 * each part, and in as few as possible. A free slot has no buffers. */
struct weft_req {
	union nvme_sqe cmd;
	struct nvme_cqe cqe; /* result is the user's to set, the rest is filled on reply */
	struct weft_qpair *qp;
	void *data;         /* the command's data: fetched, or to be returned */
	uint32_t data_len;  /* bytes at @data */
	uint32_t reply_len; /* bytes at @data that go to the host with a successful reply */
	enum weft_req_state state;
	uint32_t index; /* in its queue: see weft_qpair_req() */

	/* The transport's. */
	uint32_t slot; /* of qp->slots */
	/* The user's, with a reply: others write to @data, and a reader must hold its guard. */
	bool shared;
	bool awaits_in; /* the transport's: the buffer that it waits for is @in's, not @out's */
	union {
		weft_req_fn *then; /* the transport's, until then */
		struct weft_guard *guard;
	};
	struct weft_req_buf in, out; /* for fetched data; for the user */

	union {
		struct weft_list link;       /* the user's, while it has the request */
		struct weft_req *fetch_with; /* the transport's: see weft_req_fetch_both() */
	};
	/* The user's, while it has the request. */
	struct weft_msg msg;

	/* The transport's, for a request that waits. */
	weft_req_fn *fetch_then;
	struct weft_pool_waiter waiter;
};
static_assert(offsetof(struct weft_req, in) == 128, "two cache lines before what holds buffers");

/* Can @len bytes move between the host and us as the command's SGL says? 0 or a status. */
uint16_t weft_req_check_sgl(struct weft_req *req, uint32_t len);
/* Bytes that the command's SGL speaks of. */
uint32_t weft_req_sgl_len(struct weft_req *req);

/* Brings the command's @len bytes to req->data; weft_req_check_sgl() said yes. */
void weft_req_fetch(struct weft_req *req, uint32_t len, weft_req_fn *then);
/* The same for two of one queue pair, @then for each. The first waits for its buffer; if there is
 * none for the second then, both end with Command Interrupted: a request that has a buffer and
 * waits for another one of the same pool could wait for ever. */
void weft_req_fetch_both(struct weft_req *first, struct weft_req *second, uint32_t len,
			 weft_req_fn *then);
/* A buffer of @len bytes at req->data, one at a time. Fetched data stays where it was: a caller
 * that needs both keeps the old req->data. */
void weft_req_get_buffer(struct weft_req *req, uint32_t len, weft_req_fn *then);
/* The same if one is free; false: weft_req_get_buffer() waits for one. */
bool weft_req_get_free_buffer(struct weft_req *req, uint32_t len);
/* Gives the buffer to others before the request ends; harmless if there is none. */
void weft_req_put_buffer(struct weft_req *req);
/* The only way to end a request. */
void weft_req_reply(struct weft_req *req, uint16_t status);
/* Ends a request that waits for a buffer or for the host: its then() gets @status.
 * false: it does neither. */
bool weft_req_abort(struct weft_req *req, uint16_t status);

/* --- queue pairs ------------------------------------------------------------------------------ */

struct weft_qpair_ops {
	size_t req_priv;   /* bytes that weft_req_priv() points at */
	size_t req_zeroed; /* of them: the first so many are zeroed for every command */
	void (*command)(struct weft_req *req);
	void (*released)(struct weft_req *req);
	/* Since when, in ns, the user has waited for the memory that the reply leaves from; 0: it
	 * does not. If that takes long the connection is closed, see
	 * weft_poll_group_start_reclaim(). */
	uint64_t (*awaited_since)(struct weft_req *req);
	/* The connection is lost or being closed: reply to what you hold. closing_req() follows for each
	 * request, some in each turn: if it waits, reply to it. */
	void (*closing)(struct weft_qpair *qp);
	void (*closing_req)(struct weft_req *req);
	/* The connection is gone and all requests are back. Now, or later, the user calls
	 * weft_qpair_free(); the target's side of the end is target/queue.c. */
	void (*closed)(struct weft_qpair *qp);
};

struct weft_listener;
struct weft_listener_ops;

/* The state of a frozen queue pair, exported for the successor. Its transport adds what the
 * connection is: a struct of the transport's own, and bytes. Commands that were not executed are in
 * the bytes as they came. */
struct weft_qpair_state {
	uint8_t trtype;
	uint32_t sqid, sqhd, sqsize; /* sqsize 0: before Connect */
	bool sq_flow;
	_Alignas(8) char own[32]; /* the transport's struct, see its folder */
	char *bytes;              /* malloc'ed */
	uint32_t nbytes;
};

struct weft_transport {
	uint8_t trtype;
	/* What Identify and the discovery log say of it. */
	uint32_t capsule_data;       /* bytes inside an I/O command capsule */
	uint32_t sgls;               /* descriptors that it takes, as SGLS has them */
	uint8_t sgl_descriptors_max; /* data blocks of one SGL */

	/* On the control reactor. Port 0 becomes a free one, see listener->addr. */
	int (*listen)(struct weft_listener **l, struct weft_reactor *control,
		      const struct sockaddr_storage *addr, const struct weft_listener_ops *ops,
		      void *user, struct weft_err *err);
	void (*unlisten)(struct weft_listener *l); /* ops->closed() follows; frees it */
	/* A paused listener accepts nothing; connections wait in the backlog. NULL, all four: there
	 * is no takeover for it. */
	void (*pause)(struct weft_listener *l);
	void (*resume)(struct weft_listener *l);
	int (*listener_fd)(const struct weft_listener *l);
	/* The new listener is paused. Owns @fd, also when it fails. */
	int (*listener_import)(struct weft_listener **l, struct weft_reactor *control, int fd,
			       const struct weft_listener_ops *ops, void *user,
			       struct weft_err *err);

	/* Before the reactor runs: what its connections in a poll group share, as group->own[] has it. NULL,
	 * all four: the transport makes that when it needs it, and nobody waits for it. */
	int (*group_create)(struct weft_poll_group *group, uint32_t qpairs_max);
	void (*group_destroy)(struct weft_poll_group *group);
	bool (*has_waiters)(const struct weft_poll_group *group);
	void (*serve_waiters)(struct weft_poll_group *group); /* something came back */

	size_t req_size; /* of the transport's request, which starts with a weft_req */
	uint16_t (*check_sgl)(struct weft_req *req, uint32_t len);
	uint32_t (*sgl_len)(struct weft_req *req);
	void (*fetch)(struct weft_req *req, uint32_t len);
	/* Stops to expect the host's data; false: it is being moved, and cannot be stopped. */
	bool (*abort_fetch)(struct weft_req *req);
	/* Copies the reply's data from @from to req->data; NULL if its qpairs never want stable
	 * data. */
	void (*copy)(struct weft_req *req, const void *from);
	void (*reply)(struct weft_req *req);
	void (*started)(struct weft_qpair *qp);
	/* A full queue has room again; a closing one may be closed now. */
	void (*slot_freed)(struct weft_qpair *qp);
	/* The connection is closed: ends a DRAINING request. NULL: its qpairs have none by then. */
	void (*end_draining)(struct weft_req *req);
	/* Since when, in ns, its peer has kept a buffer of ours in use; 0: it does not. @stall has what
	 * look_for_stall() saw of its requests, one after the other, perhaps over several turns;
	 * NULL: it need not see them. */
	uint64_t (*stalled_since)(struct weft_qpair *qp, const struct weft_stall *stall);
	void (*look_for_stall)(struct weft_req *req, struct weft_stall *stall);
	/* Closes it if it is lost and nothing has told so yet. */
	void (*check_lost)(struct weft_qpair *qp);
	/* For weft_poll_group_freeze(). NULL, all five: its connections are closed instead. */
	void (*freeze)(struct weft_qpair *qp);
	/* What keeps it from being quiesced, in words; NULL: only requests that the user has. */
	const char *(*busy_reason)(struct weft_qpair *qp);
	/* Quiesced, on the control reactor: fills in its part of @state. Descriptors in it stay the
	 * connection's. */
	int (*export)(struct weft_qpair *qp, struct weft_qpair_state *state);
	/* Into a frozen poll group. Owns descriptors and bytes of @state, also when it fails; then
	 * the connection is no longer counted in group->nqpairs. */
	int (*import)(struct weft_qpair **qp, struct weft_poll_group *group,
		      struct weft_qpair_state *state, const struct weft_qpair_ops *ops);
	void (*thaw)(struct weft_qpair *qp);
	void (*close_when_sent)(struct weft_qpair *qp);
	void (*close)(struct weft_qpair *qp);
	void (*free)(struct weft_qpair *qp);
};

/* Statistics of its work requests; other threads read them. */
struct weft_qpair_stats {
	_Atomic uint64_t posted, completed, flushed, retried, rnr;
	_Atomic uint64_t key_hits, registrations;
	_Atomic uint64_t copied_bytes; /* of data, by the transport */
};

/* Only the queue pair's reactor writes. */
static inline void weft_counter_add(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

struct weft_qpair {
	struct weft_list link;       /* group->qpairs */
	struct weft_list preconnect; /* group->preconnect.qpairs */
	const struct weft_transport *transport;
	const struct weft_qpair_ops *ops;
	struct weft_poll_group *group;
	void *owner; /* the user's; NULL until it sets it */
	struct sockaddr_storage peer, local;
	bool closing;
	const char *close_when_sent;    /* why it closes when all is sent; NULL: it does not */
	bool stable_data;               /* reply data must not change while it is sent (digests) */
	struct weft_req *fused_waiting; /* the user's: cannot run before the next command is here */
	struct weft_bufs *in, *out;     /* where its buffers come from */
	/* The user's: the flows in which its requests wait for them; NULL: all such queue pairs
	 * share one queue. */
	struct weft_bufs_flows *flows;
	struct weft_rx_part *rx_part; /* of the user's rx quota; NULL: it is not admitted */
	uint32_t guarded_replies;     /* nobody can write to their data until they have left */
	char why[160];                /* the first cause of the end */
	struct weft_qpair_stats stats;

	/* SQ flow control, as Connect settled it. */
	uint16_t sqid, sqhd;
	uint32_t sqsize; /* entries; 0: before Connect */
	bool sq_flow;

	/* Requests by their index, NULL: free. Indices below @high_water have been used, and
	 * @free_indices has the free ones of these. Draining requests do not count against the
	 * depth: the host has the reply. */
	struct weft_req_slots *slots;
	struct weft_req **reqs;
	uint16_t *free_indices;
	uint32_t slots_max, depth, high_water, inflight, draining;
	uint32_t parked;              /* of those in flight: not yet given to the user */
	struct weft_list req_iters;   /* see transport/req_walk.h */
	struct weft_fair_flow *walks; /* the user's: the flow of walks that its end needs; or NULL */
	struct weft_req_walk end_walk;
	bool ending; /* the walk is under way */
};

/* The user's own bytes behind every request, from a cache line on. */
static inline size_t weft_req_priv_at(const struct weft_transport *transport)
{
	return (transport->req_size + 63) & ~(size_t)63;
}

static inline void *weft_req_priv(struct weft_req *req)
{
	return (char *)req + weft_req_priv_at(req->qp->transport);
}

/* For transports, whose own queue pair starts with a weft_qpair, zeroed. */
int weft_qpair_init(struct weft_qpair *qp, const struct weft_transport *transport,
		    const struct weft_qpair_ops *ops, struct weft_poll_group *group);
void weft_qpair_destroy(struct weft_qpair *qp);
/* Nobody knows who the peer is: it has a place among those before Connect until
 * weft_qpair_start(). */
void weft_qpair_accepted(struct weft_qpair *qp);

/* Connect has succeeded: room for @sqsize commands. */
void weft_qpair_start(struct weft_qpair *qp, uint16_t sqid, uint32_t sqsize, bool sq_flow);
/* The access check has passed: the queue pair now uses the buffers of hosts. Its requests wait for
 * them in @flows, which all queue pairs of the tenant in this poll group share. Flows take turns: a
 * tenant with thousands of requests makes others wait for one of them. @flows, @walks and @rx_quota
 * outlive the queue pair. */
void weft_qpair_admit(struct weft_qpair *qp, struct weft_bufs_flows *flows,
		      struct weft_fair_flow *walks, struct weft_rx_quota *rx_quota);
bool weft_qpair_is_admitted(const struct weft_qpair *qp);
/* Starts to close, once; the first @why is kept. */
void weft_qpair_close(struct weft_qpair *qp, const char *why, ...)
	__attribute__((format(printf, 2, 3)));
/* Is the connection lost, as far as can be known now? */
bool weft_qpair_is_lost(struct weft_qpair *qp);
/* Closes once everything replied so far has been sent. */
void weft_qpair_close_when_sent(struct weft_qpair *qp, const char *why);
void weft_qpair_free(struct weft_qpair *qp);

/* For a takeover: see the transport's export() and import(). @owner is the new queue pair's. */
int weft_qpair_export(struct weft_qpair *qp, struct weft_qpair_state *state);
int weft_qpair_import(struct weft_qpair **qp, struct weft_poll_group *group,
		      struct weft_qpair_state *state, const struct weft_qpair_ops *ops,
		      void *owner);

/* The request at @index, below qp->high_water; NULL: there is none now. */
struct weft_req *weft_qpair_req(struct weft_qpair *qp, uint32_t index);

/* For transports: a free slot as EXECUTING, or NULL; data has come (or will not); slot is done. */
struct weft_req *weft_req_alloc(struct weft_qpair *qp);
void weft_req_fetched(struct weft_req *req, uint16_t sc);
void weft_req_release(struct weft_req *req);
/* For transports: no buffer of buf->pool is free, so the request waits in its queue pair's flow.
 * @got gets the buffer, unless weft_pool_cancel_wait() ends the wait. */
void weft_req_wait_buffer(struct weft_req *req, struct weft_req_buf *buf,
			  void (*got)(struct weft_pool_waiter *waiter, void *at));
/* For transports, on close: every request that waits for us gets its then(), some in each turn. The
 * queue pair is in use until the last of them is back and all were looked at. */
void weft_qpair_end_requests(struct weft_qpair *qp);
bool weft_qpair_in_use(const struct weft_qpair *qp);

/* The one function that changes a request's state. */
void weft_req_enter(struct weft_req *req, enum weft_req_state state);

/* --- listening -------------------------------------------------------------------------------- */

struct weft_listener_ops {
	const struct weft_qpair_ops *qpair;
	/* The poll group for a new connection, counted in group->nqpairs; NULL: too many. */
	struct weft_poll_group *(*choose_group)(struct weft_listener *l);
	void (*closed)(struct weft_listener *l);
};

struct weft_listener {
	const struct weft_transport *transport;
	const struct weft_listener_ops *ops;
	struct weft_reactor *control;
	struct sockaddr_storage addr; /* with the port that it got */
	void *user;
};

/* --- transports ------------------------------------------------------------------------------- */

/* NULL: it is not built in. */
const struct weft_transport *weft_transport_find(uint8_t trtype);
/* The one at @index among those that are built in; NULL: there are no more. */
const struct weft_transport *weft_transport_at(unsigned index);
unsigned weft_transport_index(const struct weft_transport *transport);

#endif
