/* timeout.c - commands that are not answered: aborted first, then the connection is given up. */
#include <errno.h>

#include "host/cmd.h"

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

void cmd_on_timeout(struct weft_timer *timer)
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
		cmd_priv(slot->user)->timed_out = true;
		host_queue_ask_abort(queue, le16_to_cpu(slot->cmd.common.cid));
		weft_timer_set(queue->reactor, timer, o->abort_ms);
	} else {
		weft_link_close(queue->link, -ETIMEDOUT,
				"no answer to a %s within %u ms, and none to its abort",
				host_rule(((struct weft_cmd *)slot->user)->op)->name, o->io_ms);
	}
}
