/* fair_queue.h - fair queueing: waiters of several tenants share one resource. Each tenant has a
 * line (a flow), and lines take turns.
 *
 *   line ┐                           ┌─▶ the line has more waiters? it goes to the end
 *   line ┼─▶ first line, its first ──┤
 *   line ┘   waiter                  └─▶ this waiter is served
 *
 * A line is served once per round, however many waiters it has. A line may contain lines instead of
 * waiters; these take turns among themselves.
 *
 * The caller has a list of the lines in which somebody waits.
 *
 * Invariant: a line is in that list, or in its parent line, exactly while somebody waits in it.
 * Serving the last waiter may free the line's owner. */
#ifndef WEFT_BASE_FAIR_QUEUE_H
#define WEFT_BASE_FAIR_QUEUE_H

#include "base/list.h"

/* Must not move while somebody waits in it. */
struct weft_turns_line {
	struct weft_turns_line *within; /* the parent line; NULL: it is in the list itself */
	struct weft_list link;
	struct weft_list lines, waiting;
};

void weft_turns_line_init(struct weft_turns_line *line, struct weft_turns_line *within);
/* @waiter becomes the last one of @line. */
void weft_turns_push(struct weft_list *lines, struct weft_turns_line *line,
		     struct weft_list *waiter);
/* Removes and returns the next waiter. @lines is not empty. */
struct weft_list *weft_turns_pop(struct weft_list *lines);
/* @waiter, which waits in @line, stops waiting. */
void weft_turns_remove(struct weft_turns_line *line, struct weft_list *waiter);

#endif
