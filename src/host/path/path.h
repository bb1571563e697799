/* path.h - one way to a subsystem: an association with one of its controllers, and what keeps it.
 *
 *   path.c   states, reconnecting         setup.c      Connect … live
 *   admin.c  the admin queue's link       keepalive.c, aer.c, scan.c   from live on
 *
 * Everything here is the control reactor's, but for what is published: that stands under
 * ctrl->lock. */
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
	bool tells_allocated; /* Get LBA Status, of allocated blocks */
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
	uint32_t moved;       /* … which was so much */
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
void host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms);
/* The link is gone: everything in flight is done() with -ECONNRESET. */
void host_admin_lost(struct host_path *path);
void host_admin_init(struct host_path *path);
/* There is room for a command that is not ours. */
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
/* A better one, for some refusals of Connect; else @why stays as it is. */
void host_explain_connect(const struct host_config *config, const struct nvme_cqe *cqe,
			  struct weft_err *why);

/* --- the path --------------------------------------------------------------------------------- */

/* What queues see, under ctrl->lock. */
struct host_published {
	enum weft_state state;
	bool lives;                /* … and is not about to be torn down */
	unsigned generation;       /* of the association */
	unsigned ended_generation; /* the newest of which nothing is left */
	unsigned peer_closed_generation; /* … nothing that came by a connection which its controller ended */
	unsigned abandoned_generation; /* the newest of which nobody has said that it is over */
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

/* An association that was lost, and may not be over. */
struct host_lost_assoc {
	unsigned first, last; /* generations that it stands for */
	bool silent;          /* its controller may not know of the loss of all its connections */
	uint16_t cntlid;      /* its controller */
	uint8_t ciu;          /* 0: nobody can be asked about it */
	uint64_t cirn;
	uint64_t fence_limit_ms; /* what it needs at most to end by itself … */
	uint64_t until_ns;       /* … and when that is over */
};

struct host_fence {
	unsigned generation;                               /* that was lost last */
	struct host_lost_assoc lost[HOST_LOST_ASSOCS_MAX]; /* oldest first */
	unsigned nlost;
	bool ccr_pending;    /* a question about the oldest is in flight */
	uint8_t cannot_tell; /* bits by index: paths whose controllers cannot tell of it */
	struct weft_timer retry_timer, limit;
	struct weft_timer give_up_timer; /* with those who are asked */
};

struct host_path {
	struct weft_ctrl *ctrl;
	struct weft_reactor *reactor; /* the control reactor's */
	struct host_config config;
	struct sockaddr_storage addrs[HOST_ADDRS_MAX]; /* to be tried, until one has worked */
	unsigned naddrs, addr;
	unsigned id;             /* for the program; never used again */
	char discovered_by[128]; /* the discovery service that told of it; "": it was given */
	struct weft_msg msg;

	/* Under ctrl->lock. */
	bool inserted, removing;
	bool adding;          /* somebody waits for its first attempt */
	unsigned path_queues; /* that lead here */
	unsigned ready;       /* of them, connected; of this association */
	unsigned index;       /* in ctrl->paths, and in what is kept per path elsewhere */
	struct host_published pub;

	atomic_bool traffic;  /* a queue sent something: as good as a keep-alive */
	atomic_bool answered; /* something was answered since it is suspected */

	enum weft_state state;
	bool stopping, stopped, broken, tried;
	bool refused; /* Connect, with Do Not Retry */
	unsigned generation;
	struct weft_link *link; /* NULL: none */
	struct host_traits traits;
	struct weft_err why; /* first cause of the loss under way */
	int why_rc;
	bool hung_up; /* … the admin queue's connection: the controller's doing, so it knows */
	struct weft_timer admin_close_timer; /* an I/O queue's was, and this one may follow */
	unsigned admin_close_polls;          /* so often */
	struct host_admin admin_close_cmd;   /* asks for a sign of life meanwhile */
	unsigned attempt;
	unsigned random;           /* for the pauses */
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

