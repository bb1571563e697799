/* disconnect.c - Disconnect: a host gives up an I/O queue. When it is answered the host may write
 * again, by another queue.
 *
 *   control reactor: check ─▶ the queue's reactor: it executes no new command
 *       ─▶ each command: ended if it waits, awaited if storage has it, some in each turn
 *       ─▶ control reactor: the queue's id is free ─▶ answer, and close when all is sent
 *
 * A late write of a queue that is gone must not overwrite newer data. So the answer waits for what
 * storage has of the queue, and for nothing that the host could hold up: a command that waits for its
 * host's data, a buffer, a pair or its turn ends, or will when its wait is over, and replies that the
 * host has not read are no business of storage.
 *
 * Invariant: behind the walk no command of the queue is at work, nor will be. */
#include "target/io/io.h"

static void disconnect_reply_on_reactor(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	struct weft_qpair *qp = req->qp;

	assert_on(qp->group->reactor);
	weft_req_reply(req, 0);
	weft_qpair_close_when_sent(qp, "disconnected by the host");
}

static void disconnect_on_control(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);

	tgt_queue_disconnect(tgt_queue(req));
	tgt_post_reactor(req, disconnect_reply_on_reactor);
}

static enum weft_walk_step disconnect_visit(struct weft_req_walk *walk, struct weft_req *req)
{
	if (tgt_io_abort(req, SC_GENERIC(ABORT_QUEUE)) || !tgt_ns_at_work(req))
		return WEFT_WALK_ON;
	return WEFT_WALK_BUSY;
}

static void disconnect_walked(struct weft_req_walk *walk)
{
	tgt_post_control(container_of(walk, struct tgt_req, retry_walk.walk)->self,
			 disconnect_on_control);
}

static void disconnect_on_reactor(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	struct tgt_queue *queue = tgt_queue(req);
	struct tgt_req *treq = tgt_req(req);

	assert_on(req->qp->group->reactor);
	if (queue->io_state != TGT_QUEUE_IO_OPEN) { /* another Disconnect, or a loss, came before */
		weft_req_reply(req, SC_GENERIC(ABORT_QUEUE));
		return;
	}
	queue->io_state = TGT_QUEUE_IO_DISCONNECTED;
	tgt_io_fused_closing(queue);
	treq->self = req;
	treq->retry_walk.walk.visit = disconnect_visit;
	treq->retry_walk.walk.done = disconnect_walked;
	weft_req_retry_walk_begin(&treq->retry_walk, req->qp,
				  tgt_flow_walks(queue->ctrl, req->qp->group));
}

/* An admin queue ends with its controller (NVMe base 2.0, 6.4). */
void tgt_disconnect(struct weft_req *req)
{
	assert_on(req->qp->group->control);
	if (!tgt_queue(req)->qid)
		tgt_control_reply(req, SC_COMMAND(DISCONNECT_INVALID_QTYPE) | SC_DNR);
	else if (le16_to_cpu(req->cmd.connect.recfmt))
		tgt_control_reply(req, SC_COMMAND(CONNECT_FORMAT) | SC_DNR);
	else
		tgt_post_reactor(req, disconnect_on_reactor);
}
