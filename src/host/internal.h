/* internal.h - the host's own structures.
 *
 *     the program's threads                   the control reactor, a thread per controller
 *   ┌──────────────────────────┐            ┌─────────────────────────────────────────────┐
 *   │ weft_queue               │            │ weft_ctrl      path_publish.c, user_admin.c │
 *   │   reactor, commands      │─ requests ▶│   host_path    path.c, setup.c              │
 *   │   host_path_queue ─ link │            │     admin.c    admin queue ─ link           │
 *   │   host_path_queue ─ link │◀─ update ──│     aer.c, keepalive.c, scan.c              │
 *   └──────────────────────────┘            │   host_path …                               │
 *                                           └─────────────────────────────────────────────┘
 *
 * The program's threads drive the I/O queues; one thread per controller, the control reactor, does
 * everything else. They share what is under ctrl->lock, which no I/O takes. The control reactor
 * publishes path states and posts each queue an update. A path queue posts requests: reset the
 * association, abort a command, read the ANA log page, probe the path. */
#ifndef WEFT_HOST_INTERNAL_H
#define WEFT_HOST_INTERNAL_H

#include <pthread.h>

#include "host/config.h"
#include "host/namespace/ns.h"
#include "host/path/path.h"
#include "host/queue/queue.h"
#include "lock/mutex.h"

enum {
	HOST_EVENTS = 64,
	HOST_DEPTH_MAX = 4096,
	HOST_QUEUES_MAX = 1024,
};

struct host_follower;

struct weft_ctrl {
	struct host_config config; /* of its first path */
	struct weft_reactor *reactor;
	pthread_t thread;
	struct host_follower
		*follower; /* not NULL: this is a discovery service, and another controller's */

	/* Only the control reactor uses these. */
	bool stopping;
	atomic_bool reset_posted;
	struct weft_msg stop_msg, reset_msg;
	struct weft_list admin_waiting;  /* user_admin.c */
	struct weft_timer fail_timer;    /* access.c */
	struct weft_list followers;      /* discovery services that are followed: follower.h */
	uint32_t lifetime_ms;            /* of host_connect_once(); 0: no limit */
	struct weft_timer lifetime;      /* for that; or for the followers' first logs */
	bool discovery_timed_out;        /* nobody waits for the followers any more */
	struct weft_task reconcile_task; /* the followers' logs and the paths: reconcile.c */
	unsigned probe_answers;          /* answers to probe.c's Keep Alives so far */

	/* To the control reactor: a namespace is due for a scan. */
	struct weft_msg open_msg;
	atomic_bool open_posted;

	/* Shared, under @lock: assert_locked(). */
	struct weft_mutex lock;
	pthread_cond_t changed;
	struct host_path *paths[HOST_PATHS_MAX]; /* NULL: none */
	unsigned next_path;                      /* id */
	struct host_published pub;               /* of all paths, merged */
	struct weft_list queues;
	struct weft_id_hash ns_records_by_id;     /* host_ns_record: ns_record.c */
	struct weft_list ns_records;              /* the same, as a list */
	struct weft_list due[HOST_PATHS_MAX];     /* by path index, records to scan: scan.c */
	struct weft_list refused[HOST_PATHS_MAX]; /* likewise, whose last scan was refused */
	struct weft_list ns_down;                 /* weft_ns, by down_ns: access.c */
	uint64_t qids[HOST_QUEUES_MAX / 64];
	uint32_t last_qid;
	struct weft_err no_queue; /* why a path queue could not reconnect, the latest */
	struct weft_event events[HOST_EVENTS];
	unsigned first_event, nevents;
	int event_fd;
};

/* config.c */
void host_link_options(const struct host_config *config, uint16_t qid, uint16_t cntlid,
		       uint32_t depth, struct weft_link_options *options);

/* control_reactor.c */
/* Creates it without paths and thread. @follower: it runs on its owner's control reactor. */
int host_ctrl_create(const struct host_config *config, struct host_follower *follower,
		     struct weft_ctrl **ctrl, struct weft_err *err);
void host_ctrl_free(struct weft_ctrl *ctrl);
int host_control_start(struct weft_ctrl *ctrl, struct weft_err *err);

static inline void host_ctrl_freep(struct weft_ctrl **ctrl)
{
	if (*ctrl)
		host_ctrl_free(*ctrl);
}

/* connect.c: weft_connect() for @lifetime_ms at most, and without reconnecting. */
int host_connect_once(const struct host_path_spec *specs, int count, uint32_t lifetime_ms,
		      struct weft_ctrl **ctrl, struct weft_err *err);
/* Resolves the path's host name, which may block. */
int host_path_resolve(struct host_path *path, const struct weft_uri_parts *parts,
		      struct weft_err *err);

/* path_add.c */
int host_path_create(struct weft_ctrl *ctrl, const struct host_config *config,
		     struct host_path **path, struct weft_err *err);
void host_path_free(struct host_path *path); /* NULL: none */
/* The path leads to this address, from a discovery log. */
void host_path_set_addr(struct host_path *path, const struct weft_link_transport *transport,
			const struct sockaddr_storage *addr);
