/* open.c - opening an I/O queue.
 *
 *   enroll: a queue id, the same on all paths ─▶ look: a lane for each path ─▶ the first that is ready */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/plural.h"
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
			"the controller allows %u I/O queue%s, and no more is free (see queues=)",
			most, weft_plural(most));
	return 0;
}

static void go_on(struct weft_task *task)
{
	host_issue(container_of(task, struct weft_queue, go_on));
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

enum { OPEN_TRIES = 5, OPEN_PAUSE_US = 10000 };

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
	return host_queue_is_ready(queue) || queue->seen.state == WEFT_DEAD ||
	       (failed_lane(queue) && !host_queue_has_link(queue));
}

static void forget_failure(struct host_lane *lane)
{
	lane->open_rc = 0;
	lane->open_status = 0;
	lane->open_err.text[0] = '\0';
	lane->generation = 0;
}

/* The controller has not yet forgotten an older queue of this id; or it has ended, and home, which is
 * about to notice, will connect anew: this is waited for like any I/O. */
static bool may_pass(const struct host_lane *failed)
{
	return (failed->open_status & 0x7ff) == SC_GENERIC(CMD_SEQ_ERROR) ||
	       (!failed->open_status && (failed->hung_up || failed->open_rc == -ECONNREFUSED));
}

/* true: it is worth another try. */
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
	return failed && may_pass(failed);
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
	for (int tries = 0; !host_queue_is_ready(queue) && tries < OPEN_TRIES; tries++)
		if (!try_to_open(queue, tries))
			break;
	queue->opening = false;
	if (host_queue_is_ready(queue)) {
		retry_failed(queue);
		*out = queue;
		return 0;
	}
	failed = failed_lane(queue);
	rc = failed ? failed->open_rc : -ENOTCONN;
	weft_fail(err, rc, "I/O queue %u: %s", queue->qid,
		  failed ? failed->open_err.text : queue->seen.why.text);
	host_queue_end(queue);
	return rc;
}
