/* path.h - a path to a subsystem (multipath): its address, and the association with the controller
 * behind it.
 *
 *   path.c   states, reconnecting         setup.c      Connect … live
 *   admin.c  the admin queue's link       keepalive.c, aer.c, scan.c   from live on
 *
 * Only the control reactor uses what is here, except @pub and other members under ctrl->lock. */
#ifndef WEFT_HOST_PATH_PATH_H
#define WEFT_HOST_PATH_PATH_H

#include <stdatomic.h>
#include <weft/host.h>

#include "base/err.h"
#include "base/list.h"
#include "host/ratelimit.h"
#include "host/config.h"
#include "proto/nvme.h"
#include "proto/status.h"
#include "reactor/reactor.h"
#include "transport/link.h"

struct host_path;

enum {
	HOST_ADMIN_DEPTH = 31,    /* of a queue with 32 entries, which every controller has */
	HOST_ADMIN_USER_MAX = 16, /* of them for weft_admin(): ours always find room */
	HOST_AERS = 4,
	HOST_ABORTS_MAX = 4, /* in flight */
	HOST_PAGE = 4096,
	HOST_ADDRS_MAX = 8, /* of a name */
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
	uint16_t oacs, oncs, fuses;
	bool tells_allocated; /* it supports Get LBA Status for allocated blocks */
	uint32_t ctratt, oaes;
	uint8_t vwc, aers;
	uint32_t keepalive_step_ms; /* it rounds KATO up to a multiple of that; 0: it has none */
	bool disconnects;           /* it takes the Disconnect command */
	bool ana;                   /* it reports asymmetric access … */
	uint8_t anatt_s;            /* … a change of which takes so long at most … */
	uint32_t ana_groups;        /* … and of so many groups */
	uint8_t ciu, ccrl;          /* its instance, 0: none; others that it resets at a time */
	uint64_t cirn;
	uint16_t cqt_ms;
};

/* --- admin commands --------------------------------------------------------------------------- */

struct host_admin {
	struct weft_list link;
	struct host_path *path;
	union nvme_sqe cmd;
	struct nvme_cqe cqe;
	struct iovec iov;
	const char *name;     /* "Identify Controller" */
	uint64_t deadline_ns; /* 0: none */
	bool inexact;         /* a success may move less data than there is room for … */
	uint32_t moved;       /* … bytes that it moved */
	/* rc 0: the command was answered, see host_status(); else it was lost. */
	void (*done)(struct host_admin *a, int rc);
};

/* 0: success, whatever the bits beside the code say. */
static inline uint16_t host_status(const struct nvme_cqe *cqe)
{
	uint16_t status = le16_to_cpu(cqe->status) >> 1;

	return status & 0x7ff ? status : 0;
}

/* The admin queue is connected. @timeout_ms 0: it may take forever. */
void host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms);
/* The link is gone: everything in flight is done() with -ECONNRESET. */
void host_admin_lost(struct host_path *path);
void host_admin_init(struct host_path *path);
/* Is there room for a command of the program's? */
bool host_admin_has_room(const struct host_path *path);
extern const struct weft_link_ops host_admin_link_ops;

void host_fill_identify(union nvme_sqe *cmd, uint8_t cns, uint32_t nsid);
void host_fill_log_page(union nvme_sqe *cmd, uint8_t lid, uint32_t nsid, uint64_t offset,
			uint32_t length);
void host_fill_lba_status(union nvme_sqe *cmd, uint32_t nsid, uint64_t slba, uint16_t blocks,
			  uint32_t length);
void host_fill_connect(union nvme_sqe *cmd, uint16_t qid, uint32_t depth, uint32_t kato_ms);
void host_connect_data(const struct host_config *config, uint16_t cntlid,
		       struct nvmf_connect_data *data);
void host_fill_property_get(union nvme_sqe *cmd, uint32_t offset, bool wide);
void host_fill_property_set(union nvme_sqe *cmd, uint32_t offset, uint32_t value);
void host_fill_set_feature(union nvme_sqe *cmd, uint8_t fid, uint32_t value);
/* A sentence about a status: "Connect: host not allowed (NVMe status 0x184)", and its -errno. */
int host_fail_status(struct weft_err *err, const char *what, uint16_t status);
/* A better sentence for some refusals of Connect; else @why stays as it is. */
void host_explain_connect(const struct host_config *config, const struct nvme_cqe *cqe,
			  struct weft_err *why);

