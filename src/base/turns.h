/* turns.h - those who wait for the same thing wait in lines, and the lines take turns.
 *
 *   line ┐                      ┌─▶ its line has more? ─▶ to the end of the lines
 *   line ┼─▶ the first, of it ──┤
 *   line ┘    the first waiter  └─▶ it has its turn
 *
 * Whoever has a line has one turn of each round, however many wait in the line. A line may hold
 * lines instead of waiters, which take turns among themselves.
 *
 * The lines that somebody waits in are a list, its owner's. Invariant: a line is in that list, or in
 * the line that it is within, exactly while somebody waits in it: the last one may end who owns the
 * line. */
#ifndef WEFT_BASE_TURNS_H
#define WEFT_BASE_TURNS_H

#include "base/list.h"

/* While anybody waits in it, it stays in place. */
struct weft_turns_line {
	struct weft_turns_line *within; /* NULL: one of the list's own */
	struct weft_list link;
	struct weft_list lines, waiting;
};

void weft_turns_line_init(struct weft_turns_line *line, struct weft_turns_line *within);
/* @waiter is the last of @line. */
void weft_turns_push(struct weft_list *lines, struct weft_turns_line *line,
		     struct weft_list *waiter);
/* Whose turn it is, out of its line. @lines is not empty. */
struct weft_list *weft_turns_pop(struct weft_list *lines);
/* @waiter does not wait in @line any more. */
void weft_turns_remove(struct weft_turns_line *line, struct weft_list *waiter);

#endif
