/* internal.h - the target's objects and who may touch them.
 *
 *   weft_target ─┬─ weft_subsys ─┬─ tgt_ns     the control reactor writes, reactors read (ns_table)
 *                │               └─ tgt_ctrl ─── tgt_queue ─── weft_qpair
 *                ├─ tgt_listener               the control reactor's
 *                └─ weft_poll_group            a reactor's, with its queue pairs
 *
 * The control reactor owns everything but queue pairs and I/O. A reactor passes admin and fabrics
 * commands to the control reactor, and gets them back with their status; the control reactor asks
 * reactors to close queues, to quiesce namespaces and to drain them. Both send messages: there is
 * no lock. A pointer that a reactor reads from a namespace table is valid until its callback
 * returns, or as long as it is counted in ns->local[]. */
#ifndef WEFT_TARGET_INTERNAL_H
#define WEFT_TARGET_INTERNAL_H

#include <assert.h>
#include <stdatomic.h>

#include "base/addr_counts.h"
#include "base/keyed_hash.h"
#include "proto/nvme.h"
#include "proto/status.h"
#include "target/ana.h"
#include "target/ns.h"
#include "target/target.h"
#include "transport/transport.h"

enum {
	TGT_AERS_MAX = 4, /* asynchronous event requests per controller */
	TGT_CHANGED_NS_MAX = 1024,
	TGT_KAS_MS = 100,      /* keep-alive granularity */
	TGT_KA_GRACE_MS = 500, /* reactors get this long to read from a host that seems silent */
	TGT_DISCOVERY_KATO_MS = 120000, /* for discovery hosts that set none */
	TGT_DISCOVERY_KATO_MAX_MS = 600000,
	TGT_ERRORS_MAX = 64,      /* error log entries */
	TGT_CCRL = 4,             /* Cross-Controller Resets that one controller has under way */
	TGT_CCR_ENTRIES_MAX = 64, /* entries of its log page */
	TGT_CQT_MS = 10000, /* how long storage takes at most to end what a lost controller began */
	TGT_RESV_PAGES = 64,      /* reservation notifications that a host has not read yet */
	TGT_CNTLID_BUCKETS = 256, /* ids are given in turn, and so fill them evenly */
	TGT_ENDING_BUCKETS = 64,
	TGT_DSM_RANGES = 256,
	TGT_RANGE_LISTS_MAX = 64, /* range lists that a tenant has in buffers of a reactor */
	TGT_PAIRS_MAX = 16, /* fused pairs of a tenant on a reactor that want their namespace */
	TGT_DSM_BLOCKS = 1 << 18, /* blocks that one command deallocates */
	TGT_ACWU = 7,             /* blocks of Compare and Write, 0's based */
	TGT_COPY_RANGES = 128,
	TGT_COPY_RANGE_BYTES = 16 << 20,
	TGT_COPY_BYTES = 64 << 20,

	TGT_CSTS_RDY = 1 << NVME_CSTS_RDY_SHIFT,
	TGT_CSTS_CFS = 1 << NVME_CSTS_CFS_SHIFT,
	TGT_CSTS_SHUT_DOWN = NVME_CSTS_SHST_CMPLT << NVME_CSTS_SHST_SHIFT,
};

/* --- subsystems ------------------------------------------------------------------------------- */

struct tgt_host {
	struct weft_list link;
	char nqn[];
};

/* What one reactor did for a subsystem. Only that reactor writes it; the control reactor reads. */
struct tgt_stats {
	_Atomic uint64_t reads, writes, read_bytes, write_bytes;
	_Atomic uint64_t media_errors;
	uint64_t unused[3]; /* keeps reactors off each other's cache lines */
};

/* The parts that act by the store; a revision is acknowledged when all of them have consumed it. */
enum tgt_store_consumer { TGT_CONSUMER_RESV, TGT_CONSUMER_CLUSTER, TGT_CONSUMERS };

