/* submit.c - weft_submit(): queues a command and issues its pieces as slots become free. Nothing
 * is allocated: progress is kept in the command. */
#include <errno.h>
#include <string.h>

#include "base/count.h"
#include "host/queue/flush.h"

void cmd_restart(struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	p->issued = 0;
	p->data = (struct weft_iov_iter){ cmd->iov, 0 };
	p->flush_asked = 0;
	p->done_paths = 0;
	p->retry = CMD_NO_RETRY;
}

/* Whatever the last try failed with, an earlier one may have been executed. And -ENOTCONN promises
 * that no part of the command was. */
static bool may_have_executed(const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;

	return p->outcome_unknown ||
	       (p->partly_done && cmd->rc == -ENOTCONN && host_cmd_may_write(cmd));
}

void cmd_finish(struct weft_queue *queue, struct weft_cmd *cmd)
{
	assert(!cmd_priv(cmd)->ninflight);
	assert(cmd->rc || cmd->op != WEFT_FLUSH || host_flush_is_done(cmd));
	if (cmd->rc && may_have_executed(cmd))
		cmd->rc = -ECONNRESET;
	/* The data may be another namespace's. */
	if (!cmd->rc && cmd->ns &&
	    atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed) == -ESTALE)
		cmd->rc = -ESTALE;
	cmd_enter(cmd, CMD_DONE);
	host_stall_clock_stop(queue, cmd);
	weft_count_down(queue->pending);
	queue->completed++;
	if (cmd->done)
		cmd->done(cmd);
}

/* --- on their way out ------------------------------------------------------------------------- */

static void note_path_queue(struct host_path_queue *pq, struct cmd_priv *p)
{
	pq->queue->stalls.switches += p->resent && p->pq != pq->path->index;
	p->resent = false;
	p->pq = (uint8_t)pq->path->index;
}

/* Commands that are submitted before the next turn leave together: the clock is read once. */
static uint64_t batch_ns(struct weft_queue *queue)
{
	if (!queue->batch_ns)
		queue->batch_ns = weft_reactor_now_ns(queue->reactor);
	return queue->batch_ns;
}

static void submit_slot(struct host_path_queue *pq, struct weft_link_slot *slot,
			struct weft_cmd *cmd)
{
	slot->user = cmd;
	slot->since_ns = batch_ns(pq->queue);
	cmd_priv(cmd)->ninflight++;
	note_path_queue(pq, cmd_priv(cmd));
	if (cmd->op == WEFT_FLUSH)
		host_flush_sent(pq, cmd);
	pq->ninflight++;
	weft_list_push(&pq->inflight, &slot->user_link);
	weft_link_submit(pq->link, slot);
	atomic_store_explicit(&pq->path->activity.traffic, true, memory_order_relaxed);
	host_timeout_arm(pq);
}

/* false: no slot is free. */
static bool issue_piece(struct host_path_queue *pq, struct weft_cmd *cmd)
{
	struct weft_link_slot *slot = weft_link_get_slot(pq->link), *second;

	if (!slot)
		return false;
	if (host_op_desc(cmd->op)->shape != SHAPE_FUSED) {
		cmd_fill_piece(cmd, &pq->snap.traits, slot);
		submit_slot(pq, slot, cmd);
		return true;
	}
	second = weft_link_get_slot(pq->link);
	if (!second) {
		weft_link_put_slot(pq->link, slot);
		return false;
	}
	cmd_fill_fused(cmd, slot, second);
	submit_slot(pq, slot, cmd);
	submit_slot(pq, second, cmd);
	return true;
}

/* The namespace may have been removed or replaced since the command was submitted. */
static int namespace_rc(const struct weft_cmd *cmd)
{
	return cmd->ns ? atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed) : 0;
}

/* 0, or why it fails now: paths may have changed as well. A queue that has given up fails commands
 * here and not in weft_submit(): only polling finds a connection again. */
static int recheck_cmd(const struct weft_queue *queue, struct weft_cmd *cmd)
{
	int rc = queue->rc ? queue->rc : namespace_rc(cmd);

	return rc == 0 && cmd->op == WEFT_FLUSH ? host_flush_plan(queue, cmd) : rc;
}

