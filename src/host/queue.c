/* queue.c - an I/O queue: opening it, following what home says, closing it.
 *
 *   open ─▶ enroll ─▶ look: a lane for each path ─▶ the first that is ready
 *   close ─▶ each lane says good-bye ─▶ resign, when home owes it nothing any more */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/cmd.h"

/* Round robin: a controller may be slow to forget a queue that was just closed. */
static int take_qid(struct weft_ctrl *ctrl)
{
	uint32_t most = ctrl->pub.traits.queues;

	for (uint32_t n = 0; n < most; n++) {
		uint32_t i = (ctrl->last_qid + n) % most;

		if (ctrl->qids[i / 64] >> i % 64 & 1)
			continue;
		ctrl->qids[i / 64] |= UINT64_C(1) << i % 64;
		ctrl->last_qid = i + 1;
		return (int)i + 1;
	}
	return -EUSERS;
}

static int enroll(struct weft_queue *queue, struct weft_err *err)
{
	struct weft_ctrl *ctrl = queue->ctrl;
	uint32_t most;
	int qid;

	pthread_mutex_lock(&ctrl->lock);
	most = ctrl->pub.traits.queues;
	qid = ctrl->pub.traits.discovery ? -EOPNOTSUPP : take_qid(ctrl);
	if (qid > 0) {
		queue->qid = (uint16_t)qid;
		weft_list_push(&ctrl->queues, &queue->link_in_ctrl);
	}
	pthread_mutex_unlock(&ctrl->lock);
	if (qid == -EOPNOTSUPP)
		return weft_fail(err, qid, "a discovery controller has no I/O queues");
	if (qid < 0)
		return weft_fail(
			err, qid,
			"all %u I/O queues that the controller allows are open (see queues=)",
			most);
	return 0;
}

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

static void go_on(struct weft_task *task)
{
	host_issue(container_of(task, struct weft_queue, go_on));
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

static bool has_link(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i] && queue->lanes[i]->link)
			return true;
	return false;
}

static void run_down(struct weft_queue *queue)
{
	queue->closing = true;
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i])
			host_lane_close(queue->lanes[i]);
	while (has_link(queue))
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
	run_down(queue);
}

static int create(struct weft_ctrl *ctrl, struct weft_queue **out, struct weft_err *err)
{
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL, .cpu = -1 };
	struct weft_queue *queue = calloc(1, sizeof(*queue));
	int rc;

	if (!queue)
		return weft_fail(err, -ENOMEM, "no memory for a queue");
	queue->ctrl = ctrl;
	weft_task_init(&queue->go_on, go_on);
	queue->again.fn = cmd_try_again;
	weft_list_init(&queue->waiting);
	weft_list_init(&queue->stuck);
	weft_list_init(&queue->later);
	rc = weft_reactor_create(&queue->reactor, &options, err);
	if (rc == 0) {
		rc = enroll(queue, err);
		if (rc < 0)
			weft_reactor_destroy(queue->reactor);
	}
	if (rc < 0)
		free(queue);
	else
		*out = queue;
	return rc;
}

/* --- what home says --------------------------------------------------------------------------------- */

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

void host_queue_look(struct weft_queue *queue)
{
	see(queue);
	for (unsigned i = 0; i < queue->nlanes; i++) {
		if (queue->lanes[i])
			host_lane_follow(queue->lanes[i]);
		if (queue->lanes[i] && is_unused(queue->lanes[i]))
			drop_lane(queue, i);
	}
	if (queue->seen.state == WEFT_DEAD && !has_link(queue))
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

/* --- opening it ---------------------------------------------------------------------------------------- */

enum { OPEN_TRIES = 5, OPEN_PAUSE_US = 10000 };

static bool is_ready(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i] && queue->lanes[i]->ready)
			return true;
	return false;
}

/* Of the lanes that could not be opened, the first. */
static struct host_lane *failed_lane(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->nlanes; i++)
		if (queue->lanes[i] && queue->lanes[i]->open_rc)
			return queue->lanes[i];
	return NULL;
}

/* A lane that is still at it may be the one. */
static bool settled(const struct weft_queue *queue)
{
	return is_ready(queue) || queue->seen.state == WEFT_DEAD ||
	       (failed_lane(queue) && !has_link(queue));
}

static void forget_failure(struct host_lane *lane)
{
	lane->open_rc = 0;
	lane->open_err.text[0] = '\0';
	lane->generation = 0;
}

/* true: it is worth another try: the controller has not yet forgotten an older queue of this id. */
static bool try_to_open(struct weft_queue *queue, int tries)
{
	struct host_lane *failed;

	if (tries)
		usleep(OPEN_PAUSE_US << tries);
	while ((failed = failed_lane(queue)))
		forget_failure(failed);
	host_queue_look(queue);
	while (!settled(queue))
		weft_reactor_turn(queue->reactor, -1);
	failed = failed_lane(queue);
	return failed && (failed->open_status & 0x7ff) == SC_GENERIC(CMD_SEQ_ERROR);
}

/* A path that has no queue for us, while others have, is that path's trouble. */
static void retry_failed(struct weft_queue *queue)
{
	struct host_lane *failed;

	while ((failed = failed_lane(queue))) {
		failed->open_rc = 0;
		host_lane_retry(failed);
	}
}

int weft_queue_open(struct weft_ctrl *ctrl, struct weft_queue **out, struct weft_err *err)
{
	struct weft_queue *queue = NULL;
	struct host_lane *failed;
	int rc = create(ctrl, &queue, err);

	if (rc < 0)
		return rc;
	queue->opening = true;
	for (int tries = 0; !is_ready(queue) && tries < OPEN_TRIES; tries++)
		if (!try_to_open(queue, tries))
			break;
	queue->opening = false;
	if (is_ready(queue)) {
		retry_failed(queue);
		*out = queue;
		return 0;
	}
	failed = failed_lane(queue);
	rc = failed ? failed->open_rc : -ENOTCONN;
	weft_fail(err, rc, "I/O queue %u: %s", queue->qid,
		  failed ? failed->open_err.text : queue->seen.why.text);
	run_down(queue);
	return rc;
}
