/* bulk.c - work on bytes that no peer sends or waits for: a bounded part of every turn.
 *
 *   line ┐                      ┌─▶ its line has more? ─▶ to the end of the lines
 *   line ┼─▶ the first, of it ──┤
 *   line ┘    the first task    └─▶ a piece ─▶ more of it? ─▶ to the end of its line
 *
 *   TURN_BYTES a turn, of all of them together; the rest waits for the next turn
 *
 * What peers send or read is bounded by the wire. A command of a few bytes that has storage copy or
 * clear megabytes is not: a hundred of them would hold up all others on the reactor. So their work
 * is done in pieces, and between two turns' worth of it sockets, timers and messages have theirs.
 *
 * Whose work it is has a line. Lines take turns, one piece each, so that who has a thousand tasks in
 * his line makes others wait for one of them. A line may hold lines instead of tasks, which take
 * turns among themselves.
 *
 * Invariant: a turn serves the first in line, whatever it costs; and a turn is finite: also a piece
 * of nothing costs VISIT_BYTES. A line is among the others exactly while a task waits in it: the
 * last one may end who owns the line. */
#include "reactor/internal.h"

/* Copied by one CPU in a fraction of a millisecond. */
#define TURN_BYTES (1 << 20)
/* The price of a system call, which a piece may be. */
#define VISIT_BYTES (32 << 10)

/* --- lines ------------------------------------------------------------------------------------ */

void weft_bulk_line_init(struct weft_bulk_line *line, struct weft_bulk_line *within)
{
	line->within = within;
	weft_list_init(&line->link);
	weft_list_init(&line->lines);
	weft_list_init(&line->tasks);
}

static bool is_empty(const struct weft_bulk_line *line)
{
	return weft_list_empty(&line->lines) && weft_list_empty(&line->tasks);
}

static void line_up(struct weft_reactor *r, struct weft_bulk_line *line)
{
	for (; line && weft_list_empty(&line->link); line = line->within)
		weft_list_push(line->within ? &line->within->lines : &r->bulk, &line->link);
}

static struct weft_task *next_of(struct weft_list *lines)
{
	struct weft_bulk_line *line = container_of(weft_list_pop(lines), struct weft_bulk_line,
						   link);
	struct weft_task *task;

	if (weft_list_empty(&line->lines))
		task = container_of(weft_list_pop(&line->tasks), struct weft_task, link);
	else
		task = next_of(&line->lines);
	if (!is_empty(line))
		weft_list_push(lines, &line->link);
	return task;
}

/* --- tasks ------------------------------------------------------------------------------------ */

void weft_reactor_bulk(struct weft_reactor *r, struct weft_bulk_line *line, struct weft_task *task)
{
	if (weft_list_empty(&task->link))
		weft_list_push(&line->tasks, &task->link);
	line_up(r, line);
}

void weft_reactor_bulk_first(struct weft_reactor *r, struct weft_bulk_line *line,
			     struct weft_task *task)
{
	weft_list_push_first(&line->tasks, &task->link);
	line_up(r, line);
}

void weft_reactor_unbulk(struct weft_bulk_line *line, struct weft_task *task)
{
	weft_list_remove(&task->link);
	for (; line && is_empty(line); line = line->within)
		weft_list_remove(&line->link);
}

bool weft_reactor_spend(struct weft_reactor *r, uint32_t bytes)
{
	if (r->bulk_left <= 0)
		return false;
	r->bulk_left -= bytes;
	return true;
}

void weft_bulk_run(struct weft_reactor *r)
{
	struct weft_task *task;

	r->bulk_left = TURN_BYTES;
	while (r->bulk_left > 0 && !weft_list_empty(&r->bulk)) {
		task = next_of(&r->bulk);
		task->fn(task);
		r->bulk_left -= VISIT_BYTES;
	}
}
