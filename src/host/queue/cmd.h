/* cmd.h - a command from weft_submit() to done(): queued, split into pieces, in flight, completed
 * or retried.
 *
 *   submit ─▶ piece ─▶ slot ─▶ link ─▶ completed ─▶ all pieces back? ─▶ done()
 *                                │          └ the status asks for a retry: later, or at once
 *                                └ lost ─▶ starts over (a write: after the fence) or ends
 *
 *   cmd.c          its states
 *   submit.c       queues commands and issues them     cmd_split.c  what a piece becomes
 *   path_select.c  on which path queue                 flush.c      a flush: on which path queues
 *   complete.c     a piece was completed, or lost      timeout.c    a piece that is not answered
 *
 * Invariant: the pieces of a command are on one path queue, those of a flush on several
 * (flush.h). */
#ifndef WEFT_HOST_QUEUE_CMD_H
#define WEFT_HOST_QUEUE_CMD_H

#include <assert.h>

#include "host/queue/op_desc.h"

/* cmd.c has the picture. */
enum cmd_state {
	CMD_IDLE, /* it was never submitted, or is just being */
	CMD_SENT, /* all pieces are issued, or no more will be; some are in flight */
	CMD_DONE,
	/* These are on a list: */
	CMD_WAITING,  /* pieces are to be issued when there is a slot */
	CMD_REQUEUED, /* … when there is a path */
	CMD_DELAYED,  /* it starts over after a while */
	CMD_FENCED,   /* a write that was lost: until its association is over */
	CMD_STATES,
};

/* What is to be done when its last piece is back, if it has not failed. */
enum cmd_retry {
	CMD_NO_RETRY,
	CMD_RETRY_LATER,
	CMD_RETRY_NOW,
	CMD_RETRY_UNCOUNTED, /* now; its try was speculative (HOST_ACCESS_PERHAPS) */
	CMD_LOST, /* a piece was lost with its connection: now, if it may be sent twice */
};

/* What weft_cmd.priv holds while the command is ours. */
struct cmd_priv {
	struct weft_list link;     /* the list of its state */
	uint64_t whole;            /* to be issued: bytes; 1: it cannot be split */
	uint64_t issued;           /* so far, in pieces */
	struct weft_iov_iter data; /* where the next piece's data begins */
	uint32_t ninflight;        /* pieces in flight */
	unsigned generation;       /* of the association that it was lost with, for the fence */
	uint16_t tries;
	uint8_t pq; /* index of the path queue that its pieces are or were on */
	/* Paths, a bit each: */
	uint8_t avoid_paths;  /* failed it with a path error */
	uint8_t flush_owed;   /* dirty when this flush was submitted, and not flushed since */
	uint8_t flush_asked;  /* this flush was sent to, since it (re)started */
	uint8_t flush_covers; /* whose dirty mark this flush has taken over */
	uint8_t done_paths;   /* have executed a piece, since it (re)started */
	uint8_t state;        /* enum cmd_state; cmd_enter() changes it */
	uint8_t retry;        /* enum cmd_retry */
	bool peer_closed;     /* CMD_FENCED: the controller closed its connection */
	bool outcome_unknown; /* a write that was lost or aborted: it may have been executed */
	bool partly_done;     /* a piece was executed */
	bool timed_out;
	bool resent;  /* it was in flight before */
	bool stalled; /* it belongs to its queue's stall */
};
static_assert(HOST_PATHS_MAX <= 8, "bits of paths");
static_assert(sizeof(struct cmd_priv) <= sizeof(((struct weft_cmd *)0)->priv), "fits");

static inline struct cmd_priv *cmd_priv(struct weft_cmd *cmd)
{
	return (struct cmd_priv *)cmd->priv;
}

static inline struct weft_cmd *cmd_of(struct weft_list *link)
{
	return container_of(container_of(link, struct cmd_priv, link), struct weft_cmd, priv);
}

/* A command that has failed, or will start over, issues no more pieces. */
static inline bool cmd_all_issued(const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;

	return cmd->rc || p->retry || p->issued >= p->whole;
}

