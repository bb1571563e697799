/* lane.c - a queue's connection to one path, as the path's state demands it.
 *
 *   home publishes LIVE ──look──▶ link ─▶ Connect ─▶ ready, commands flow
 *   home publishes a loss ─look─▶ the link is closed, its commands wait
 *   the link breaks ─────────────▶ home is asked to end the association, and all of this repeats
 *   Connect fails ───────────────▶ the lane tries again by itself; other queues are not concerned
 *
 * Invariant: a link belongs to the association whose generation is in lane->generation. */
#include <errno.h>
#include <stdlib.h>

#include "host/cmd.h"

enum { PAUSE_MS = 100, PAUSE_MAX_MS = 1000, RESET_AFTER = 6 /* failures */ };

static void open_link(struct host_lane *lane);

/* --- set-up that fails ------------------------------------------------------------------------ */

void host_lane_retry(struct host_lane *lane)
{
	lane->pause_ms = lane->pause_ms ? lane->pause_ms * 2 : PAUSE_MS;
	if (lane->pause_ms > PAUSE_MAX_MS)
		lane->pause_ms = PAUSE_MAX_MS;
	weft_timer_set(lane->queue->reactor, &lane->setup, lane->pause_ms);
}

/* Of other queues, where this one has none. */
static bool any_is_ready(struct weft_ctrl *ctrl)
{
	bool any = false;

	pthread_mutex_lock(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		any |= ctrl->paths[i] && ctrl->paths[i]->ready;
	pthread_mutex_unlock(&ctrl->lock);
	return any;
}

static bool is_allowed(const struct host_lane *lane)
{
	return lane->queue->qid <= lane->seen.traits.queues;
}

bool host_lane_is_refused(const struct host_lane *lane)
{
	return lane->seen.state == WEFT_LIVE && !lane->ready &&
	       (!is_allowed(lane) || lane->failures >= RESET_AFTER);
}

/* A path that is being connected may have a queue for us. */
static bool more_may_come(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i] && queue->lanes[i]->seen.state != WEFT_LIVE &&
		    queue->lanes[i]->seen.state != WEFT_DEAD)
			return true;
	return false;
}

static bool is_allowed_anywhere(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i] && queue->lanes[i]->seen.state == WEFT_LIVE &&
		    is_allowed(queue->lanes[i]))
			return true;
	return false;
}

/* For how long I/O waits. What a controller does not allow, it will not until the next association;
 * where others have a connection, it is not the network that is to be waited for. */
static uint64_t patience_ms(const struct weft_queue *queue)
{
	const struct weft_options *o = &queue->ctrl->config.options;
	uint64_t most = o->loss_ms;

	if (!more_may_come(queue) && !is_allowed_anywhere(queue))
		most = 0;
	else if (!more_may_come(queue) && any_is_ready(queue->ctrl))
		most = o->connect_ms < most ? o->connect_ms : most;
	return o->fast_io_fail_ms && o->fast_io_fail_ms < most ? o->fast_io_fail_ms : most;
}

static void lose_patience(struct weft_queue *queue)
{
	uint64_t now = weft_reactor_now_ns(queue->reactor);

	if (!queue->failing_ns)
		queue->failing_ns = now;
	if ((now - queue->failing_ns) / 1000000 < patience_ms(queue))
		return;
	queue->rc = -EUSERS;
	host_unstick(queue);
}

/* The first of several failures is told: the program may do with fewer queues. */
static void tell(struct host_lane *lane, const struct weft_err *why)
{
	struct weft_ctrl *ctrl = lane->queue->ctrl;

	if (!lane->failures++)
		host_event_push(ctrl, WEFT_EVENT_QUEUE, lane->seen.state, 0, "%s: I/O queue %u: %s",
				lane->seen.address, lane->queue->qid, why->text);
	pthread_mutex_lock(&ctrl->lock);
	weft_fail(&ctrl->no_queue, 0, "I/O queue %u: %s", lane->queue->qid, why->text);
	pthread_mutex_unlock(&ctrl->lock);
}

