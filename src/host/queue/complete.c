/* complete.c - a piece was completed or lost: the command ends, or starts over (failover, retry). A
 * lost piece may have been executed, so only idempotent commands (op_desc.c) start over, a bounded
 * number of times, and writes only after the fence has released them. */
#include <errno.h>

#include "base/count.h"
#include "host/queue/flush.h"

/* Tries of a command that loses its connection, or whose status asks for a retry. The delays before
 * a retry double: together about 10 s, which is what an ANA change may take. */
enum { TRIES_MAX = 8, AGAIN_MS = 100, AGAIN_MAX_MS = 2000, ANA_TRIES = 2 };

/* Idempotent. With WEFT_RESEND_NEVER no write is: another host may have written in between. */
static bool may_be_resent(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	return host_cmd_is_idempotent(cmd) &&
	       (queue->ctrl->config.options.resend != WEFT_RESEND_NEVER ||
		!host_cmd_may_write(cmd));
}

/* With these statuses the controller did not begin the command. */
static bool was_not_started(uint16_t status)
{
	switch (status & 0x7ff) {
	case SC_GENERIC(NS_NOT_READY):
	case SC_PATH(ANA_PERSISTENT_LOSS):
	case SC_PATH(ANA_INACCESSIBLE):
	case SC_PATH(ANA_TRANSITION):
		return true;
	default:
		return false;
	}
}

/* A retry may help, and does no harm (NVMe base 2.0, 4.2.3: DNR). A command that failed in the
 * middle may have been begun: it is retried only if it is idempotent. */
static bool status_is_retryable(const struct weft_queue *queue, const struct weft_cmd *cmd,
				uint16_t status)
{
	if (status & SC_DNR)
		return false;
	if (was_not_started(status))
		return host_cmd_may_retry_refused(cmd);
	switch (status & 0x7ff) {
	case SC_GENERIC(TRAN_TPORT_ERROR):
	case SC_GENERIC(CMD_INTERRUPTED):
	case SC_PATH(ANA_INTERNAL_PATH_ERROR):
	case SC_PATH(CTRL_PATH_ERROR):
	case SC_PATH(HOST_PATH_ERROR):
		return may_be_resent(queue, cmd);
	default:
		return false;
	}
}

static bool is_ana_status(uint16_t status)
{
	return (status & 0x7ff) >= SC_PATH(ANA_PERSISTENT_LOSS) &&
	       (status & 0x7ff) <= SC_PATH(ANA_TRANSITION);
}

/* Of several pieces, the one that comes last says how. A lost one outweighs them all. */
static void note_retry_kind(struct cmd_priv *p, enum cmd_retry retry)
{
	if (p->retry != CMD_LOST)
		p->retry = (uint8_t)retry;
}

/* An error of the path, not of the command: the command goes to another path at once. If the status
 * contradicts the ANA log page, the control reactor reads the page again, and nothing goes through
 * this path until then; a command that fails the same way after that is delayed. */
static void note_path_error(struct host_path_queue *pq, struct weft_cmd *cmd, uint16_t status)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if ((status & 0x7ff) >> 8 != NVME_SCT_PATH)
		return;
	host_stall_clock_start(pq->queue, cmd);
	if (is_ana_status(status) && pq->snap.traits.ana && cmd->ns) {
		bool counts = host_path_queue_request_ana_read(pq, cmd->ns);

		note_retry_kind(p, !counts              ? CMD_RETRY_UNCOUNTED :
				   p->tries < ANA_TRIES ? CMD_RETRY_NOW :
							  CMD_RETRY_LATER);
		return;
	}
	/* No other path can flush what this one has completed: the flush goes here again,
	 * delayed. */
	if (cmd->op == WEFT_FLUSH && p->flush_owed)
		return;
	p->avoid_paths |= (uint8_t)(1u << pq->path->index);
	note_retry_kind(p, host_has_other_path_queue(pq->queue, cmd) ? CMD_RETRY_NOW :
								       CMD_RETRY_LATER);
}

/* The data digest is wrong: the data is not what was sent. */
static void note_corruption(const struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (!may_be_resent(queue, cmd) || p->tries >= TRIES_MAX)
		cmd->rc = -EBADMSG;
	else if (!p->retry)
		p->retry = CMD_RETRY_LATER;
}

/* Another namespace has taken the nsid on this path: neither the data of a read nor the success of
 * a write counts, also of a piece that was issued before. If it is so on all paths, cmd_finish()
 * ends the command. */
static bool ns_was_replaced(const struct host_path_queue *pq, const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;
	unsigned paths = cmd->ns ? atomic_load_explicit(&cmd->ns->replaced, memory_order_relaxed) :
				   0;

	return paths & (p->done_paths | 1u << pq->path->index);
}

static void note_replaced_ns(struct host_path_queue *pq, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	assert(cmd->ns);
	if (atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed) == -ESTALE ||
	    !may_be_resent(pq->queue, cmd) || p->tries >= TRIES_MAX) {
		cmd->rc = -ESTALE;
		return;
	}
	host_stall_clock_start(pq->queue, cmd);
	p->outcome_unknown |= host_cmd_may_write(cmd);
	note_retry_kind(p, CMD_RETRY_NOW);
}

