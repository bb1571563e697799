/* issue.c - commands in line, and on their way out as slots become free.
 *
 * A command longer than the controller takes at once is cut as it goes; nothing is allocated for
 * that, its own memory holds how far it has come. */
#include <errno.h>
#include <string.h>

#include "host/flush.h"

void cmd_start_over(struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	p->issued = 0;
	p->iov = cmd->iov;
	p->skip = 0;
	p->asked = 0;
	p->done_on = 0;
	p->lost = p->retry = p->hurry = p->hoped = false;
}

/* Whatever it is that the last try has failed of, one before may have been carried out. And what
 * was not carried out, as -ENOTCONN says, was not in part either. */
static bool may_have_been_done(const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;

	return p->unsure || (p->done_some && cmd->rc == -ENOTCONN && host_rule_may_write(cmd));
}

void cmd_finish(struct weft_queue *queue, struct weft_cmd *cmd)
{
	assert(!cmd_priv(cmd)->flying && !cmd_priv(cmd)->listed);
	assert(cmd->rc || cmd->op != WEFT_FLUSH || host_flush_is_over(cmd));
	if (cmd->rc && may_have_been_done(cmd))
		cmd->rc = -ECONNRESET;
	/* What was read may be another namespace's. */
	if (!cmd->rc && cmd->ns &&
	    atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed) == -ESTALE)
		cmd->rc = -ESTALE;
	host_stall_leave(queue, cmd);
	queue->pending--;
	queue->completed++;
	if (cmd->done)
		cmd->done(cmd);
}

static struct weft_list *mark_listed(struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	assert(!p->listed);
	p->listed = true;
	return &p->link;
}

void cmd_enlist(struct weft_list *list, struct weft_cmd *cmd)
{
	weft_list_push(list, mark_listed(cmd));
}

void cmd_enlist_first(struct weft_list *list, struct weft_cmd *cmd)
{
	weft_list_push_first(list, mark_listed(cmd));
}

void cmd_delist(struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (p->listed)
		weft_list_remove(&p->link);
	p->listed = false;
}

/* --- on their way out ------------------------------------------------------------------------- */

static void note_lane(struct host_lane *lane, struct cmd_priv *p)
{
	lane->queue->stalls.switches += p->resent && p->lane != lane->path->index;
	p->resent = false;
	p->lane = (uint8_t)lane->path->index;
}

/* What is submitted before the next turn leaves together: one look at the clock is enough. */
static uint64_t batch_ns(struct weft_queue *queue)
{
	if (!queue->batch_ns)
		queue->batch_ns = weft_reactor_now_ns(queue->reactor);
	return queue->batch_ns;
}

static void submit(struct host_lane *lane, struct weft_slot *slot, struct weft_cmd *cmd)
{
	slot->user = cmd;
	slot->since_ns = batch_ns(lane->queue);
	cmd_priv(cmd)->flying++;
	note_lane(lane, cmd_priv(cmd));
	if (cmd->op == WEFT_FLUSH)
		host_flush_sent(lane, cmd);
	lane->flying++;
	weft_list_push(&lane->inflight, &slot->user_link);
	weft_link_submit(lane->link, slot);
	atomic_store_explicit(&lane->path->traffic, true, memory_order_relaxed);
	host_timeout_watch(lane);
}

/* false: there is no slot for it now. */
static bool issue_next(struct host_lane *lane, struct weft_cmd *cmd)
{
	struct weft_slot *slot = weft_link_take(lane->link), *second;

	if (!slot)
		return false;
	if (host_rule(cmd->op)->shape != SHAPE_FUSED) {
		cmd_fill_piece(cmd, &lane->seen.traits, slot);
		submit(lane, slot, cmd);
		return true;
	}
	second = weft_link_take(lane->link);
	if (!second) {
		weft_link_put(lane->link, slot);
		return false;
	}
	cmd_fill_fused(cmd, slot, second);
	submit(lane, slot, cmd);
	submit(lane, second, cmd);
	return true;
}

/* The namespace may have gone, or another come, since the command was submitted. */
static int namespace_rc(const struct weft_cmd *cmd)
{
	return cmd->ns ? atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed) : 0;
}

