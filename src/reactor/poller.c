/* poller.c - pollers: what has no descriptor while it is busy, such as a completion queue.
 *
 *            poll() found something
 *   pollers ───────────────────▶ ready_pollers
 *      ▲                               │
 *      └───── the turn: process() ◀────┘
 *
 * Reading a completion queue in memory is free; asking the kernel about it is a system call per
 * I/O. So the reactor polls while it is awake, and arms a descriptor only before it sleeps. arm()
 * polls once more: what comes later wakes the reactor.
 *
 * Invariant: a poller is on one of the two lists, and on ready_pollers only until the turn has run
 * it. */
#include <assert.h>

#include "reactor/internal.h"

static void move_poller(struct weft_poller *poller, struct weft_list *to)
{
	assert(!weft_list_empty(&poller->link));
	weft_list_remove(&poller->link);
	weft_list_push(to, &poller->link);
}

void weft_poller_add(struct weft_reactor *r, struct weft_poller *poller)
{
	assert_driving(r);
	assert(poller->poll && poller->process);
	assert(!poller->link.next || weft_list_empty(&poller->link));
	weft_list_push(&r->pollers, &poller->link);
}

void weft_poller_remove(struct weft_poller *poller)
{
	if (poller->link.next)
		weft_list_remove(&poller->link);
}

bool weft_pollers_poll(struct weft_reactor *r)
{
	struct weft_poller *poller, *next;

	weft_list_for_each_safe(poller, next, &r->pollers, link)
		if (poller->poll(poller))
			move_poller(poller, &r->ready_pollers);
	return !weft_list_empty(&r->ready_pollers);
}

/* If process() makes another poller ready, that one runs in the next turn. The poller goes back to
 * its list first: process() may remove and free it. */
static void process_ready_pollers(struct weft_reactor *r)
{
	struct weft_list now, *link;
	struct weft_poller *poller;

	weft_list_init(&now);
	weft_list_splice(&now, &r->ready_pollers);
	while ((link = weft_list_pop(&now))) {
		poller = container_of(link, struct weft_poller, link);
		weft_list_push(&r->pollers, &poller->link);
		poller->process(poller);
	}
}

bool weft_pollers_process(struct weft_reactor *r)
{
	if (!weft_pollers_poll(r))
		return false;
	process_ready_pollers(r);
	return true;
}

bool weft_pollers_arm(struct weft_reactor *r)
{
	struct weft_poller *poller;

	assert(weft_list_empty(&r->ready_pollers));
	weft_list_for_each(poller, &r->pollers, link)
		if (!poller->arm(poller))
			return false;
	return true;
}
