/* settle.c - what becomes of a command when its pieces come back, or are lost.
 *
 * With its connection, a piece may have been carried out, or not, or may yet be. The command starts
 * over from its beginning if that makes no difference (rule.c), a bounded number of times. */
#include <errno.h>

#include "host/flush.h"

/* Of a command that loses its connection, or whose status asks for another try. The pauses before
 * those double: together about 10 s, what a change of asymmetric access may take. */
enum { TRIES_MAX = 8, AGAIN_MS = 100, AGAIN_MAX_MS = 2000, ANA_TRIES = 2 };

/* It may be done twice, as far as this host can say: another one may have written since. */
static bool may_be_resent(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	return host_rule_again(cmd) && (queue->ctrl->config.options.resend != WEFT_RESEND_NEVER ||
					!host_rule_may_write(cmd));
}

/* What was refused at the door was not begun. */
static bool is_refusal(uint16_t status)
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

/* Another try may help, and does no harm (NVMe base 2.0, 4.2.3: DNR). What broke off may have been
 * begun, and is for those that may be done twice. */
static bool worth_another_try(const struct weft_queue *queue, const struct weft_cmd *cmd,
			      uint16_t status)
{
	if (status & SC_DNR)
		return false;
	if (is_refusal(status))
		return host_rule_may_be_refused(cmd);
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

static bool is_of_ana(uint16_t status)
{
	return (status & 0x7ff) >= SC_PATH(ANA_PERSISTENT_LOSS) &&
	       (status & 0x7ff) <= SC_PATH(ANA_TRANSITION);
}

/* An error of the path, not of the command: it goes elsewhere at once. A state of asymmetric access
 * that the log page does not show makes home read it again, and until then nothing goes there; who
 * still is told otherwise after that, waits before it asks again. */
static void note_path_error(struct host_lane *lane, struct weft_cmd *cmd, uint16_t status)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if ((status & 0x7ff) >> 8 != NVME_SCT_PATH)
		return;
	host_stall_join(lane->queue, cmd);
	if (is_of_ana(status) && lane->seen.traits.ana && cmd->ns) {
		p->hoped = !host_lane_ask_ana(lane, cmd->ns);
		p->hurry = p->hoped || p->tries < ANA_TRIES;
		return;
	}
	/* Nobody else can flush what this path has completed: it is asked again, after a pause. */
	if (cmd->op == WEFT_FLUSH && p->owed)
		return;
	p->avoid |= (uint8_t)(1u << lane->path->index);
	p->hurry = host_has_another(lane->queue, cmd);
}

/* What came is not what was sent: its digest says so. */
static void note_corruption(const struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (may_be_resent(queue, cmd) && p->tries < TRIES_MAX)
		p->retry = true;
	else
		cmd->rc = -EBADMSG;
}

/* What answers there now need not be what was asked: neither what it read nor that it has written
 * counts, also if that was a piece of before. Where it is the same with all paths, cmd_finish() says
 * so. */
static bool is_another_ones(const struct host_lane *lane, const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;
	unsigned paths = cmd->ns ? atomic_load_explicit(&cmd->ns->replaced, memory_order_relaxed) :
				   0;

	return paths & (p->done_on | 1u << lane->path->index);
}

static void note_another_ones(struct host_lane *lane, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed) == -ESTALE ||
	    !may_be_resent(lane->queue, cmd) || p->tries >= TRIES_MAX) {
		cmd->rc = -ESTALE;
		return;
	}
	host_stall_join(lane->queue, cmd);
	p->unsure |= host_rule_may_write(cmd);
	p->retry = p->hurry = true;
}

static bool is_fused_fail(uint16_t status)
{
	return (status & 0x7ff) == SC_GENERIC(FUSED_FAIL);
}

static void note_retry(struct host_lane *lane, struct weft_cmd *cmd, uint16_t status)
{
	cmd_priv(cmd)->retry = true;
	cmd_priv(cmd)->unsure |= !is_refusal(status) && host_rule_may_write(cmd);
	if (is_fused_fail(cmd->status))
		cmd->rc = 0;
	if (!cmd->rc)
		cmd->status = status & 0x7ff;
	note_path_error(lane, cmd, status);
}

