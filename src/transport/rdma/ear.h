/* ear.h - what an adapter says unasked, and who hears it. */
#ifndef WEFT_TRANSPORT_RDMA_EAR_H
#define WEFT_TRANSPORT_RDMA_EAR_H

#include "transport/rdma/dev.h"
#include "transport/rdma/watch.h"

/* A reactor's ear at one adapter. */
struct rdma_ear {
	/* Everything that is on the adapter is of no use any more. */
	void (*fatal)(struct rdma_ear *ear);
	void (*ended)(struct rdma_ear *ear); /* after rdma_ear_end(); it may be freed */

	struct weft_list link; /* dev->ears */
	struct rdma_dev *dev;
	struct weft_reactor *reactor;
	struct rdma_watch watch;
	bool watching, ending;
	/* Under the lock. */
	struct weft_msg msg;
	bool posted;                   /* msg is under way */
	bool failed;                   /* fatal() is due */
	struct weft_list silent, said; /* struct rdma_news, without and with something new */
};

/* What is said of one queue pair, completion queue or shared receive queue. */
struct rdma_news {
	void (*heard)(struct rdma_news *news, enum ibv_event_type type); /* may end it */

	struct weft_list link;
	struct rdma_ear *ear; /* NULL: nobody listens */
	const void *thing;
	uint32_t types; /* that were said: a bit each, under the lock */
};

int rdma_ear_start(struct rdma_ear *ear, struct rdma_dev *dev, struct weft_reactor *r,
		   struct weft_err *err);
/* None of its news is left. */
void rdma_ear_end(struct rdma_ear *ear);

void rdma_news_start(struct rdma_news *news, struct rdma_ear *ear, const void *thing);
/* Before @thing is destroyed. Twice is harmless, and so is one that never started. */
void rdma_news_end(struct rdma_news *news);

#endif
