/* queue.h - an I/O queue: the commands that the program submitted, and one path queue per path.
 *
 *   weft_submit() ─▶ waiting ─▶ path queue ─▶ link ═══▶ the path's controller
 *                     ▲  ▲ │       └ lost: its commands wait again, first, or end
 *                     │  │ └▶ stuck: no path to its namespace can be used now
 *                     │  └── later ◀─ a status that asks for another try
 *                     └ something has changed
 *
 * Everything here belongs to the thread that drives the queue, but for what path queues ask of the
 * control reactor: that stands under ctrl->lock.
 *
 * Invariant: a command is on a list of its queue, or has pieces in flight on one path queue; a
 * flush, on several. */
#ifndef WEFT_HOST_QUEUE_QUEUE_H
#define WEFT_HOST_QUEUE_QUEUE_H

#include <stdatomic.h>
#include <weft/host.h>

#include "base/region.h"
#include "host/path/path.h"
#include "reactor/reactor.h"

struct weft_queue;

/* What a path queue wants of the control reactor, under ctrl->lock. */
struct host_control_request {
	struct weft_msg msg;
	bool posted, reset, abort;
	bool ana;             /* the page is not true any more */
	uint32_t probe_ms;    /* not 0: no answer comes; is it there, within so long? */
	bool setup_failed;    /* it could not be connected: not if … */
	bool other_pqs_ready; /* … others are; as of the answer */
	bool hung_up;         /* the controller closed it */
	unsigned generation;
	struct weft_err why;
	int rc;
	uint16_t cid;
};

/* A queue's connection to the controller of one path. */
struct host_path_queue {
	struct weft_queue *queue;
	struct host_path *path;
	struct host_control_request request;
	struct host_published snap; /* as of the last look */
	struct weft_link *link;     /* NULL: none */
	unsigned generation;        /* of the association that @link belongs to, or did */
	bool hung_up;               /* its controller has ended that link */
	bool ready;                 /* Connect was answered */
	bool counted;               /* in path->ready */
	bool removing;              /* its path is: no new commands */
	bool closing;
	struct weft_err open_err; /* why it could not be opened, while the queue was */
	int open_rc;
	uint16_t open_status;    /* with which Connect was refused */
	struct weft_timer setup; /* of Connect, or until it is tried again */
	uint32_t pause_ms;       /* before that */
	unsigned failures;       /* of it, in a row */
	struct nvmf_connect_data connect_data;
	struct iovec connect_iov;

	struct weft_list inflight; /* slots, oldest first */
	unsigned ninflight;        /* of them */
	uint64_t avg_latency_ns;   /* what a command takes, a moving average */
	struct weft_list fenced;   /* commands that wait until their association is over */
	struct weft_timer timeout;
	struct weft_link_slot *aborting; /* timed out; the control reactor was asked to abort it */
};

struct weft_queue {
	struct weft_list ctrl_link; /* ctrl->queues */
	struct weft_ctrl *ctrl;
	struct weft_reactor *reactor;
	uint16_t qid;
	bool watched; /* somebody waits for weft_queue_fd() */
	bool opening, closing;
	struct weft_task issue_task;

	/* From the control reactor. */
	struct weft_msg update_msg;
	atomic_bool update_posted;

	struct host_published snap; /* of the controller, as of the last look */
	struct host_path_queue *path_queues[HOST_PATHS_MAX]; /* by their path's index; NULL: none */
	unsigned npath_queues;                               /* from here on all are NULL */
	unsigned rr_last;         /* index of the path queue that was chosen last */
	unsigned choices;         /* so far */
	struct weft_list waiting; /* commands with pieces not yet issued */
	struct weft_list requeue; /* commands that no path queue can be used for */
	struct weft_list delayed; /* commands that are tried again after a while */
	struct weft_timer retry_timer;
	uint64_t no_queue_since_ns; /* since when no path queue can be connected; 0: one is, or none was tried */
	int rc;                     /* not 0: that was too long, and I/O fails with this */
	uint64_t batch_ns; /* when commands were issued first since the last turn; 0: none was */
	unsigned pending, completed;
	unsigned stalled;    /* of them, in a stall */
	uint64_t stalled_ns; /* since when */
	struct weft_stalls stalls;
	struct weft_queue_stats stats;   /* of connections that are gone */
	struct weft_region_view regions; /* looked at only while there are dma-bufs */
};

/* queue.c */
void host_queue_update(struct weft_queue *queue);
bool host_queue_is_ready(const struct weft_queue *queue); /* a path queue of it is */
void host_queue_post_update(
	struct weft_queue *queue); /* on the control reactor, under ctrl->lock: look */
bool host_queue_has_link(const struct weft_queue *queue);
void host_queue_destroy(struct weft_queue *queue); /* nothing is in flight; frees it */

/* queue_poll.c */
void host_stats_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more);

/* path_queue.c */
struct host_path_queue *host_path_queue_create(struct weft_queue *queue, struct host_path *path);
void host_path_queue_update(struct host_path_queue *pq); /* what was seen of its path */
void host_path_queue_retry_later(
	struct host_path_queue *pq); /* after a pause: its set-up has failed */
bool host_path_queue_is_refused(
	const struct host_path_queue *pq);              /* its path lives, and has none for it */
void host_path_queue_close(struct host_path_queue *pq); /* for good; turn until its link is gone */

/* control_request.c */
void host_path_queue_request_reset(struct host_path_queue *pq, int rc, const struct weft_err *why,
				   bool setup, bool hung_up);
void host_path_queue_request_abort(struct host_path_queue *pq, uint16_t cid);
/* True: the page says otherwise than the status. */
bool host_path_queue_request_ana_read(struct host_path_queue *pq, struct weft_ns *ns);
void host_path_queue_request_probe(struct host_path_queue *pq, uint32_t timeout_ms);

/* Commands, see cmd.h. */
void host_issue(struct weft_queue *queue); /* as many as there are free slots */
/* Something has changed: what is stuck may have a way now. */
void host_kick_requeue(struct weft_queue *queue);
void host_piece_complete(struct host_path_queue *pq, struct weft_link_slot *slot);
/* The link is gone. @suspect: by itself, so a command on it may be the reason. */
void host_pieces_lost(struct host_path_queue *pq, bool suspect);
/* What lost associations had in hand that are over may be sent again. */
void host_fenced_release(struct host_path_queue *pq);
/* But for what is held: that ends when it is over. */
void host_queue_fail_all(struct weft_queue *queue, int rc);

#endif
