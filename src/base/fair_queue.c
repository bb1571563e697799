/* fair_queue.c - fair queueing: waiters stand in flows, and flows take turns. */
#include "base/fair_queue.h"

void weft_fair_flow_init(struct weft_fair_flow *flow, struct weft_fair_flow *parent)
{
	flow->parent = parent;
	weft_list_init(&flow->link);
	weft_list_init(&flow->flows);
	weft_list_init(&flow->waiters);
}

static bool flow_is_empty(const struct weft_fair_flow *flow)
{
	return weft_list_empty(&flow->flows) && weft_list_empty(&flow->waiters);
}

bool weft_fair_flow_is_idle(const struct weft_fair_flow *flow)
{
	return flow_is_empty(flow) && weft_list_empty(&flow->link);
}

static void activate_flow(struct weft_list *flows, struct weft_fair_flow *flow)
{
	for (; flow && weft_list_empty(&flow->link); flow = flow->parent)
		weft_list_push(flow->parent ? &flow->parent->flows : flows, &flow->link);
}

void weft_fair_queue_push(struct weft_list *flows, struct weft_fair_flow *flow,
			  struct weft_list *waiter)
{
	weft_list_push(&flow->waiters, waiter);
	activate_flow(flows, flow);
}

struct weft_list *weft_fair_queue_pop(struct weft_list *flows)
{
	struct weft_fair_flow *flow = container_of(weft_list_pop(flows), struct weft_fair_flow,
						   link);
	struct weft_list *waiter;

	if (weft_list_empty(&flow->flows))
		waiter = weft_list_pop(&flow->waiters);
	else
		waiter = weft_fair_queue_pop(&flow->flows);
	if (!flow_is_empty(flow))
		weft_list_push(flows, &flow->link);
	return waiter;
}

void weft_fair_queue_remove(struct weft_fair_flow *flow, struct weft_list *waiter)
{
	weft_list_remove(waiter);
	for (; flow && flow_is_empty(flow); flow = flow->parent)
		weft_list_remove(&flow->link);
}
