/* queue.c - an I/O queue: its connection, as the controller's state demands it.
 *
 *   home publishes LIVE ──look──▶ link ─▶ Connect ─▶ ready, commands flow
 *   home publishes a loss ─look─▶ the link is closed, its commands wait
 *   the link breaks ─────────────▶ home is asked to end the association, and all of this repeats
 *   home publishes DEAD ──look──▶ every command fails
 *
 * Invariant: a link belongs to the association whose generation is in queue->generation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/internal.h"

static void look(struct weft_queue *queue);

/* --- asking home -------------------------------------------------------------------------------- */

static void answer(struct weft_msg *msg);

/* Under ctrl->lock. */
static void post_ask(struct weft_queue *queue)
{
	if (queue->ask_posted)
		return;
	queue->ask_posted = true;
	queue->ask.fn = answer;
	weft_reactor_post(queue->ctrl->reactor, &queue->ask);
}

static void ask_reset(struct weft_queue *queue, int rc, const struct weft_err *why)
{
	struct weft_ctrl *ctrl = queue->ctrl;

	pthread_mutex_lock(&ctrl->lock);
	queue->ask_lost = true;
	queue->ask_generation = queue->generation;
	queue->ask_rc = rc;
	queue->ask_why = *why;
	post_ask(queue);
	pthread_mutex_unlock(&ctrl->lock);
}

void host_queue_ask_abort(struct weft_queue *queue, uint16_t cid)
{
	struct weft_ctrl *ctrl = queue->ctrl;

	pthread_mutex_lock(&ctrl->lock);
	queue->ask_abort = true;
	queue->ask_generation = queue->generation;
	queue->ask_cid = cid;
	post_ask(queue);
	pthread_mutex_unlock(&ctrl->lock);
}

struct abort {
	struct host_admin admin;
};

/* What came of it shows in the command itself, or in its second timeout. */
static void aborted(struct host_admin *admin, int rc)
{
	free(container_of(admin, struct abort, admin));
}

static void start_abort(struct weft_ctrl *ctrl, uint16_t qid, uint16_t cid)
{
	struct abort *abort = calloc(1, sizeof(*abort));

	if (!abort)
		return;
	abort->admin.name = "Abort";
	abort->admin.done = aborted;
	abort->admin.cmd.common.opcode = nvme_admin_abort_cmd;
	abort->admin.cmd.common.cdw10 = cpu_to_le32(qid | (uint32_t)cid << 16);
	host_admin_start(ctrl, &abort->admin, ctrl->config.options.admin_ms);
}

/* On home. The queue cannot go away before ask_posted is cleared. */
static void answer(struct weft_msg *msg)
{
	struct weft_queue *queue = container_of(msg, struct weft_queue, ask);
	struct weft_ctrl *ctrl = queue->ctrl;
	uint16_t qid = queue->qid, cid;
	bool lost, abort;
	struct weft_err why;
	int rc;

	pthread_mutex_lock(&ctrl->lock);
	lost = queue->ask_lost && queue->ask_generation == ctrl->generation;
	abort = queue->ask_abort && queue->ask_generation == ctrl->generation;
	why = queue->ask_why;
	rc = queue->ask_rc;
	cid = queue->ask_cid;
	queue->ask_posted = queue->ask_lost = queue->ask_abort = false;
	pthread_cond_broadcast(&ctrl->changed);
	pthread_mutex_unlock(&ctrl->lock);
	if (ctrl->state != WEFT_LIVE)
		return;
	if (lost)
		host_ctrl_broken(ctrl, rc, "I/O queue %u: %s", qid, why.text);
	else if (abort)
		start_abort(ctrl, qid, cid);
}

/* --- the connection ------------------------------------------------------------------------------ */

static void setup_failed(struct weft_queue *queue, int rc, const struct weft_err *why)
{
	if (!queue->opening) {
		ask_reset(queue, rc, why);
		return;
	}
	if (queue->open_rc)
		return;
	queue->open_rc = rc;
	queue->open_err = *why;
}

static void on_setup_timeout(struct weft_timer *timer)
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
	if (status) {
		int rc = host_fail_status(&why, "Connect", status);

		weft_link_close(queue->link, rc, "%s", why.text);
		return;
	}
	queue->ready = true;
	queue->opening = false;
	host_issue(queue);
}

static void on_ready(struct weft_link *link)
{
	struct weft_queue *queue = link->user;
	struct weft_slot *slot = weft_link_take(link);

	link->capsule_max = queue->seen.traits.capsule_max;
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
	int rc = link->rc;

	weft_timer_stop(queue->reactor, &queue->setup);
	weft_timer_stop(queue->reactor, &queue->timeout);
	queue->ready = false;
	queue->link = NULL;
	host_pieces_lost(queue);
	weft_link_free(link);
	if (queue->closing)
		return;
	if (rc != -ESHUTDOWN)
		setup_failed(queue, rc, &why);
	look(queue);
}

