/* internal.h - the host's own structures.
 *
 *     caller's threads                    home: the controller's thread
 *   ┌──────────────────────┐            ┌──────────────────────────────────┐
 *   │ weft_queue ─ link    │── asks ───▶│ ctrl.c   states, reconnecting    │
 *   │   reactor, commands  │            │ setup.c  Connect … live          │
 *   │ weft_queue ─ link    │◀── look ───│ admin.c  admin queue ─ link      │
 *   └──────────────────────┘            │ aer.c, keepalive.c, scan.c       │
 *                                       └──────────────────────────────────┘
 *
 * A queue's reactor runs on whichever thread drives the queue; home's on a thread of its own. They
 * share what stands under ctrl->lock, which no I/O takes: home publishes a state and tells the
 * queues to look; a queue asks home to abort a command, or to note that its connection broke. */
#ifndef WEFT_HOST_INTERNAL_H
#define WEFT_HOST_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <weft/host.h>

#include "base/err.h"
#include "base/list.h"
#include "base/region.h"
#include "host/config.h"
#include "proto/nvme.h"
#include "proto/status.h"
#include "proto/uri.h"
#include "reactor/reactor.h"
#include "transport/link.h"

enum {
	HOST_ADMIN_DEPTH = 31,    /* of a queue with 32 entries, which every controller has */
	HOST_ADMIN_USER_MAX = 16, /* of them for weft_admin(): ours always find room */
	HOST_AERS = 4,
	HOST_ABORTS_MAX = 4, /* in flight */
	HOST_EVENTS = 64,
	HOST_DEPTH_MAX = 4096,
	HOST_QUEUES_MAX = 1024,
	HOST_PAGE = 4096,
};

/* What the controller said about itself, as far as we act on it. */
struct host_traits {
	uint64_t cap;
	uint32_t version;
	uint16_t cntlid;
	char model[41], serial[21], firmware[9];
	bool discovery;
	uint32_t transfer_max; /* bytes of one command */
	uint32_t zero_max, verify_max;
	uint64_t trim_blocks; /* of one range */
	uint32_t capsule_max; /* data in an I/O command's capsule */
	uint32_t blocks_max;  /* descriptors of a command's data */
	uint32_t queues, depth;
	uint16_t oncs, fuses;
	uint32_t ctratt, oaes;
	uint8_t vwc, aers;
	bool disconnects; /* it takes the Disconnect command */
};

/* --- admin commands, on home --------------------------------------------------------------------- */

struct host_admin {
	struct weft_list link;
	struct weft_ctrl *ctrl;
	union nvme_sqe cmd;
	struct nvme_cqe cqe;
	struct iovec iov;
	const char *name;     /* "Identify Controller" */
	uint64_t deadline_ns; /* 0: none */
	bool inexact;         /* a success may move less data than there is room for */
	/* rc 0: it was answered, see host_status(); else it was lost. */
	void (*done)(struct host_admin *a, int rc);
};

/* 0: success, whatever the bits beside the code say. */
static inline uint16_t host_status(const struct nvme_cqe *cqe)
{
	uint16_t status = le16_to_cpu(cqe->status) >> 1;

	return status & 0x7ff ? status : 0;
}

/* The admin queue is connected. @timeout_ms 0: it may take forever. */
void host_admin_start(struct weft_ctrl *ctrl, struct host_admin *a, uint32_t timeout_ms);
/* The link is gone: everything in flight is done() with -ECONNRESET. */
void host_admin_lost(struct weft_ctrl *ctrl);
/* What callers of weft_admin() wait for goes out, as far as there is room; or it fails. */
void host_admin_pump(struct weft_ctrl *ctrl);
void host_admin_fail_waiting(struct weft_ctrl *ctrl, int rc);
void host_admin_init(struct weft_ctrl *ctrl);
extern const struct weft_link_ops host_admin_link_ops;

void host_fill_identify(union nvme_sqe *cmd, uint8_t cns, uint32_t nsid);
void host_fill_log_page(union nvme_sqe *cmd, uint8_t lid, uint32_t nsid, uint64_t offset,
			uint32_t length);