#define CMD_FROM(state) (1u << CMD_##state)

/* The states that may come before each, and who has the command in it. */
static const uint8_t cmd_edges[CMD_STATES] = {
	/* the program */
	[CMD_IDLE] = 0,
	/* the links, with its pieces */
	[CMD_SENT] = CMD_FROM(IDLE) | CMD_FROM(WAITING) | CMD_FROM(REQUEUED),
	/* the program */
	[CMD_DONE] = CMD_FROM(SENT) | CMD_FROM(WAITING) | CMD_FROM(REQUEUED) | CMD_FROM(DELAYED) |
		     CMD_FROM(FENCED),
	/* queue->waiting; the links have the pieces that are issued */
	[CMD_WAITING] = CMD_FROM(IDLE) | CMD_FROM(SENT) | CMD_FROM(WAITING) | CMD_FROM(REQUEUED) |
			CMD_FROM(DELAYED) | CMD_FROM(FENCED),
	/* queue->requeue; likewise */
	[CMD_REQUEUED] = CMD_FROM(WAITING),
	/* queue->delayed */
	[CMD_DELAYED] = CMD_FROM(SENT) | CMD_FROM(WAITING) | CMD_FROM(REQUEUED),
	/* the path queue's list pq->fenced */
	[CMD_FENCED] = CMD_FROM(SENT) | CMD_FROM(WAITING) | CMD_FROM(REQUEUED),
};

static inline bool cmd_may_enter(const struct cmd_priv *p, enum cmd_state state)
{
	return cmd_edges[state] >> p->state & 1;
}

static inline bool cmd_is_listed(const struct cmd_priv *p)
{
	return p->state >= CMD_WAITING;
}

/* The one function that changes the state of a command; it leaves the list of its old one. */
static inline void cmd_enter(struct weft_cmd *cmd, enum cmd_state state)
{
	struct cmd_priv *p = cmd_priv(cmd);

	assert(cmd_may_enter(p, state));
	if (cmd_is_listed(p))
		weft_list_remove(&p->link);
	p->state = (uint8_t)state;
}

/* cmd.c: a state that has a list. */
void cmd_queue(struct weft_cmd *cmd, enum cmd_state state, struct weft_list *list);
void cmd_queue_first(struct weft_cmd *cmd, enum cmd_state state, struct weft_list *list);
/* All commands on @list, which is about to be that state's. */
void cmd_enter_all(struct weft_list *list, enum cmd_state state);

/* submit.c */
void cmd_restart(struct weft_cmd *cmd);
/* No piece is in flight: the command goes back to the program. */
void cmd_finish(struct weft_queue *queue, struct weft_cmd *cmd);

/* cmd_split.c: each fills @slot with the next piece of @cmd, and counts it as issued */
void cmd_fill_piece(struct weft_cmd *cmd, const struct host_traits *traits,
		    struct weft_link_slot *slot);
void cmd_fill_fused(struct weft_cmd *cmd, struct weft_link_slot *first,
		    struct weft_link_slot *second);

/* complete.c */
void host_on_retry_timer(struct weft_timer *timer);

/* path_select.c: access to the namespace of @cmd through @pq; none if @pq is NULL. */
enum host_access host_path_queue_access(const struct host_path_queue *pq,
					const struct weft_cmd *cmd);
/* NULL: no path queue can be used now. The one returned may have no free slot. */
struct host_path_queue *host_select_path_queue(struct weft_queue *queue,
					       const struct weft_cmd *cmd);
/* Is there a path queue besides those that @cmd avoids? */
bool host_has_other_path_queue(const struct weft_queue *queue, const struct weft_cmd *cmd);

/* stall_clock.c */
void host_stall_clock_start(struct weft_queue *queue, struct weft_cmd *cmd);
void host_stall_clock_stop(struct weft_queue *queue, struct weft_cmd *cmd); /* @cmd ends */

/* timeout.c */
void host_timeout_arm(struct host_path_queue *pq);
void host_timeouts_recheck(struct weft_queue *queue);
void host_on_io_timeout(struct weft_timer *timer);

#endif
