/* async_event.h - an adapter's asynchronous events, and who gets them. */
#ifndef WEFT_TRANSPORT_RDMA_ASYNC_EVENT_H
#define WEFT_TRANSPORT_RDMA_ASYNC_EVENT_H

#include "transport/rdma/dev.h"
#include "transport/rdma/watch.h"

/* A reactor that gets the events of one adapter. */
struct rdma_async_subscriber {
	/* The adapter has failed: nothing on it can be used any more. */
	void (*fatal)(struct rdma_async_subscriber *async);
	void (*ended)(struct rdma_async_subscriber
			      *async); /* after rdma_async_unsubscribe(); it may be freed */

	struct weft_list link; /* dev->subscribers */
	struct rdma_dev *dev;
	struct weft_reactor *reactor;
	struct rdma_watch watch;
	bool watching, ending;
	/* Under the lock. */
	struct weft_msg msg;
	bool posted; /* msg is under way */
	bool failed; /* fatal() is due */
	struct weft_list quiet,
		pending; /* struct rdma_async_events: without, and with a new event */
};

/* The events of one queue pair, completion queue or shared receive queue. */
struct rdma_async_events {
	void (*on_event)(struct rdma_async_events *events,
			 enum ibv_event_type type); /* may end it */

	struct weft_list link;
	struct rdma_async_subscriber *async; /* NULL: removed, or never added */
	const void *object;
	uint32_t types; /* new events, a bit each; under the lock */
};

int rdma_async_subscribe(struct rdma_async_subscriber *async, struct rdma_dev *dev,
			 struct weft_reactor *r, struct weft_err *err);
/* All its struct rdma_async_events have been removed. */
void rdma_async_unsubscribe(struct rdma_async_subscriber *async);

void rdma_async_events_add(struct rdma_async_events *events, struct rdma_async_subscriber *async,
			   const void *object);
/* Before the object is destroyed. Twice is harmless, and so is one that was never added. */
void rdma_async_events_remove(struct rdma_async_events *events);

#endif
