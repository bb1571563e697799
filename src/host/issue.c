/* issue.c - commands become pieces, pieces become slots, and come back.
 *
 *   submit ─▶ waiting ─▶ piece ─▶ slot ─▶ link          link lost: the whole command starts over,
 *                 ▲       └ done ─▶ all pieces back? ─▶ done()          or ends
 *                 └── later ◀─ a status that asks for another try
 *
 * A command longer than the controller takes at once is cut as slots become free; nothing is
 * allocated for that, its own memory holds how far it has come.
 * Invariant: a command is on @waiting or @later, or has slots in flight, or both. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "host/rule.h"

enum {
	TRIES_MAX =
		5, /* of a command that breaks its connection, or whose status asks for a retry */
	AGAIN_MS = 100,
};

/* What weft_cmd.priv holds while the command is ours. */
struct cmd_priv {
	struct weft_list link;   /* queue->waiting or ->later */
	uint64_t issued;         /* bytes in pieces so far; RAW and FLUSH: 1 when out */
	const struct iovec *iov; /* where the next piece's data begins */
	size_t skip;
	uint32_t flying; /* pieces in flight */
	uint16_t tries;
	bool listed; /* on a list */
	bool lost;   /* a piece went with its connection */
	bool retry;  /* a piece asks for another try */
	bool timed_out;
};
static_assert(sizeof(struct cmd_priv) <= sizeof(((struct weft_cmd *)0)->priv), "fits");

static struct cmd_priv *priv_of(struct weft_cmd *cmd)
{
	return (struct cmd_priv *)cmd->priv;
}

static struct weft_cmd *cmd_of(struct weft_list *link)
{
	return container_of(container_of(link, struct cmd_priv, link), struct weft_cmd, priv);
}

static void start_over(struct weft_cmd *cmd)
{
	struct cmd_priv *p = priv_of(cmd);

	p->issued = 0;
	p->iov = cmd->iov;
	p->skip = 0;
	p->lost = p->retry = false;
}

static void finish(struct weft_queue *queue, struct weft_cmd *cmd)
{
	assert(!priv_of(cmd)->flying && !priv_of(cmd)->listed);
	/* What was read may be another namespace's. */
	if (!cmd->rc && cmd->ns &&
	    atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed) == -ESTALE)
		cmd->rc = -ESTALE;
	queue->pending--;
	queue->completed++;
	if (cmd->done)
		cmd->done(cmd);
}

static void enlist(struct weft_list *list, struct weft_cmd *cmd)
{
	struct cmd_priv *p = priv_of(cmd);

	assert(!p->listed);
	p->listed = true;
	weft_list_push(list, &p->link);
}

static void delist(struct weft_cmd *cmd)
{
	struct cmd_priv *p = priv_of(cmd);

	if (p->listed)
		weft_list_remove(&p->link);
	p->listed = false;
}

/* --- pieces -------------------------------------------------------------------------------------- */

static bool all_issued(const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;
	enum host_shape shape = host_rule(cmd->op)->shape;

	if (cmd->rc)
		return true;
	return shape == SHAPE_NONE || shape == SHAPE_RAW ? p->issued : p->issued >= cmd->length;
}

static void fill_range(struct weft_slot *slot, const struct weft_cmd *cmd, uint64_t at,
		       uint64_t len)
{
	unsigned shift = cmd->ns->block_shift;
	uint16_t control = 0;

	if (cmd->flags & WEFT_FUA)
		control |= NVME_RW_FUA;
	if (cmd->flags & WEFT_UNMAP)
		control |= NVME_WZ_DEAC;
	slot->cmd.rw.slba = cpu_to_le64(at >> shift);
	slot->cmd.rw.nlb = cpu_to_le16((uint16_t)((len >> shift) - 1));
	slot->cmd.rw.control = cpu_to_le16(control);
}

static void use_scratch(struct weft_slot *slot, uint32_t len)
{
	slot->scratch_iov = (struct iovec){ slot->scratch, len };
	slot->iov = &slot->scratch_iov;
	slot->data_len = len;
}

static void fill_trim(struct weft_slot *slot, const struct weft_cmd *cmd, uint64_t at, uint64_t len)
{
	unsigned shift = cmd->ns->block_shift;
	struct nvme_dsm_range range = {
		.nlb = cpu_to_le32((uint32_t)(len >> shift)),
		.slba = cpu_to_le64(at >> shift),
	};

	slot->cmd.common.cdw11 = cpu_to_le32(NVME_DSMGMT_AD);
	memcpy(slot->scratch, &range, sizeof(range));
	use_scratch(slot, sizeof(range));
}

