/* req_walk.h - walks over the requests of a queue pair, on its reactor, a slice in each turn.
 *
 *   walks, in flows of tenants ─▶ whose turn it is ─▶ visit() ─▶ … a turn's slice ─▶ to the end of its flow
 *                                                        └─▶ busy: the same request, a little later
 *
 * A peer sizes the table of requests, and may ask for many walks. All walks of a reactor together
 * look at WEFT_REQS_PER_TURN entries in a turn, and flows take turns (base/fair_queue.h).
 *
 * Requests and their queue pair come and go meanwhile. */
#ifndef WEFT_TRANSPORT_REQ_WALK_H
#define WEFT_TRANSPORT_REQ_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fair_queue.h"
#include "reactor/reactor.h"

struct weft_poll_group;
struct weft_qpair;
struct weft_req;

enum { WEFT_REQS_PER_TURN = 512 };

/* --- one after the other ---------------------------------------------------------------------- */

/* Over the queue pairs of a poll group, on its reactor, some in each turn, while they come and go. */
struct weft_qpair_iter {
	struct weft_list link; /* group->iters */
	struct weft_list *at;  /* weft_qpair.link of the next, or group->qpairs */
};

struct weft_req_iter {
	struct weft_list link; /* qp->req_iters */
	struct weft_qpair *qp; /* NULL: the iteration has ended */
	uint32_t at;           /* index of the next */
};

void weft_req_iter_begin(struct weft_req_iter *iter, struct weft_qpair *qp);
/* The next request; NULL: that was all and the iteration has ended, or *@budget, which each entry
 * lowers, is 0. */
struct weft_req *weft_req_iter_next(struct weft_req_iter *iter, uint32_t *budget);
void weft_req_iter_end(struct weft_req_iter *iter); /* twice is harmless */

/* --- in slices -------------------------------------------------------------------------------- */

enum weft_walk_step {
	WEFT_WALK_ON,   /* to the next request */
	WEFT_WALK_BUSY, /* this one again, in a later turn: of a weft_req_retry_walk */
	WEFT_WALK_ENDS,
};

struct weft_req_walk {
	/* @walk is still there, and so is the request. */
	enum weft_walk_step (*visit)(struct weft_req_walk *walk, struct weft_req *req);
	void (*done)(struct weft_req_walk *walk); /* it has ended; may free it */
	/* Private. */
	struct weft_poll_group *group;
	struct weft_fair_flow *flow;
	struct weft_list link;
	struct weft_req_iter iter;
	bool may_retry;
};

/* One whose visit() may find a request busy. */
struct weft_req_retry_walk {
	struct weft_req_walk walk;
	struct weft_retry retry; /* private */
};

struct weft_req_walks {
	struct weft_list flows;             /* in which walks wait for their turn */
	struct weft_fair_flow default_flow; /* of walks without one */
	struct weft_task task;
};

void weft_req_walks_init(struct weft_req_walks *walks);
/* Visits the requests of @qp from the next turn on. @flow outlives the walk; NULL: in one flow with
 * all others that have none. */
void weft_req_walk_begin(struct weft_req_walk *walk, struct weft_qpair *qp,
			 struct weft_fair_flow *flow);
void weft_req_retry_walk_begin(struct weft_req_retry_walk *walk, struct weft_qpair *qp,
			       struct weft_fair_flow *flow);

#endif