struct weft_subsys {
	struct weft_list link;
	struct weft_target *target;
	char nqn[WEFT_NQN_MAX + 1], serial[21], model[41];
	bool discovery, allow_any_host, removing;
	bool degraded; /* hosts were told: see admin/health.c */
	struct weft_list hosts, ctrls;
	unsigned resv_changes; /* changes of reservations under way */
	/* Where changes of reservations wait, by nsid - 1. */
	struct resv_change_queue *resv_change_queues[WEFT_NSID_MAX];
	struct ns_table *_Atomic table;
	struct tgt_ana ana;
	struct weft_store *store; /* NULL: this is the discovery subsystem */
	struct tgt_resv *resv;
	struct tgt_cluster *cluster;        /* NULL: we serve it alone */
	uint64_t consumed[TGT_CONSUMERS];   /* the revision of the store that each acts by */
	uint16_t cntlid_first, cntlid_last; /* the range of ids that this process gives */
	uint16_t cntlid_next;
	struct weft_list by_cntlid[TGT_CNTLID_BUCKETS]; /* the same controllers, by id */
	struct weft_list ending[TGT_ENDING_BUCKETS];    /* queues that end, by host_hash */
	unsigned ns_closing;                            /* see tgt_ns_close_all() */
	void (*removed)(void *arg);
	void *removed_arg;
	struct tgt_stats stats[]; /* by poll group */
};

/* --- controllers ------------------------------------------------------------------------------ */

/* Kinds of asynchronous events, in the order in which they are reported. */
enum tgt_event {
	TGT_EVENT_HEALTH,
	TGT_EVENT_NS_CHANGED,
	TGT_EVENT_ANA,
	TGT_EVENT_CCR,
	TGT_EVENT_DISCOVERY,
	TGT_EVENT_RESERVATION,
	TGT_EVENTS,
};

struct tgt_resv_log {
	uint64_t count; /* pages that there ever were */
	unsigned first, n;
	struct nvme_resv_notification_log pages[TGT_RESV_PAGES];
};

/* A queue's state as the control reactor knows it: see queue.c. */
enum tgt_queue_state {
	TGT_QUEUE_LIVE,
	TGT_QUEUE_DISCONNECTED, /* by the host; its connection closes when all answers are sent */
	TGT_QUEUE_CLOSING,      /* from here; its reactor closes the connection */
	TGT_QUEUE_LOST,         /* its connection is gone; storage may still have its commands */
	TGT_QUEUE_DRAINING,     /* its connection is gone, and another queue can have its id */
};

/* A queue's state on its own reactor. */
enum tgt_queue_io_state {
	TGT_QUEUE_IO_OPEN,
	TGT_QUEUE_IO_DISCONNECTED,  /* Disconnect has come: it executes no new command */
	TGT_QUEUE_IO_LOSS_REPORTED, /* reported to the control reactor; not closed yet */
	TGT_QUEUE_IO_DRAINED,       /* all its requests are back; @ctrl may be freed already */
};

struct tgt_queue {
	struct weft_list link; /* ctrl->queues; the control reactor's */
	struct tgt_ctrl *ctrl;
	struct weft_qpair *qp;
	uint16_t qid;
	uint32_t depth;
	struct weft_list resv_changes; /* those it waits for; the control reactor's */
	struct weft_list ending_link;  /* subsys->ending, from CLOSING or LOST on */
	/* tgt_drain_wait.queue_link: who waits for this queue to drain; the control reactor's. */
	struct weft_list drain_waits;
	struct weft_msg lost_msg;    /* to the control reactor: its connection is lost */
	struct weft_msg closing_msg; /* to the control reactor: it closes, give its requests back */
	struct weft_msg msg;         /* to the control reactor: gone; and back: free */
	struct weft_msg close_msg;   /* from the control reactor: close */
	enum tgt_queue_state state;  /* the control reactor's */
	const char *close_why;
	/* The reactor's: */
	struct weft_req *fused_first; /* waits for its second */
	enum tgt_queue_io_state io_state;
	struct tgt_stats stats;
};

/* No other queue of the controller can have this queue's id. */
static inline bool tgt_queue_has_id(const struct tgt_queue *queue)
{
	return queue->state == TGT_QUEUE_LIVE || queue->state == TGT_QUEUE_LOST;
}

