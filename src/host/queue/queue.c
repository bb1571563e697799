/* queue.c - an I/O queue: updates from the control reactor, and its end.
 *
 *   update ─▶ a path queue for each live path, none for a removed one ─▶ requeued commands go out
 *   close ─▶ each path queue disconnects ─▶ unregister, when the control reactor is done with it */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "host/queue/cmd.h"

static bool has_pending_request(const struct weft_queue *queue)
{
	assert_locked(&queue->ctrl->lock);
	for (unsigned i = 0; i < queue->npath_queues; i++)
		if (queue->path_queues[i] && queue->path_queues[i]->request.posted)
			return true;
	return false;
}

static void unregister_queue(struct weft_queue *queue)
{
	struct weft_ctrl *ctrl = queue->ctrl;
	unsigned bit = queue->qid - 1u;

	weft_mutex_lock(&ctrl->lock);
	weft_list_remove(&queue->ctrl_link);
	ctrl->qids[bit / 64] &= ~(UINT64_C(1) << bit % 64);
	while (has_pending_request(queue))
		weft_mutex_wait(&ctrl->lock, &ctrl->changed);
	for (unsigned i = 0; i < queue->npath_queues; i++)
		if (queue->path_queues[i])
			host_path_put(queue->path_queues[i]->path);
	weft_mutex_unlock(&ctrl->lock);
}

static void free_queue(struct weft_queue *queue)
{
	assert(!queue->pending && !host_queue_has_link(queue));
	weft_timer_stop(queue->reactor, &queue->retry_timer);
	weft_task_cancel(&queue->issue_task);
	weft_reactor_destroy(queue->reactor);
	weft_region_view_free(&queue->regions);
	for (unsigned i = 0; i < queue->npath_queues; i++)
		free(queue->path_queues[i]);
	free(queue);
}

bool host_queue_has_link(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->npath_queues; i++)
		if (queue->path_queues[i] && queue->path_queues[i]->link)
			return true;
	return false;
}

void host_queue_destroy(struct weft_queue *queue)
{
	assert(!queue->closing && !queue->pending);
	queue->closing = true;
	for (unsigned i = 0; i < queue->npath_queues; i++)
		if (queue->path_queues[i])
			host_path_queue_close(queue->path_queues[i]);
	while (host_queue_has_link(queue))
		weft_reactor_turn(queue->reactor, -1);
	unregister_queue(queue);
	while (atomic_load(&queue->update_posted))
		weft_reactor_turn(queue->reactor, 0);
	free_queue(queue);
}

void weft_queue_close(struct weft_queue *queue)
{
	if (!queue)
		return;
	assert(!queue->pending);
	host_queue_destroy(queue);
}

/* --- updates from the control reactor --------------------------------------------------------- */

/* A path that has never been live needs no path queue. */
static void snapshot_path(struct weft_queue *queue, unsigned i, struct host_path *path)
{
	assert_locked(&queue->ctrl->lock);
	if (!queue->path_queues[i] && path->pub.generation && !host_path_is_removing(path)) {
		queue->path_queues[i] = host_path_queue_create(queue, path);
		path->path_queues += queue->path_queues[i] != NULL;
		queue->npath_queues = queue->npath_queues > i ? queue->npath_queues : i + 1;
	}
	if (queue->path_queues[i]) {
		queue->path_queues[i]->snap = path->pub;
		queue->path_queues[i]->removing = host_path_is_removing(path);
	}
}

static void snapshot_ctrl(struct weft_queue *queue)
{
	struct weft_ctrl *ctrl = queue->ctrl;

	weft_mutex_lock(&ctrl->lock);
	queue->snap = ctrl->pub;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i])
			snapshot_path(queue, i, ctrl->paths[i]);
	weft_mutex_unlock(&ctrl->lock);
}

static bool is_unused(const struct host_path_queue *pq)
{
	return pq->removing && !pq->link && weft_list_empty(&pq->fenced);
}

/* For a path that is being removed. Not while a request is posted to the control reactor. */
static void free_pq_if_unused(struct weft_queue *queue, unsigned i)
{
	struct host_path_queue *pq = queue->path_queues[i];

	weft_mutex_lock(&queue->ctrl->lock);
	if (!pq->request.posted) {
		host_path_put(pq->path);
		queue->path_queues[i] = NULL;
	}
	weft_mutex_unlock(&queue->ctrl->lock);
	if (queue->path_queues[i])
		return;
	weft_timer_stop(queue->reactor, &pq->setup);
	free(pq);
}

bool host_queue_is_ready(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->npath_queues; i++)
		if (queue->path_queues[i] && queue->path_queues[i]->ready)
			return true;
	return false;
}

void host_queue_update(struct weft_queue *queue)
{
	assert(!queue->closing);
	snapshot_ctrl(queue);
	for (unsigned i = 0; i < queue->npath_queues; i++) {
		if (queue->path_queues[i])
			host_path_queue_update(queue->path_queues[i]);
		if (queue->path_queues[i] && is_unused(queue->path_queues[i]))
			free_pq_if_unused(queue, i);
	}
	if (queue->snap.state == WEFT_DEAD && !host_queue_has_link(queue))
		host_queue_fail_all(queue, -ENOTCONN);
	else
		host_kick_requeue(queue);
}

static void on_update_msg(struct weft_msg *msg)
{
	struct weft_queue *queue = container_of(msg, struct weft_queue, update_msg);

	atomic_store(&queue->update_posted, false);
	if (!queue->closing)
		host_queue_update(queue);
}

void host_queue_post_update(struct weft_queue *queue)
{
	assert_locked(&queue->ctrl->lock);
	if (atomic_exchange(&queue->update_posted, true))
		return;
	queue->update_msg.fn = on_update_msg;
	weft_reactor_post(queue->reactor, &queue->update_msg);
}
