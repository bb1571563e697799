/* ask.c - what a queue asks of home: to end the association, or to abort a command.
 *
 * The question stands in the queue, under ctrl->lock; a message says that there is one. */
#include <errno.h>
#include <stdlib.h>

#include "host/internal.h"

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

void host_queue_ask_reset(struct weft_queue *queue, int rc, const struct weft_err *why, bool setup)
{
	struct weft_ctrl *ctrl = queue->ctrl;

	pthread_mutex_lock(&ctrl->lock);
	queue->ask_lost = true;
	queue->ask_generation = queue->generation;
	queue->ask_rc = rc;
	queue->ask_setup = setup;
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

/* What came of it shows in the command itself, or in its second timeout. */
static void aborted(struct host_admin *admin, int rc)
{
	admin->ctrl->aborts--;
	free(admin);
}

static void start_abort(struct weft_ctrl *ctrl, uint16_t qid, uint16_t cid)
{
	struct host_admin *abort;

	if (ctrl->aborts == HOST_ABORTS_MAX)
		return;
	abort = calloc(1, sizeof(*abort));
	if (!abort)
		return;
	ctrl->aborts++;
	abort->name = "Abort";
	abort->done = aborted;
	abort->cmd.common.opcode = nvme_admin_abort_cmd;
	abort->cmd.common.cdw10 = cpu_to_le32(qid | (uint32_t)cid << 16);
	host_admin_start(ctrl, abort, ctrl->config.options.admin_ms);
}

/* On home. The queue cannot go away before ask_posted is cleared. */
static void answer(struct weft_msg *msg)
{
	struct weft_queue *queue = container_of(msg, struct weft_queue, ask);
	struct weft_ctrl *ctrl = queue->ctrl;
	uint16_t qid = queue->qid, cid;
	bool lost, abort, setup;
	struct weft_err why;
	int rc;

	pthread_mutex_lock(&ctrl->lock);
	lost = queue->ask_lost && queue->ask_generation == ctrl->generation;
	abort = queue->ask_abort && queue->ask_generation == ctrl->generation;
	setup = queue->ask_setup;
	why = queue->ask_why;
	rc = queue->ask_rc;
	cid = queue->ask_cid;
	queue->ask_posted = queue->ask_lost = queue->ask_abort = false;
	pthread_cond_broadcast(&ctrl->changed);
	pthread_mutex_unlock(&ctrl->lock);
	if (ctrl->state != WEFT_LIVE)
		return;
	/* A controller that has no queues for us has not really come back. */
	if (lost && setup)
		ctrl->live_ns = 0;
	if (lost)
		host_ctrl_broken(ctrl, rc, "I/O queue %u: %s", qid, why.text);
	else if (abort)
		start_abort(ctrl, qid, cid);
}