/* The queue's connection is gone, and storage may still have commands of it. */
static inline bool tgt_queue_lost_connection(const struct tgt_queue *queue)
{
	return queue->state == TGT_QUEUE_LOST || queue->state == TGT_QUEUE_DRAINING;
}

/* On its reactor: all requests of the queue are back. */
static inline bool tgt_queue_is_drained(const struct tgt_queue *queue)
{
	return queue->io_state == TGT_QUEUE_IO_DRAINED;
}

struct tgt_ctrl {
	struct weft_list link; /* subsys->ctrls */
	struct weft_list by_cntlid;
	struct weft_subsys *subsys;
	uint16_t cntlid;
	uint16_t portid; /* of the listener that accepted it; 0: that one was gone already */
	char hostnqn[WEFT_NQN_MAX + 1];
	uint8_t hostid[16];
	uint64_t host_hash; /* of both: tgt_host_hash() */
	uint8_t trtype;
	struct sockaddr_storage peer, local;
	struct weft_list queues;
	struct tgt_queue *admin;
	struct tgt_flow *flow; /* of its host: see tenant.c */
	bool dying, resetting;
	bool evicted; /* it ends because another host needs its queue: see admission.c */
	uint8_t ciu;  /* its instance: a new value each time that it becomes ready */
	uint64_t cirn;
	struct weft_list ccrs; /* resets that it was asked for: see admin/ccr.c */
	char why[160];         /* why it ends */

	uint32_t cc, csts;
	uint32_t kato_ms;
	struct weft_timer ka_timer;
	bool ka_grace;          /* the timeout has passed once without a command */
	uint32_t ka_left_ms;    /* time left, while the target is frozen */
	unsigned io_queues;     /* granted by Set Features */
	uint32_t features[256]; /* dword 11 of the simple ones */
	uint8_t host_behavior[512];
	uint64_t timestamp_ms, timestamp_at_ms; /* what was set, and when by our clock */
	bool timestamp_by_host;

	struct weft_list aers; /* weft_req.link */
	unsigned naers;
	uint32_t events_pending, events_masked; /* bits of enum tgt_event */
	uint32_t changed_ns[TGT_CHANGED_NS_MAX];
	unsigned nchanged;
	struct tgt_resv_log resv_log;
	uint8_t resv_mask[WEFT_NSID_MAX]; /* by nsid - 1; bits of notification types */
	struct nvme_error_log_page errors[TGT_ERRORS_MAX];
	uint64_t nerrors;
	bool ana_event_due; /* report one when the ANA change is over */

	/* Reactors read these, and set traffic. */
	atomic_bool write_cache, traffic;
	_Atomic uint8_t ana[WEFT_ANA_GROUP_MAX]; /* enum weft_ana_state, by group - 1 */
};

/* --- the target ------------------------------------------------------------------------------- */

/* Where a host can connect, at this target or at another member of a cluster. */
struct tgt_port {
	uint8_t trtype;
	uint16_t portid;
	struct sockaddr_storage addr;
};

struct tgt_listener {
	struct weft_list link;
	struct weft_target *target;
	struct weft_listener *l;
	uint16_t portid; /* stays while it listens; a configuration may give another one */
};

/* See takeover/freeze.c. */
enum tgt_freeze_state {
	TGT_SERVING,
	TGT_FREEZING,       /* it takes no new command, those under way end */
	TGT_FREEZING_STORE, /* no command is under way; what is shared with other processes ends */
	TGT_FROZEN,
};

struct weft_target {
	struct weft_reactor *control;
	struct weft_poll_group **poll_groups;
	unsigned npoll_groups;
	uint32_t depth_max, io_queues_max, queues_max;
	uint32_t connections_max; /* queues, and connections before Connect */
	/* See admission.c. */
	uint32_t nqueues, ndiscovery, nevicting, nunlisted;
	struct weft_addr_counts anonymous; /* controllers of the discovery service */
	struct tgt_tenants *tenants;
	struct tgt_stale *stale;
	struct weft_hash_key hash_key; /* of names and identifiers that hosts choose */
	struct weft_list subsystems, listeners;
	struct tgt_control_queue *control_queue;
	struct weft_list drain_waits; /* tgt_drain_wait.link */
	/* Change queues of reservations that can run: see resv/change_queue.c. */
	struct weft_list resv_change_queues;
	struct weft_task resv_queue_task;
	struct weft_subsys *discovery;
	uint64_t genctr; /* of the discovery log */
	uint64_t ns_serial;
	unsigned teardowns; /* listeners, subsystems and namespaces that are ending */
	enum tgt_freeze_state freeze_state;
	/* Reserved: a thaw and the target's end cannot fail for want of memory. */
	struct tgt_barrier *thaw_barrier, *stop_barrier;
	void (*stopped)(void *arg);
	void *stopped_arg;
	struct weft_timer stop_timer;
};

