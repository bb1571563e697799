/* watch.h - a descriptor of the adapter's libraries, on a reactor. */
#ifndef WEFT_TRANSPORT_RDMA_WATCH_H
#define WEFT_TRANSPORT_RDMA_WATCH_H

#include "reactor/reactor.h"

struct rdma_watch {
	void (*readable)(struct rdma_watch *watch); /* read until there is no more */
	void (*ended)(struct rdma_watch *watch);    /* after rdma_watch_end(); it may be freed */

	struct weft_sock sock;
	struct weft_op op;
	bool ending;
};

/* @fd stays the library's; it is made non-blocking. */
int rdma_watch_start(struct rdma_watch *watch, struct weft_reactor *r, int fd);
void rdma_watch_end(struct rdma_watch *watch);

#endif
