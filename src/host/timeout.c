/* timeout.c - commands that are not answered.
 *
 *   unusually long ─▶ is the controller there at all? (probe.c)
 *   io_timeout ─▶ aborted ─▶ abort_timeout ─▶ the connection is given up */
#include <errno.h>

#include "host/cmd.h"

enum { USUAL_TIMES = 8 }; /* what a command usually takes: that is unusual */

static struct weft_slot *oldest(const struct host_lane *lane)
{
	return weft_list_empty(&lane->inflight) ?
		       NULL :
		       container_of(lane->inflight.next, struct weft_slot, user_link);
}

/* 0: never; there is no other path to go on with. */
static uint32_t suspicious_ms(const struct host_lane *lane)
{
	uint32_t probe = lane->path->config.options.probe_ms;
	uint64_t usual = lane->usual_ns * USUAL_TIMES / 1000000;

	if (!probe || lane->queue->nlanes < 2)
		return 0;
	return usual > probe ? (uint32_t)usual : probe;
}

/* @age_ms: of the oldest command. One that was suspected already is looked at again as much later. */
static void set_timer(struct host_lane *lane, uint64_t age_ms)
{
	uint64_t left = lane->path->config.options.io_ms - age_ms;
	uint32_t suspicious = suspicious_ms(lane);
	uint64_t look = age_ms < suspicious ? suspicious - age_ms : suspicious;

	weft_timer_set(lane->queue->reactor, &lane->timeout, look && look < left ? look : left);
}

/* One timer for the lane: commands have the same patience, so the oldest is the first to lose
 * it. */
void host_timeout_watch(struct host_lane *lane)
{
	if (!weft_heap_has(&lane->timeout.node))
		set_timer(lane, 0);
}

/* There is another lane now, to go on with. */
void host_timeouts_again(struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++) {
		struct host_lane *lane = queue->lanes[i];

		if (!lane || !weft_heap_has(&lane->timeout.node) || lane->aborting)
			continue;
		weft_timer_stop(queue->reactor, &lane->timeout);
		cmd_on_timeout(&lane->timeout);
	}
}

static uint64_t age_ms(const struct host_lane *lane, const struct weft_slot *slot)
{
	return (weft_reactor_now_ns(lane->queue->reactor) - slot->since_ns) / 1000000;
}

static void abort_it(struct host_lane *lane, struct weft_slot *slot)
{
	lane->aborting = slot;
	cmd_priv(slot->user)->timed_out = true;
	host_lane_ask_abort(lane, le16_to_cpu(slot->cmd.common.cid));
	weft_timer_set(lane->queue->reactor, &lane->timeout, lane->path->config.options.abort_ms);
}

void cmd_on_timeout(struct weft_timer *timer)
{
	struct host_lane *lane = container_of(timer, struct host_lane, timeout);
	uint32_t io_ms = lane->path->config.options.io_ms, suspicious = suspicious_ms(lane);
	struct weft_slot *slot = oldest(lane);
	uint64_t age;

	if (!slot || !lane->ready || lane->link->closing)
		return;
	age = age_ms(lane, slot);
	if (age >= io_ms && slot != lane->aborting) {
		abort_it(lane, slot);
	} else if (age >= io_ms) {
		weft_link_close(lane->link, -ETIMEDOUT,
				"no answer to a %s within %u ms, and none to its abort",
				host_rule(((struct weft_cmd *)slot->user)->op)->name, io_ms);
	} else {
		if (suspicious && age >= suspicious)
			host_lane_ask_probe(lane, suspicious);
		set_timer(lane, age);
	}
}