/* --- the path --------------------------------------------------------------------------------- */

/* A path's state as its path queues see it, under ctrl->lock. */
struct host_published {
	enum weft_state state;
	bool lives;                /* WEFT_LIVE, and not about to be torn down */
	unsigned generation;       /* of the association */
	unsigned ended_generation; /* the newest whose fence is over: no command of it is left */
	/* The newest of whose commands none is left on connections that the controller closed. */
	unsigned peer_closed_generation;
	unsigned abandoned_generation; /* the newest whose end no controller has confirmed */
	bool tried;                    /* the first attempt is over */
	int rc;                        /* of the last loss */
	struct weft_err why;
	struct host_traits traits;
	uint64_t reconnects, losses;
	char address[128]; /* nvme+tcp://HOST:PORT */
	struct weft_path path;
	bool takes_dmabuf;
};

struct host_ana_group {
	uint32_t id;
	uint8_t state; /* enum nvme_ana_state */
};

enum { HOST_LOST_ASSOCS_MAX = 32 };

/* A lost association that is still fenced: its commands may yet be carried out. */
struct host_lost_assoc {
	unsigned first, last; /* generations that it stands for */
	bool silent;          /* the controller may not know that all connections are lost */
	uint16_t cntlid;      /* its controller */
	uint8_t ciu;          /* 0: no controller can be asked about it */
	uint64_t cirn;
	uint64_t fence_limit_ms; /* time that it needs at most to end by itself … */
	uint64_t until_ns;       /* … and when that is over */
};

struct host_fence {
	unsigned generation;                               /* the last one that was lost */
	struct host_lost_assoc lost[HOST_LOST_ASSOCS_MAX]; /* oldest first */
	unsigned nlost;
	bool ccr_pending;    /* a Cross-Controller Reset about the oldest is in flight */
	uint8_t cannot_tell; /* bits by index: paths whose controllers do not know it */
	struct weft_timer retry_timer, limit;
	struct weft_timer give_up_timer; /* no controller confirms */
};

struct host_path {
	struct weft_ctrl *ctrl;
	struct weft_reactor *reactor; /* the control reactor */
	struct host_config config;
	struct sockaddr_storage addrs[HOST_ADDRS_MAX]; /* to be tried, until one has worked */
	unsigned naddrs, addr;
	unsigned id;             /* for the program; never used again */
	char discovered_by[128]; /* the discovery service that lists it; "": the program gave it */
	struct weft_msg msg;

	/* Under ctrl->lock. */
	bool inserted, removing;
	bool adding;          /* weft_path_add() waits for its first attempt */
	unsigned path_queues; /* how many there are */
	unsigned ready;       /* how many of them are connected in this association */
	unsigned index;       /* in ctrl->paths and all other arrays by path */
	struct host_published pub;

	atomic_bool traffic;  /* a queue sent something: as good as a keep-alive */
	atomic_bool answered; /* an answer came since probe.c suspects the path */

	enum weft_state state;
	bool stopping, stopped, broken, tried;
	bool refused; /* Connect failed with Do Not Retry */
	unsigned generation;
	struct weft_link *link; /* NULL: none */
	struct host_traits traits;
	struct weft_err why; /* first cause of the loss under way */
	int why_rc;
	bool hung_up; /* the controller closed the admin queue's connection: the loss is audible */
	struct weft_timer admin_close_timer; /* it closed an I/O queue's: is this one next? */
	unsigned admin_close_polls;          /* how often that was checked */
	struct host_admin admin_close_cmd;   /* Keep Alive meanwhile */
	unsigned attempt;
	unsigned random;           /* seed for the reconnect delays */
	uint64_t lost_ns, live_ns; /* since when; 0: never, not now */
	struct weft_timer retry;

	unsigned step; /* setup.c */
	uint64_t ready_by_ns;
	struct weft_timer poll;
	struct host_admin setup;
	char *page; /* HOST_PAGE bytes for set-up */

	struct weft_list admin_inflight;
	unsigned admin_users, aborts;
	struct weft_task pump;
	struct weft_timer admin_timer;

	struct weft_timer keepalive;
	struct host_admin keepalive_cmd;
	bool keepalive_out;

