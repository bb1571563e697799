/* home_queue.c - commands on their way to home wait there in a flow per host, served round robin.
 *
 *   reactors ─▶ mailbox ─▶ is anybody waiting? ─ no ─▶ run
 *                                └─ yes ─▶ flow of the host ─▶ one of each flow in turn ─▶ run
 *
 * A turn of home runs SLICE commands at most, and what is left waits for the next turn, in which
 * home sees to everything else first: timers, the store, the control socket, new connections. So
 * a host's commands wait for the rest of a slice and for one command of each other host, however
 * many of them the others send. A host is its NQN and its identifier, through all its controllers.
 * Connections that have yet to say who they are, in Connect, and the hosts of the discovery service,
 * who may say any name, are one flow together.
 *
 * What runs at home is bounded in itself, or says what it is worth more than one command
 * (tgt_home_spend()).
 *
 * Invariant: a command waits only while others wait, or the slice is spent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/internal.h"

enum { SLICE = 64 };

struct tgt_flow {
	struct weft_list link;  /* queue->flows */
	struct weft_list ready; /* queue->ready, while commands wait */
	struct weft_list reqs;
	unsigned ctrls; /* of this host */
	char hostnqn[WEFT_NQN_MAX + 1];
	uint8_t hostid[16];
};

struct tgt_home_queue {
	struct weft_reactor *home;
	struct weft_list flows, ready;
	struct tgt_flow *unknown;
	int left; /* of this turn's slice */
	struct weft_task serve;
};

/* --- flows ------------------------------------------------------------------------------------ */

static struct tgt_flow *flow_new(struct tgt_home_queue *queue)
{
	struct tgt_flow *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return NULL;
	weft_list_init(&flow->ready);
	weft_list_init(&flow->reqs);
	weft_list_push(&queue->flows, &flow->link);
	return flow;
}

static struct tgt_flow *flow_find(const struct tgt_home_queue *queue, const struct tgt_ctrl *ctrl)
{
	struct tgt_flow *flow;

	weft_list_for_each(flow, &queue->flows, link)
		if (flow->ctrls && tgt_ctrl_is_of(ctrl, flow->hostnqn, flow->hostid))
			return flow;
	return NULL;
}

int tgt_flow_join(struct tgt_ctrl *ctrl)
{
	struct tgt_home_queue *queue = ctrl->subsys->target->home_queue;
	struct tgt_flow *flow = flow_find(queue, ctrl);

	if (ctrl->subsys->discovery) {
		ctrl->flow = queue->unknown;
		return 0;
	}
	if (!flow)
		flow = flow_new(queue);
	if (!flow)
		return -ENOMEM;
	strcpy(flow->hostnqn, ctrl->hostnqn);
	memcpy(flow->hostid, ctrl->hostid, sizeof(flow->hostid));
	flow->ctrls++;
	ctrl->flow = flow;
	return 0;
}

/* Its commands are back: nothing of it waits. */
void tgt_flow_leave(struct tgt_ctrl *ctrl)
{
	struct tgt_flow *flow = ctrl->flow;

	ctrl->flow = NULL;
	if (!flow || ctrl->subsys->discovery || --flow->ctrls)
		return;
	weft_list_remove(&flow->link);
	free(flow);
}

static struct tgt_flow *flow_of(const struct tgt_home_queue *queue, struct weft_req *req)
{
	return tgt_queue(req) ? tgt_queue(req)->ctrl->flow : queue->unknown;
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Of a queue whose end home has seen to, nothing may come to wait at home any more. */
static void run(struct tgt_home_queue *queue, struct weft_req *req)
{
	queue->left--;
	if (tgt_queue(req) && tgt_queue(req)->ending)
		tgt_home_reply(req, SC_GENERIC(ABORT_QUEUE));
	else
		tgt_req(req)->at_home(&req->msg);
}

static struct weft_req *next_of(struct tgt_home_queue *queue)
{
	struct weft_list *link = weft_list_pop(&queue->ready);
	struct tgt_flow *flow;
	struct weft_req *req;

	if (!link)
		return NULL;
	flow = container_of(link, struct tgt_flow, ready);
	req = container_of(weft_list_pop(&flow->reqs), struct weft_req, link);
	if (!weft_list_empty(&flow->reqs))
		weft_list_push(&queue->ready, &flow->ready);
	return req;
}

static void serve(struct weft_task *task)
{
	struct tgt_home_queue *queue = container_of(task, struct tgt_home_queue, serve);
	struct weft_req *req;

	while (queue->left > 0 && (req = next_of(queue)))
		run(queue, req);
	queue->left = SLICE;
	if (!weft_list_empty(&queue->ready))
		weft_reactor_defer(queue->home, &queue->serve);
}

static void arrive(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	struct weft_target *t = req->qp->group->user;
	struct tgt_home_queue *queue = t->home_queue;
	struct tgt_flow *flow = flow_of(queue, req);

	weft_reactor_defer(queue->home, &queue->serve);
	if (queue->left > 0 && weft_list_empty(&queue->ready)) {
		run(queue, req);
		return;
	}
	weft_list_push(&flow->reqs, &req->link);
	if (weft_list_empty(&flow->ready))
		weft_list_push(&queue->ready, &flow->ready);
}

void tgt_post_home(struct weft_req *req, void (*fn)(struct weft_msg *msg))
{
	tgt_req(req)->at_home = fn;
	req->msg.fn = arrive;
	weft_reactor_post(req->qp->group->home, &req->msg);
}

void tgt_home_spend(struct weft_target *t, unsigned commands)
{
	t->home_queue->left -= commands < SLICE ? (int)commands : SLICE;
}

/* --- beginning and end ------------------------------------------------------------------------ */

int tgt_home_queue_create(struct weft_target *t)
{
	struct tgt_home_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	weft_list_init(&queue->flows);
	weft_list_init(&queue->ready);
	queue->unknown = flow_new(queue);
	if (!queue->unknown) {
		free(queue);
		return -ENOMEM;
	}
	queue->home = t->home;
	queue->left = SLICE;
	weft_task_init(&queue->serve, serve);
	t->home_queue = queue;
	return 0;
}

void tgt_home_queue_destroy(struct weft_target *t)
{
	if (!t->home_queue)
		return;
	weft_task_cancel(&t->home_queue->serve);
	free(t->home_queue->unknown);
	free(t->home_queue);
}
