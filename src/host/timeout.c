/* timeout.c - commands that are not answered: aborted first, then the connection is given up. */
#include <errno.h>

#include "host/cmd.h"

static struct weft_slot *oldest(const struct host_lane *lane)
{
	return weft_list_empty(&lane->inflight) ?
		       NULL :
		       container_of(lane->inflight.next, struct weft_slot, user_link);
}

/* One timer for the lane: commands have the same patience, so the oldest is the first to lose it. */
void host_timeout_watch(struct host_lane *lane)
{
	if (!weft_heap_has(&lane->timeout.node) && oldest(lane))
		weft_timer_set(lane->queue->reactor, &lane->timeout,
			       lane->path->config.options.io_ms);
}

static uint64_t age_ms(const struct host_lane *lane, const struct weft_slot *slot)
{
	return (weft_reactor_now_ns(lane->queue->reactor) - slot->since_ns) / 1000000;
}

void cmd_on_timeout(struct weft_timer *timer)
{
	struct host_lane *lane = container_of(timer, struct host_lane, timeout);
	const struct weft_options *o = &lane->path->config.options;
	struct weft_slot *slot = oldest(lane);
	uint64_t age;

	if (!slot || !lane->ready || lane->link->closing)
		return;
	age = age_ms(lane, slot);
	if (age < o->io_ms) {
		weft_timer_set(lane->queue->reactor, timer, o->io_ms - age);
	} else if (slot != lane->aborting) {
		lane->aborting = slot;
		cmd_priv(slot->user)->timed_out = true;
		host_lane_ask_abort(lane, le16_to_cpu(slot->cmd.common.cid));
		weft_timer_set(lane->queue->reactor, timer, o->abort_ms);
	} else {
		weft_link_close(lane->link, -ETIMEDOUT,
				"no answer to a %s within %u ms, and none to its abort",
				host_rule(((struct weft_cmd *)slot->user)->op)->name, o->io_ms);
	}
}
