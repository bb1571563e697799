/* internal.h - the host's own structures.
 *
 *     caller's threads                    home: the controller's thread
 *   ┌──────────────────────┐            ┌──────────────────────────────────┐
 *   │ weft_queue           │            │ weft_ctrl  paths.c, user.c       │
 *   │   reactor, commands  │── asks ───▶│   host_path  path.c, setup.c     │
 *   │   host_lane ─ link   │            │     admin.c  admin queue ─ link  │
 *   │   host_lane ─ link   │◀── look ───│     aer.c, keepalive.c, scan.c   │
 *   └──────────────────────┘            │   host_path …                    │
 *                                       └──────────────────────────────────┘
 *
 * A queue's reactor runs on whichever thread drives the queue; home's on a thread of its own. They
 * share what stands under ctrl->lock, which no I/O takes: home publishes states and tells the
 * queues to look; a lane asks home to abort a command, or to note that its connection broke. */
#ifndef WEFT_HOST_INTERNAL_H
#define WEFT_HOST_INTERNAL_H

#include <pthread.h>

#include "host/config.h"
#include "host/ns.h"
#include "host/path.h"
#include "host/queue.h"

enum {
	HOST_EVENTS = 64,
	HOST_DEPTH_MAX = 4096,
	HOST_QUEUES_MAX = 1024,
};

struct weft_ctrl {
	struct host_config config; /* of its first path */
	struct weft_reactor *reactor;
	pthread_t thread;

	/* Home's. */
	bool stopping;
	atomic_bool reset_posted;
	struct weft_msg stop_msg, reset_msg;
	struct weft_list admin_waiting; /* user.c */
	struct weft_timer fail_timer;   /* access.c */

	/* To home: a namespace is to be looked at. */
	struct weft_msg open_msg;
	atomic_bool open_posted;

	/* Shared, under @lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct host_path *paths[HOST_PATHS_MAX]; /* NULL: none */
	unsigned next_path;                      /* id */
	struct host_published pub;               /* what the paths add up to */
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

/* join.c */
int host_path_create(struct weft_ctrl *ctrl, const struct host_config *config,
		     struct host_path **path, struct weft_err *err);
void host_path_free(struct host_path *path); /* NULL: none */
/* -EUSERS: there are too many. Before home has begun, or on home. */
int host_paths_insert(struct host_path *path);
/* From any thread: it is inserted and started; its first attempt shows in pub.tried. */
void host_path_join(struct host_path *path);
/* The caller's pointer is void; it is gone when no lane leads there any more. */
void host_path_leave(struct host_path *path);
void host_path_let_go(struct host_path *path); /* under ctrl->lock: of a lane */
void host_path_over(struct host_path *path);   /* on home: it was told to stop, and has */
void host_paths_stop(struct weft_ctrl *ctrl);

/* paths.c, on home */
void host_path_publish(struct host_path *path);
bool host_path_is_alone(const struct host_path *path);
struct host_path *host_paths_another_lives(const struct host_path *path); /* NULL: none */
/* Under ctrl->lock. */
void host_paths_combine(struct weft_ctrl *ctrl);
void host_paths_wake(struct weft_ctrl *ctrl); /* whoever waits, and every queue */

/* ctrl.c, under ctrl->lock: those that do not leave, by their numbers; returns how many. */
unsigned host_paths_in_order(struct weft_ctrl *ctrl, struct host_path *paths[HOST_PATHS_MAX]);

/* user.c, on home: what callers of weft_admin() wait for goes out, as far as there is room; or fails */
void host_user_pump(struct weft_ctrl *ctrl);
void host_user_fail_waiting(struct weft_ctrl *ctrl, int rc);

/* event.c: any thread */
void host_event_push(struct weft_ctrl *ctrl, enum weft_event_kind kind, enum weft_state state,
		     uint32_t result, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* memory.c. Whether the connection takes data there; asked only while there are dma-bufs. */
bool host_memory_ok(struct weft_queue *queue, const struct iovec *iov, int iovcnt);
/* Whether the CPU may touch it. */
bool host_memory_is_plain(const struct iovec *iov, int iovcnt);

#endif