/* Subsystems, controllers, listeners and what hangs on them are the control reactor's. */
#define assert_on_control(target) assert_on((target)->control)

/* The freeze has come to the stores: they are neither read nor written. */
static inline bool tgt_store_is_frozen(const struct weft_target *t)
{
	return t->freeze_state >= TGT_FREEZING_STORE;
}

/* Of a Compare and Write. */
#define TGT_PAIR_BYTES(ns) ((uint32_t)(TGT_ACWU + 1) << (ns)->lba_shift)

struct tgt_write_data_ops;

/* What a command waits for: see io/tenant_limit.c, io/bulk.c. */
enum tgt_waits {
	TGT_WAITS_NOT,
	TGT_WAITS_FOR_TENANT, /* its tenant has too many of its kind under way */
	TGT_WAITS_FOR_TURN,
	TGT_WAITS_FOR_UNQUIESCE,
	/* From here on a piece of the command is under way. */
	TGT_WAITS_IN_PIECE,  /* the command waits for a buffer, or storage has its piece */
	TGT_WAITS_FOR_BYTES, /* it has its buffer; the turn has no bytes left */
};

/* What the target keeps with every request. A read touches the first cache line only, which every
 * command finds zeroed; the rest is as the slot's last command left it. */
struct tgt_req {
	uint64_t ns_serial;         /* of its namespace; 0: not looked up yet */
	struct tgt_ns *ns;          /* counted in ns->local; see tgt_ns_at_work() */
	struct ana_change *awaited; /* the ANA change that waits for this command; NULL: none */
	uint64_t offset;            /* bytes into the namespace */
	uint64_t bytes_done;        /* bytes done of the range under way */
	void *host_data;            /* what the host sent */
	uint32_t length;
	uint32_t piece;     /* bytes of the piece under way: see io/bulk.c */
	uint16_t range;     /* index of a Copy's or DSM's range */
	bool writer;        /* counted as one that changes data */
	bool pinned;        /* its data is the namespace's own memory: counted until it is sent */
	bool fused;         /* it and its partner have quiesced the namespace */
	bool counted : 1;   /* as one of its tenant's: see io/tenant_limit.c */
	bool preempted : 1; /* storage had it when its host was: see resv/preempt_abort.c */
	uint8_t waits;      /* enum tgt_waits */
	/* A generic status that it ends with before its next piece; 0: it goes on. */
	uint8_t abort_status;

	struct weft_req *self;
	const struct tgt_write_data_ops *input;
	union {
		struct weft_io io;
		struct weft_req_walk walk;             /* Abort: through the queue that it names */
		struct weft_req_retry_walk retry_walk; /* Disconnect: through its own */
	};
	uint16_t status;         /* the control reactor's answer, on its way back */
	struct tgt_queue *queue; /* Connect: the new one; Abort: the one to search */
	union {
		void (*retry)(struct weft_req *req); /* when a quiesce has ended */
		/* Returns false while the block guard refuses it. */
		bool (*attempt)(struct weft_req *req);
	};
	/* What the control reactor is to run for it. */
	void (*on_control)(struct weft_msg *msg);
	void (*do_piece)(struct weft_req *req); /* when it is its flow's turn */
	void (*with_buffer)(struct weft_req *req);
	uint64_t flushes; /* a Flush makes so many of the namespace's writes durable */

	/* Fused pairs, see io/fused.c. */
	bool data_ready;
	struct weft_req *partner;
	struct tgt_ns_quiesce quiesce;
};
static_assert(offsetof(struct tgt_req, self) == 64, "a cache line");

