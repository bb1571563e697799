/* ns_quiesce.c - one user has a namespace for itself: a fused pair against writers, a resize
 * against everybody.
 *
 *   begin ─▶ (control reactor) queued, resizes first ─▶ barrier: new commands wait, those at work
 *       end ─▶ quiesced()
 *   end   ─▶ (control reactor) barrier: waiting commands go on ─▶ the next in the queue
 *
 * A tenant has few pairs in the queue (io/tenant_limit.c), and a removal refuses all that are in it.
 *
 * The namespace outlives the message that asks for it: its removal drains with a barrier, which
 * the asking reactor answers later.
 *
 * Invariant: ns->barrier is in use exactly while the namespace is quiesced or drained. */

#include "target/internal.h"

static void quiesce_next(struct tgt_ns *ns);

bool tgt_ns_quiesce_idle(const struct tgt_ns *ns)
{
	assert_on_control(ns->barrier->target);
	return !ns->quiesced_by && weft_list_empty(&ns->quiesces);
}

static void quiesce_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct ns_local *local = &barrier->ns->local[group->index];

	assert(local->level == NS_QUIESCE_NONE && !local->barrier);
	local->level = barrier->level;
	if (tgt_ns_busy(local, barrier->level)) {
		local->barrier = barrier;
		local->barrier_awaits = barrier->level;
		return;
	}
	tgt_barrier_arrive(barrier, group);
}

static void quiesce_run_callback(struct weft_msg *msg)
{
	struct tgt_ns_quiesce *quiesce = container_of(msg, struct tgt_ns_quiesce, msg);

	assert_on(quiesce->reactor);
	quiesce->quiesced(quiesce);
}

static void quiesce_notify_owner(struct tgt_ns_quiesce *quiesce)
{
	quiesce->msg.fn = quiesce_run_callback;
	weft_reactor_post(quiesce->reactor, &quiesce->msg);
}

static void quiesce_reached(struct tgt_barrier *barrier)
{
	quiesce_notify_owner(barrier->ns->quiesced_by);
}

static void quiesce_next(struct tgt_ns *ns)
{
	struct weft_list *link = weft_list_pop(&ns->quiesces);

	assert(!ns->quiesced_by);
	if (!link) {
		tgt_ns_drain_if_removed(ns);
		return;
	}
	ns->quiesced_by = container_of(link, struct tgt_ns_quiesce, link);
	ns->barrier->level = ns->quiesced_by->level;
	ns->barrier->on_reactor = quiesce_on_reactor;
	ns->barrier->done = quiesce_reached;
	tgt_barrier_start(ns->barrier);
}

static void quiesce_refuse(struct tgt_ns_quiesce *quiesce)
{
	quiesce->ns = NULL;
	quiesce_notify_owner(quiesce);
}

void tgt_ns_quiesces_refuse(struct tgt_ns *ns)
{
	struct weft_list *link;

	assert_on_control(ns->barrier->target);
	assert(ns->removing);
	while ((link = weft_list_pop(&ns->quiesces)))
		quiesce_refuse(container_of(link, struct tgt_ns_quiesce, link));
}

/* Resizes come before pairs, in the order in which they were asked for. */
static void quiesce_wait(struct tgt_ns *ns, struct tgt_ns_quiesce *quiesce)
{
	struct tgt_ns_quiesce *before;

	weft_list_for_each(before, &ns->quiesces, link)
		if (before->level < quiesce->level)
			break;
	weft_list_push(&before->link, &quiesce->link);
}

static void quiesce_enqueue(struct weft_msg *msg)
{
	struct tgt_ns_quiesce *quiesce = container_of(msg, struct tgt_ns_quiesce, msg);
	struct tgt_ns *ns = quiesce->ns;
	bool idle = tgt_ns_quiesce_idle(ns);

	if (ns->removing) {
		quiesce_refuse(quiesce);
		return;
	}
	quiesce_wait(ns, quiesce);
	if (idle)
		quiesce_next(ns);
}

void tgt_ns_quiesce_begin(struct tgt_ns_quiesce *quiesce, struct weft_target *t)
{
	assert(quiesce->level == NS_QUIESCE_WRITERS || quiesce->level == NS_QUIESCE_ALL);
	quiesce->msg.fn = quiesce_enqueue;
	if (weft_reactor_self() == t->control)
		quiesce_enqueue(&quiesce->msg);
	else
		weft_reactor_post(t->control, &quiesce->msg);
}

static void unquiesce_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct ns_local *local = &barrier->ns->local[group->index];
	struct weft_list waiting, *link;

	assert(local->level == barrier->level && !local->barrier);
	weft_list_init(&waiting);
	weft_list_splice(&waiting, &local->waiting);
	local->level = NS_QUIESCE_NONE;
	while ((link = weft_list_pop(&waiting))) {
		struct weft_req *req = container_of(link, struct weft_req, link);

		tgt_req(req)->retry(req);
	}
	tgt_barrier_arrive(barrier, group);
}

static void unquiesce_reached(struct tgt_barrier *barrier)
{
	assert(barrier->ns->quiesced_by);
	barrier->ns->quiesced_by = NULL;
	quiesce_next(barrier->ns);
}

static void unquiesce_start(struct weft_msg *msg)
{
	struct tgt_ns *ns = container_of(msg, struct tgt_ns, unquiesce_msg);

	ns->barrier->on_reactor = unquiesce_on_reactor;
	ns->barrier->done = unquiesce_reached;
	tgt_barrier_start(ns->barrier);
}

void tgt_ns_quiesce_end(struct tgt_ns *ns, struct weft_target *t)
{
	assert_on(ns->quiesced_by->reactor);
	ns->unquiesce_msg.fn = unquiesce_start;
	weft_reactor_post(t->control, &ns->unquiesce_msg);
}