static const struct weft_link_ops link_ops = {
	.ready = on_ready,
	.done = on_done,
	.closed = on_closed,
};

static void open_link(struct weft_queue *queue)
{
	const struct host_config *config = &queue->ctrl->config;
	const struct weft_link_options options = {
		.addr = config->addr,
		.depth = queue->seen.traits.depth,
		.hdgst = config->options.hdgst,
		.ddgst = config->options.ddgst,
		.setup_ms = config->options.connect_ms,
	};
	struct weft_err why = { "" };
	int rc;

	queue->generation = queue->seen.generation;
	if (queue->qid > queue->seen.traits.queues) {
		weft_fail(&why, 0, "the controller allows only %u queues now",
			  queue->seen.traits.queues);
		setup_failed(queue, -EUSERS, &why);
		return;
	}
	rc = weft_tcp_link_open(&queue->link, queue->reactor, &options, &link_ops, queue, &why);
	if (rc < 0)
		setup_failed(queue, rc, &why);
	else
		weft_timer_set(queue->reactor, &queue->setup, config->options.connect_ms);
}

/* --- what home says --------------------------------------------------------------------------------- */

static void look(struct weft_queue *queue)
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
		look(queue);
}

void host_queue_tell(struct weft_queue *queue)
{
	if (atomic_exchange(&queue->look_posted, true))
		return;
	queue->look.fn = on_look;
	weft_reactor_post(queue->reactor, &queue->look);
}

/* --- opening and closing ------------------------------------------------------------------------------ */

static int take_qid(struct weft_ctrl *ctrl)
{
	for (uint32_t i = 0; i < ctrl->pub.traits.queues; i++) {
		if (ctrl->qids[i / 64] >> i % 64 & 1)
			continue;
		ctrl->qids[i / 64] |= UINT64_C(1) << i % 64;
		return (int)i + 1;
	}
	return -EUSERS;
}

static int enroll(struct weft_queue *queue, struct weft_err *err)
{
	struct weft_ctrl *ctrl = queue->ctrl;
	int qid;

	pthread_mutex_lock(&ctrl->lock);
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
			ctrl->pub.traits.queues);
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
static void say_goodbye(struct weft_queue *queue)
{
	struct weft_slot *slot;

	if (!queue->ready || queue->link->closing || !queue->seen.traits.disconnects)
		return;
	slot = weft_link_take(queue->link);
	if (!slot)
		return;
	slot->cmd.common.opcode = NVME_FABRICS_OPCODE;
	slot->cmd.connect.fctype = NVMF_DISCONNECT;
	slot->user = NULL;
	queue->ready = false;
	weft_timer_set(queue->reactor, &queue->setup, queue->ctrl->config.options.connect_ms);
	weft_link_submit(queue->link, slot);
}

static void free_queue(struct weft_queue *queue)
{
	weft_timer_stop(queue->reactor, &queue->again);
	weft_task_cancel(&queue->go_on);
	weft_reactor_destroy(queue->reactor);
	free(queue);
}

static void run_down(struct weft_queue *queue)
{
	queue->closing = true;
	say_goodbye(queue);
	while (queue->link) {
		if (!weft_heap_has(&queue->setup.node))
			weft_link_close(queue->link, -ESHUTDOWN, "closed");
		weft_reactor_turn(queue->reactor, -1);
	}
	resign(queue);
	while (atomic_load(&queue->look_posted))
		weft_reactor_turn(queue->reactor, 0);
	free_queue(queue);
}

void weft_queue_close(struct weft_queue *queue)
{
	if (queue)
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
	queue->setup.fn = on_setup_timeout;
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

static bool settled(const struct weft_queue *queue)
{
	return queue->ready || queue->open_rc || queue->seen.state == WEFT_DEAD;
}

int weft_queue_open(struct weft_ctrl *ctrl, struct weft_queue **out, struct weft_err *err)
{
	struct weft_queue *queue = NULL;
	int rc = create(ctrl, &queue, err);

	if (rc < 0)
		return rc;
	queue->opening = true;
	look(queue);
	while (!settled(queue))
		weft_reactor_turn(queue->reactor, -1);
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
	queue->watched = true;
	return weft_reactor_fd(queue->reactor);
}

unsigned weft_queue_pending(const struct weft_queue *queue)
{
	return queue->pending;
}