static inline struct tgt_req *tgt_req(struct weft_req *req)
{
	return weft_req_priv(req);
}

/* The namespace that storage may be reading or changing for @req now; NULL: none. A reply that
 * leaves from the namespace's memory is complete, so it is not at work. See ns.h. */
static inline struct tgt_ns *tgt_ns_at_work(struct weft_req *req)
{
	const struct tgt_req *treq = tgt_req(req);

	return treq->pinned ? NULL : treq->ns;
}

static inline struct tgt_queue *tgt_queue(struct weft_req *req)
{
	return req->qp->owner;
}

/* command.c: which reactor runs a command */
struct tgt_command_info {
	uint8_t opcode;
	bool on_discovery;
	void (*execute)(struct weft_req *req);
	uint32_t effects;  /* Commands Supported and Effects */
	uint32_t data_max; /* admin: bytes of data that it can have */
};
const struct tgt_command_info *tgt_command_find(const struct tgt_command_info *table,
						uint8_t opcode); /* NULL: none */
extern const struct weft_qpair_ops tgt_qpair_ops;
void tgt_post_reactor(struct weft_req *req, void (*fn)(struct weft_msg *msg));
/* From the control reactor: @req is answered on its own reactor. */
void tgt_control_reply(struct weft_req *req, uint16_t status);

/* control_queue.c */
int tgt_control_queue_create(struct weft_target *t);
void tgt_control_queue_destroy(struct weft_target *t);
/* Runs @fn on the control reactor when it is @req's turn. If the queue of @req has ended by then,
 * @req is answered instead. */
void tgt_post_control(struct weft_req *req, void (*fn)(struct weft_msg *msg));
/* On the control reactor: the command that runs is as much work as so many more. */
void tgt_control_charge(struct weft_target *t, unsigned commands);

/* tenant.c: tenants and flows. All on the control reactor, except tgt_flow_local. */
struct tgt_tenant {
	uint32_t queues;        /* of all its hosts */
	struct weft_list flows; /* tgt_flow.ready: flows that have commands waiting, in turn */
	struct weft_list ready; /* tgt_control_queue.ready, while there are any */
};
/* io/tenant_limit.c: commands of one kind, on one reactor. */
struct tgt_tenant_limit {
	/* Of a tenant. */
	unsigned most, count;
	struct weft_list flows;     /* weft_fair_flow.link: flows that have commands waiting */
	struct weft_task wake_task; /* deferred only while there are any */
	/* Of a flow: weft_req.link. */
	struct weft_fair_flow waits;
};
/* What a flow, or an address of several flows, has waiting on one reactor; belongs to that
 * reactor. */
struct tgt_flow_local {
	struct weft_bulk_flow bulk;
	struct weft_bufs_flows bufs;
	struct tgt_tenant_limit lists, pairs;
	struct weft_rx_quota rx_quota;
	struct weft_fair_flow walks; /* over requests: see transport/req_walk.h */
};
/* One host: its commands for the control reactor, and its part on every reactor. */
struct tgt_flow {
	struct tgt_flow *next;          /* in its chain */
	struct tgt_tenant *tenant, own; /* @own, or that of its address */
	struct weft_list ready;         /* tenant->flows, while commands wait */
	struct weft_list reqs;
	unsigned ctrls;                     /* of this host */
	struct tgt_flow_local *per_reactor; /* by poll group, which owns it */
	char hostnqn[WEFT_NQN_MAX + 1];
};
int tgt_tenants_create(struct weft_target *t);
void tgt_tenants_destroy(struct weft_target *t);
/* The tenant of a host that connects to @s; NULL: there is none yet. */
const struct tgt_tenant *tgt_tenant_find(const struct weft_subsys *s, const char *hostnqn,
					 const struct sockaddr_storage *peer);
/* The flow of everybody who is not connected. */
struct tgt_flow *tgt_flow_unknown(struct weft_target *t);
/* For a new controller whose host and address are known. -ENOMEM: it cannot be served. */
int tgt_flow_join(struct tgt_ctrl *ctrl);
void tgt_flow_leave(struct tgt_ctrl *ctrl);
/* Where commands of the controller's host wait for buffers; NULL: a discovery controller, which
 * gets no buffers of hosts. */
