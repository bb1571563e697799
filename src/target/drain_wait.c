/* drain_wait.c - wait until queues that are ending have ended, and with them all that storage has of
 * theirs.
 *
 *   a queue is lost, or closed ─▶ its last command comes back from storage ─▶ it is gone ─▶ look again
 *
 * A late write of a dead connection must not land on what was written since. So whoever may write
 * because that connection is dead waits here first: the host that connects anew (stale.c), and
 * the host that asks for a Cross-Controller Reset over another path (admin/ccr.c).
 *
 * Who waits is with one of the queues that it waits for, and looks for another one when that is
 * gone: the end of a queue costs those nothing who wait for others.
 *
 * Invariant: what is on a list waits for a queue that is there, and so is its subsystem. */
#include "target/internal.h"

/* With the first queue that it waits for. False: there is none. */
static bool attach_to_draining_queue(struct tgt_drain_wait *over)
{
	struct tgt_ctrl *ctrl;
	struct tgt_queue *queue;

	weft_list_for_each(ctrl, &over->subsys->ctrls, link)
		weft_list_for_each(queue, &ctrl->queues, link)
			if (over->awaits(over, queue)) {
				weft_list_push(&queue->drain_waits, &over->queue_link);
				return true;
			}
	return false;
}

static void drain_wait_finish(struct tgt_drain_wait *over, bool all)
{
	tgt_drain_wait_cancel(over);
	over->done(over, all);
}

static void drain_wait_expired(struct weft_timer *timer)
{
	drain_wait_finish(container_of(timer, struct tgt_drain_wait, timer), false);
}

void tgt_drain_wait_start(struct tgt_drain_wait *over, unsigned limit_ms)
{
	struct weft_target *t = over->subsys->target;

	if (!attach_to_draining_queue(over)) {
		over->done(over, true);
		return;
	}
	weft_list_push(&t->drain_waits, &over->link);
	over->timer.fn = drain_wait_expired;
	if (limit_ms)
		weft_timer_set(t->control, &over->timer, limit_ms);
}

/* One at a time: done() may begin another wait, or end one. */
void tgt_drain_wait_queue_gone(struct tgt_queue *gone)
{
	struct weft_list *link;

	while ((link = weft_list_pop(&gone->drain_waits))) {
		struct tgt_drain_wait *over = container_of(link, struct tgt_drain_wait, queue_link);

		if (!attach_to_draining_queue(over))
			drain_wait_finish(over, true);
	}
}

void tgt_drain_wait_cancel(struct tgt_drain_wait *over)
{
	weft_list_remove(&over->link);
	weft_list_remove(&over->queue_link);
	weft_timer_stop(over->subsys->target->control, &over->timer);
}
