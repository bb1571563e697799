/* path_queue.c - the connection of one I/O queue through one path (multipath).
 *
 *   the path is LIVE ────────────▶ link ─▶ Connect ─▶ ready, commands go out
 *   the association is lost ─────▶ the link is closed, its commands wait or fail over
 *   the link breaks ─────────────▶ request: reset the association; then the first line again
 *   Connect fails ───────────────▶ this path queue retries by itself; other queues go on
 *
 * A path queue learns the path's published state with each update (host_path_queue_update()).
 *
 * Invariant: a link belongs to the association whose generation is in pq->generation. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/count.h"
#include "host/queue/cmd.h"

enum { PAUSE_MS = 100, PAUSE_MAX_MS = 1000, RESET_AFTER = 6 /* failures */ };

static void pq_open_link(struct host_path_queue *pq);

/* --- set-up that fails ------------------------------------------------------------------------ */

void host_path_queue_retry_later(struct host_path_queue *pq)
{
	assert(!pq->link);
	pq->pause_ms = pq->pause_ms ? pq->pause_ms * 2 : PAUSE_MS;
	if (pq->pause_ms > PAUSE_MAX_MS)
		pq->pause_ms = PAUSE_MAX_MS;
	weft_timer_set(pq->queue->reactor, &pq->setup, pq->pause_ms);
}

/* Does another queue have a connection, where this one has none? */
static bool any_is_ready(struct weft_ctrl *ctrl)
{
	bool any = false;

	weft_mutex_lock(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		any |= ctrl->paths[i] && ctrl->paths[i]->ready;
	weft_mutex_unlock(&ctrl->lock);
	return any;
}

static bool is_allowed(const struct host_path_queue *pq)
{
	return pq->queue->qid <= pq->snap.traits.queues;
}

bool host_path_queue_is_refused(const struct host_path_queue *pq)
{
	return pq->snap.state == WEFT_LIVE && !pq->ready &&
	       (!is_allowed(pq) || pq->failures >= RESET_AFTER);
}

/* A path that is being connected may have a queue for us. */
static bool path_may_come_up(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->npath_queues; i++)
		if (queue->path_queues[i] && queue->path_queues[i]->snap.state != WEFT_LIVE &&
		    queue->path_queues[i]->snap.state != WEFT_DEAD)
			return true;
	return false;
}

static bool is_allowed_anywhere(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->npath_queues; i++)
		if (queue->path_queues[i] && queue->path_queues[i]->snap.state == WEFT_LIVE &&
		    is_allowed(queue->path_queues[i]))
			return true;
	return false;
}

/* How long I/O waits for a connection. A controller that refuses a queue will refuse it until the
 * next association; and where other queues are connected, the network is not to blame. */
static uint64_t no_queue_timeout_ms(const struct weft_queue *queue)
{
	const struct weft_options *o = &queue->ctrl->config.options;
	uint64_t most = o->loss_ms;

	if (!path_may_come_up(queue) && !is_allowed_anywhere(queue))
		most = 0;
	else if (!path_may_come_up(queue) && any_is_ready(queue->ctrl))
		most = o->connect_ms < most ? o->connect_ms : most;
	return o->fast_io_fail_ms && o->fast_io_fail_ms < most ? o->fast_io_fail_ms : most;
}

static void fail_io_if_no_queue(struct weft_queue *queue)
{
	uint64_t now = weft_reactor_now_ns(queue->reactor);

	if (!queue->no_queue_since_ns)
		queue->no_queue_since_ns = now;
	if ((now - queue->no_queue_since_ns) / 1000000 < no_queue_timeout_ms(queue))
		return;
	queue->rc = -EUSERS;
	host_kick_requeue(queue);
}

static void set_no_queue_text(const struct host_path_queue *pq, const struct weft_err *why)
{
	struct weft_ctrl *ctrl = pq->queue->ctrl;

	weft_mutex_lock(&ctrl->lock);
	snprintf(ctrl->no_queue.text, sizeof(ctrl->no_queue.text), "%s: I/O queue %u: %.300s",
		 host_address_text(pq->snap.address), pq->queue->qid, why->text);
	weft_mutex_unlock(&ctrl->lock);
}

static void why_not_allowed(const struct host_path_queue *pq, struct weft_err *why)
{
	weft_fail(why, 0, "the controller allows only %u queues now", pq->snap.traits.queues);
}

void host_path_queue_tell_refusal(const struct host_path_queue *pq)
{
	struct weft_err why = { "" };

	if (is_allowed(pq)) /* what its set-up failed of was told then */
		return;
	why_not_allowed(pq, &why);
	set_no_queue_text(pq, &why);
}