struct weft_bufs_flows *tgt_flow_buf_queues(const struct tgt_ctrl *ctrl,
					    const struct weft_poll_group *group);
/* Where walks that the controller's host asked for wait for their turns on a reactor; NULL: a
 * discovery controller. */
struct weft_fair_flow *tgt_flow_walks(const struct tgt_ctrl *ctrl,
				      const struct weft_poll_group *group);
/* What the tenant of a controller's host has on a reactor. */
struct tgt_flow_local *tgt_tenant_local(const struct tgt_ctrl *ctrl,
					const struct weft_poll_group *group);

/* admin/health.c: on the control reactor. Namespaces have changed, or a command failed: hosts get
 * an event if there is a new warning. */
void tgt_health_update(struct weft_subsys *s);
void tgt_health_command_failed(struct weft_subsys *s, uint32_t nsid);

/* drain_wait.c: on the control reactor */
struct tgt_drain_wait {
	struct weft_list link;       /* target->drain_waits */
	struct weft_list queue_link; /* queue->drain_waits */
	struct weft_subsys *subsys;
	struct weft_timer timer;
	/* A queue that is awaited and still there; NULL: there is none. */
	struct tgt_queue *(*first_awaited)(const struct tgt_drain_wait *drain);
	void (*done)(struct tgt_drain_wait *drain, bool all); /* @all drained, or time is up */
};
/* done() when no queue of the subsystem is awaited any more, perhaps before this returns.
 * @limit_ms 0: however long that takes. */
void tgt_drain_wait_start(struct tgt_drain_wait *drain, unsigned limit_ms);
void tgt_drain_wait_cancel(struct tgt_drain_wait *drain); /* done() does not follow */
void tgt_drain_wait_queue_gone(struct tgt_queue *gone);   /* it is off its controller */

/* stale.c: calls @go_on when storage has no command of a lost connection of this host any more */
int tgt_stale_create(struct weft_target *t);
void tgt_stale_destroy(struct weft_target *t);
void tgt_stale_wait(struct weft_target *t, struct weft_req *req,
		    void (*go_on)(struct weft_req *req));

/* admission.c: 0 if a Connect to @s gets a queue, or a status. A discovery controller may be
 * evicted for it. */
uint16_t tgt_admit(const struct weft_subsys *s, const struct tgt_tenant *tenant,
		   const char *hostnqn, const struct sockaddr_storage *peer);
void tgt_admission_add_queue(const struct tgt_queue *queue); /* the target has one more */
void tgt_admission_remove_queue(const struct tgt_queue *queue);

/* connect.c, queue.c: on the control reactor unless said otherwise */
void tgt_connect(struct weft_req *req);
void tgt_queue_closing(struct weft_qpair *qp); /* on the reactor */
void tgt_queue_closed(struct weft_qpair *qp);  /* on the reactor */
/* On the reactor: the connection is lost; closing it may take a while. */
void tgt_queue_lost(struct tgt_queue *queue);
void tgt_queue_close(struct tgt_queue *queue, const char *why);
/* The host does not want the queue any more and will close it: a new queue can have its id. */
void tgt_queue_disconnect(struct tgt_queue *queue);
const char *tgt_queue_state_text(const struct tgt_queue *queue);

/* ctrl.c */
struct tgt_ctrl *tgt_ctrl_create(struct weft_subsys *s);
struct tgt_ctrl *tgt_ctrl_adopt(struct weft_subsys *s, uint16_t cntlid); /* NULL: the id is taken */
void tgt_ctrl_free(struct tgt_ctrl *ctrl);                               /* it has no queues */
struct tgt_ctrl *tgt_ctrl_find(struct weft_subsys *s, uint16_t cntlid);
struct tgt_ctrl *tgt_ctrl_by_id(struct weft_subsys *s, uint16_t cntlid); /* also one that ends */
/* The same for the same host, and no other can choose a name that has it, too. */
uint64_t tgt_host_hash(const struct weft_target *t, const char *hostnqn, const uint8_t hostid[16]);
void tgt_ctrl_set_host(struct tgt_ctrl *ctrl, const char *hostnqn, const uint8_t hostid[16]);
bool tgt_ctrl_is_of_host(const struct tgt_ctrl *ctrl, const char *hostnqn,
			 const uint8_t hostid[16]);
