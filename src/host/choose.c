/* choose.c - the lane that a command goes out on.
 *
 *   lanes that are ready ─▶ those to paths that its namespace may be used through ─▶ the cheapest
 *
 * What a lane costs is the policy's to say. A command whose pieces are in flight stays on its lane. */
#include "host/cmd.h"

static enum host_access access_to(const struct weft_cmd *cmd, unsigned index)
{
	if (!cmd->ns)
		return HOST_ACCESS_OPTIMIZED;
	return atomic_load_explicit(&cmd->ns->access[index], memory_order_relaxed);
}

static bool is_ready(const struct host_lane *lane)
{
	return lane && lane->ready && !lane->link->closing;
}

/* Fewest in flight; of equals, the one whose turn it is. */
static uint64_t cost(const struct weft_queue *queue, const struct host_lane *lane)
{
	unsigned n = queue->nlanes, distance = (lane->path->index + n - queue->turn - 1) % n;

	return lane->link->free ? (uint64_t)lane->flying * n + distance : UINT64_MAX;
}

static struct host_lane *cheapest(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	struct host_lane *best = NULL;
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < queue->nlanes; i++) {
		struct host_lane *lane = queue->lanes[i];

		if (!is_ready(lane) || lane->leaving || !access_to(cmd, i))
			continue;
		if (!best || cost(queue, lane) < least) {
			best = lane;
			least = cost(queue, lane);
		}
	}
	return best;
}

struct host_lane *host_choose(struct weft_queue *queue, const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;
	struct host_lane *lane;

	if (p->flying) {
		lane = queue->lanes[p->lane];
		return is_ready(lane) ? lane : NULL;
	}
	lane = cheapest(queue, cmd);
	if (lane && lane->link->free)
		queue->turn = lane->path->index;
	return lane;
}
