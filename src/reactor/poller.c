/* poller.c - what has no descriptor while it is busy.
 *
 *          look() found something
 *   pollers ───────────────────▶ found
 *      ▲                          │
 *      └───── the turn: run() ◀───┘
 *
 * A completion queue in memory is read for nothing; asking the kernel about it would cost a system
 * call per I/O. So the reactor looks for itself as long as it is awake, and has a descriptor tell
 * only when it is about to sleep: arm() is the last look, and what comes after it wakes.
 * Invariant: a poller is on one of the two lists, and on found only until the turn has run it. */
#include <assert.h>

#include "reactor/internal.h"

static void move(struct weft_poller *poller, struct weft_list *to)
{
	weft_list_remove(&poller->link);
	weft_list_push(to, &poller->link);
}

void weft_poller_add(struct weft_reactor *r, struct weft_poller *poller)
{
	weft_list_push(&r->pollers, &poller->link);
}

void weft_poller_remove(struct weft_poller *poller)
{
	if (poller->link.next)
		weft_list_remove(&poller->link);
}

bool weft_pollers_look(struct weft_reactor *r)
{
	struct weft_poller *poller, *next;

	weft_list_for_each_safe(poller, next, &r->pollers, link)
		if (poller->look(poller))
			move(poller, &r->found);
	return !weft_list_empty(&r->found);
}

/* What run() makes others find is for the next turn. The poller is back in its place first: run()
 * may remove and free it. */
static void run_found(struct weft_reactor *r)
{
	struct weft_list now, *link;
	struct weft_poller *poller;

	weft_list_init(&now);
	weft_list_splice(&now, &r->found);
	while ((link = weft_list_pop(&now))) {
		poller = container_of(link, struct weft_poller, link);
		weft_list_push(&r->pollers, &poller->link);
		poller->run(poller);
	}
}

bool weft_pollers_run(struct weft_reactor *r)
{
	if (!weft_pollers_look(r))
		return false;
	run_found(r);
	return true;
}

bool weft_pollers_arm(struct weft_reactor *r)
{
	struct weft_poller *poller;

	assert(weft_list_empty(&r->found));
	weft_list_for_each(poller, &r->pollers, link)
		if (!poller->arm(poller))
			return false;
	return true;
}