void tgt_ctrl_queue_gone(struct tgt_ctrl *ctrl, struct tgt_queue *queue); /* may free @ctrl */
const char *tgt_host_name(const char *hostnqn); /* to print: an NQN may be empty */
void tgt_ctrl_kill(struct tgt_ctrl *ctrl, const char *why);
void tgt_ctrl_set_kato(struct tgt_ctrl *ctrl, uint32_t kato_ms);
void tgt_ctrl_restart_keepalive(struct tgt_ctrl *ctrl);
void tgt_ctrl_set_cc(struct tgt_ctrl *ctrl, uint32_t cc);
void tgt_ctrl_shutdown_done(struct tgt_ctrl *ctrl);
void tgt_ctrl_log_error(struct tgt_ctrl *ctrl, struct weft_req *req, uint16_t status);

/* fabrics.c */
void tgt_fabrics(struct weft_req *req);

/* disconnect.c */
void tgt_disconnect(struct weft_req *req);

/* admin/discovery_log.c */
void tgt_discovery_changed(struct weft_target *t);
/* Copies @len bytes from @offset on of the log page as this controller's host may see it; returns
 * the page's size. Bytes behind its end are not written. */
uint64_t tgt_discovery_read(struct tgt_ctrl *ctrl, uint64_t offset, void *to, uint64_t len);

/* resv/view.c, on a reactor: 0, or a status for a command that a reservation forbids */
uint16_t tgt_resv_check(struct weft_req *req, const struct tgt_ns *ns);

/* subsys.c */
struct weft_subsys *tgt_subsys_new(struct weft_target *t,
				   const struct weft_subsys_options *options);
struct weft_subsys *tgt_subsys_find_any(struct weft_target *t, const char *nqn); /* or discovery */
void tgt_store_consumed(struct weft_subsys *s, enum tgt_store_consumer who, uint64_t revision);
bool tgt_host_listed(const struct weft_subsys *s, const char *hostnqn); /* it is on the list */
bool tgt_any_host_listed(const struct weft_target *t);                  /* by any subsystem */
bool tgt_host_allowed(const struct weft_subsys *s, const char *hostnqn);
void tgt_subsys_ctrl_gone(struct weft_subsys *s);         /* may free @s */
void tgt_subsys_namespaces_closed(struct weft_subsys *s); /* may free @s */

/* stats.c: the first two on a reactor, where storage did or failed what @req asked for */
void tgt_stats_count(struct weft_req *req, bool write, uint64_t bytes);
void tgt_stats_error(struct weft_req *req, bool reading, bool media);
struct tgt_totals {
	uint64_t reads, writes, read_bytes, write_bytes, media_errors;
};
void tgt_stats_add(struct tgt_stats *stats, struct tgt_totals *sum);

/* target.c */
void tgt_target_teardown_done(struct weft_target *t);

/* listener.c */
void tgt_listener_close(struct tgt_listener *l);
struct tgt_port tgt_listener_port(const struct tgt_listener *l);
/* The port id of the listener that accepted a connection to @local; 0: that one is gone. */
uint16_t tgt_listener_portid(struct weft_target *t, uint8_t trtype,
			     const struct sockaddr_storage *local);
/* Owns @fd; the listener is paused, and its port id is that of @uri. */
int tgt_listener_adopt(struct weft_target *t, const struct weft_uri *uri, int fd,
		       struct weft_err *err);
/* The poll group that a new connection goes to, with the connection counted there; NULL: there are
 * too many. */
struct weft_poll_group *tgt_assign_poll_group(struct weft_target *t);

/* identity.c: names that are the same at every start and, with @common, on every machine */
void tgt_identity_serial(const char *nqn, bool common, char serial[21]);
void tgt_identity_uuid(const char *nqn, bool common, uint32_t nsid, const char *backend,
		       uint8_t uuid[16]);

#endif