static void note_failure(struct host_lane *lane, struct weft_cmd *cmd, uint16_t status)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (worth_another_try(lane->queue, cmd, status) && p->tries < TRIES_MAX) {
		note_retry(lane, cmd, status);
		return;
	}
	/* One of a fused pair fails because the other did: that is not news. */
	if ((cmd->rc || p->retry) && is_fused_fail(status))
		return;
	cmd->status = status & (0x7ff | SC_DNR);
	cmd->rc = p->timed_out && (status & 0x7ff) == SC_GENERIC(ABORT_REQ) ?
			  -ETIMEDOUT :
			  weft_io_status_to_errno(status);
}

/* @suspect: it may be this very command that the connection broke of. */
static void note_loss(struct weft_cmd *cmd, bool suspect)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (!p->lost && suspect)
		p->tries++;
	p->lost = true;
}

static void wait_and_try_again(struct weft_queue *queue, struct weft_cmd *cmd)
{
	uint64_t pause = AGAIN_MS << cmd_priv(cmd)->tries++;

	host_stall_join(queue, cmd);
	cmd_priv(cmd)->avoid = 0;
	cmd_start_over(cmd);
	cmd_enlist(&queue->later, cmd);
	if (!weft_heap_has(&queue->again.node))
		weft_timer_set(queue->reactor, &queue->again,
			       pause < AGAIN_MAX_MS ? pause : AGAIN_MAX_MS);
}

static void try_again_at_once(struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	p->tries += !p->lost && !p->hoped;
	p->resent = true;
	cmd_start_over(cmd);
	cmd_enlist_first(&queue->waiting, cmd);
}

/* 0, or why a command that was lost, or asks for another try, must not have it. */
static int reason_against(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;

	if (p->timed_out && p->lost)
		return -ETIMEDOUT;
	if (p->lost && (!may_be_resent(queue, cmd) || p->tries > TRIES_MAX))
		return -ECONNRESET;
	if (p->retry && p->done_some && !may_be_resent(queue, cmd))
		return weft_io_status_to_errno(cmd->status);
	return 0;
}

/* Nothing of it flies, and nothing more will be heard of it. */
static void conclude(struct weft_queue *queue, struct weft_cmd *cmd)
{
	const struct cmd_priv *p = cmd_priv(cmd);
	bool again = p->lost || p->retry;

	if (again && !cmd->rc)
		cmd->rc = reason_against(queue, cmd);
	if (!cmd->rc)
		cmd->status = 0;
	if (!again || cmd->rc)
		cmd_finish(queue, cmd);
	else if (p->lost || p->hurry)
		try_again_at_once(queue, cmd);
	else
		wait_and_try_again(queue, cmd);
}

/* The last of its pieces that were in flight is back, or lost. What was writing when its connection
 * went may still be carried out: it is neither sent again nor over before that association is. What
 * is left of one whose path does not lead to its namespace any more may go another way now. */
static void settle(struct host_lane *lane, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (p->flying)
		return;
	if (!cmd_all_issued(cmd)) {
		if (!weft_list_empty(&lane->queue->stuck))
			host_unstick(lane->queue);
		return;
	}
	cmd_delist(cmd);
	if (p->lost && host_rule_may_write(cmd)) {
		p->generation = lane->generation;
		p->heard = lane->hung_up;
		p->unsure = true;
		cmd_enlist_first(&lane->held, cmd);
	} else {
		conclude(lane->queue, cmd);
	}
}

static bool is_over(const struct host_lane *lane, const struct cmd_priv *p)
{
	return p->generation <= lane->seen.over || (p->heard && p->generation <= lane->seen.heard);
}

