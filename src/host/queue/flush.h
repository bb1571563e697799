/* flush.h - unflushed writes by path, and which paths a flush goes to. */
#ifndef WEFT_HOST_QUEUE_FLUSH_H
#define WEFT_HOST_QUEUE_FLUSH_H

#include "host/queue/cmd.h"

/* Bits of host_dirty.by[]. */
#define HOST_DIRTY    1u /* writes were completed there, and not flushed */
#define HOST_FLUSHING 2u

/* A piece of @cmd was completed: a load, and a store if it is the first since a flush. */
static inline void host_dirty_mark(const struct host_path_queue *pq, const struct weft_cmd *cmd)
{
	atomic_uint *by;

	if (cmd->op == WEFT_READ || !host_cmd_may_write(cmd) || !cmd->ns || cmd->flags & WEFT_FUA ||
	    !(pq->snap.traits.vwc & 1))
		return;
	by = &cmd->ns->dirty->by[pq->path->index];
	if (!(atomic_load_explicit(by, memory_order_relaxed) & HOST_DIRTY))
		atomic_fetch_or(by, HOST_DIRTY);
}

/* @cmd is about to be submitted. */
void host_flush_init(struct weft_cmd *cmd);
/* Sets how many Flushes are to be issued, by the paths' present states. 0, or why it fails. */
int host_flush_plan(const struct weft_queue *queue, struct weft_cmd *cmd);
/* false: any path queue will do; else *@pq is where the next Flush must go, NULL: it cannot be used
 * now. */
bool host_flush_path_queue(const struct weft_queue *queue, const struct weft_cmd *cmd,
			   struct host_path_queue **pq);
/* Every path that needed a Flush has answered. */
bool host_flush_is_done(const struct weft_cmd *cmd);
void host_flush_sent(const struct host_path_queue *pq, struct weft_cmd *cmd);
/* !@done: the Flush failed, or was lost. */
void host_flush_complete(const struct host_path_queue *pq, struct weft_cmd *cmd, bool done);

#endif