/* -EUSERS: there are too many. Before the control reactor runs, or on it. */
int host_paths_insert(struct host_path *path);
/* From any thread: inserts and starts the path. pub.tried is set when its first attempt is over;
 * then the caller says host_path_added() or host_path_remove(). */
void host_path_add_async(struct host_path *path);
void host_path_added(struct host_path *path); /* under ctrl->lock */
/* The caller's pointer is invalid from here on: the path is freed with its last path queue. */
void host_path_remove(struct host_path *path);
void host_path_put(struct host_path *path); /* a path queue of it ends; under ctrl->lock */
void host_path_stopped(
	struct host_path *path); /* on the control reactor: host_path_stop() is complete */
void host_paths_stop(struct weft_ctrl *ctrl);
void host_control_stop_if_idle(struct weft_ctrl *ctrl); /* if every path and follower stopped */

/* path_publish.c, on the control reactor */
void host_path_publish(struct host_path *path);
/* Under ctrl->lock: the cause of its last loss, with its address where there are several. */
void host_path_why(const struct host_path *path, struct weft_err *why);
bool host_path_is_only(const struct host_path *path);
struct host_path *host_path_find_other_live(const struct host_path *path); /* NULL: none */
/* Under ctrl->lock. */
void host_ctrl_merge_paths(struct weft_ctrl *ctrl);
void host_ctrl_wake_all(struct weft_ctrl *ctrl); /* waiting threads, and every queue */

/* ctrl.c, under ctrl->lock: the paths that are not being removed, by id; returns how many. */
unsigned host_paths_by_id(struct weft_ctrl *ctrl, struct host_path *paths[HOST_PATHS_MAX]);

/* ctrl.c, under ctrl->lock: the first attempt of a path is not over, or a discovery service may
 * list another path. */
bool host_ctrl_has_untried_path(const struct weft_ctrl *ctrl);

/* ctrl.c: the address of its first path. */
void host_ctrl_address(struct weft_ctrl *ctrl, struct sockaddr_storage *addr);

/* path_text.c: an address without its scheme. */
const char *host_address_text(const char *address);
/* Under ctrl->lock: "127.0.0.1:4420 inaccessible (ANA group 7), …", every path and what keeps it from
 * being used, for @ns or, if that is NULL, at all. */
void host_paths_text(struct weft_ctrl *ctrl, const struct weft_ns *ns, char *text, size_t size);

/* flush.c, under ctrl->lock: the path with this index was removed. */
void host_dirty_path_removed(struct weft_ctrl *ctrl, unsigned index);

/* user_admin.c: Get LBA Status, from any thread, as weft_admin(), through a path that leads to @ns
 * and supports it. 0, or -errno: -EAGAIN, try later; -ECONNRESET, -ETIMEDOUT, the command was lost
 * or not answered; the rest is final. */
int host_ns_lba_status(struct weft_ns *ns, uint64_t slba, uint16_t blocks, void *buf,
		       uint32_t length);
/* user_admin.c: weft_identify() through the path with this id. -ENOTCONN: it is not live. */
int host_identify_through(struct weft_ctrl *ctrl, unsigned path, uint8_t cns, uint32_t nsid,
			  void *buf, struct weft_err *err);
/* user_admin.c, on the control reactor: sends the commands that callers of weft_admin() wait for,
 * as far as there is room, or fails them. */
void host_user_admin_pump(struct weft_ctrl *ctrl);
void host_user_admin_fail_waiting(struct weft_ctrl *ctrl, int rc);

/* discovery.c */
enum {
	HOST_DISC_LOG_ENTRIES_PER_CMD = 16, /* entries of one command */
	HOST_DISC_LOG_TRIES_MAX = 8,        /* while the log changes under us */
	HOST_REFERRAL_DEPTH_MAX = 8,
};
/* The log's header, before its entries. */
struct host_disc_log_header {
	__le64 genctr, numrec;
	__le16 recfmt;
	__u8 rsvd[14];
};
/* 0, or why it cannot be the header of a log that has at most so many entries. */
int host_disc_log_check_header(const struct host_disc_log_header *header, uint32_t most,
			       const struct weft_options *options, struct weft_err *err);
/* @from: the service that has the entry. The URI stays empty where the entry's address cannot be
 * one that @from may tell of. */
void host_disc_log_decode_entry(const struct nvmf_disc_log_entry *entry,
				const struct sockaddr_storage *from,
				struct weft_discovered *decoded);
/* -ETIME */
int host_discovery_fail_timeout(const struct weft_options *options, struct weft_err *err);

/* event.c: any thread */
void host_event_push(struct weft_ctrl *ctrl, enum weft_event_kind kind, enum weft_state state,
		     uint32_t result, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* memory.c. Can the connection move data there? Called only while there are dma-bufs. */
bool host_memory_ok(struct weft_queue *queue, const struct iovec *iov, int iovcnt);
/* Can the CPU access it? */
bool host_memory_is_plain(const struct iovec *iov, int iovcnt);

#endif
