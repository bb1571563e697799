/* queue_open.c - weft_queue_open(): opens an I/O queue.
 *
 *   register: a queue id, the same on all paths ─▶ update: a path queue for each path
 *       ─▶ wait for the first that is ready */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/plural.h"
#include "host/queue/cmd.h"

/* Round robin: a controller may be slow to forget a queue that was just closed. */
static int take_qid(struct weft_ctrl *ctrl)
{
	uint32_t most = ctrl->pub.traits.queues;

	assert_locked(&ctrl->lock);
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

static int register_queue(struct weft_queue *queue, struct weft_err *err)
{
	struct weft_ctrl *ctrl = queue->ctrl;
	uint32_t most;
	int qid;

	weft_mutex_lock(&ctrl->lock);
	most = ctrl->pub.traits.queues;
	qid = ctrl->pub.traits.discovery ? -EOPNOTSUPP : take_qid(ctrl);
	if (qid > 0) {
		queue->qid = (uint16_t)qid;
		weft_list_push(&ctrl->queues, &queue->ctrl_link);
	}
	weft_mutex_unlock(&ctrl->lock);
	if (qid == -EOPNOTSUPP)
		return weft_fail(err, qid, "a discovery controller has no I/O queues");
	if (qid < 0)
		return weft_fail(
			err, qid,
			"the controller allows %u I/O queue%s, and no more is free (see queues=)",
			most, weft_plural(most));
	return 0;
}

static void issue_task(struct weft_task *task)
{
	host_issue(container_of(task, struct weft_queue, issue_task));
}

static int create_queue(struct weft_ctrl *ctrl, struct weft_queue **out, struct weft_err *err)
{
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL, .cpu = -1 };
	struct weft_queue *queue = calloc(1, sizeof(*queue));
	int rc;

	if (!queue)
		return weft_fail(err, -ENOMEM, "no memory for a queue");
	queue->ctrl = ctrl;
	weft_task_init(&queue->issue_task, issue_task);
	queue->retry_timer.fn = host_on_retry_timer;
	weft_list_init(&queue->waiting);
	weft_list_init(&queue->requeue);
	weft_list_init(&queue->delayed);
	rc = weft_reactor_create(&queue->reactor, &options, err);
	if (rc == 0) {
		rc = register_queue(queue, err);
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

/* The first path queue that could not connect. */
static struct host_path_queue *first_failed_pq(const struct weft_queue *queue)
{
	for (unsigned i = 0; i < queue->npath_queues; i++)
		if (queue->path_queues[i] && queue->path_queues[i]->open_rc)
			return queue->path_queues[i];
	return NULL;
}

/* Undecided while a path queue is still connecting. */
static bool open_is_decided(const struct weft_queue *queue)
{
	return host_queue_is_ready(queue) || queue->snap.state == WEFT_DEAD ||
	       (first_failed_pq(queue) && !host_queue_has_link(queue));
}

static void forget_failure(struct host_path_queue *pq)
{
	pq->open_rc = 0;
	pq->open_status = 0;
	pq->open_err.text[0] = '\0';
	pq->generation = 0;
}

/* The controller has not yet forgotten an older queue with this id; or it has ended, and the
 * control reactor is about to notice and to reconnect: the queue waits for that as I/O does. */
static bool open_failure_is_transient(const struct host_path_queue *failed)
{
	return (failed->open_status & 0x7ff) == SC_GENERIC(CMD_SEQ_ERROR) ||
	       (!failed->open_status && (failed->hung_up || failed->open_rc == -ECONNREFUSED));
}

/* true: another try may succeed. */
static bool open_attempt(struct weft_queue *queue, int tries)
{
	struct host_path_queue *failed;

	if (tries)
		usleep(OPEN_PAUSE_US << tries);
	while ((failed = first_failed_pq(queue)))
		forget_failure(failed);
	host_queue_update(queue);
	while (!open_is_decided(queue))
		weft_reactor_turn(queue->reactor, -1);
	failed = first_failed_pq(queue);
	return failed && open_failure_is_transient(failed);
}

/* The queue is open through other paths; a path that refused it is tried again later. */
static void retry_failed(struct weft_queue *queue)
{
	struct host_path_queue *failed;

	assert(!queue->opening);
	while ((failed = first_failed_pq(queue))) {
		failed->open_rc = 0;
		if (!failed->link) /* else a new association has it connect already */
			host_path_queue_retry_later(failed);
	}
}

int weft_queue_open(struct weft_ctrl *ctrl, struct weft_queue **out, struct weft_err *err)
{
	struct weft_queue *queue = NULL;
	struct host_path_queue *failed;
	int rc = create_queue(ctrl, &queue, err);

	if (rc < 0)
		return rc;
	queue->opening = true;
	for (int tries = 0; !host_queue_is_ready(queue) && tries < OPEN_TRIES; tries++)
		if (!open_attempt(queue, tries))
			break;
	queue->opening = false;
	if (host_queue_is_ready(queue)) {
		retry_failed(queue);
		*out = queue;
		return 0;
	}
	failed = first_failed_pq(queue);
	rc = failed ? failed->open_rc : -ENOTCONN;
	weft_fail(err, rc, "I/O queue %u: %s", queue->qid,
		  failed ? failed->open_err.text : queue->snap.why.text);
	host_queue_destroy(queue);
	return rc;
}