/* The program gets an event for the first of several failures: it may do with fewer queues. */
static void report_setup_failure(struct host_path_queue *pq, const struct weft_err *why)
{
	struct weft_ctrl *ctrl = pq->queue->ctrl;

	if (!pq->failures++)
		host_event_push(ctrl, WEFT_EVENT_QUEUE, pq->snap.state, 0, "%s: I/O queue %u: %s",
				pq->snap.address, pq->queue->qid, why->text);
	set_no_queue_text(pq, why);
}

/* Only this queue is affected: others go on in the same association. If none of them has a
 * connection either, the control reactor resets the association, after a few tries. */
static void pq_setup_retry(struct host_path_queue *pq, int rc, const struct weft_err *why)
{
	report_setup_failure(pq, why);
	host_path_queue_retry_later(pq);
	host_kick_requeue(pq->queue); /* a flush that waits for this path queue may fail now */
	if (host_queue_is_ready(pq->queue))
		return;
	fail_io_if_no_queue(pq->queue);
	if (is_allowed(pq) && pq->failures % RESET_AFTER == 0)
		host_path_queue_request_reset(pq, rc, why, true, false);
}

static void pq_setup_failed(struct host_path_queue *pq, int rc, const struct weft_err *why)
{
	assert(!pq->ready && !pq->link);
	if (pq->queue->opening) {
		pq->open_rc = rc;
		pq->open_err = *why;
	} else {
		pq_setup_retry(pq, rc, why);
	}
}

static void pq_on_setup_timer(struct weft_timer *timer)
{
	struct host_path_queue *pq = container_of(timer, struct host_path_queue, setup);
	bool current = pq->snap.state == WEFT_LIVE && pq->generation == pq->snap.generation;

	if (pq->link)
		weft_link_close(pq->link, -ETIMEDOUT, "Connect: no answer within %u ms",
				pq->path->config.options.connect_ms);
	else if (current && !pq->removing)
		pq_open_link(pq);
}

/* --- the link --------------------------------------------------------------------------------- */

/* A queue that nobody polls does not notice that its association has ended: its connection is not
 * counted in path->ready of the next one. */
static void count_ready_pq(struct host_path_queue *pq, bool ready)
{
	struct host_path *path = pq->path;

	if (pq->counted == ready)
		return;
	pq->counted = ready;
	weft_mutex_lock(&path->ctrl->lock);
	if (pq->generation == path->pub.generation && ready)
		path->ready++;
	else if (pq->generation == path->pub.generation)
		weft_count_down(path->ready);
	weft_mutex_unlock(&path->ctrl->lock);
}

static void pq_on_connect(struct host_path_queue *pq, struct weft_link_slot *slot)
{
	uint16_t status = host_status(&slot->cqe);
	struct weft_err why = { "" };

	assert(!pq->ready && pq->link);
	weft_timer_stop(pq->queue->reactor, &pq->setup);
	pq->open_status = status;
	if (status) {
		int rc = host_fail_status(&why, "Connect", status);

		weft_link_close(pq->link, rc, "%s", why.text);
		return;
	}
	pq->ready = true;
	pq->pause_ms = pq->failures = 0;
	pq->queue->no_queue_since_ns = 0;
	pq->queue->rc = 0;
	count_ready_pq(pq, true);
	host_timeouts_recheck(pq->queue);
	/* Connect's slot, perhaps the only one, is free when we return. */
	host_kick_requeue(pq->queue);
}

static void pq_on_link_ready(struct weft_link *link)
{
	struct host_path_queue *pq = link->user;
	struct weft_link_slot *slot = weft_link_get_slot(link);

	assert(slot && pq->link == link);
	link->capsule_max = pq->snap.traits.capsule_max;
	link->blocks_max = pq->snap.traits.blocks_max;
	host_connect_data(&pq->path->config, pq->snap.traits.cntlid, &pq->connect_data);
	pq->connect_iov = (struct iovec){ &pq->connect_data, sizeof(pq->connect_data) };
	host_fill_connect(&slot->cmd, pq->queue->qid, link->options.depth, 0);
	slot->data.iov = &pq->connect_iov;
	slot->data_len = sizeof(pq->connect_data);
	slot->user = NULL;
	weft_link_submit(link, slot);
}

static void pq_on_slot_done(struct weft_link *link, struct weft_link_slot *slot)
{
	struct host_path_queue *pq = link->user;

	if (!slot->user) {
		if (pq->closing) /* Disconnect */
			weft_link_close(link, -ESHUTDOWN, "closed");
		else
			pq_on_connect(pq, slot);
		return;
	}
	host_piece_complete(pq, slot);
	if (pq->removing && !pq->ninflight)
		host_path_queue_close(pq);
	/* A slot becomes free when this returns: the next piece goes out then. */
	weft_reactor_defer(link->reactor, &pq->queue->issue_task);
}