	struct host_admin probe_cmd;   /* Keep Alive: this path is suspected, or another one is */
	bool probing;                  /* probe_cmd is in flight */
	struct weft_timer probe_timer; /* end of the interval */
	uint32_t probe_interval_ms;
	uint64_t probe_interval_end_ns;
	unsigned probe_misses;  /* intervals in which another path answered, and this one did not */
	unsigned probe_answers; /* ctrl->probe_answers when the interval began */

	struct host_aer {
		struct host_admin cmd, log;
		uint32_t result;
		bool out;
		bool read; /* its log page has been read */
	} aers[HOST_AERS];
	bool changed_read; /* the program has read the Changed Namespace List: it is incomplete */
	struct host_ratelimit aer_ratelimit;
	struct weft_timer aer_timer; /* until the rate limit allows the next */
	char *aer_page;              /* HOST_AERS times HOST_PAGE bytes */

	struct host_ana {
		struct host_admin cmd;
		struct weft_timer timer; /* until the page is read or checked again */
		struct host_ratelimit ratelimit;
		bool reading, for_setup;
		bool due;           /* @timer: the page is to be read, not just checked */
		bool reread;        /* once more, when the read under way is complete */
		uint64_t change_ns; /* since when a group is in change; 0: none is */
		char *page;
		size_t size;
		struct host_ana_group *groups; /* under ctrl->lock; NULL: no ANA */
		unsigned ngroups;
		unsigned reads_begun, reads_applied; /* reads of the page; under ctrl->lock */
		bool change_notified; /* an event says that the page changed; under ctrl->lock */
	} ana;

	struct host_fence fence;

	struct host_admin scan;
	uint32_t scan_nsid;
	bool scanning, scan_for_setup, scan_notify;
	char *scan_page;
	struct weft_timer scan_retry_timer; /* for namespaces whose scan was refused */
	uint32_t scan_retry_ms;             /* its delay */
};

/* path.c */
void host_path_start(struct host_path *path);
/* nvme+tcp://HOST:PORT */
void host_path_address(const struct host_path *path, char *text, size_t size);
void host_path_up(struct host_path *path); /* set-up is complete */
/* Ends the association; the first reason is kept. */
void host_path_broken(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* … because its controller has closed an I/O queue's connection. */
void host_path_io_link_closed(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void host_path_link_closed(struct host_path *path);
/* Ends the path, with an orderly shutdown if it is connected; host_path_stopped() follows. */
void host_path_stop(struct host_path *path);

/* setup.c */
void host_setup_start(struct host_path *path);
void host_setup_shutdown(struct host_path *path, void (*done)(struct host_admin *a, int rc));

/* ctrl_traits.c */
/* @discovery: we connected to it as a discovery controller, whatever it says. */
void host_traits_identify(struct host_traits *t, const struct nvme_id_ctrl *id, bool discovery);
void host_traits_limits(struct host_traits *t, const struct nvme_id_ctrl_nvm *nvm);

/* keepalive.c, aer.c: from live on, until lost */
void host_keepalive_start(struct host_path *path);
void host_keepalive_stop(struct host_path *path);
void host_aer_start(struct host_path *path);
void host_aer_stop(struct host_path *path);

/* probe.c: a command on this path takes unusually long; does the controller answer at all? */
void host_probe(struct host_path *path, uint32_t timeout_ms);

/* ana.c */
void host_ana_setup(struct host_path *path);   /* reads the page, scans, calls host_path_up() */
void host_ana_read(struct host_path *path);    /* again */
void host_ana_changed(struct host_path *path); /* an event says so */
void host_ana_stop(struct host_path *path);
void host_ana_free(struct host_path *path);
/* Under ctrl->lock: the state of @group by the log page; 0: the namespace has none. */
uint8_t host_ana_state(const struct host_path *path, uint32_t group);

/* fence.c */
void host_fence_path_lost(struct host_path *path);
void host_fence_path_up(struct host_path *path);
void host_fence_path_dead(struct host_path *path);
void host_fence_stop(struct host_path *path);

/* scan.c */
void host_scan_due(struct host_path *path); /* scans the namespaces that are due */
void host_scan_all(struct host_path *path, bool for_setup);
/* Scans those of @nsids (up to a 0) that are open; the program gets an event at the end. */
void host_scan_changed(struct host_path *path, const __le32 *nsids, unsigned max);
void host_scan_stop(struct host_path *path);

#endif