static void fill_copy(struct weft_slot *slot, const struct weft_cmd *cmd, uint64_t at, uint64_t len)
{
	unsigned shift = cmd->ns->block_shift;
	struct nvme_copy_range range = {
		.slba = cpu_to_le64((cmd->copy_from + (at - cmd->offset)) >> shift),
		.nlb = cpu_to_le16((uint16_t)((len >> shift) - 1)),
	};

	slot->cmd.rw.slba = cpu_to_le64(at >> shift);
	slot->cmd.common.cdw12 = cpu_to_le32(cmd->flags & WEFT_FUA ? 1u << 30 : 0);
	memcpy(slot->scratch, &range, sizeof(range));
	use_scratch(slot, sizeof(range));
}

static void fill_raw(struct weft_slot *slot, const struct weft_cmd *cmd)
{
	uint16_t cid = le16_to_cpu(slot->cmd.common.cid);

	memcpy(&slot->cmd, cmd->sqe, sizeof(slot->cmd));
	slot->cmd.common.cid = cpu_to_le16(cid);
	slot->iov = cmd->iov;
	slot->data_len = (uint32_t)cmd->length;
}

static void take_data(struct weft_slot *slot, struct weft_cmd *cmd, uint64_t len)
{
	struct cmd_priv *p = priv_of(cmd);

	slot->iov = p->iov;
	slot->iov_skip = p->skip;
	slot->data_len = (uint32_t)len;
	for (p->skip += len; p->skip && p->skip >= p->iov->iov_len; p->iov++)
		p->skip -= p->iov->iov_len;
}

static void submit(struct weft_queue *queue, struct weft_slot *slot, struct weft_cmd *cmd)
{
	slot->user = cmd;
	slot->since_ns = weft_reactor_now_ns(queue->reactor);
	priv_of(cmd)->flying++;
	weft_list_push(&queue->inflight, &slot->user_link);
	weft_link_submit(queue->link, slot);
	atomic_store_explicit(&queue->ctrl->traffic, true, memory_order_relaxed);
}

static void issue_piece(struct weft_queue *queue, struct weft_cmd *cmd, struct weft_slot *slot)
{
	const struct host_rule *rule = host_rule(cmd->op);
	struct cmd_priv *p = priv_of(cmd);
	uint64_t at = cmd->offset + p->issued, len = 1;

	slot->cmd.common.opcode = rule->opcode;
	if (cmd->ns)
		slot->cmd.common.nsid = cpu_to_le32(cmd->ns->nsid);
	if (rule->shape == SHAPE_RAW)
		fill_raw(slot, cmd);
	if (rule->shape == SHAPE_DATA || rule->shape == SHAPE_RANGE) {
		len = host_rule_piece_max(&queue->seen.traits, cmd);
		if (len > cmd->length - p->issued)
			len = cmd->length - p->issued;
		if (cmd->op == WEFT_TRIM)
			fill_trim(slot, cmd, at, len);
		else if (cmd->op == WEFT_COPY)
			fill_copy(slot, cmd, at, len);
		else
			fill_range(slot, cmd, at, len);
		if (rule->shape == SHAPE_DATA)
			take_data(slot, cmd, len);
	}
	p->issued += len;
	submit(queue, slot, cmd);
}

/* Compare and Write must follow each other on the wire (NVMe base 2.0, 3.4.2). */
static void issue_fused(struct weft_queue *queue, struct weft_cmd *cmd, struct weft_slot *first,
			struct weft_slot *second)
{
	struct weft_slot *slots[] = { first, second };
	static const uint8_t opcodes[] = { nvme_cmd_compare, nvme_cmd_write };
	static const uint8_t fuse[] = { NVME_FUSE_FIRST, NVME_FUSE_SECOND };

	for (int i = 0; i < 2; i++) {
		slots[i]->cmd.common.opcode = opcodes[i];
		slots[i]->cmd.common.flags = fuse[i];
		slots[i]->cmd.common.nsid = cpu_to_le32(cmd->ns->nsid);
		fill_range(slots[i], cmd, cmd->offset, cmd->length);
		take_data(slots[i], cmd, cmd->length);
		submit(queue, slots[i], cmd);
	}
	priv_of(cmd)->issued = cmd->length;
}

/* false: there is no slot for it now. */
static bool issue_next(struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct weft_slot *slot = weft_link_take(queue->link), *second;

	if (!slot)
		return false;
	if (host_rule(cmd->op)->shape != SHAPE_FUSED) {
		issue_piece(queue, cmd, slot);
		return true;
	}
	second = weft_link_take(queue->link);
	if (second)
		issue_fused(queue, cmd, slot, second);
	else
		weft_link_put(queue->link, slot);
	return second;
}

