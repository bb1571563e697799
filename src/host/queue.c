/* queue.c - an I/O queue that follows what home says, and its end.
 *
 *   look ─▶ a lane for each path that lives, none for those that left ─▶ what is stuck tries again
 *   close ─▶ each lane says good-bye ─▶ resign, when home owes it nothing any more */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "host/cmd.h"

static bool is_asking(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i] && queue->lanes[i]->ask.posted)
			return true;
	return false;
}

static void resign(struct weft_queue *queue)
{
	struct weft_ctrl *ctrl = queue->ctrl;
	unsigned bit = queue->qid - 1u;

	pthread_mutex_lock(&ctrl->lock);
	weft_list_remove(&queue->link_in_ctrl);
	ctrl->qids[bit / 64] &= ~(UINT64_C(1) << bit % 64);
	while (is_asking(queue))
		pthread_cond_wait(&ctrl->changed, &ctrl->lock);
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i])
			host_path_let_go(queue->lanes[i]->path);
	pthread_mutex_unlock(&ctrl->lock);
}

static void free_queue(struct weft_queue *queue)
{
	weft_timer_stop(queue->reactor, &queue->again);
	weft_task_cancel(&queue->go_on);
	weft_reactor_destroy(queue->reactor);
	weft_region_view_end(&queue->regions);
	for (unsigned i = 0; i < queue->nlanes; i++)
		free(queue->lanes[i]);
	free(queue);
}

bool host_queue_has_link(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i] && queue->lanes[i]->link)
			return true;
	return false;
}

void host_queue_end(struct weft_queue *queue)
{
	queue->closing = true;
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i])
			host_lane_close(queue->lanes[i]);
	while (host_queue_has_link(queue))
		weft_reactor_turn(queue->reactor, -1);
	resign(queue);
	while (atomic_load(&queue->look_posted))
		weft_reactor_turn(queue->reactor, 0);
	free_queue(queue);
}

void weft_queue_close(struct weft_queue *queue)
{
	if (!queue)
		return;
	assert(!queue->pending);
	host_queue_end(queue);
}

/* --- what home says --------------------------------------------------------------------------- */

/* Under ctrl->lock. A path that has never lived has nothing to lead to. */
static void see_path(struct weft_queue *queue, unsigned i, struct host_path *path)
{
	if (!queue->lanes[i] && path->pub.generation && !path->leaving) {
		queue->lanes[i] = host_lane_create(queue, path);
		path->lanes += queue->lanes[i] != NULL;
		queue->nlanes = queue->nlanes > i ? queue->nlanes : i + 1;
	}
	if (queue->lanes[i]) {
		queue->lanes[i]->seen = path->pub;
		queue->lanes[i]->leaving = path->leaving;
	}
}

static void see(struct weft_queue *queue)
{
	struct weft_ctrl *ctrl = queue->ctrl;

	pthread_mutex_lock(&ctrl->lock);
	queue->seen = ctrl->pub;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i])
			see_path(queue, i, ctrl->paths[i]);
	pthread_mutex_unlock(&ctrl->lock);
}

static bool is_unused(const struct host_lane *lane)
{
	return lane->leaving && !lane->link && weft_list_empty(&lane->held);
}

/* Of a path that leaves; not while home owes it an answer. */
static void drop_lane(struct weft_queue *queue, unsigned i)
{
	struct host_lane *lane = queue->lanes[i];

	pthread_mutex_lock(&queue->ctrl->lock);
	if (!lane->ask.posted) {
		host_path_let_go(lane->path);
		queue->lanes[i] = NULL;
	}
	pthread_mutex_unlock(&queue->ctrl->lock);
	if (queue->lanes[i])
		return;
	weft_timer_stop(queue->reactor, &lane->setup);
	free(lane);
}

bool host_queue_is_ready(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i] && queue->lanes[i]->ready)
			return true;
	return false;
}

void host_queue_look(struct weft_queue *queue)
{
	see(queue);
	for (unsigned i = 0; i < queue->nlanes; i++) {
		if (queue->lanes[i])
			host_lane_follow(queue->lanes[i]);
		if (queue->lanes[i] && is_unused(queue->lanes[i]))
			drop_lane(queue, i);
	}
	if (queue->seen.state == WEFT_DEAD && !host_queue_has_link(queue))
		host_fail_all(queue, -ENOTCONN);
	else
		host_unstick(queue);
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