void host_fill_connect(union nvme_sqe *cmd, uint16_t qid, uint32_t depth, uint32_t kato_ms);
void host_connect_data(const struct weft_ctrl *ctrl, uint16_t cntlid,
		       struct nvmf_connect_data *data);
/* A sentence about a status: "Connect: host not allowed (NVMe status 0x184)", and its -errno. */
int host_fail_status(struct weft_err *err, const char *what, uint16_t status);

/* --- the controller -------------------------------------------------------------------------------- */

/* What queues see, under ctrl->lock. */
struct host_published {
	enum weft_state state;
	unsigned generation; /* of the association */
	int rc;              /* when dead */
	struct weft_err why; /* of the last loss */
	struct host_traits traits;
	uint64_t reconnects;
	struct weft_path path;
};

struct weft_ctrl {
	struct host_config config;
	struct weft_reactor *reactor;
	pthread_t thread;
	atomic_bool traffic; /* a queue sent something: as good as a keep-alive */

	/* Home's. */
	enum weft_state state;
	bool stopping, broken;
	bool refused; /* Connect, with Do Not Retry */
	atomic_bool reset_posted;
	unsigned generation;
	struct weft_link *link; /* NULL: none */
	struct host_traits traits;
	struct weft_err why; /* first cause of the loss under way */
	int why_rc;
	unsigned attempt;
	unsigned random;           /* for the pauses */
	uint64_t lost_ns, live_ns; /* since when; 0: never, not now */
	struct weft_timer retry;
	struct weft_msg stop_msg, reset_msg;

	unsigned step; /* setup.c */
	uint64_t ready_by_ns;
	struct weft_timer poll;
	struct host_admin setup;
	char *page; /* HOST_PAGE bytes for set-up */

	struct weft_list admin_flying, admin_waiting;
	unsigned admin_users, aborts;
	struct weft_task pump;
	struct weft_timer admin_timer;

	struct weft_timer keepalive;
	struct host_admin keepalive_cmd;
	bool keepalive_out;

	struct host_aer {
		struct host_admin cmd, log;
		uint32_t result;
		bool out;
	} aers[HOST_AERS];
	struct weft_timer aer_timer;
	char *aer_page; /* HOST_AERS times HOST_PAGE bytes */

	struct host_admin scan;
	unsigned scan_round;
	uint32_t scan_nsid;
	bool scanning, scan_again, scan_for_setup;
	char *scan_page;

