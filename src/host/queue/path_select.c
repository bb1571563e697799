/* path_select.c - path selection (multipath): chooses the path queue of a command. Optimized access
 * comes before non-optimized, then the lowest cost by the policy (queue depth, round robin,
 * latency).
 *
 *   path queues that are ready ─▶ those with the best access to its namespace ─▶ the cheapest
 *
 * A command whose pieces are in flight stays on its path queue while that leads to its namespace;
 * if it does not any more, the command waits for these pieces first. A flush goes where there is
 * unflushed data (flush.c). */
#include "host/queue/flush.h"

/* HOST_ACCESS_PERHAPS is speculative: only for commands that are retried when it fails. */
static enum host_access cmd_access(const struct weft_cmd *cmd, unsigned index)
{
	enum host_access access;

	if (!cmd->ns)
		return HOST_ACCESS_OPTIMIZED;
	access = atomic_load_explicit(&cmd->ns->access[index], memory_order_relaxed);
	return access == HOST_ACCESS_PERHAPS && !host_cmd_may_retry_refused(cmd) ?
		       HOST_ACCESS_NONE :
		       access;
}

static bool pq_is_ready(const struct host_path_queue *pq)
{
	return pq && pq->ready && !pq->link->closing;
}

enum host_access host_path_queue_access(const struct host_path_queue *pq,
					const struct weft_cmd *cmd)
{
	return pq_is_ready(pq) && !pq->removing ? cmd_access(cmd, pq->path->index) :
						  HOST_ACCESS_NONE;
}

/* One in so many choices by latency is round robin: a path that was slow may be fast by now. */
enum { EXPLORE = 256 };

static unsigned rr_distance(const struct weft_queue *queue, const struct host_path_queue *pq)
{
	return (pq->path->index + queue->npath_queues - queue->rr_last - 1) % queue->npath_queues;
}

/* Fewest commands in flight; round robin among equals. */
static uint64_t queue_depth_cost(const struct weft_queue *queue, const struct host_path_queue *pq)
{
	return (uint64_t)pq->ninflight * queue->npath_queues + rr_distance(queue, pq);
}

/* The expected time to completion, if the commands before it take as long as usual. */
static uint64_t latency_cost(const struct weft_queue *queue, const struct host_path_queue *pq)
{
	if (queue->choices % EXPLORE == 0)
		return rr_distance(queue, pq);
	return pq->avg_latency_ns * (pq->ninflight + 1);
}

static uint64_t policy_cost(const struct weft_queue *queue, const struct host_path_queue *pq)
{
	if (!pq->link->free)
		return UINT64_MAX;
	switch (queue->ctrl->config.options.policy) {
	case WEFT_ROUND_ROBIN:
		return rr_distance(queue, pq);
	case WEFT_LATENCY:
		return latency_cost(queue, pq);
	default:
		return queue_depth_cost(queue, pq);
	}
}

static struct host_path_queue *select_cheapest(const struct weft_queue *queue,
					       const struct weft_cmd *cmd, unsigned avoid_paths)
{
	enum host_access best = HOST_ACCESS_NONE, access;
	struct host_path_queue *chosen = NULL, *pq;
	uint64_t least = UINT64_MAX, cost;

	for (unsigned i = 0; i < queue->npath_queues; i++) {
		pq = queue->path_queues[i];
		access = avoid_paths >> i & 1 ? HOST_ACCESS_NONE : host_path_queue_access(pq, cmd);
		if (!access || access < best)
			continue;
		cost = policy_cost(queue, pq);
		if (access > best || cost < least) {
			best = access;
			chosen = pq;
			least = cost;
		}
	}
	return chosen;
}

bool host_has_other_path_queue(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	return select_cheapest(queue, cmd, ((const struct cmd_priv *)cmd->priv)->avoid_paths);
}

struct host_path_queue *host_select_path_queue(struct weft_queue *queue, const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;
	struct host_path_queue *pq;

	if (cmd->op == WEFT_FLUSH && host_flush_path_queue(queue, cmd, &pq))
		return pq;
	if (p->ninflight) {
		pq = queue->path_queues[p->pq];
		return pq_is_ready(pq) && cmd_access(cmd, p->pq) ? pq : NULL;
	}
	if (queue->npath_queues == 1)
		return host_path_queue_access(queue->path_queues[0], cmd) ? queue->path_queues[0] :
									    NULL;
	pq = select_cheapest(queue, cmd, p->avoid_paths);
	if (!pq && p->avoid_paths)
		pq = select_cheapest(queue, cmd, 0);
	if (pq && pq->link->free) {
		queue->rr_last = pq->path->index;
		queue->choices++;
	}
	return pq;
}
