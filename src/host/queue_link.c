/* queue_link.c - a queue's connection, as the controller's state demands it.
 *
 *   home publishes LIVE ──look──▶ link ─▶ Connect ─▶ ready, commands flow
 *   home publishes a loss ─look─▶ the link is closed, its commands wait
 *   the link breaks ─────────────▶ home is asked to end the association, and all of this repeats
 *   home publishes DEAD ──look──▶ every command fails
 *
 * Invariant: a link belongs to the association whose generation is in queue->generation. */
#include <errno.h>

#include "host/internal.h"

static void setup_failed(struct weft_queue *queue, int rc, const struct weft_err *why)
{
	if (!queue->opening) {
		host_queue_ask_reset(queue, rc, why, true);
		return;
	}
	if (queue->open_rc)
		return;
	queue->open_rc = rc;
	queue->open_err = *why;
}

void host_queue_setup_timeout(struct weft_timer *timer)
{
	struct weft_queue *queue = container_of(timer, struct weft_queue, setup);

	if (queue->link)
		weft_link_close(queue->link, -ETIMEDOUT, "Connect: no answer within %u ms",
				queue->ctrl->config.options.connect_ms);
}

static void connected(struct weft_queue *queue, struct weft_slot *slot)
{
	uint16_t status = host_status(&slot->cqe);
	struct weft_err why = { "" };

	weft_timer_stop(queue->reactor, &queue->setup);
	queue->open_status = status;
	if (status) {
		int rc = host_fail_status(&why, "Connect", status);

		weft_link_close(queue->link, rc, "%s", why.text);
		return;
	}
	queue->ready = true;
	queue->opening = false;
	/* Connect's slot, perhaps the only one, is free when we return. */
	weft_reactor_defer(queue->reactor, &queue->go_on);
}

static void on_ready(struct weft_link *link)
{
	struct weft_queue *queue = link->user;
	struct weft_slot *slot = weft_link_take(link);

	link->capsule_max = queue->seen.traits.capsule_max;
	link->blocks_max = queue->seen.traits.blocks_max;
	host_connect_data(queue->ctrl, queue->seen.traits.cntlid, &queue->connect_data);
	queue->connect_iov = (struct iovec){ &queue->connect_data, sizeof(queue->connect_data) };
	host_fill_connect(&slot->cmd, queue->qid, link->options.depth, 0);
	slot->iov = &queue->connect_iov;
	slot->data_len = sizeof(queue->connect_data);
	slot->user = NULL;
	weft_link_submit(link, slot);
}

static void on_done(struct weft_link *link, struct weft_slot *slot)
{
	struct weft_queue *queue = link->user;

	if (!slot->user) {
		if (queue->closing) /* Disconnect */
			weft_link_close(link, -ESHUTDOWN, "closed");
		else
			connected(queue, slot);
		return;
	}
	host_piece_done(queue, slot);
	/* A slot becomes free when this returns: the next piece goes out then. */
	weft_reactor_defer(queue->reactor, &queue->go_on);
}

static void on_closed(struct weft_link *link)
{
	struct weft_queue *queue = link->user;
	struct weft_err why = link->err;
	bool was_ready = queue->ready;
	int rc = link->rc;

	weft_timer_stop(queue->reactor, &queue->setup);
	weft_timer_stop(queue->reactor, &queue->timeout);
	queue->ready = false;
	queue->link = NULL;
	host_pieces_lost(queue, rc != -ESHUTDOWN);
	host_stats_add(&queue->stats, &link->stats);
	weft_link_free(link);
	if (queue->closing)
		return;
	if (rc != -ESHUTDOWN && was_ready)
		host_queue_ask_reset(queue, rc, &why, false);
	else if (rc != -ESHUTDOWN)
		setup_failed(queue, rc, &why);
	host_queue_look(queue);
}

static const struct weft_link_ops link_ops = {
	.ready = on_ready,
	.done = on_done,
	.closed = on_closed,
};

static void open_link(struct weft_queue *queue)
{
	const struct host_config *config = &queue->ctrl->config;
	const struct host_traits *traits = &queue->seen.traits;
	struct weft_link_options options;
	struct weft_err why = { "" };
	int rc;

	queue->generation = queue->seen.generation;
	if (queue->qid > traits->queues) {
		weft_fail(&why, 0, "the controller allows only %u queues now", traits->queues);
		setup_failed(queue, -EUSERS, &why);
		return;
	}
	host_link_options(config, queue->qid, traits->cntlid, traits->depth, &options);
	rc = config->transport->open(&queue->link, queue->reactor, &options, &link_ops, queue,
				     &why);
	if (rc < 0)
		setup_failed(queue, rc, &why);
	else
		weft_timer_set(queue->reactor, &queue->setup, config->options.connect_ms);
}

/* --- what home says --------------------------------------------------------------------------------- */

void host_queue_look(struct weft_queue *queue)
{
	struct weft_ctrl *ctrl = queue->ctrl;
	bool current;

	pthread_mutex_lock(&ctrl->lock);
	queue->seen = ctrl->pub;
	pthread_mutex_unlock(&ctrl->lock);

	current = queue->seen.state == WEFT_LIVE && queue->generation == queue->seen.generation;
	if (queue->link && !current)
		weft_link_close(queue->link, -ESHUTDOWN, "the association ended");
	if (queue->seen.state == WEFT_DEAD && !queue->link)
		host_fail_all(queue, -ENOTCONN);
	if (queue->seen.state == WEFT_LIVE && !queue->link && !current)
		open_link(queue);
}

static void on_look(struct weft_msg *msg)
{
	struct weft_queue *queue = container_of(msg, struct weft_queue, look);

	atomic_store(&queue->look_posted, false);
	if (!queue->closing)
		host_queue_look(queue);
}

void host_queue_tell(struct weft_queue *queue)
{
	if (atomic_exchange(&queue->look_posted, true))
		return;
	queue->look.fn = on_look;
	weft_reactor_post(queue->reactor, &queue->look);
}
