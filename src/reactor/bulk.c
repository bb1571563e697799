/* bulk.c - work on bytes that no peer sends or waits for: a bounded part of every turn.
 *
 *   lines ─▶ whose turn it is ─▶ a piece ─▶ more of it? ─▶ to the end of its line
 *
 *   TURN_BYTES a turn, of all of them together; the rest waits for the next turn
 *
 * What peers send or read is bounded by the wire. A command of a few bytes that has storage copy or
 * clear megabytes is not: a hundred of them would hold up all others on the reactor. So their work
 * is done in pieces, and between two turns' worth of it sockets, timers and messages have theirs.
 *
 * Whose work it is has a line. Lines take turns, one piece each (base/turns.h), so that who has a
 * thousand tasks in his line makes others wait for one of them.
 *
 * What storage does with a piece may take long, and all others' commands wait behind it there. So a
 * line has PIECES_EACH under way at most, and all lines PIECES_ALL, but for the first of each: storage
 * that does not answer some hosts does not stop the others.
 *
 * A task that had its turn and could not use it, because somebody kept it out of its blocks or it had
 * to wait for its buffer, comes before all lines.
 *
 * Invariant: a turn serves the first in line, whatever it costs; and a turn is finite: also a piece
 * of nothing costs VISIT_BYTES. */
#include <assert.h>

#include "reactor/internal.h"

/* Copied by one CPU in a fraction of a millisecond. */
#define TURN_BYTES (1 << 20)
/* The price of a system call, which a piece may be. */
#define PIECE_MIN_BYTES (32 << 10)

/* Under way in storage at once, of a line and of all: enough to keep a disk busy, and few to wait
 * for. */
enum { PIECES_EACH = 4, PIECES_ALL = 16 };

void weft_bulk_flow_init(struct weft_bulk_flow *flow, struct weft_bulk_flow *within)
{
	flow->within = within;
	weft_turns_line_init(&flow->turns, within ? &within->turns : NULL);
	flow->pieces = 0;
}

void weft_reactor_bulk_push(struct weft_reactor *r, struct weft_bulk_flow *flow,
			    struct weft_task *task)
{
	if (weft_list_empty(&task->link))
		weft_turns_push(&r->bulk, &flow->turns, &task->link);
}

void weft_reactor_bulk_retry(struct weft_reactor *r, struct weft_task *task)
{
	weft_list_push(&r->bulk_retries, &task->link);
}

void weft_reactor_bulk_cancel(struct weft_bulk_flow *flow, struct weft_task *task)
{
	weft_turns_remove(&flow->turns, &task->link);
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
	outermost_flow(flow)->pieces++;
	r->pieces++;
}

/* Lines that had to wait look again, before those that come after them. */
void weft_reactor_bulk_piece_end(struct weft_reactor *r, struct weft_bulk_flow *flow)
{
	assert(outermost_flow(flow)->pieces && r->pieces);
	outermost_flow(flow)->pieces--;
	r->pieces--;
	weft_list_splice(&r->bulk_full, &r->bulk);
	weft_list_splice(&r->bulk, &r->bulk_full);
}

/* --- a turn ----------------------------------------------------------------------------------- */

/* NULL: there is none, or its line is full. */
static struct weft_list *next_in_flows(struct weft_reactor *r)
{
	struct weft_bulk_flow *flow;

	while (!weft_list_empty(&r->bulk)) {
		flow = container_of(r->bulk.next, struct weft_bulk_flow, turns.link);
		if (may_begin_piece(r, flow))
			return weft_turns_pop(&r->bulk);
		weft_list_remove(&flow->turns.link);
		weft_list_push(&r->bulk_full, &flow->turns.link);
	}
	return NULL;
}

static struct weft_task *next_task(struct weft_reactor *r)
{
	struct weft_list *link = weft_list_pop(&r->bulk_retries);

	if (!link)
		link = next_in_flows(r);
	return link ? container_of(link, struct weft_task, link) : NULL;
}

void weft_bulk_run(struct weft_reactor *r)
{
	struct weft_task *task;

	r->bulk_left = TURN_BYTES;
	while (r->bulk_left > 0 && (task = next_task(r))) {
		task->fn(task);
		r->bulk_left -= PIECE_MIN_BYTES;
	}
}
