/* fair_queue.c - fair queueing: waiters stand in lines, and lines take turns. */
#include "base/fair_queue.h"

void weft_turns_line_init(struct weft_turns_line *line, struct weft_turns_line *within)
{
	line->within = within;
	weft_list_init(&line->link);
	weft_list_init(&line->lines);
	weft_list_init(&line->waiting);
}

static bool is_empty(const struct weft_turns_line *line)
{
	return weft_list_empty(&line->lines) && weft_list_empty(&line->waiting);
}

static void line_up(struct weft_list *lines, struct weft_turns_line *line)
{
	for (; line && weft_list_empty(&line->link); line = line->within)
		weft_list_push(line->within ? &line->within->lines : lines, &line->link);
}

void weft_turns_push(struct weft_list *lines, struct weft_turns_line *line,
		     struct weft_list *waiter)
{
	weft_list_push(&line->waiting, waiter);
	line_up(lines, line);
}

struct weft_list *weft_turns_pop(struct weft_list *lines)
{
	struct weft_turns_line *line = container_of(weft_list_pop(lines), struct weft_turns_line,
						    link);
	struct weft_list *waiter;

	if (weft_list_empty(&line->lines))
		waiter = weft_list_pop(&line->waiting);
	else
		waiter = weft_turns_pop(&line->lines);
	if (!is_empty(line))
		weft_list_push(lines, &line->link);
	return waiter;
}

void weft_turns_remove(struct weft_turns_line *line, struct weft_list *waiter)
{
	weft_list_remove(waiter);
	for (; line && is_empty(line); line = line->within)
		weft_list_remove(&line->link);
}
