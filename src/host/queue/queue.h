/* queue.h - an I/O queue: the commands that the program submitted, and one path queue per path
 * (multipath).
 *
 *   weft_submit() ─▶ waiting ─▶ path queue ─▶ link ═══▶ the path's controller
 *                     ▲  ▲ │       └ lost (failover): commands go to the head of waiting, or end
 *                     │  │ └▶ requeue: no path to the namespace can be used now
 *                     │  └── delayed ◀─ a status that asks for a retry
 *                     └ kick: something has changed
 *
 * Everything here belongs to the thread that drives the queue, except the path queues' requests to
 * the control reactor, which are under ctrl->lock.
 *
 * Invariant: a command is on one list of its queue, or has pieces in flight on one path queue; a
 * flush, on several. */
#ifndef WEFT_HOST_QUEUE_QUEUE_H
#define WEFT_HOST_QUEUE_QUEUE_H

#include <stdatomic.h>
#include <weft/host.h>

#include "host/path/path.h"
#include "memory/region.h"
#include "reactor/reactor.h"

struct weft_queue;

/* A path queue's request to the control reactor, under ctrl->lock. */
struct host_control_request {
	struct weft_msg msg;
	bool posted, reset, abort;
	bool ana;             /* read the ANA log page: a status contradicts it */
	uint32_t probe_ms;    /* not 0: probe the controller, with this timeout */
	bool setup_failed;    /* @reset: because it could not connect; not if … */
	bool other_pqs_ready; /* … other queues are connected; the control reactor's answer */
	bool hung_up;         /* @reset: because the controller closed the connection */
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
	struct host_published snap; /* path->pub as of the last update */
	struct weft_link *link;     /* NULL: none */
	unsigned generation;        /* of the association that @link belongs to, or did */
	bool hung_up;               /* the controller has closed that link */
	bool ready;                 /* Connect has succeeded */
	bool counted;               /* in path->ready */
	bool removing;              /* the path is being removed: no new commands */
	bool closing;
	struct weft_err open_err; /* why it could not connect, in weft_queue_open() */
	int open_rc;
	uint16_t open_status;    /* NVMe status of the refused Connect */
	struct weft_timer setup; /* limit of Connect, or delay before the next try */
	uint32_t pause_ms;       /* that delay */
	unsigned failures;       /* to connect, in a row */
	struct nvmf_connect_data connect_data;
	struct iovec connect_iov;

	struct weft_list inflight; /* slots, oldest first */
	unsigned ninflight;        /* how many */
	uint64_t avg_latency_ns;   /* of a command, a moving average */
	struct weft_list fenced;   /* commands that wait for their association's fence */
	struct weft_timer timeout;
	struct weft_link_slot *aborting; /* timed out; the control reactor was asked to abort it */
};

struct weft_queue {
	struct weft_list ctrl_link; /* ctrl->queues */
	struct weft_ctrl *ctrl;
	struct weft_reactor *reactor;
	uint16_t qid;
	bool watched; /* the program uses weft_queue_fd() */
	bool opening, closing;
	struct weft_task issue_task;

	/* From the control reactor. */
	struct weft_msg update_msg;
	atomic_bool update_posted;

	struct host_published snap;                          /* ctrl->pub as of the last update */
	struct host_path_queue *path_queues[HOST_PATHS_MAX]; /* by their path's index; NULL: none */
	unsigned npath_queues;                               /* from here on all are NULL */
	unsigned rr_last;         /* index of the path queue that was chosen last */
	unsigned choices;         /* of a path queue, so far */
	struct weft_list waiting; /* commands with pieces not yet issued */
	struct weft_list requeue; /* commands that no path queue can be used for */
	struct weft_list delayed; /* commands that are tried again after a while */
	struct weft_timer retry_timer;
	/* Since when no path queue can connect; 0: one is connected, or none was tried. */
	uint64_t no_queue_since_ns;
	int rc;            /* not 0: that was too long, and I/O fails with this */
	uint64_t batch_ns; /* when the first command since the last turn was issued; 0: none was */
	unsigned pending, completed;
	unsigned stalled;    /* pending commands that are in a stall */
	uint64_t stalled_ns; /* since when */
	struct weft_stalls stalls;
	struct weft_queue_stats stats;   /* of connections that are gone */
	struct weft_region_view regions; /* used only while there are dma-bufs */
};

/* queue.c */
void host_queue_update(struct weft_queue *queue);
bool host_queue_is_ready(const struct weft_queue *queue); /* one of its path queues is */
/* On the control reactor, under ctrl->lock. */
void host_queue_post_update(struct weft_queue *queue);
bool host_queue_has_link(const struct weft_queue *queue);
void host_queue_destroy(struct weft_queue *queue); /* nothing is in flight; frees it */

/* queue_poll.c */
void host_stats_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more);

/* path_queue.c */
struct host_path_queue *host_path_queue_create(struct weft_queue *queue, struct host_path *path);
void host_path_queue_update(struct host_path_queue *pq); /* acts on pq->snap */
void host_path_queue_retry_later(
	struct host_path_queue *pq); /* after a pause: its set-up has failed */
bool host_path_queue_is_refused(
	const struct host_path_queue *pq); /* the path is live, and refuses this queue */
/* For weft_cmd_text() of a command that fails because of that. */
void host_path_queue_tell_refusal(const struct host_path_queue *pq);
void host_path_queue_close(struct host_path_queue *pq); /* run turns until its link is gone */

/* control_request.c */
void host_path_queue_request_reset(struct host_path_queue *pq, int rc, const struct weft_err *why,
				   bool setup, bool hung_up);
void host_path_queue_request_abort(struct host_path_queue *pq, uint16_t cid);
/* true: the ANA log page contradicts the status. */
bool host_path_queue_request_ana_read(struct host_path_queue *pq, struct weft_ns *ns);
void host_path_queue_request_probe(struct host_path_queue *pq, uint32_t timeout_ms);

/* Commands, see cmd.h. */
void host_issue(struct weft_queue *queue); /* as many commands as there are free slots */
/* Something has changed: commands on queue->requeue may have a path now. */
void host_kick_requeue(struct weft_queue *queue);
void host_piece_complete(struct host_path_queue *pq, struct weft_link_slot *slot);
/* The link is gone. @suspect: it broke by itself, so a command on it may be the reason. */
void host_pieces_lost(struct host_path_queue *pq, bool suspect);
/* Releases fenced commands of associations that are over: they may be sent again. */
void host_fenced_release(struct host_path_queue *pq);
/* Fails all commands but the fenced ones: those end when their association is over. */
void host_queue_fail_all(struct weft_queue *queue, int rc);

#endif
