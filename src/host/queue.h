/* queue.h - an I/O queue: what its program submits, and a lane to each path.
 *
 *   weft_submit() ─▶ waiting ─▶ lane ─▶ link ═══▶ the path's controller
 *                     ▲  ▲ │       └ lost: its commands wait again, first, or end
 *                     │  │ └▶ stuck: no path to its namespace can be used now
 *                     │  └── later ◀─ a status that asks for another try
 *                     └ something has changed
 *
 * Everything here belongs to the thread that drives the queue, but for what lanes ask of home: that
 * stands under ctrl->lock.
 *
 * Invariant: a command is on a list of its queue, or has pieces in flight on one lane; a flush, on
 * several. */
#ifndef WEFT_HOST_QUEUE_H
#define WEFT_HOST_QUEUE_H

#include <stdatomic.h>
#include <weft/host.h>

#include "base/region.h"
#include "host/path.h"
#include "reactor/reactor.h"

struct weft_queue;

/* What a lane wants of home, under ctrl->lock. */
struct host_ask {
	struct weft_msg msg;
	bool posted, lost, abort;
	bool ana;          /* the page is not true any more */
	uint32_t probe_ms; /* not 0: no answer comes; is it there, within so long? */
	bool setup;        /* it could not be connected: not if … */
	bool others;       /* … others are; as of the answer */
	bool hung_up;      /* the controller closed it */
	unsigned generation;
	struct weft_err why;
	int rc;
	uint16_t cid;
};

/* A queue's connection to the controller of one path. */
struct host_lane {
	struct weft_queue *queue;
	struct host_path *path;
	struct host_ask ask;
	struct host_published seen; /* as of the last look */
	struct weft_link *link;     /* NULL: none */
	unsigned generation;        /* of the association that @link belongs to, or did */
	bool hung_up;               /* its controller has ended that link */
	bool ready;                 /* Connect was answered */
	bool counted;               /* in path->ready */
	bool leaving;               /* its path is: no new commands */
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
	unsigned flying;           /* of them */
	uint64_t usual_ns;         /* what a command takes, a moving average */
	struct weft_list held;     /* commands that wait until their association is over */
	struct weft_timer timeout;
	struct weft_slot *aborting; /* timed out; home was asked to abort it */
};

struct weft_queue {
	struct weft_list link_in_ctrl; /* ctrl->queues */
	struct weft_ctrl *ctrl;
	struct weft_reactor *reactor;
	uint16_t qid;
	bool watched; /* somebody waits for weft_queue_fd() */
	bool opening, closing;
	struct weft_task go_on;

	/* From home. */
	struct weft_msg look;
	atomic_bool look_posted;

	struct host_published seen;              /* of the controller, as of the last look */
	struct host_lane *lanes[HOST_PATHS_MAX]; /* by their path's index; NULL: none */
	unsigned nlanes;                         /* from here on all are NULL */
	unsigned turn;                           /* index of the lane that was chosen last */
	unsigned choices;                        /* so far */
	struct weft_list waiting;                /* commands with pieces not yet issued */
	struct weft_list stuck;                  /* commands that no lane can be used for */
	struct weft_list later;                  /* commands that are tried again after a while */
	struct weft_timer again;
	uint64_t failing_ns; /* since when no lane can be connected; 0: one is, or none was tried */
	int rc;              /* not 0: that was too long, and I/O fails with this */
	uint64_t batch_ns;   /* when commands were issued first since the last turn; 0: none was */
	unsigned pending, completed;
	unsigned stalled;    /* of them, in a stall */
	uint64_t stalled_ns; /* since when */
	struct weft_stalls stalls;
	struct weft_queue_stats stats;   /* of connections that are gone */
	struct weft_region_view regions; /* looked at only while there are dma-bufs */
};

/* queue.c */
void host_queue_look(struct weft_queue *queue);
bool host_queue_is_ready(const struct weft_queue *queue); /* a lane of it is */
void host_queue_tell(struct weft_queue *queue);           /* on home, under ctrl->lock: look */
bool host_queue_has_link(const struct weft_queue *queue);
void host_queue_end(struct weft_queue *queue); /* nothing is in flight; frees it */

/* drive.c */
void host_stats_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more);

/* lane.c */
struct host_lane *host_lane_create(struct weft_queue *queue, struct host_path *path);
void host_lane_follow(struct host_lane *lane);           /* what was seen of its path */
void host_lane_retry(struct host_lane *lane);            /* after a pause: its set-up has failed */
bool host_lane_is_refused(const struct host_lane *lane); /* its path lives, and has none for it */
void host_lane_close(struct host_lane *lane);            /* for good; turn until its link is gone */

/* ask.c */
void host_lane_ask_reset(struct host_lane *lane, int rc, const struct weft_err *why, bool setup,
			 bool hung_up);
void host_lane_ask_abort(struct host_lane *lane, uint16_t cid);
/* True: the page says otherwise than the status. */
bool host_lane_ask_ana(struct host_lane *lane, struct weft_ns *ns);
void host_lane_ask_probe(struct host_lane *lane, uint32_t timeout_ms);

/* Commands, see cmd.h. */
void host_issue(struct weft_queue *queue); /* as many as there are free slots */
/* Something has changed: what is stuck may have a way now. */
void host_unstick(struct weft_queue *queue);
void host_piece_done(struct host_lane *lane, struct weft_slot *slot);
/* The link is gone. @suspect: by itself, so a command on it may be the reason. */
void host_pieces_lost(struct host_lane *lane, bool suspect);
/* What lost associations had in hand that are over may be sent again. */
void host_pieces_release(struct host_lane *lane);
/* But for what is held: that ends when it is over. */
void host_fail_all(struct weft_queue *queue, int rc);

#endif