static bool is_fused_fail(uint16_t status)
{
	return (status & 0x7ff) == SC_GENERIC(FUSED_FAIL);
}

static void note_retry(struct host_path_queue *pq, struct weft_cmd *cmd, uint16_t status)
{
	if (!cmd_priv(cmd)->retry)
		cmd_priv(cmd)->retry = CMD_RETRY_LATER;
	cmd_priv(cmd)->outcome_unknown |= !was_not_started(status) && host_cmd_may_write(cmd);
	if (is_fused_fail(cmd->status))
		cmd->rc = 0;
	if (!cmd->rc)
		cmd->status = status & 0x7ff;
	note_path_error(pq, cmd, status);
}

static void note_failure(struct host_path_queue *pq, struct weft_cmd *cmd, uint16_t status)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (status_is_retryable(pq->queue, cmd, status) && p->tries < TRIES_MAX) {
		note_retry(pq, cmd, status);
		return;
	}
	/* Half of a fused pair fails because the other half did: the other's status counts. */
	if ((cmd->rc || p->retry) && is_fused_fail(status))
		return;
	cmd->status = status & (0x7ff | SC_DNR);
	cmd->rc = p->timed_out && (status & 0x7ff) == SC_GENERIC(ABORT_REQ) ?
			  -ETIMEDOUT :
			  weft_io_status_to_errno(status);
}

/* @suspect: this command may be what broke the connection. */
static void note_piece_lost(struct weft_cmd *cmd, bool suspect)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (p->retry != CMD_LOST && suspect)
		p->tries++;
	p->retry = CMD_LOST;
}

static void retry_later(struct weft_queue *queue, struct weft_cmd *cmd)
{
	uint64_t pause = AGAIN_MS << cmd_priv(cmd)->tries++;

	assert(cmd_priv(cmd)->tries <= TRIES_MAX);
	host_stall_clock_start(queue, cmd);
	cmd_priv(cmd)->avoid_paths = 0;
	cmd_restart(cmd);
	cmd_queue(cmd, CMD_DELAYED, &queue->delayed);
	if (!weft_heap_has(&queue->retry_timer.node))
		weft_timer_set(queue->reactor, &queue->retry_timer,
			       pause < AGAIN_MAX_MS ? pause : AGAIN_MAX_MS);
}

static void retry_at_once(struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	p->tries += p->retry == CMD_RETRY_NOW;
	p->resent = true;
	cmd_restart(cmd);
	cmd_queue_first(cmd, CMD_WAITING, &queue->waiting);
}

/* 0, or why a command that was lost, or whose status asks for a retry, must not be retried. */
static int retry_forbidden_rc(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;

	if (p->timed_out && p->retry == CMD_LOST)
		return -ETIMEDOUT;
	if (p->retry == CMD_LOST && (!may_be_resent(queue, cmd) || p->tries > TRIES_MAX))
		return -ECONNRESET;
	if (p->retry && p->partly_done && !may_be_resent(queue, cmd))
		return weft_io_status_to_errno(cmd->status);
	return 0;
}

/* No piece is in flight, and no completion will come. */
static void finish_or_retry(struct weft_queue *queue, struct weft_cmd *cmd)
{
	const struct cmd_priv *p = cmd_priv(cmd);

	if (p->retry && !cmd->rc)
		cmd->rc = retry_forbidden_rc(queue, cmd);
	if (!cmd->rc)
		cmd->status = 0;
	if (!p->retry || cmd->rc)
		cmd_finish(queue, cmd);
	else if (p->retry == CMD_RETRY_LATER)
		retry_later(queue, cmd);
	else
		retry_at_once(queue, cmd);
}

/* The last piece in flight is back, or lost. A write that was lost with its connection may still be
 * executed: the command waits on pq->fenced until the association is over. A command whose path
 * does not lead to its namespace any more may send its other pieces through another path now. */
static void pieces_back(struct host_path_queue *pq, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (p->ninflight)
		return;
	if (!cmd_all_issued(cmd)) {
		if (!weft_list_empty(&pq->queue->requeue))
			host_kick_requeue(pq->queue);
		return;
	}
	if (p->retry == CMD_LOST && host_cmd_may_write(cmd)) {
		p->generation = pq->generation;
		p->peer_closed = pq->hung_up;
		p->outcome_unknown = true;
		cmd_queue_first(cmd, CMD_FENCED, &pq->fenced);
	} else {
		finish_or_retry(pq->queue, cmd);
	}
}

static bool association_is_over(const struct host_path_queue *pq, const struct cmd_priv *p)
{
	return p->generation <= pq->snap.ended_generation ||
	       (p->peer_closed && p->generation <= pq->snap.peer_closed_generation);
}