	/* Shared, under @lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct host_published pub;
	struct weft_list queues, namespaces;
	uint64_t qids[HOST_QUEUES_MAX / 64];
	uint32_t last_qid;
	struct weft_event events[HOST_EVENTS];
	unsigned first_event, nevents;
	int event_fd;
};

/* config.c */
void host_link_options(const struct host_config *config, uint16_t qid, uint16_t cntlid,
		       uint32_t depth, struct weft_link_options *options);

/* ctrl.c, on home */
void host_ctrl_start(struct weft_ctrl *ctrl);
void host_ctrl_up(struct weft_ctrl *ctrl); /* set-up is through */
/* The association is to be ended for this reason; the first counts. */
void host_ctrl_broken(struct weft_ctrl *ctrl, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void host_ctrl_link_closed(struct weft_ctrl *ctrl);

/* setup.c */
void host_setup_start(struct weft_ctrl *ctrl);
void host_setup_shutdown(struct weft_ctrl *ctrl, void (*done)(struct host_admin *a, int rc));

/* keepalive.c, aer.c: from live on, until lost */
void host_keepalive_start(struct weft_ctrl *ctrl);
void host_keepalive_stop(struct weft_ctrl *ctrl);
void host_aer_start(struct weft_ctrl *ctrl);
void host_aer_stop(struct weft_ctrl *ctrl);

/* scan.c: looks at every open namespace again */
void host_scan_start(struct weft_ctrl *ctrl, bool for_setup);

/* event.c: any thread */
void host_event_push(struct weft_ctrl *ctrl, enum weft_event_kind kind, enum weft_state state,
		     uint32_t result, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* --- namespaces -------------------------------------------------------------------------------------- */

struct host_ns_ids {
	uint8_t uuid[16], nguid[16], eui64[8];
};

struct weft_ns {
	struct weft_list link; /* ctrl->namespaces */
	struct weft_ctrl *ctrl;
	uint32_t nsid;
	unsigned block_shift;
	atomic_bool read_only;
	uint32_t copy_max; /* bytes of one source range */
	struct host_ns_ids ids;
	bool opening, changed; /* under ctrl->lock: a scan came by while it was looked at first */
	unsigned scan_round;   /* under ctrl->lock */
	struct nvme_id_ns id;  /* under ctrl->lock; as of the last look */
	_Atomic uint64_t size; /* bytes */
	atomic_int rc;         /* 0, or why I/O fails */
};

/* A look at a namespace: its geometry, or why it cannot be used. */
int host_ns_geometry(const struct nvme_id_ns *id, unsigned *block_shift, struct weft_err *err);
/* From Identify's descriptor list, and from Identify Namespace where that has none. */
void host_ns_ids(const struct nvme_id_ns *id, const void *descriptors, struct host_ns_ids *ids);

/* Controllers before NVMe 1.3 refuse to list descriptors: then there are none. */
bool host_has_no_descriptors(uint16_t status);

/* --- queues --------------------------------------------------------------------------------------------- */

struct weft_queue {
	struct weft_list link_in_ctrl; /* ctrl->queues */
	struct weft_ctrl *ctrl;
	struct weft_reactor *reactor;
	uint16_t qid;
	bool watched; /* somebody waits for weft_queue_fd() */
	struct weft_task go_on;

	/* From home. */
	struct weft_msg look;
	atomic_bool look_posted;

	/* To home, under ctrl->lock. */
	struct weft_msg ask;
	bool ask_posted, ask_lost, ask_abort;
	bool ask_setup;
	unsigned ask_generation;
	struct weft_err ask_why;
	int ask_rc;
	uint16_t ask_cid;

	/* The queue's own. */
	struct host_published seen; /* as of the last look */
	struct weft_link *link;     /* NULL: none */
	unsigned generation;        /* of the association that @link belongs to */
	bool ready;                 /* Connect was answered */
	bool opening, closing;
	struct weft_err open_err;
	int open_rc;
	uint16_t open_status; /* with which Connect was refused */
	struct weft_timer setup;
	struct nvmf_connect_data connect_data;
	struct iovec connect_iov;

	struct weft_list waiting;  /* commands with pieces not yet issued */
	struct weft_list inflight; /* slots, oldest first */
	struct weft_list later;    /* commands that are tried again after a while */
	struct weft_timer timeout, again;
	struct weft_slot *aborting; /* timed out; home was asked to abort it */
	unsigned pending, completed;
	struct weft_queue_stats stats;   /* of connections that are gone */
	struct weft_region_view regions; /* looked at only while there are dma-bufs */
};

/* queue.c */
void host_stats_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more);

/* queue_link.c */
void host_queue_look(struct weft_queue *queue);
void host_queue_tell(struct weft_queue *queue); /* on home, under ctrl->lock: look */
void host_queue_setup_timeout(struct weft_timer *timer);

/* ask.c */
/* @setup: it was lost before it was ready. */
void host_queue_ask_reset(struct weft_queue *queue, int rc, const struct weft_err *why, bool setup);
void host_queue_ask_abort(struct weft_queue *queue, uint16_t cid);

/* memory.c. Whether the connection takes data there; asked only while there are dma-bufs. */
bool host_memory_ok(const struct weft_ctrl *ctrl, struct weft_region_view *view,
		    const struct iovec *iov, int iovcnt);
/* Whether the CPU may touch it. */
bool host_memory_is_plain(const struct iovec *iov, int iovcnt);

/* Commands, see cmd.h. */
void host_issue_init(struct weft_queue *queue);
void host_issue(struct weft_queue *queue); /* as many as there are free slots */
void host_piece_done(struct weft_queue *queue, struct weft_slot *slot);
/* The link is gone. @suspect: by itself, so a command on it may be the reason. */
void host_pieces_lost(struct weft_queue *queue, bool suspect);
void host_fail_all(struct weft_queue *queue, int rc);
void host_timeouts_watch(struct weft_queue *queue);

#endif