/* The namespace may have gone, or another come, since the command was submitted. */
static int namespace_rc(const struct weft_cmd *cmd)
{
	return cmd->ns ? atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed) : 0;
}

/* @poll: done() may run. */
static void issue(struct weft_queue *queue, bool poll)
{
	struct weft_cmd *cmd;

	while (queue->ready && !queue->link->closing && !weft_list_empty(&queue->waiting)) {
		cmd = cmd_of(queue->waiting.next);
		if (!cmd->rc)
			cmd->rc = namespace_rc(cmd);
		if (!all_issued(cmd) && !issue_next(queue, cmd))
			break;
		if (!all_issued(cmd))
			continue;
		if (!priv_of(cmd)->flying && !poll) {
			weft_reactor_defer(queue->reactor, &queue->go_on);
			break;
		}
		delist(cmd);
		if (!priv_of(cmd)->flying)
			finish(queue, cmd);
	}
	host_timeouts_watch(queue);
}

void host_issue(struct weft_queue *queue)
{
	issue(queue, true);
}

int weft_submit(struct weft_queue *queue, struct weft_cmd *cmd)
{
	int rc = host_rule_check(&queue->seen.traits, cmd);

	if (rc < 0)
		return rc;
	if (queue->seen.state == WEFT_DEAD)
		return -ENOTCONN;
	memset(cmd->priv, 0, sizeof(cmd->priv));
	cmd->rc = 0;
	cmd->status = 0;
	cmd->result = 0;
	start_over(cmd);
	queue->pending++;
	enlist(&queue->waiting, cmd);
	issue(queue, false);
	return 0;
}

/* --- back again ----------------------------------------------------------------------------------- */

/* Another try may help, and does no harm (NVMe base 2.0, 4.2.3: DNR). */
static bool worth_another_try(const struct weft_cmd *cmd, uint16_t status)
{
	if (status & SC_DNR || !host_rule(cmd->op)->again)
		return false;
	switch (status & 0x7ff) {
	case SC_GENERIC(TRAN_TPORT_ERROR):
	case SC_GENERIC(NS_NOT_READY):
	case SC_GENERIC(CMD_INTERRUPTED):
		return true;
	default:
		return false;
	}
}

/* What came is not what was sent: its digest says so. */
static void note_corruption(struct weft_cmd *cmd)
{
	struct cmd_priv *p = priv_of(cmd);

	if (p->tries < TRIES_MAX)
		p->retry = true;
	else
		cmd->rc = -EBADMSG;
}

static void note_failure(struct weft_cmd *cmd, uint16_t status)
{
	struct cmd_priv *p = priv_of(cmd);

	if (worth_another_try(cmd, status) && p->tries < TRIES_MAX) {
		p->retry = true;
		return;
	}
	/* The write of a fused pair fails because its compare did: that is not news. */
	if (cmd->rc && (status & 0x7ff) == SC_GENERIC(FUSED_FAIL))
		return;
	cmd->status = status & (0x7ff | SC_DNR);
	cmd->rc = p->timed_out && (status & 0x7ff) == SC_GENERIC(ABORT_REQ) ?
			  -ETIMEDOUT :
			  weft_status_to_errno(status);
}

static void wait_and_try_again(struct weft_queue *queue, struct weft_cmd *cmd)
{
	priv_of(cmd)->tries++;
	start_over(cmd);
	enlist(&queue->later, cmd);
	if (!weft_heap_has(&queue->again.node))
		weft_timer_set(queue->reactor, &queue->again, AGAIN_MS);
}

/* The last of its pieces that were in flight is back. */
static void settle(struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct cmd_priv *p = priv_of(cmd);

	if (p->flying || (!all_issued(cmd) && !p->retry && !p->lost))
		return;
	delist(cmd);
	if (!cmd->rc && p->timed_out && p->lost)
		cmd->rc = -ETIMEDOUT;
	else if (!cmd->rc && p->lost && (!host_rule(cmd->op)->again || ++p->tries > TRIES_MAX))
		cmd->rc = -ECONNRESET;
	if (!cmd->rc && p->lost) {
		start_over(cmd);
		enlist(&queue->waiting, cmd);
	} else if (!cmd->rc && p->retry) {
		wait_and_try_again(queue, cmd);
	} else {
		finish(queue, cmd);
	}
}

