/* stall_clock.c - measures how long a queue's commands had no usable path (failover time): from the first
 * one that was lost, refused by its path, requeued or delayed to the end of the last one.
 *
 * Times are those of the reactor's turns. */
#include "base/count.h"
#include "host/queue/cmd.h"

void host_stall_clock_start(struct weft_queue *queue, struct weft_cmd *cmd)
{
	struct cmd_priv *p = cmd_priv(cmd);

	if (p->stalled)
		return;
	p->stalled = true;
	if (!queue->stalled++)
		queue->stalled_ns = weft_reactor_now_ns(queue->reactor);
}

/* [n] is shorter than 2^n us. */
static unsigned stall_bucket(uint64_t ns)
{
	unsigned n = 0;

	while (n < WEFT_STALL_LENGTHS - 1 && ns / 1000 >> n)
		n++;
	return n;
}

static void count_stall(struct weft_stalls *stalls, uint64_t ns)
{
	assert(stall_bucket(ns) < WEFT_STALL_LENGTHS);
	stalls->stalls++;
	stalls->total_ns += ns;
	if (ns > stalls->longest_ns)
		stalls->longest_ns = ns;
	stalls->by_length[stall_bucket(ns)]++;
}

void host_stall_clock_stop(struct weft_queue *queue, struct weft_cmd *cmd)
{
	if (cmd_priv(cmd)->stalled && !weft_count_down(queue->stalled))
		count_stall(&queue->stalls,
			    weft_reactor_now_ns(queue->reactor) - queue->stalled_ns);
}

void weft_queue_stalls(const struct weft_queue *queue, struct weft_stalls *stalls)
{
	*stalls = queue->stalls;
}
