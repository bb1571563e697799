/* queue.c - an I/O queue: opening, driving and closing it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/internal.h"

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

static void resign(struct weft_queue *queue)
{
	struct weft_ctrl *ctrl = queue->ctrl;
	unsigned bit = queue->qid - 1u;

	pthread_mutex_lock(&ctrl->lock);
	weft_list_remove(&queue->link_in_ctrl);
	ctrl->qids[bit / 64] &= ~(UINT64_C(1) << bit % 64);
	while (queue->ask_posted)
		pthread_cond_wait(&ctrl->changed, &ctrl->lock);
	pthread_mutex_unlock(&ctrl->lock);
}

static void go_on(struct weft_task *task)
{
	host_issue(container_of(task, struct weft_queue, go_on));
}

/* Lets the controller know, where it understands that; a socket that just closes may cost the
 * association. */
static bool say_goodbye(struct weft_queue *queue)
{
	struct weft_slot *slot;

	if (!queue->ready || queue->link->closing || !queue->seen.traits.disconnects)
		return false;
	slot = weft_link_take(queue->link);
	if (!slot)
		return false;
	slot->cmd.common.opcode = NVME_FABRICS_OPCODE;
	slot->cmd.connect.fctype = NVMF_DISCONNECT;
	slot->user = NULL;
	queue->ready = false;
	weft_timer_set(queue->reactor, &queue->setup, queue->ctrl->config.options.connect_ms);
	weft_link_submit(queue->link, slot);
	return true;
}

static void free_queue(struct weft_queue *queue)
{
	weft_timer_stop(queue->reactor, &queue->again);
	weft_task_cancel(&queue->go_on);
	weft_reactor_destroy(queue->reactor);
	weft_region_view_end(&queue->regions);
	free(queue);
}

static void run_down(struct weft_queue *queue)
{
	queue->closing = true;
	if (queue->link && !say_goodbye(queue))
		weft_link_close(queue->link, -ESHUTDOWN, "closed");
	while (queue->link)
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
	queue->setup.fn = host_queue_setup_timeout;
	weft_task_init(&queue->go_on, go_on);
	host_issue_init(queue);
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

static bool settled(const struct weft_queue *queue)
{
	return queue->ready || queue->open_rc || queue->seen.state == WEFT_DEAD;
}

/* true: it is worth another try: the controller has not yet forgotten an older queue of this id. */
static bool try_to_open(struct weft_queue *queue, int tries)
{
	if (tries)
		usleep(OPEN_PAUSE_US << tries);
	queue->opening = true;
	queue->open_rc = 0;
	queue->open_err.text[0] = '\0';
	queue->generation = 0;
	host_queue_look(queue);
	while (!settled(queue))
		weft_reactor_turn(queue->reactor, -1);
	return (queue->open_status & 0x7ff) == SC_GENERIC(CMD_SEQ_ERROR);
}

int weft_queue_open(struct weft_ctrl *ctrl, struct weft_queue **out, struct weft_err *err)
{
	struct weft_queue *queue = NULL;
	int rc = create(ctrl, &queue, err);

	if (rc < 0)
		return rc;
	for (int tries = 0; !queue->ready && tries < OPEN_TRIES; tries++)
		if (!try_to_open(queue, tries))
			break;
	if (!queue->ready) {
		rc = queue->open_rc ? queue->open_rc : -ENOTCONN;
		weft_fail(err, rc, "I/O queue %u: %s", queue->qid,
			  queue->open_rc ? queue->open_err.text : queue->seen.why.text);
		run_down(queue);
		return rc;
	}
	*out = queue;
	return 0;
}

/* --- driving it ------------------------------------------------------------------------------------------ */

enum { TURNS_MAX = 64 }; /* of one poll without a wait: others want the thread as well */

static void run_what_is_due(struct weft_queue *queue)
{
	int turns = 0;

	weft_reactor_run_deferred(queue->reactor);
	do {
		weft_reactor_turn(queue->reactor, 0);
	} while (weft_reactor_busy(queue->reactor) && ++turns < TURNS_MAX);
}

static uint64_t now_ms(const struct weft_queue *queue)
{
	return weft_reactor_now_ns(queue->reactor) / 1000000;
}

/* Turns that wait, until something completes or time is up. */
static void wait_for_one(struct weft_queue *queue, int timeout_ms)
{
	uint64_t end = timeout_ms > 0 ? now_ms(queue) + (uint64_t)timeout_ms : 0, now;

	while (!queue->completed && queue->pending) {
		now = now_ms(queue);
		if (end && now >= end)
			return;
		weft_reactor_turn(queue->reactor, end ? (int)(end - now) : -1);
	}
}

int weft_queue_poll(struct weft_queue *queue, int timeout_ms)
{
	queue->completed = 0;
	run_what_is_due(queue);
	if (!queue->completed && timeout_ms) {
		wait_for_one(queue, timeout_ms);
		if (weft_reactor_busy(queue->reactor))
			run_what_is_due(queue);
	}
	if (queue->watched)
		weft_reactor_doze(queue->reactor);
	return (int)queue->completed;
}

int weft_queue_fd(struct weft_queue *queue)
{
	int fd = weft_reactor_fd(queue->reactor);

	queue->watched = true;
	weft_reactor_doze(queue->reactor);
	return fd;
}

unsigned weft_queue_pending(const struct weft_queue *queue)
{
	return queue->pending;
}

/* --- counters -------------------------------------------------------------------------------------------- */

void host_stats_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more)
{
	sum->posted += more->posted;
	sum->completed += more->completed;
	sum->copied_bytes += more->copied_bytes;
	sum->flushed += more->flushed;
	sum->retried += more->retried;
	sum->rnr += more->rnr;
	sum->key_hits += more->key_hits;
	sum->registrations += more->registrations;
}

void weft_queue_stats(const struct weft_queue *queue, struct weft_queue_stats *stats)
{
	*stats = queue->stats;
	if (queue->link)
		host_stats_add(stats, &queue->link->stats);
}
