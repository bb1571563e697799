/* fair_queue.h - fair queueing: waiters of several tenants share one resource. Each tenant has a
 * flow, and flows take turns.
 *
 *   flow ┐                           ┌─▶ the flow has more waiters? it goes to the end
 *   flow ┼─▶ first flow, its first ──┤
 *   flow ┘   waiter                  └─▶ this waiter is served
 *
 * A flow is served once per round, however many waiters it has. A flow may contain flows instead of
 * waiters; these take turns among themselves.
 *
 * The caller has a list of the flows in which somebody waits.
 *
 * Invariant: a flow is in that list, or in its parent flow, exactly while somebody waits in it.
 * Serving the last waiter may free the flow's owner. */
#ifndef WEFT_BASE_FAIR_QUEUE_H
#define WEFT_BASE_FAIR_QUEUE_H

#include "base/list.h"

/* Must not move while somebody waits in it. */
struct weft_fair_flow {
	struct weft_fair_flow *parent; /* the parent flow; NULL: it is in the list itself */
	struct weft_list link;
	struct weft_list flows, waiters;
};

void weft_fair_flow_init(struct weft_fair_flow *flow, struct weft_fair_flow *parent);
/* Nobody waits in it: it can be freed. */
bool weft_fair_flow_is_idle(const struct weft_fair_flow *flow);
/* @waiter becomes the last one of @flow. */
void weft_fair_queue_push(struct weft_list *flows, struct weft_fair_flow *flow,
			  struct weft_list *waiter);
/* Removes and returns the next waiter. @flows is not empty. */
struct weft_list *weft_fair_queue_pop(struct weft_list *flows);
/* @waiter, which waits in @flow, stops waiting. */
void weft_fair_queue_remove(struct weft_fair_flow *flow, struct weft_list *waiter);

#endif
