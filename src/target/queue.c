/* queue.c - how a connected queue pair ends.
 *
 *   reactor: connection lost ─▶ closing
 *       ─▶ (control reactor) marked draining; AERs, resets and reservation changes are given back
 *            last request back ─▶ gone ─▶ (control reactor) off its controller
 *                ─▶ freed, on the reactor
 *   control reactor: close ─▶ the reactor closes the connection, and the above follows
 *
 * Messages of one sender arrive in order: whatever the control reactor posted before "free" is
 * handled before it. */
#include <stdlib.h>

#include "base/log.h"
#include "target/admin/admin.h"
#include "target/io/io.h"
#include "target/resv/change_queue.h"

static void queue_free_on_reactor(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, msg);

	weft_qpair_free(queue->qp);
	free(queue);
}

static void queue_gone_on_control(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, msg);
	struct weft_reactor *r = queue->qp->group->reactor;

	tgt_ctrl_queue_gone(queue->ctrl, queue);
	queue->msg.fn = queue_free_on_reactor;
	weft_reactor_post(r, &queue->msg);
}

static void queue_lost_on_control(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, lost_msg);

	queue->draining = true;
}

void tgt_queue_lost(struct tgt_queue *queue)
{
	if (queue->loss_reported)
		return;
	queue->loss_reported = true;
	queue->lost_msg.fn = queue_lost_on_control;
	weft_reactor_post(queue->qp->group->control, &queue->lost_msg);
}

static void queue_closing_on_control(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, closing_msg);

	queue->draining = true;
	tgt_resv_queue_closing(queue);
	if (queue->qid)
		return;
	tgt_aer_cancel_all(queue->ctrl, SC_GENERIC(ABORT_QUEUE));
	tgt_ccr_abort_requests(queue->ctrl);
}

void tgt_queue_closing(struct weft_qpair *qp)
{
	struct tgt_queue *queue = qp->owner;

	if (!queue)
		return;
	tgt_io_fused_closing(queue);
	tgt_io_lists_closing(qp);
	tgt_io_bulk_closing(qp);
	queue->closing_msg.fn = queue_closing_on_control;
	weft_reactor_post(qp->group->control, &queue->closing_msg);
}

void tgt_queue_closed(struct weft_qpair *qp)
{
	struct tgt_queue *queue = qp->owner;

	if (!queue) {
		weft_debug("connection ended: %s", qp->why);
		weft_qpair_free(qp);
		return;
	}
	weft_debug("%s: queue %u ended: %s", queue->ctrl->hostnqn, queue->qid, qp->why);
	queue->drained = true;
	queue->msg.fn = queue_gone_on_control;
	weft_reactor_post(qp->group->control, &queue->msg);
}

static void queue_close_on_reactor(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, close_msg);

	weft_qpair_close(queue->qp, "%s", queue->close_why);
}

void tgt_queue_close(struct tgt_queue *queue, const char *why)
{
	if (queue->disconnecting)
		return;
	queue->disconnecting = true;
	queue->close_why = why;
	queue->close_msg.fn = queue_close_on_reactor;
	weft_reactor_post(queue->qp->group->reactor, &queue->close_msg);
}
