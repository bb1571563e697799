/* home_queue.c - commands on their way to home wait there in a flow per host, served round robin.
 *
 *   reactors ─▶ mailbox ─▶ is anybody waiting? ─ no ─▶ run
 *                                └─ yes ─▶ flow of the host ─▶ one of each share in turn ─▶ run
 *
 * A turn of home runs SLICE commands at most, and what is left waits for the next turn, in which
 * home sees to everything else first: timers, the store, the control socket, new connections. So
 * a host's commands wait for the rest of a slice and for one command of each other share, however
 * many of them the others send. Who has a share is told in share.c: a host that is named, an address
 * of hosts that are not, whose flows take turns with each other, and all who were not let in.
 *
 * What runs at home is bounded in itself, or says what it is worth more than one command
 * (tgt_home_spend()).
 *
 * Invariant: a command waits only while others wait, or the slice is spent. */
#include <errno.h>
#include <stdlib.h>

#include "target/internal.h"

enum { SLICE = 64 };

struct tgt_home_queue {
	struct weft_reactor *home;
	struct weft_list ready; /* shares in which commands wait */
	int left;               /* of this turn's slice */
	struct weft_task serve;
};

/* --- in line ---------------------------------------------------------------------------------- */

static struct tgt_flow *flow_of(struct weft_target *t, struct weft_req *req)
{
	return tgt_queue(req) ? tgt_queue(req)->ctrl->flow : tgt_flow_unknown(t);
}

static void line_up(struct tgt_home_queue *queue, struct tgt_flow *flow, struct weft_req *req)
{
	struct tgt_share *share = flow->share;

	weft_list_push(&flow->reqs, &req->link);
	if (weft_list_empty(&flow->ready))
		weft_list_push(&share->flows, &flow->ready);
	if (weft_list_empty(&share->ready))
		weft_list_push(&queue->ready, &share->ready);
}

/* Of the share whose turn it is, the flow whose turn it is there. */
static struct weft_req *next_of(struct tgt_home_queue *queue)
{
	struct weft_list *link = weft_list_pop(&queue->ready);
	struct tgt_share *share;
	struct tgt_flow *flow;
	struct weft_req *req;

	if (!link)
		return NULL;
	share = container_of(link, struct tgt_share, ready);
	flow = container_of(weft_list_pop(&share->flows), struct tgt_flow, ready);
	req = container_of(weft_list_pop(&flow->reqs), struct weft_req, link);
	if (!weft_list_empty(&flow->reqs))
		weft_list_push(&share->flows, &flow->ready);
	if (!weft_list_empty(&share->flows))
		weft_list_push(&queue->ready, &share->ready);
	return req;
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

	weft_reactor_defer(queue->home, &queue->serve);
	if (queue->left > 0 && weft_list_empty(&queue->ready))
		run(queue, req);
	else
		line_up(queue, flow_of(t, req), req);
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
	weft_list_init(&queue->ready);
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
	free(t->home_queue);
}