/* That is this queue's trouble: others go on with what the association has. If none of them has a
 * connection either, home ends it, after a few tries. */
static void fail_alone(struct host_lane *lane, int rc, const struct weft_err *why)
{
	tell(lane, why);
	host_lane_retry(lane);
	host_unstick(lane->queue); /* a flush that waits for this lane may fail now */
	if (host_queue_is_ready(lane->queue))
		return;
	lose_patience(lane->queue);
	if (is_allowed(lane) && lane->failures % RESET_AFTER == 0)
		host_lane_ask_reset(lane, rc, why, true, false);
}

static void setup_failed(struct host_lane *lane, int rc, const struct weft_err *why)
{
	if (lane->queue->opening) {
		lane->open_rc = rc;
		lane->open_err = *why;
	} else {
		fail_alone(lane, rc, why);
	}
}

static void on_setup_timer(struct weft_timer *timer)
{
	struct host_lane *lane = container_of(timer, struct host_lane, setup);
	bool current = lane->seen.state == WEFT_LIVE && lane->generation == lane->seen.generation;

	if (lane->link)
		weft_link_close(lane->link, -ETIMEDOUT, "Connect: no answer within %u ms",
				lane->path->config.options.connect_ms);
	else if (current && !lane->leaving)
		open_link(lane);
}

/* --- the link --------------------------------------------------------------------------------- */

/* A queue that nobody polls does not notice that its association is over: what it had does not
 * count then. */
static void count(struct host_lane *lane, bool ready)
{
	struct host_path *path = lane->path;

	if (lane->counted == ready)
		return;
	lane->counted = ready;
	pthread_mutex_lock(&path->ctrl->lock);
	if (lane->generation == path->pub.generation)
		path->ready += ready ? 1 : -1u;
	pthread_mutex_unlock(&path->ctrl->lock);
}

static void connected(struct host_lane *lane, struct weft_slot *slot)
{
	uint16_t status = host_status(&slot->cqe);
	struct weft_err why = { "" };

	weft_timer_stop(lane->queue->reactor, &lane->setup);
	lane->open_status = status;
	if (status) {
		int rc = host_fail_status(&why, "Connect", status);

		weft_link_close(lane->link, rc, "%s", why.text);
		return;
	}
	lane->ready = true;
	lane->pause_ms = lane->failures = 0;
	lane->queue->failing_ns = 0;
	lane->queue->rc = 0;
	count(lane, true);
	host_timeouts_again(lane->queue);
	/* Connect's slot, perhaps the only one, is free when we return. */
	host_unstick(lane->queue);
}

static void on_ready(struct weft_link *link)
{
	struct host_lane *lane = link->user;
	struct weft_slot *slot = weft_link_take(link);

	link->capsule_max = lane->seen.traits.capsule_max;
	link->blocks_max = lane->seen.traits.blocks_max;
	host_connect_data(&lane->path->config, lane->seen.traits.cntlid, &lane->connect_data);
	lane->connect_iov = (struct iovec){ &lane->connect_data, sizeof(lane->connect_data) };
	host_fill_connect(&slot->cmd, lane->queue->qid, link->options.depth, 0);
	slot->iov = &lane->connect_iov;
	slot->data_len = sizeof(lane->connect_data);
	slot->user = NULL;
	weft_link_submit(link, slot);
}

static void on_done(struct weft_link *link, struct weft_slot *slot)
{
	struct host_lane *lane = link->user;

	if (!slot->user) {
		if (lane->closing) /* Disconnect */
			weft_link_close(link, -ESHUTDOWN, "closed");
		else
			connected(lane, slot);
		return;
	}
	host_piece_done(lane, slot);
	if (lane->leaving && !lane->flying)
		host_lane_close(lane);
	/* A slot becomes free when this returns: the next piece goes out then. */
	weft_reactor_defer(link->reactor, &lane->queue->go_on);
}