void host_pieces_release(struct host_lane *lane)
{
	struct weft_list *link, *before;

	/* The oldest last: it will be the first in line. */
	for (link = lane->held.prev; link != &lane->held; link = before) {
		struct weft_cmd *cmd = cmd_of(link);

		before = link->prev;
		if (!is_over(lane, cmd_priv(cmd)))
			continue;
		if (cmd_priv(cmd)->generation <= lane->seen.given_up && !cmd->rc)
			cmd->rc = -ECONNRESET;
		cmd_delist(cmd);
		conclude(lane->queue, cmd);
	}
}

/* A success must have moved all the data. A raw command's memory may be more than it needs. */
static bool is_complete(const struct weft_cmd *cmd, const struct weft_slot *slot)
{
	return cmd->op == WEFT_RAW || slot->moved == slot->data_len;
}

static void short_data(struct host_lane *lane, const struct weft_slot *slot)
{
	weft_link_close(lane->link, -EPROTO,
			"CapsuleResp: success for a command that moved %u of %u bytes", slot->moved,
			slot->data_len);
}

static void note_time(struct host_lane *lane, const struct weft_slot *slot)
{
	uint64_t took = weft_reactor_now_ns(lane->queue->reactor) - slot->since_ns;

	lane->usual_ns += (took >> 3) - (lane->usual_ns >> 3);
	if (!atomic_load_explicit(&lane->path->heard, memory_order_relaxed))
		atomic_store_explicit(&lane->path->heard, true, memory_order_relaxed);
}

void host_piece_done(struct host_lane *lane, struct weft_slot *slot)
{
	struct weft_cmd *cmd = slot->user;
	struct cmd_priv *p = cmd_priv(cmd);
	uint16_t status = host_status(&slot->cqe);
	bool another_ones = is_another_ones(lane, cmd);

	weft_list_remove(&slot->user_link);
	if (lane->aborting == slot) {
		lane->aborting = NULL;
		p->timed_out = status; /* late, but answered */
	}
	p->flying--;
	lane->flying--;
	note_time(lane, slot);
	if (!status && !is_complete(cmd, slot)) {
		note_loss(cmd, true);
		short_data(lane, slot);
	} else if (another_ones) {
		note_another_ones(lane, cmd);
	} else if (!status && slot->corrupt) {
		note_corruption(lane->queue, cmd);
	} else if (status) {
		note_failure(lane, cmd, status);
	} else {
		p->done_some |= slot->cmd.common.opcode != nvme_cmd_compare;
		p->done_on |= (uint8_t)(1u << lane->path->index);
		host_dirty_note(lane, cmd);
	}
	if (cmd->op == WEFT_FLUSH)
		host_flush_back(lane, cmd, !status && !another_ones);
	cmd->result = le64_to_cpu(slot->cqe.result);
	cmd->moved = slot->moved;
	settle(lane, cmd);
}

void host_pieces_lost(struct host_lane *lane, bool suspect)
{
	struct weft_list lost;
	struct weft_slot *slot;

	weft_list_init(&lost);
	weft_list_splice(&lost, &lane->inflight);
	lane->aborting = NULL;
	lane->flying = 0;
	while (!weft_list_empty(&lost)) { /* the oldest last: it will be the first in line */
		slot = container_of(lost.prev, struct weft_slot, user_link);
		weft_list_remove(&slot->user_link);
		slot->busy = false;
		cmd_priv(slot->user)->flying--;
		if (((struct weft_cmd *)slot->user)->op == WEFT_FLUSH)
			host_flush_back(lane, slot->user, false);
		note_loss(slot->user, suspect);
		host_stall_join(lane->queue, slot->user);
		settle(lane, slot->user);
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
		cmd_priv(cmd)->listed = false;
		if (!cmd->rc)
			cmd->rc = rc;
		if (!cmd_priv(cmd)->flying)
			cmd_finish(queue, cmd);
	}
}

void host_fail_all(struct weft_queue *queue, int rc)
{
	fail_list(queue, &queue->waiting, rc);
	fail_list(queue, &queue->stuck, rc);
	fail_list(queue, &queue->later, rc);
}

void cmd_try_again(struct weft_timer *timer)
{
	struct weft_queue *queue = container_of(timer, struct weft_queue, again);

	weft_list_splice(&queue->waiting, &queue->later);
	host_issue(queue);
}
