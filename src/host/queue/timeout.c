/* timeout.c - time-outs: commands that are not answered.
 *
 *   unusually long ─▶ is the controller there at all? (probe.c)
 *   io_timeout ─▶ Abort ─▶ abort_timeout ─▶ the association is reset */
#include <errno.h>

#include "host/queue/cmd.h"

enum { USUAL_TIMES = 8 }; /* times the average latency: unusually long */

static struct weft_link_slot *oldest_slot(const struct host_path_queue *pq)
{
	return weft_list_empty(&pq->inflight) ?
		       NULL :
		       container_of(pq->inflight.next, struct weft_link_slot, user_link);
}

/* 0: never; there is no other path to fail over to. */
static uint32_t suspect_ms(const struct host_path_queue *pq)
{
	uint32_t probe = pq->path->config.options.probe_ms;
	uint64_t usual = pq->avg_latency_ns * USUAL_TIMES / 1000000;

	if (!probe || pq->queue->npath_queues < 2)
		return 0;
	return usual > probe ? (uint32_t)usual : probe;
}

/* @age_ms: age of the oldest command. If its path was suspected already, the next check is as much
 * later. */
static void set_timer(struct host_path_queue *pq, uint64_t age_ms)
{
	uint64_t left = pq->path->config.options.io_ms - age_ms;
	uint32_t suspicious = suspect_ms(pq);
	uint64_t look = age_ms < suspicious ? suspicious - age_ms : suspicious;

	assert(age_ms < pq->path->config.options.io_ms);
	weft_timer_set(pq->queue->reactor, &pq->timeout, look && look < left ? look : left);
}

/* One timer for the path queue: all commands have the same timeout, so the oldest is the first to
 * time out. */
void host_timeout_arm(struct host_path_queue *pq)
{
	if (!weft_heap_has(&pq->timeout.node))
		set_timer(pq, 0);
}

/* There is another path queue now, to fail over to. */
void host_timeouts_recheck(struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->npath_queues; i++) {
		struct host_path_queue *pq = queue->path_queues[i];

		if (!pq || !weft_heap_has(&pq->timeout.node) || pq->aborting)
			continue;
		weft_timer_stop(queue->reactor, &pq->timeout);
		host_on_io_timeout(&pq->timeout);
	}
}

static uint64_t age_ms(const struct host_path_queue *pq, const struct weft_link_slot *slot)
{
	return (weft_reactor_now_ns(pq->queue->reactor) - slot->since_ns) / 1000000;
}

static void abort_slot(struct host_path_queue *pq, struct weft_link_slot *slot)
{
	assert(pq->ready && slot != pq->aborting);
	pq->aborting = slot;
	cmd_priv(slot->user)->timed_out = true;
	host_path_queue_request_abort(pq, le16_to_cpu(slot->cmd.common.cid));
	weft_timer_set(pq->queue->reactor, &pq->timeout, pq->path->config.options.abort_ms);
}

void host_on_io_timeout(struct weft_timer *timer)
{
	struct host_path_queue *pq = container_of(timer, struct host_path_queue, timeout);
	uint32_t io_ms = pq->path->config.options.io_ms, suspicious = suspect_ms(pq);
	struct weft_link_slot *slot = oldest_slot(pq);
	uint64_t age;

	assert_on(pq->queue->reactor);
	if (!slot || !pq->ready || pq->link->closing)
		return;
	age = age_ms(pq, slot);
	if (age >= io_ms && slot != pq->aborting) {
		abort_slot(pq, slot);
	} else if (age >= io_ms) {
		weft_link_close(pq->link, -ETIMEDOUT,
				"no answer to a %s within %u ms, and none to its abort",
				host_op_desc(((struct weft_cmd *)slot->user)->op)->name, io_ms);
	} else {
		if (suspicious && age >= suspicious)
			host_path_queue_request_probe(pq, suspicious);
		set_timer(pq, age);
	}
}
