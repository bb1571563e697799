/* cq.h - a completion queue on a reactor: polled while busy, an event before sleep. */
#ifndef WEFT_TRANSPORT_RDMA_CQ_H
#define WEFT_TRANSPORT_RDMA_CQ_H

#include "base/err.h"
#include "transport/rdma/verbs.h"
#include "transport/rdma/watch.h"

enum { RDMA_CQ_BATCH = 32 };

struct rdma_cq {
	void (*done)(struct rdma_cq *cq, const struct ibv_wc *wc);
	void (*closed)(struct rdma_cq *cq); /* after rdma_cq_close(); it may be freed */

	struct weft_reactor *reactor;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	struct rdma_watch watch;
	struct weft_poller poller;
	bool armed;
	int count;
	struct ibv_wc wc[RDMA_CQ_BATCH];
};

/* @spread: completion queues that differ in it interrupt different CPUs, if the adapter can. */
int rdma_cq_open(struct rdma_cq *cq, struct weft_reactor *r, struct ibv_context *ctx, int entries,
		 unsigned spread, struct weft_err *err);
/* No queue pair uses it any more. */
void rdma_cq_close(struct rdma_cq *cq);
/* Calls done() for all completions in it, now. */
void rdma_cq_drain(struct rdma_cq *cq);

#endif