/* 0, or why it fails now: paths may have changed as well. A queue that has given up fails commands
 * here, and not when they are submitted: it is when it is polled that it finds a connection again. */
static int look_again(const struct weft_queue *queue, struct weft_cmd *cmd)
{
	int rc = queue->rc ? queue->rc : namespace_rc(cmd);

	return rc == 0 && cmd->op == WEFT_FLUSH ? host_flush_plan(queue, cmd) : rc;
}

enum outcome { WENT, NO_LANE, NO_SLOT };

static enum outcome send_next(struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct host_lane *lane = host_choose(queue, cmd);

	return !lane ? NO_LANE : issue_next(lane, cmd) ? WENT : NO_SLOT;
}

/* @poll: done() may run. */
static void issue(struct weft_queue *queue, bool poll)
{
	enum outcome outcome = WENT;
	struct weft_cmd *cmd;

	while (outcome != NO_SLOT && !weft_list_empty(&queue->waiting)) {
		cmd = cmd_of(queue->waiting.next);
		if (!cmd->rc)
			cmd->rc = look_again(queue, cmd);
		outcome = cmd_all_issued(cmd) ? WENT : send_next(queue, cmd);
		if (outcome == NO_LANE) {
			host_stall_join(queue, cmd);
			cmd_delist(cmd);
			cmd_enlist(&queue->stuck, cmd);
		}
		if (outcome != WENT || !cmd_all_issued(cmd))
			continue;
		if (!cmd_priv(cmd)->flying && !poll) {
			weft_reactor_defer(queue->reactor, &queue->go_on);
			break;
		}
		cmd_delist(cmd);
		if (!cmd_priv(cmd)->flying)
			cmd_finish(queue, cmd);
	}
}

void host_unstick(struct weft_queue *queue)
{
	struct weft_list first;

	weft_list_init(&first);
	weft_list_splice(&first, &queue->stuck);
	weft_list_splice(&first, &queue->waiting);
	weft_list_splice(&queue->waiting, &first);
	weft_reactor_defer(queue->reactor, &queue->go_on);
}

void host_issue(struct weft_queue *queue)
{
	issue(queue, true);
}

static int check_memory(struct weft_queue *queue, const struct weft_cmd *cmd)
{
	enum host_shape shape = host_rule(cmd->op)->shape;

	if (shape == SHAPE_NONE || shape == SHAPE_RANGE)
		return 0;
	return host_memory_ok(queue, cmd->iov, cmd->iovcnt) ? 0 : -EOPNOTSUPP;
}

static uint64_t whole_of(const struct weft_cmd *cmd)
{
	enum host_shape shape = host_rule(cmd->op)->shape;

	return shape == SHAPE_NONE || shape == SHAPE_RAW ? 1 : cmd->length;
}

static void take_over(struct weft_queue *queue, struct weft_cmd *cmd)
{
	memset(cmd->priv, 0, sizeof(cmd->priv));
	cmd_priv(cmd)->whole = whole_of(cmd);
	cmd->rc = 0;
	cmd->status = 0;
	cmd->result = 0;
	cmd_start_over(cmd);
	if (cmd->op == WEFT_FLUSH)
		host_flush_begin(cmd);
	queue->pending++;
}

/* Nobody is before it, and it is out whole: it need not stand in line. */
static bool goes_at_once(struct weft_queue *queue, struct weft_cmd *cmd)
{
	return cmd->op != WEFT_FLUSH && weft_list_empty(&queue->waiting) &&
	       send_next(queue, cmd) == WENT && cmd_all_issued(cmd);
}

int weft_submit(struct weft_queue *queue, struct weft_cmd *cmd)
{
	int rc = host_rule_check(&queue->seen.traits, cmd);

	if (rc == 0 && weft_region_any_dmabuf())
		rc = check_memory(queue, cmd);
	if (rc < 0)
		return rc;
	if (queue->seen.state == WEFT_DEAD)
		return -ENOTCONN;
	take_over(queue, cmd);
	if (!goes_at_once(queue, cmd)) {
		cmd_enlist(&queue->waiting, cmd);
		issue(queue, false);
	}
	return 0;
}