	struct host_admin probe_cmd;   /* as this path is suspected, or another one is */
	bool probing;                  /* it is out */
	struct weft_timer probe_timer; /* until the next part of the time is over */
	uint32_t probe_interval_ms;
	uint64_t probe_interval_end_ns; /* when it is over */
	unsigned probe_misses;          /* in which another one answered, and this one did not */
	unsigned probe_answers;         /* ctrl->answers, when this part began */

	struct host_aer {
		struct host_admin cmd, log;
		uint32_t result;
		bool out;
		bool read; /* its log page is there */
	} aers[HOST_AERS];
	bool changed_read; /* the program has read what changed: the next event does not tell all */
	struct host_ratelimit aer_ratelimit;
	struct weft_timer aer_timer; /* until there is some of it */
	char *aer_page;              /* HOST_AERS times HOST_PAGE bytes */

	struct host_ana {
		struct host_admin cmd;
		struct weft_timer timer; /* until it is read again */
		struct host_ratelimit ratelimit;
		bool reading, for_setup;
		bool due;           /* @timer: it is to be read, not just looked at again */
		bool reread;        /* when it has been read */
		uint64_t change_ns; /* since a group is in change; 0: none is */
		char *page;
		size_t size;
		struct host_ana_group *groups; /* under ctrl->lock; NULL: it has none */
		unsigned ngroups;
		unsigned reads_begun, reads_applied; /* reads of the page; under ctrl->lock */
		bool change_notified; /* an event says that the page changed; under ctrl->lock */
	} ana;

	struct host_fence fence;

	struct host_admin scan;
	uint32_t scan_nsid;
	bool scanning, scan_for_setup, scan_notify;
	char *scan_page;
	struct weft_timer scan_retry_timer; /* at those that could not be looked at */
	uint32_t scan_retry_ms;             /* before that */
};

/* path.c */
void host_path_start(struct host_path *path);
/* nvme+tcp://HOST:PORT */
void host_path_address(const struct host_path *path, char *text, size_t size);
void host_path_up(struct host_path *path); /* set-up is through */
/* The association is to be ended for this reason; the first counts. */
void host_path_broken(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* … because its controller has ended an I/O queue's connection. */
void host_path_io_link_closed(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void host_path_link_closed(struct host_path *path);
/* For good, with an orderly shutdown if there is a connection; host_path_stopped() follows. */
void host_path_stop(struct host_path *path);

/* setup.c */
void host_setup_start(struct host_path *path);
void host_setup_shutdown(struct host_path *path, void (*done)(struct host_admin *a, int rc));

/* ctrl_traits.c */
/* @discovery: it was asked for as a discovery controller, whatever it says. */
void host_traits_identify(struct host_traits *t, const struct nvme_id_ctrl *id, bool discovery);
void host_traits_limits(struct host_traits *t, const struct nvme_id_ctrl_nvm *nvm);

/* keepalive.c, aer.c: from live on, until lost */
void host_keepalive_start(struct host_path *path);
void host_keepalive_stop(struct host_path *path);
void host_aer_start(struct host_path *path);
void host_aer_stop(struct host_path *path);

/* probe.c: a command there takes unusually long; does the controller answer at all? */
void host_probe(struct host_path *path, uint32_t timeout_ms);

/* ana.c */
void host_ana_setup(struct host_path *path);   /* reads the page, then namespaces, then it is up */
void host_ana_read(struct host_path *path);    /* again */
void host_ana_changed(struct host_path *path); /* its controller says so */
void host_ana_stop(struct host_path *path);
void host_ana_free(struct host_path *path);
/* Under ctrl->lock: what the page said of @group; 0: the namespace has none. */
uint8_t host_ana_state(const struct host_path *path, uint32_t group);

/* fence.c */
void host_fence_path_lost(struct host_path *path);
void host_fence_path_up(struct host_path *path);
void host_fence_path_dead(struct host_path *path);
void host_fence_stop(struct host_path *path);

/* scan.c */
void host_scan_due(struct host_path *path); /* looks at the namespaces that are due */
void host_scan_all(struct host_path *path, bool for_setup);
/* Of these, up to a 0, those that are open; tells when it is through. */
void host_scan_changed(struct host_path *path, const __le32 *nsids, unsigned max);
void host_scan_stop(struct host_path *path);

#endif
