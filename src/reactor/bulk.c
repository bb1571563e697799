/* bulk.c - bulk work (Copy, Verify, Write Zeroes), which no peer's data bounds: a limited part of
 * every turn, in fair queueing.
 *
 *   flows ─▶ whose turn it is ─▶ a piece ─▶ more of it? ─▶ to the end of its flow
 *
 *   TURN_BYTES a turn, of all flows together; the rest waits for the next turn
 *
 * The data of reads and writes is bounded by the wire. A Copy or Write Zeroes of a few bytes can
 * cost storage megabytes, and a hundred of them would block everybody on the reactor. So such work
 * is done in pieces, TURN_BYTES of them per turn, and sockets, timers and messages come in between.
 *
 * Each tenant has a flow, and flows take turns, one piece each (base/fair_queue.h): a tenant with a
 * thousand tasks makes others wait for one of them.
 *
 * Storage has at most PIECES_EACH pieces of a flow and PIECES_ALL of all flows at a time, but
 * always one of each flow: storage that hangs for one tenant does not stop the others.
 *
 * A task that could not use its turn (its blocks were locked, or it waited for a buffer) goes
 * before all flows.
 *
 * Invariant: a turn serves the first task, whatever it costs; and a turn is finite: each piece
 * costs PIECE_MIN_BYTES besides its bytes. */
#include <assert.h>

#include "base/count.h"
#include "reactor/internal.h"

/* One CPU copies this in a fraction of a millisecond. */
#define TURN_BYTES (1 << 20)
/* The price of a system call, which a piece may be. */
#define PIECE_MIN_BYTES (32 << 10)

/* Pieces in storage at once, of a flow and of all flows: enough to keep a disk busy, and few enough
 * to wait for. */
enum { PIECES_EACH = 4, PIECES_ALL = 16 };

void weft_bulk_flow_init(struct weft_bulk_flow *flow, struct weft_bulk_flow *within)
{
	flow->within = within;
	weft_fair_flow_init(&flow->fair, within ? &within->fair : NULL);
	flow->pieces = 0;
}

void weft_reactor_bulk_push(struct weft_reactor *r, struct weft_bulk_flow *flow,
			    struct weft_task *task)
{
	assert_driving(r);
	if (weft_list_empty(&task->link))
		weft_fair_queue_push(&r->bulk, &flow->fair, &task->link);
}

void weft_reactor_bulk_retry(struct weft_reactor *r, struct weft_task *task)
{
	assert_driving(r);
	assert(weft_list_empty(&task->link));
	weft_list_push(&r->bulk_retries, &task->link);
}

void weft_reactor_bulk_cancel(struct weft_bulk_flow *flow, struct weft_task *task)
{
	weft_fair_queue_remove(&flow->fair, &task->link);
}

bool weft_reactor_bulk_spend(struct weft_reactor *r, uint32_t bytes)
{
	if (r->bulk_left <= 0)
		return false;
	r->bulk_left -= bytes;
	return true;
}

/* --- pieces under way ------------------------------------------------------------------------- */

static struct weft_bulk_flow *outermost_flow(struct weft_bulk_flow *flow)
{
	while (flow->within)
		flow = flow->within;
	return flow;
}

static bool may_begin_piece(const struct weft_reactor *r, const struct weft_bulk_flow *flow)
{
	return !flow->pieces || (flow->pieces < PIECES_EACH && r->pieces < PIECES_ALL);
}

void weft_reactor_bulk_piece_begin(struct weft_reactor *r, struct weft_bulk_flow *flow)
{
	assert_driving(r);
	outermost_flow(flow)->pieces++;
	r->pieces++;
}

/* Flows that had to wait may continue, before those that come after them. */
void weft_reactor_bulk_piece_end(struct weft_reactor *r, struct weft_bulk_flow *flow)
{
	assert_driving(r);
	weft_count_down(outermost_flow(flow)->pieces);
	weft_count_down(r->pieces);
	weft_list_splice(&r->bulk_full, &r->bulk);
	weft_list_splice(&r->bulk, &r->bulk_full);
}

/* --- a turn ----------------------------------------------------------------------------------- */

/* NULL: there is no task, or its flow has too many pieces under way. */
static struct weft_list *next_task_in_flows(struct weft_reactor *r)
{
	struct weft_bulk_flow *flow;

	while (!weft_list_empty(&r->bulk)) {
		flow = container_of(r->bulk.next, struct weft_bulk_flow, fair.link);
		if (may_begin_piece(r, flow))
			return weft_fair_queue_pop(&r->bulk);
		assert(!flow->within);
		weft_list_remove(&flow->fair.link);
		weft_list_push(&r->bulk_full, &flow->fair.link);
	}
	return NULL;
}

static struct weft_task *next_bulk_task(struct weft_reactor *r)
{
	struct weft_list *link = weft_list_pop(&r->bulk_retries);

	if (!link)
		link = next_task_in_flows(r);
	return link ? container_of(link, struct weft_task, link) : NULL;
}

void weft_bulk_run(struct weft_reactor *r)
{
	struct weft_task *task;

	r->bulk_left = TURN_BYTES;
	while (r->bulk_left > 0 && (task = next_bulk_task(r))) {
		task->fn(task);
		r->bulk_left -= PIECE_MIN_BYTES;
	}
}
