/* fence.c - a namespace for one user alone: a fused pair against writers, a resize against all.
 *
 *   acquire ─▶ (home) in line ─▶ hold on every reactor ─▶ those under way end ─▶ got()
 *   release ─▶ (home) let go on every reactor, the waiting go on ─▶ next in line
 *
 * A namespace outlives the message that asks for it: the drain that ends it waits for an answer
 * that the asking reactor gives later.
 *
 * Invariant: ns->round is in use exactly while somebody holds the namespace or it is drained. */

#include "target/internal.h"

static void next_holder(struct tgt_ns *ns);

bool tgt_fence_idle(const struct tgt_ns *ns)
{
	return !ns->holder && weft_list_empty(&ns->fences);
}

static void hold_visit(struct tgt_round *round, struct weft_poll_group *group)
{
	struct ns_local *local = &round->ns->local[group->index];

	local->hold = round->hold;
	if (tgt_ns_busy(local, round->hold)) {
		local->round = round;
		local->round_waits = round->hold;
		return;
	}
	tgt_round_answer(round, group);
}

static void run_got(struct weft_msg *msg)
{
	struct tgt_fence *fence = container_of(msg, struct tgt_fence, msg);

	fence->got(fence);
}

static void give(struct tgt_fence *fence)
{
	fence->msg.fn = run_got;
	weft_reactor_post(fence->reactor, &fence->msg);
}

static void held(struct tgt_round *round)
{
	give(round->ns->holder);
}

static void next_holder(struct tgt_ns *ns)
{
	struct weft_list *link = weft_list_pop(&ns->fences);

	if (!link) {
		tgt_ns_end_if_removed(ns);
		return;
	}
	ns->holder = container_of(link, struct tgt_fence, link);
	ns->round->hold = ns->holder->hold;
	ns->round->visit = hold_visit;
	ns->round->done = held;
	tgt_round_start(ns->round);
}

static void queue_up(struct weft_msg *msg)
{
	struct tgt_fence *fence = container_of(msg, struct tgt_fence, msg);
	struct tgt_ns *ns = fence->ns;
	bool idle = tgt_fence_idle(ns);

	if (ns->removing) {
		fence->ns = NULL;
		give(fence);
		return;
	}
	weft_list_push(&ns->fences, &fence->link);
	if (idle)
		next_holder(ns);
}

void tgt_fence_acquire(struct tgt_fence *fence, struct weft_target *t)
{
	fence->msg.fn = queue_up;
	if (weft_reactor_self() == t->home)
		queue_up(&fence->msg);
	else
		weft_reactor_post(t->home, &fence->msg);
}

static void release_visit(struct tgt_round *round, struct weft_poll_group *group)
{
	struct ns_local *local = &round->ns->local[group->index];
	struct weft_list waiting, *link;

	weft_list_init(&waiting);
	weft_list_splice(&waiting, &local->waiting);
	local->hold = NS_HOLD_NONE;
	while ((link = weft_list_pop(&waiting))) {
		struct weft_req *req = container_of(link, struct weft_req, link);

		tgt_req(req)->again(req);
	}
	tgt_round_answer(round, group);
}

static void released(struct tgt_round *round)
{
	round->ns->holder = NULL;
	next_holder(round->ns);
}

static void start_release(struct weft_msg *msg)
{
	struct tgt_ns *ns = container_of(msg, struct tgt_ns, release_msg);

	ns->round->visit = release_visit;
	ns->round->done = released;
	tgt_round_start(ns->round);
}

void tgt_fence_release(struct tgt_ns *ns, struct weft_target *t)
{
	ns->release_msg.fn = start_release;
	weft_reactor_post(t->home, &ns->release_msg);
}
