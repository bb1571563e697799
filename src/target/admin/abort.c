/* abort.c - Abort: a command that waits for its host, a buffer, an event or its turn can be
 * aborted. A command that storage has begun is not; one that is done in pieces ends after the piece
 * that storage has, and Abort does not wait for that.
 *
 *   control reactor: which queue? ─▶ that queue's reactor: which request? some in each turn
 *       ─▶ the Abort's own reactor: reply */
#include "target/admin/admin.h"
#include "target/io/io.h"

enum { NOT_ABORTED = 1 };

static uint16_t abort_sqid(const struct weft_req *req)
{
	return le32_to_cpu(req->cmd.common.cdw10) & 0xffff;
}

static uint16_t abort_cid(const struct weft_req *req)
{
	return (uint16_t)(le32_to_cpu(req->cmd.common.cdw10) >> 16);
}

static void abort_reply(struct weft_req *req, bool aborted)
{
	req->cqe.result = cpu_to_le64(aborted ? 0 : NOT_ABORTED);
	tgt_control_reply(req, 0);
}

static bool is_outstanding(const struct weft_req *req)
{
	return req->state == WEFT_REQ_EXECUTING || req->state == WEFT_REQ_NEED_BUFFER ||
	       req->state == WEFT_REQ_AWAIT_DATA;
}

static void abort_reply_on_control(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);

	abort_reply(req, !tgt_req(req)->status);
}

static enum weft_walk_step abort_visit(struct weft_req_walk *walk, struct weft_req *req)
{
	struct tgt_req *treq = container_of(walk, struct tgt_req, walk);

	if (req == treq->self || !is_outstanding(req) ||
	    le16_to_cpu(req->cmd.common.cid) != abort_cid(treq->self))
		return WEFT_WALK_ON;
	treq->status = tgt_io_abort(req, SC_GENERIC(ABORT_REQ)) ? 0 : NOT_ABORTED;
	return WEFT_WALK_ENDS;
}

static void abort_walked(struct weft_req_walk *walk)
{
	tgt_post_control(container_of(walk, struct tgt_req, walk)->self, abort_reply_on_control);
}

static void abort_on_reactor(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	struct weft_qpair *qp = tgt_req(req)->queue->qp;
	struct tgt_req *treq = tgt_req(req);

	assert_on(qp->group->reactor);
	treq->self = req;
	treq->status = NOT_ABORTED;
	treq->walk.visit = abort_visit;
	treq->walk.done = abort_walked;
	weft_req_walk_begin(&treq->walk, qp, tgt_flow_walks(tgt_queue(req)->ctrl, qp->group));
}

static struct tgt_queue *find_queue(struct tgt_ctrl *ctrl, uint16_t qid)
{
	struct tgt_queue *queue;

	weft_list_for_each(queue, &ctrl->queues, link)
		if (queue->qid == qid && tgt_queue_has_id(queue))
			return queue;
	return NULL;
}

void tgt_abort(struct weft_req *req)
{
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;
	struct tgt_queue *queue = find_queue(ctrl, abort_sqid(req));

	assert_on_control(ctrl->subsys->target);
	if (!queue) {
		tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
		return;
	}
	if (!queue->qid && tgt_aer_cancel(ctrl, abort_cid(req))) {
		abort_reply(req, true);
		return;
	}
	tgt_req(req)->queue = queue;
	req->msg.fn = abort_on_reactor;
	weft_reactor_post(queue->qp->group->reactor, &req->msg);
}