/* A success must have moved all the data. A raw command's data may be more than it needs. */
static bool is_complete(const struct weft_cmd *cmd, const struct weft_slot *slot)
{
	if (cmd->op == WEFT_RAW && nvme_cmd_direction(&slot->cmd) != NVME_DIR_TO_HOST)
		return true;
	return slot->moved == slot->data_len;
}

static void short_data(struct weft_queue *queue, const struct weft_slot *slot)
{
	weft_link_close(queue->link, -EPROTO,
			"CapsuleResp: success for a command that moved %u of %u bytes", slot->moved,
			slot->data_len);
}

void host_piece_done(struct weft_queue *queue, struct weft_slot *slot)
{
	struct weft_cmd *cmd = slot->user;
	struct cmd_priv *p = priv_of(cmd);
	uint16_t status = host_status(&slot->cqe);

	weft_list_remove(&slot->user_link);
	if (queue->aborting == slot)
		queue->aborting = NULL;
	p->flying--;
	if (!status && !is_complete(cmd, slot)) {
		p->lost = true;
		short_data(queue, slot);
	} else if (!status && slot->corrupt) {
		note_corruption(cmd);
	} else if (status) {
		note_failure(cmd, status);
	}
	cmd->result = le64_to_cpu(slot->cqe.result);
	settle(queue, cmd);
}

static void lose(struct weft_slot *slot)
{
	struct cmd_priv *p = priv_of(slot->user);

	p->lost = true;
	p->flying--;
	slot->busy = false;
}

void host_pieces_lost(struct weft_queue *queue)
{
	struct weft_list lost, *link;
	struct weft_slot *slot;

	weft_list_init(&lost);
	weft_list_splice(&lost, &queue->inflight);
	queue->aborting = NULL;
	while ((link = weft_list_pop(&lost))) {
		slot = container_of(link, struct weft_slot, user_link);
		lose(slot);
		settle(queue, slot->user);
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
		priv_of(cmd)->listed = false;
		if (!cmd->rc)
			cmd->rc = rc;
		if (!priv_of(cmd)->flying)
			finish(queue, cmd);
	}
}

void host_fail_all(struct weft_queue *queue, int rc)
{
	fail_list(queue, &queue->waiting, rc);
	fail_list(queue, &queue->later, rc);
}

static void try_again(struct weft_timer *timer)
{
	struct weft_queue *queue = container_of(timer, struct weft_queue, again);

	weft_list_splice(&queue->waiting, &queue->later);
	host_issue(queue);
}

/* --- timeouts ---------------------------------------------------------------------------------------- */

static struct weft_slot *oldest(const struct weft_queue *queue)
{
	return weft_list_empty(&queue->inflight) ?
		       NULL :
		       container_of(queue->inflight.next, struct weft_slot, user_link);
}

/* One timer for the queue: commands have the same patience, so the oldest is the first to lose it. */
void host_timeouts_watch(struct weft_queue *queue)
{
	if (!weft_heap_has(&queue->timeout.node) && oldest(queue))
		weft_timer_set(queue->reactor, &queue->timeout, queue->ctrl->config.options.io_ms);
}

static uint64_t age_ms(const struct weft_queue *queue, const struct weft_slot *slot)
{
	return (weft_reactor_now_ns(queue->reactor) - slot->since_ns) / 1000000;
}

static void on_timeout(struct weft_timer *timer)
{
	struct weft_queue *queue = container_of(timer, struct weft_queue, timeout);
	const struct weft_options *o = &queue->ctrl->config.options;
	struct weft_slot *slot = oldest(queue);
	uint64_t age;

	if (!slot || !queue->ready || queue->link->closing)
		return;
	age = age_ms(queue, slot);
	if (age < o->io_ms) {
		weft_timer_set(queue->reactor, timer, o->io_ms - age);
	} else if (slot != queue->aborting) {
		queue->aborting = slot;
		priv_of(slot->user)->timed_out = true;
		host_queue_ask_abort(queue, le16_to_cpu(slot->cmd.common.cid));
		weft_timer_set(queue->reactor, timer, o->abort_ms);
	} else {
		weft_link_close(queue->link, -ETIMEDOUT,
				"no answer to a %s within %u ms, and none to its abort",
				host_rule(((struct weft_cmd *)slot->user)->op)->name, o->io_ms);
	}
}

void host_issue_init(struct weft_queue *queue)
{
	weft_list_init(&queue->waiting);
	weft_list_init(&queue->inflight);
	weft_list_init(&queue->later);
	queue->timeout.fn = on_timeout;
	queue->again.fn = try_again;
}