void host_fenced_release(struct host_path_queue *pq)
{
	struct weft_list *link, *before;

	/* The oldest last: it will be at the head of the list. */
	for (link = pq->fenced.prev; link != &pq->fenced; link = before) {
		struct weft_cmd *cmd = cmd_of(link);

		before = link->prev;
		assert(cmd_priv(cmd)->state == CMD_FENCED && !cmd_priv(cmd)->ninflight);
		if (!association_is_over(pq, cmd_priv(cmd)))
			continue;
		if (cmd_priv(cmd)->generation <= pq->snap.abandoned_generation && !cmd->rc)
			cmd->rc = -ECONNRESET;
		finish_or_retry(pq->queue, cmd);
	}
}

/* A success must have moved all the data. A raw command's memory may be more than it needs. */
static bool data_is_complete(const struct weft_cmd *cmd, const struct weft_link_slot *slot)
{
	return cmd->op == WEFT_RAW || slot->moved == slot->data_len;
}

static void fail_short_data(struct host_path_queue *pq, const struct weft_link_slot *slot)
{
	weft_link_close(pq->link, -EPROTO,
			"CapsuleResp: success for a command that moved %u of %u bytes", slot->moved,
			slot->data_len);
}

static void note_latency(struct host_path_queue *pq, const struct weft_link_slot *slot)
{
	uint64_t took = weft_reactor_now_ns(pq->queue->reactor) - slot->since_ns;

	pq->avg_latency_ns += (took >> 3) - (pq->avg_latency_ns >> 3);
	if (!atomic_load_explicit(&pq->path->activity.answered, memory_order_relaxed))
		atomic_store_explicit(&pq->path->activity.answered, true, memory_order_relaxed);
}

void host_piece_complete(struct host_path_queue *pq, struct weft_link_slot *slot)
{
	struct weft_cmd *cmd = slot->user;
	struct cmd_priv *p = cmd_priv(cmd);
	uint16_t status = host_status(&slot->cqe);
	bool replaced_ns = ns_was_replaced(pq, cmd);

	weft_list_remove(&slot->user_link);
	if (pq->aborting == slot) {
		pq->aborting = NULL;
		p->timed_out = status; /* late, but answered */
	}
	weft_count_down(p->ninflight);
	pq->ninflight--;
	note_latency(pq, slot);
	if (!status && !data_is_complete(cmd, slot)) {
		note_piece_lost(cmd, true);
		fail_short_data(pq, slot);
	} else if (replaced_ns) {
		note_replaced_ns(pq, cmd);
	} else if (!status && slot->corrupt) {
		note_corruption(pq->queue, cmd);
	} else if (status) {
		note_failure(pq, cmd, status);
	} else {
		p->partly_done |= slot->cmd.common.opcode != nvme_cmd_compare;
		p->done_paths |= (uint8_t)(1u << pq->path->index);
		host_dirty_mark(pq, cmd);
	}
	if (cmd->op == WEFT_FLUSH)
		host_flush_complete(pq, cmd, !status && !replaced_ns);
	cmd->result = le64_to_cpu(slot->cqe.result);
	cmd->moved = slot->moved;
	pieces_back(pq, cmd);
}

void host_pieces_lost(struct host_path_queue *pq, bool suspect)
{
	struct weft_list lost;
	struct weft_link_slot *slot;

	assert(!pq->link && !pq->ready);
	weft_list_init(&lost);
	weft_list_splice(&lost, &pq->inflight);
	pq->aborting = NULL;
	pq->ninflight = 0;
	while (!weft_list_empty(&lost)) { /* the oldest last: it will be at the head of the list */
		slot = container_of(lost.prev, struct weft_link_slot, user_link);
		weft_list_remove(&slot->user_link);
		slot->busy = false;
		weft_count_down(cmd_priv(slot->user)->ninflight);
		if (((struct weft_cmd *)slot->user)->op == WEFT_FLUSH)
			host_flush_complete(pq, slot->user, false);
		note_piece_lost(slot->user, suspect);
		host_stall_clock_start(pq->queue, slot->user);
		pieces_back(pq, slot->user);
	}
}

static void fail_list(struct weft_queue *queue, struct weft_list *list, int rc)
{
	struct weft_list failed, *link;
	struct weft_cmd *cmd;

	weft_list_init(&failed);
	weft_list_splice(&failed, list);
	while ((link = weft_list_pop(&failed))) {
		cmd = cmd_of(link);
		if (!cmd->rc)
			cmd->rc = rc;
		if (cmd_priv(cmd)->ninflight)
			cmd_enter(cmd, CMD_SENT);
		else
			cmd_finish(queue, cmd);
	}
}

void host_queue_fail_all(struct weft_queue *queue, int rc)
{
	fail_list(queue, &queue->waiting, rc);
	fail_list(queue, &queue->requeue, rc);
	fail_list(queue, &queue->delayed, rc);
}

void host_on_retry_timer(struct weft_timer *timer)
{
	struct weft_queue *queue = container_of(timer, struct weft_queue, retry_timer);

	assert_on(queue->reactor);
	cmd_enter_all(&queue->delayed, CMD_WAITING);
	weft_list_splice(&queue->waiting, &queue->delayed);
	host_issue(queue);
}
