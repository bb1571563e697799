/* choose.c - the lane that a command goes out on.
 *
 *   lanes that are ready ─▶ those with the best access to its namespace ─▶ the cheapest
 *
 * With one lane there is nothing to compare. Optimized access comes first, however busy it is; then
 * non-optimized. What a lane costs is the policy's to say. A command whose pieces are in flight
 * stays on its lane while that leads to its namespace, and waits for them if it does not any more; a
 * flush has places to go to (flush.c). */
#include "host/flush.h"

/* In hope goes only what comes back to be sent again. */
static enum host_access access_to(const struct weft_cmd *cmd, unsigned index)
{
	enum host_access access;

	if (!cmd->ns)
		return HOST_ACCESS_OPTIMIZED;
	access = atomic_load_explicit(&cmd->ns->access[index], memory_order_relaxed);
	return access == HOST_ACCESS_PERHAPS && !host_rule_may_be_refused(cmd) ? HOST_ACCESS_NONE :
										 access;
}

static bool is_ready(const struct host_lane *lane)
{
	return lane && lane->ready && !lane->link->closing;
}

enum host_access host_lane_access(const struct host_lane *lane, const struct weft_cmd *cmd)
{
	return is_ready(lane) && !lane->leaving ? access_to(cmd, lane->path->index) :
						  HOST_ACCESS_NONE;
}

/* Of so many choices by latency one is made in turn: what was slow may not be any more. */
enum { EXPLORE = 256 };

static unsigned distance(const struct weft_queue *queue, const struct host_lane *lane)
{
	return (lane->path->index + queue->nlanes - queue->turn - 1) % queue->nlanes;
}

/* Fewest in flight; of equals, the one whose turn it is. */
static uint64_t by_depth(const struct weft_queue *queue, const struct host_lane *lane)
{
	return (uint64_t)lane->flying * queue->nlanes + distance(queue, lane);
}

/* What it would take, if those before it take as long as usual. */
static uint64_t by_latency(const struct weft_queue *queue, const struct host_lane *lane)
{
	if (queue->choices % EXPLORE == 0)
		return distance(queue, lane);
	return lane->usual_ns * (lane->flying + 1);
}

static uint64_t cost(const struct weft_queue *queue, const struct host_lane *lane)
{
	if (!lane->link->free)
		return UINT64_MAX;
	switch (queue->ctrl->config.options.policy) {
	case WEFT_ROUND_ROBIN:
		return distance(queue, lane);
	case WEFT_LATENCY:
		return by_latency(queue, lane);
	default:
		return by_depth(queue, lane);
	}
}

static struct host_lane *cheapest(const struct weft_queue *queue, const struct weft_cmd *cmd,
				  unsigned avoid)
{
	enum host_access best = HOST_ACCESS_NONE, access;
	struct host_lane *chosen = NULL, *lane;
	uint64_t least = UINT64_MAX, price;

	for (unsigned i = 0; i < queue->nlanes; i++) {
		lane = queue->lanes[i];
		access = avoid >> i & 1 ? HOST_ACCESS_NONE : host_lane_access(lane, cmd);
		if (!access || access < best)
			continue;
		price = cost(queue, lane);
		if (access > best || price < least) {
			best = access;
			chosen = lane;
			least = price;
		}
	}
	return chosen;
}

bool host_has_another(const struct weft_queue *queue, const struct weft_cmd *cmd)
{
	return cheapest(queue, cmd, ((const struct cmd_priv *)cmd->priv)->avoid);
}

struct host_lane *host_choose(struct weft_queue *queue, const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;
	struct host_lane *lane;

	if (cmd->op == WEFT_FLUSH && host_flush_lane(queue, cmd, &lane))
		return lane;
	if (p->flying) {
		lane = queue->lanes[p->lane];
		return is_ready(lane) && access_to(cmd, p->lane) ? lane : NULL;
	}
	if (queue->nlanes == 1)
		return host_lane_access(queue->lanes[0], cmd) ? queue->lanes[0] : NULL;
	lane = cheapest(queue, cmd, p->avoid);
	if (!lane && p->avoid)
		lane = cheapest(queue, cmd, 0);
	if (lane && lane->link->free) {
		queue->turn = lane->path->index;
		queue->choices++;
	}
	return lane;
}