static void on_closed(struct weft_link *link)
{
	struct host_lane *lane = link->user;
	struct weft_queue *queue = lane->queue;
	struct weft_err why = link->err;
	bool was_ready = lane->ready;
	int rc = link->rc;

	weft_timer_stop(queue->reactor, &lane->setup);
	weft_timer_stop(queue->reactor, &lane->timeout);
	lane->ready = false;
	count(lane, false);
	lane->link = NULL;
	lane->hung_up = link->hung_up;
	host_pieces_lost(lane, rc != -ESHUTDOWN);
	host_stats_add(&queue->stats, &link->stats);
	weft_link_free(link);
	if (queue->closing)
		return;
	if (rc != -ESHUTDOWN && was_ready)
		host_lane_ask_reset(lane, rc, &why, false, lane->hung_up);
	else if (rc != -ESHUTDOWN && !lane->closing)
		setup_failed(lane, rc, &why);
	host_queue_look(queue);
}

static const struct weft_link_ops link_ops = {
	.ready = on_ready,
	.done = on_done,
	.closed = on_closed,
};

static void open_link(struct host_lane *lane)
{
	const struct host_config *config = &lane->path->config;
	const struct host_traits *traits = &lane->seen.traits;
	struct weft_queue *queue = lane->queue;
	struct weft_link_options options;
	struct weft_err why = { "" };
	int rc;

	lane->generation = lane->seen.generation;
	lane->hung_up = false;
	if (!is_allowed(lane)) {
		weft_fail(&why, 0, "the controller allows only %u queues now", traits->queues);
		setup_failed(lane, -EUSERS, &why);
		return;
	}
	host_link_options(config, queue->qid, traits->cntlid, traits->depth, &options);
	rc = config->transport->open(&lane->link, queue->reactor, &options, &link_ops, lane, &why);
	if (rc < 0)
		setup_failed(lane, rc, &why);
	else
		weft_timer_set(queue->reactor, &lane->setup, config->options.connect_ms);
}

/* --- what home says --------------------------------------------------------------------------- */

struct host_lane *host_lane_create(struct weft_queue *queue, struct host_path *path)
{
	struct host_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->queue = queue;
	lane->path = path;
	lane->setup.fn = on_setup_timer;
	lane->timeout.fn = cmd_on_timeout;
	weft_list_init(&lane->inflight);
	weft_list_init(&lane->held);
	return lane;
}

void host_lane_follow(struct host_lane *lane)
{
	bool lives = lane->seen.state == WEFT_LIVE;
	bool current = lives && lane->generation == lane->seen.generation;

	host_pieces_release(lane);
	if (lane->link && !current)
		weft_link_close(lane->link, -ESHUTDOWN, "the association ended");
	else if (lane->leaving && !lane->flying)
		host_lane_close(lane);
	else if (lives && !lane->link && !current)
		open_link(lane);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Lets the controller know, where it understands that; a socket that just closes may cost the
 * association. */
static bool say_goodbye(struct host_lane *lane)
{
	struct weft_slot *slot;

	if (!lane->ready || lane->link->closing || !lane->seen.traits.disconnects)
		return false;
	slot = weft_link_take(lane->link);
	if (!slot)
		return false;
	slot->cmd.common.opcode = NVME_FABRICS_OPCODE;
	slot->cmd.connect.fctype = NVMF_DISCONNECT;
	slot->user = NULL;
	lane->ready = false;
	weft_timer_set(lane->queue->reactor, &lane->setup, lane->path->config.options.connect_ms);
	weft_link_submit(lane->link, slot);
	return true;
}

void host_lane_close(struct host_lane *lane)
{
	if (lane->closing)
		return;
	lane->closing = true;
	if (!lane->link)
		weft_timer_stop(lane->queue->reactor, &lane->setup); /* it would try again */
	else if (!say_goodbye(lane))
		weft_link_close(lane->link, -ESHUTDOWN, "closed");
}
