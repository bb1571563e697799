/* drain_wait.c - wait until closing queues have drained: storage has no command of theirs any
 * more.
 *
 *   queue lost or closed ─▶ its last command comes back from storage ─▶ queue gone
 *       ─▶ next awaited queue, or done
 *
 * A late write of a dead connection must not overwrite newer data. Two commands let a host write
 * again because a connection is dead, and both wait here first: Connect (stale.c) and
 * Cross-Controller Reset (admin/ccr.c).
 *
 * A waiter is on the list of one queue that it awaits. When that queue is gone it moves to the
 * next one, which its owner finds without a walk over all queues: the end of a queue costs nothing
 * to those who wait for others, and little to those who waited for it.
 *
 * Invariant: a waiter on a list awaits a queue that exists, and so does its subsystem. */
#include "target/internal.h"

/* False: no queue is awaited. */
static bool attach_to_draining_queue(struct tgt_drain_wait *drain)
{
	struct tgt_queue *queue = drain->first_awaited(drain);

	if (!queue)
		return false;
	assert(queue->state >= TGT_QUEUE_CLOSING); /* it will be gone */
	weft_list_push(&queue->drain_waits, &drain->queue_link);
	return true;
}

static void drain_wait_finish(struct tgt_drain_wait *drain, bool all)
{
	tgt_drain_wait_cancel(drain);
	drain->done(drain, all);
}

static void drain_wait_expired(struct weft_timer *timer)
{
	struct tgt_drain_wait *drain = container_of(timer, struct tgt_drain_wait, timer);

	assert(!weft_list_empty(&drain->queue_link));
	drain_wait_finish(drain, false);
}

void tgt_drain_wait_start(struct tgt_drain_wait *drain, unsigned limit_ms)
{
	struct weft_target *t = drain->subsys->target;

	assert_on_control(t);
	if (!attach_to_draining_queue(drain)) {
		drain->done(drain, true);
		return;
	}
	weft_list_push(&t->drain_waits, &drain->link);
	drain->timer.fn = drain_wait_expired;
	if (limit_ms)
		weft_timer_set(t->control, &drain->timer, limit_ms);
}

/* One waiter at a time: done() may start another wait, or cancel one. */
void tgt_drain_wait_queue_gone(struct tgt_queue *gone)
{
	struct weft_list *link;

	assert_on_control(gone->ctrl->subsys->target);
	assert(weft_list_empty(&gone->link)); /* or a waiter would be attached to it again */
	while ((link = weft_list_pop(&gone->drain_waits))) {
		struct tgt_drain_wait *drain = container_of(link, struct tgt_drain_wait,
							    queue_link);

		if (!attach_to_draining_queue(drain))
			drain_wait_finish(drain, true);
	}
}

void tgt_drain_wait_cancel(struct tgt_drain_wait *drain)
{
	assert_on_control(drain->subsys->target);
	weft_list_remove(&drain->link);
	weft_list_remove(&drain->queue_link);
	weft_timer_stop(drain->subsys->target->control, &drain->timer);
}
