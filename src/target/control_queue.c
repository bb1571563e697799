/* control_queue.c - commands for the control reactor wait in a flow per host, and tenants take
 * turns.
 *
 *   reactors ─▶ mailbox ─▶ is anybody waiting? ─ no ─▶ run
 *                                └─ yes ─▶ the host's flow
 *                                    ─▶ one command of each tenant in turn ─▶ run
 *
 * A turn runs COMMANDS_PER_TURN commands; the rest waits for the next turn, after timers, the
 * store, the control socket and new connections. So a host waits for the rest of a turn and for one
 * command of each other tenant, however many the others send.
 *
 * A command that is more work than one says so: tgt_control_charge().
 *
 * Invariant: a command waits only while others wait, or the turn's budget is spent. */
#include <errno.h>
#include <stdlib.h>

#include "target/internal.h"

enum { COMMANDS_PER_TURN = 64 };

struct tgt_control_queue {
	struct weft_reactor *control;
	struct weft_list ready; /* tenants that have commands waiting */
	int budget;             /* commands that this turn may still run */
	struct weft_task turn_task;
};

/* --- flows ------------------------------------------------------------------------------------ */

static struct tgt_flow *req_flow(struct weft_target *t, struct weft_req *req)
{
	return tgt_queue(req) ? tgt_queue(req)->ctrl->flow : tgt_flow_unknown(t);
}

static void flow_enqueue(struct tgt_control_queue *queue, struct tgt_flow *flow,
			 struct weft_req *req)
{
	struct tgt_tenant *tenant = flow->tenant;

	weft_list_push(&flow->reqs, &req->link);
	if (weft_list_empty(&flow->ready))
		weft_list_push(&tenant->flows, &flow->ready);
	if (weft_list_empty(&tenant->ready))
		weft_list_push(&queue->ready, &tenant->ready);
}

/* The next flow of the next tenant. */
static struct weft_req *control_queue_pop(struct tgt_control_queue *queue)
{
	struct weft_list *link = weft_list_pop(&queue->ready);
	struct tgt_tenant *tenant;
	struct tgt_flow *flow;
	struct weft_req *req;

	if (!link)
		return NULL;
	tenant = container_of(link, struct tgt_tenant, ready);
	assert(!weft_list_empty(&tenant->flows));
	flow = container_of(weft_list_pop(&tenant->flows), struct tgt_flow, ready);
	assert(!weft_list_empty(&flow->reqs));
	req = container_of(weft_list_pop(&flow->reqs), struct weft_req, link);
	if (!weft_list_empty(&flow->reqs))
		weft_list_push(&tenant->flows, &flow->ready);
	if (!weft_list_empty(&tenant->flows))
		weft_list_push(&queue->ready, &tenant->ready);
	return req;
}

/* --- turns ------------------------------------------------------------------------------------ */

/* When the control reactor has handled the end of a queue, no command of that queue may begin to
 * wait here. */
static void control_queue_run_command(struct tgt_control_queue *queue, struct weft_req *req)
{
	assert_on(queue->control);
	queue->budget--;
	if (tgt_queue(req) && tgt_queue_lost_connection(tgt_queue(req)))
		tgt_control_reply(req, SC_GENERIC(ABORT_QUEUE));
	else
		tgt_req(req)->on_control(&req->msg);
}

static void control_queue_turn(struct weft_task *task)
{
	struct tgt_control_queue *queue = container_of(task, struct tgt_control_queue, turn_task);
	struct weft_req *req;

	while (queue->budget > 0 && (req = control_queue_pop(queue)))
		control_queue_run_command(queue, req);
	queue->budget = COMMANDS_PER_TURN;
	if (!weft_list_empty(&queue->ready))
		weft_reactor_defer(queue->control, &queue->turn_task);
}

static void control_queue_arrive(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	struct weft_target *t = req->qp->group->user;
	struct tgt_control_queue *queue = t->control_queue;

	weft_reactor_defer(queue->control, &queue->turn_task);
	if (queue->budget > 0 && weft_list_empty(&queue->ready))
		control_queue_run_command(queue, req);
	else
		flow_enqueue(queue, req_flow(t, req), req);
}

void tgt_post_control(struct weft_req *req, void (*fn)(struct weft_msg *msg))
{
	tgt_req(req)->on_control = fn;
	req->msg.fn = control_queue_arrive;
	weft_reactor_post(req->qp->group->control, &req->msg);
}

void tgt_control_charge(struct weft_target *t, unsigned commands)
{
	assert_on_control(t);
	t->control_queue->budget -= commands < COMMANDS_PER_TURN ? (int)commands :
								   COMMANDS_PER_TURN;
}

/* --- beginning and end ------------------------------------------------------------------------ */

int tgt_control_queue_create(struct weft_target *t)
{
	struct tgt_control_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	weft_list_init(&queue->ready);
	queue->control = t->control;
	queue->budget = COMMANDS_PER_TURN;
	weft_task_init(&queue->turn_task, control_queue_turn);
	t->control_queue = queue;
	return 0;
}

void tgt_control_queue_destroy(struct weft_target *t)
{
	if (!t->control_queue)
		return;
	assert(weft_list_empty(&t->control_queue->ready));
	weft_task_cancel(&t->control_queue->turn_task);
	free(t->control_queue);
}