enum issue_result { ISSUED, NO_PATH_QUEUE, NO_SLOT };

static enum issue_result issue_on_selected(struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct host_path_queue *pq = host_select_path_queue(queue, cmd);

	return !pq ? NO_PATH_QUEUE : issue_piece(pq, cmd) ? ISSUED : NO_SLOT;
}

/* @poll: done() may run. */
static void issue_waiting(struct weft_queue *queue, bool poll)
{
	enum issue_result issue_result = ISSUED;
	struct weft_cmd *cmd;

	while (issue_result != NO_SLOT && !weft_list_empty(&queue->waiting)) {
		cmd = cmd_of(queue->waiting.next);
		if (!cmd->rc)
			cmd->rc = recheck_cmd(queue, cmd);
		issue_result = cmd_all_issued(cmd) ? ISSUED : issue_on_selected(queue, cmd);
		if (issue_result == NO_PATH_QUEUE) {
			host_stall_clock_start(queue, cmd);
			cmd_queue(cmd, CMD_REQUEUED, &queue->requeue);
		}
		if (issue_result != ISSUED || !cmd_all_issued(cmd))
			continue;
		if (!cmd_priv(cmd)->ninflight && !poll) {
			weft_reactor_defer(queue->reactor, &queue->issue_task);
			break;
		}
		if (cmd_priv(cmd)->ninflight)
			cmd_enter(cmd, CMD_SENT);
		else
			cmd_finish(queue, cmd);
	}
}

void host_kick_requeue(struct weft_queue *queue)
{
	struct weft_list first;

	weft_list_init(&first);
	cmd_enter_all(&queue->requeue, CMD_WAITING);
	weft_list_splice(&first, &queue->requeue);
	weft_list_splice(&first, &queue->waiting);
	weft_list_splice(&queue->waiting, &first);
	weft_reactor_defer(queue->reactor, &queue->issue_task);
}

void host_issue(struct weft_queue *queue)
{
	issue_waiting(queue, true);
}

static int check_cmd_memory(struct weft_queue *queue, const struct weft_cmd *cmd)
{
	enum host_shape shape = host_op_desc(cmd->op)->shape;

	if (shape == SHAPE_NONE || shape == SHAPE_RANGE)
		return 0;
	return host_memory_ok(queue, cmd->iov, cmd->iovcnt) ? 0 : -EOPNOTSUPP;
}

static uint64_t whole_of(const struct weft_cmd *cmd)
{
	enum host_shape shape = host_op_desc(cmd->op)->shape;

	return shape == SHAPE_NONE || shape == SHAPE_RAW ? 1 : cmd->length;
}

static void init_cmd_priv(struct weft_queue *queue, struct weft_cmd *cmd)
{
	memset(cmd->priv, 0, sizeof(cmd->priv));
	cmd_priv(cmd)->whole = whole_of(cmd);
	cmd_priv(cmd)->data.iov = cmd->iov;
	cmd->rc = 0;
	cmd->status = 0;
	cmd->result = 0;
	if (cmd->op == WEFT_FLUSH)
		host_flush_init(cmd);
	queue->pending++;
}

/* Fast path: the list is empty and all pieces go out, so the command is never queued. */
static bool issue_at_once(struct weft_queue *queue, struct weft_cmd *cmd)
{
	return cmd->op != WEFT_FLUSH && weft_list_empty(&queue->waiting) &&
	       issue_on_selected(queue, cmd) == ISSUED && cmd_all_issued(cmd);
}

int weft_submit(struct weft_queue *queue, struct weft_cmd *cmd)
{
	int rc = host_cmd_check(&queue->snap.traits, cmd);

	if (rc == 0 && weft_region_any_dmabuf())
		rc = check_cmd_memory(queue, cmd);
	if (rc < 0)
		return rc;
	if (queue->snap.state == WEFT_DEAD)
		return -ENOTCONN;
	init_cmd_priv(queue, cmd);
	if (issue_at_once(queue, cmd)) {
		cmd_enter(cmd, CMD_SENT);
	} else {
		cmd_queue(cmd, CMD_WAITING, &queue->waiting);
		issue_waiting(queue, false);
	}
	return 0;
}
