/* cmd.h - a command from weft_submit() to done(): queued, split into pieces, in flight,
 * completed or retried.
 *
 *   submit ─▶ waiting ─▶ piece ─▶ slot
 *       ─▶ link      link lost: the whole command starts over, or ends
 *              ▲ ▲ │       └ done ─▶ all pieces back? ─▶ done()
 *              │ │ └▶ stuck ─▶ something changed ─▶ waiting
 *              │ └─── later ◀─ a status that asks for another try
 *              └ first: what a lost path queue leaves behind
 *
 *   submit.c   lines up what is submitted and issues it        cmd_split.c    what a piece becomes
 *   path_select.c  on which path queue                                   flush.c    on which path queues
 *   complete.c  takes back what comes, or is lost               timeout.c  what does not come
 *
 * Invariant: a command is on one list, or has pieces in flight, or both; these are on one path
 * queue, but for a flush (flush.h). */
#ifndef WEFT_HOST_QUEUE_CMD_H
#define WEFT_HOST_QUEUE_CMD_H

#include <assert.h>

#include "host/queue/op_desc.h"

/* What weft_cmd.priv holds while the command is ours. */
struct cmd_priv {
	struct weft_list link;   /* queue->waiting, ->stuck or ->later */
	uint64_t whole;          /* to be issued: bytes; 1: it cannot be cut */
	uint64_t issued;         /* so far, in pieces */
	const struct iovec *iov; /* where the next piece's data begins */
	size_t skip;
	uint32_t ninflight; /* pieces in flight */
	unsigned generation; /* of the association that it was lost with; it is held until that is over */
	uint16_t tries;
	uint8_t pq;          /* they are on, or were */
	uint8_t avoid_paths; /* paths, a bit each, that had an error of theirs */
	uint8_t flush_owed; /* … that were dirty when a flush was submitted, and were not flushed since */
	uint8_t flush_asked;  /* … that it was sent to, since it started (over) */
	uint8_t flush_covers; /* … whose dirt the Flush there has taken upon itself */
	uint8_t done_paths;   /* … that have carried out a piece, since it started (over) */
	bool listed;          /* on a list */
	bool lost;            /* a piece went with its connection */
	bool peer_closed;     /* … which its controller has ended */
	bool outcome_unknown; /* it writes, was lost or broken off before, and may have been carried out */
	bool retry;           /* a piece asks for another try */
	bool partly_done; /* a piece was carried out */
	bool retry_now;   /* … at once */
	bool speculative; /* … and this one was made in hope only: it does not count */
	bool timed_out;
	bool resent;  /* it was in flight before */
	bool stalled; /* it is of its queue's stall */
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

/* Of what has failed, or will start over, nothing more goes out. */
static inline bool cmd_all_issued(const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;

	return cmd->rc || p->retry || p->lost || p->issued >= p->whole;
}

/* submit.c */
void cmd_restart(struct weft_cmd *cmd);
void cmd_list_add_tail(struct weft_list *list, struct weft_cmd *cmd);
void cmd_list_add(struct weft_list *list, struct weft_cmd *cmd);
void cmd_list_del(struct weft_cmd *cmd);
/* Nothing of it flies: it is the caller's again. */
void cmd_finish(struct weft_queue *queue, struct weft_cmd *cmd);

/* cmd_split.c: each fills @slot with the next piece of @cmd, and counts it as issued */
void cmd_fill_piece(struct weft_cmd *cmd, const struct host_traits *traits,
		    struct weft_link_slot *slot);
void cmd_fill_fused(struct weft_cmd *cmd, struct weft_link_slot *first,
		    struct weft_link_slot *second);

/* complete.c */
void host_on_retry_timer(struct weft_timer *timer);

/* path_select.c: to the namespace of @cmd; NULL has none. */
enum host_access host_path_queue_access(const struct host_path_queue *pq,
					const struct weft_cmd *cmd);
/* NULL: none can be used now. It may be full. */
struct host_path_queue *host_select_path_queue(struct weft_queue *queue,
					       const struct weft_cmd *cmd);
/* Besides those that it is to avoid. */
bool host_has_other_path_queue(const struct weft_queue *queue, const struct weft_cmd *cmd);

/* stall.c */
void host_stall_enter(struct weft_queue *queue, struct weft_cmd *cmd);
void host_stall_leave(struct weft_queue *queue, struct weft_cmd *cmd); /* it ends */

/* timeout.c */
void host_timeout_arm(struct host_path_queue *pq);
void host_timeouts_recheck(struct weft_queue *queue);
void host_on_io_timeout(struct weft_timer *timer);

#endif
