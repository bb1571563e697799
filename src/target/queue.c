/* queue.c - the states of a connected queue pair: live, closing or lost, draining, gone.
 *
 *   on the control reactor                                    on the queue's reactor
 *
 *           ┌─ Disconnect ─▶ DISCONNECTED ─┐                  OPEN ─ Disconnect ─▶ DISCONNECTED
 *           │                      │ closed ├─▶ DRAINING        │ the connection is found lost │
 *   LIVE ───┼─ closed ──────▶ CLOSING ─────┤      │            LOSS_REPORTED ◀───────────────┘
 *           └─ connection lost ─▶ LOST ────┘      │             │ its last request is back
 *                                  closed         │            DRAINED
 *                 off its controller ◀────────────┴─── gone ────┘
 *                         └────────── free ──────────────────▶ freed
 *
 * A queue that is disconnected, or closed from here, gives its id to a new one at once; one that was lost
 * keeps it until it is gone. A host may leave its answers unread behind a Disconnect for as long as it
 * likes: whoever closes the queue does not wait for that. disconnect.c has what Disconnect waits for. While the connection is gone and commands are
 * not (LOST, DRAINING), storage may still carry out what the host sent: drain_wait.c.
 *
 * When the connection closes, the control reactor gives back the requests that it has of the queue:
 * AERs, resets, changes of reservations. Messages of one sender arrive in order: whatever the
 * control reactor posted before "free" is handled before it. The queue's own reactor frees it, and only
 * then. */
#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "target/admin/admin.h"
#include "target/io/io.h"
#include "target/resv/change_queue.h"

#define FROM(state) (1u << TGT_QUEUE_##state)

static const struct {
	const char *name;
	unsigned from; /* states that it may follow */
} states[] = {
	[TGT_QUEUE_LIVE] = { "live", 0 },
	[TGT_QUEUE_DISCONNECTED] = { "disconnected", FROM(LIVE) },
	[TGT_QUEUE_CLOSING] = { "closing", FROM(LIVE) | FROM(DISCONNECTED) },
	[TGT_QUEUE_LOST] = { "lost", FROM(LIVE) },
	[TGT_QUEUE_DRAINING] = { "draining", FROM(DISCONNECTED) | FROM(CLOSING) | FROM(LOST) },
};

/* Storage may have commands of it, and nobody but storage can keep it. */
static bool queue_ends(const struct tgt_queue *queue)
{
	return queue->state != TGT_QUEUE_LIVE && queue->state != TGT_QUEUE_DISCONNECTED;
}

static void queue_enter(struct tgt_queue *queue, enum tgt_queue_state state)
{
	struct weft_subsys *s = queue->ctrl->subsys;

	assert_on_control(s->target);
	assert(states[state].from & 1u << queue->state);
	queue->state = state;
	if (queue_ends(queue) && weft_list_empty(&queue->ending_link))
		weft_list_push(&s->ending[queue->ctrl->host_hash % TGT_ENDING_BUCKETS],
			       &queue->ending_link);
}

const char *tgt_queue_state_text(const struct tgt_queue *queue)
{
	return states[queue->state].name;
}

static void queue_connection_gone(struct tgt_queue *queue)
{
	if (!tgt_queue_lost_connection(queue))
		queue_enter(queue,
			    queue->state == TGT_QUEUE_LIVE ? TGT_QUEUE_LOST : TGT_QUEUE_DRAINING);
}

void tgt_queue_disconnect(struct tgt_queue *queue)
{
	assert_on_control(queue->ctrl->subsys->target);
	if (tgt_queue_has_id(queue))
		queue_enter(queue, queue->state == TGT_QUEUE_LIVE ? TGT_QUEUE_DISCONNECTED :
								    TGT_QUEUE_DRAINING);
}

static void queue_free_on_reactor(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, msg);

	assert_on(queue->qp->group->reactor);
	assert(tgt_queue_is_drained(queue));
	weft_qpair_free(queue->qp);
	free(queue);
}

static void queue_gone_on_control(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, msg);
	struct weft_reactor *r = queue->qp->group->reactor;

	tgt_ctrl_queue_gone(queue->ctrl, queue);
	assert(weft_list_empty(&queue->resv_changes) && weft_list_empty(&queue->drain_waits));
	queue->msg.fn = queue_free_on_reactor;
	weft_reactor_post(r, &queue->msg);
}

static void queue_lost_on_control(struct weft_msg *msg)
{
	queue_connection_gone(container_of(msg, struct tgt_queue, lost_msg));
}

void tgt_queue_lost(struct tgt_queue *queue)
{
	assert_on(queue->qp->group->reactor);
	if (queue->io_state >= TGT_QUEUE_IO_LOSS_REPORTED)
		return;
	queue->io_state = TGT_QUEUE_IO_LOSS_REPORTED;
	queue->lost_msg.fn = queue_lost_on_control;
	weft_reactor_post(queue->qp->group->control, &queue->lost_msg);
}

static void queue_closing_on_control(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, closing_msg);

	queue_connection_gone(queue);
	tgt_resv_queue_closing(queue);
	if (queue->qid)
		return;
	tgt_aer_cancel_all(queue->ctrl, SC_GENERIC(ABORT_QUEUE));
	tgt_ccr_abort_requests(queue->ctrl);
}

void tgt_queue_closing(struct weft_qpair *qp)
{
	struct tgt_queue *queue = qp->owner;

	assert_on(qp->group->reactor);
	if (!queue)
		return;
	tgt_io_fused_closing(queue);
	queue->closing_msg.fn = queue_closing_on_control;
	weft_reactor_post(qp->group->control, &queue->closing_msg);
}

void tgt_queue_closed(struct weft_qpair *qp)
{
	struct tgt_queue *queue = qp->owner;

	assert_on(qp->group->reactor);
	if (!queue) {
		weft_debug("connection ended: %s", qp->why);
		weft_qpair_free(qp);
		return;
	}
	weft_debug("%s: queue %u ended: %s", queue->ctrl->hostnqn, queue->qid, qp->why);
	assert(!tgt_queue_is_drained(queue) && !queue->fused_first);
	queue->io_state = TGT_QUEUE_IO_DRAINED;
	queue->msg.fn = queue_gone_on_control;
	weft_reactor_post(qp->group->control, &queue->msg);
}

static void queue_close_on_reactor(struct weft_msg *msg)
{
	struct tgt_queue *queue = container_of(msg, struct tgt_queue, close_msg);

	assert_on(queue->qp->group->reactor);
	weft_qpair_close(queue->qp, "%s", queue->close_why);
}

void tgt_queue_close(struct tgt_queue *queue, const char *why)
{
	assert_on_control(queue->ctrl->subsys->target);
	if (queue->state == TGT_QUEUE_CLOSING || queue->state == TGT_QUEUE_DRAINING)
		return;
	queue_enter(queue, queue->state == TGT_QUEUE_LOST ? TGT_QUEUE_DRAINING : TGT_QUEUE_CLOSING);
	queue->close_why = why;
	queue->close_msg.fn = queue_close_on_reactor;
	weft_reactor_post(queue->qp->group->reactor, &queue->close_msg);
}