static void pq_on_link_closed(struct weft_link *link)
{
	struct host_path_queue *pq = link->user;
	struct weft_queue *queue = pq->queue;
	struct weft_err why = link->err;
	bool was_ready = pq->ready;
	int rc = link->rc;

	assert(pq->link == link);
	weft_timer_stop(queue->reactor, &pq->setup);
	weft_timer_stop(queue->reactor, &pq->timeout);
	pq->ready = false;
	count_ready_pq(pq, false);
	pq->link = NULL;
	pq->hung_up = link->peer_closed;
	host_pieces_lost(pq, rc != -ESHUTDOWN);
	host_stats_add(&queue->stats, &link->stats);
	weft_link_free(link);
	if (queue->closing)
		return;
	if (rc != -ESHUTDOWN && was_ready)
		host_path_queue_request_reset(pq, rc, &why, false, pq->hung_up);
	else if (rc != -ESHUTDOWN && !pq->closing)
		pq_setup_failed(pq, rc, &why);
	host_queue_update(queue);
}

static const struct weft_link_ops link_ops = {
	.ready = pq_on_link_ready,
	.done = pq_on_slot_done,
	.closed = pq_on_link_closed,
};

static void pq_open_link(struct host_path_queue *pq)
{
	const struct host_config *config = &pq->path->config;
	const struct host_traits *traits = &pq->snap.traits;
	struct weft_queue *queue = pq->queue;
	struct weft_link_options options;
	struct weft_err why = { "" };
	int rc;

	assert(!pq->link && !pq->closing && !pq->ready);
	pq->generation = pq->snap.generation;
	pq->hung_up = false;
	if (!is_allowed(pq)) {
		why_not_allowed(pq, &why);
		pq_setup_failed(pq, -EUSERS, &why);
		return;
	}
	host_link_options(config, queue->qid, traits->cntlid, traits->depth, &options);
	rc = config->transport->open(&pq->link, queue->reactor, &options, &link_ops, pq, &why);
	if (rc < 0)
		pq_setup_failed(pq, rc, &why);
	else
		weft_timer_set(queue->reactor, &pq->setup, config->options.connect_ms);
}

/* --- updates from the control reactor --------------------------------------------------------- */

struct host_path_queue *host_path_queue_create(struct weft_queue *queue, struct host_path *path)
{
	struct host_path_queue *pq = calloc(1, sizeof(*pq));

	assert_locked(&queue->ctrl->lock);
	if (!pq)
		return NULL;
	pq->queue = queue;
	pq->path = path;
	pq->setup.fn = pq_on_setup_timer;
	pq->timeout.fn = host_on_io_timeout;
	weft_list_init(&pq->inflight);
	weft_list_init(&pq->fenced);
	return pq;
}

void host_path_queue_update(struct host_path_queue *pq)
{
	bool lives = pq->snap.state == WEFT_LIVE;
	bool current = lives && pq->generation == pq->snap.generation;

	host_fenced_release(pq);
	if (pq->link && !current)
		weft_link_close(pq->link, -ESHUTDOWN, "the association ended");
	else if (pq->removing && !pq->ninflight)
		host_path_queue_close(pq);
	else if (lives && !pq->link && !current)
		pq_open_link(pq);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Disconnect, where the controller supports it: a socket that just closes may cost the
 * association. */
static bool pq_send_disconnect(struct host_path_queue *pq)
{
	struct weft_link_slot *slot;

	if (!pq->ready || pq->link->closing || !pq->snap.traits.disconnects)
		return false;
	slot = weft_link_get_slot(pq->link);
	if (!slot)
		return false;
	slot->cmd.common.opcode = NVME_FABRICS_OPCODE;
	slot->cmd.connect.fctype = NVMF_DISCONNECT;
	slot->user = NULL;
	pq->ready = false;
	weft_timer_set(pq->queue->reactor, &pq->setup, pq->path->config.options.connect_ms);
	weft_link_submit(pq->link, slot);
	return true;
}

void host_path_queue_close(struct host_path_queue *pq)
{
	if (pq->closing)
		return;
	pq->closing = true;
	if (!pq->link)
		weft_timer_stop(pq->queue->reactor, &pq->setup); /* it would try again */
	else if (!pq_send_disconnect(pq))
		weft_link_close(pq->link, -ESHUTDOWN, "closed");
}
