/* reclaim.h - peers that keep what others wait for have to go. */
#ifndef WEFT_TRANSPORT_RECLAIM_H
#define WEFT_TRANSPORT_RECLAIM_H

#include "reactor/reactor.h"
#include "transport/req_walk.h"

/* What the requests of a queue pair say of its peer. Times are in ns; 0: none. */
struct weft_stall {
	uint64_t owed_since;    /* it owes data */
	uint64_t unread_since;  /* it does not read a reply */
	uint64_t awaited_since; /* the user waits for the memory of a reply */
	bool rx_waits;          /* nothing is received … */
	bool rx_waits_for_host; /* … and the host's own commands are the reason */
	bool blocks_writer;     /* a guarded reply holds blocks that a writer waits for */
};

/* The earlier one of two times. */
static inline uint64_t weft_stall_earlier(uint64_t one, uint64_t other)
{
	return !one || (other && other < one) ? other : one;
}

/* The reclaim of a poll group, and where it is: a turn looks at a part of the requests. */
struct weft_reclaim {
	struct weft_timer timer;
	struct weft_task task;
	bool walking, again;
	struct weft_qpair_iter conns;
	struct weft_req_iter reqs;
	struct weft_qpair *qp; /* under review; NULL: none, or it is gone */
	struct weft_stall stall;
};

void weft_reclaim_init(struct weft_reclaim *reclaim);
bool weft_reclaim_is_idle(const struct weft_reclaim *reclaim);
void weft_reclaim_qpair_gone(struct weft_reclaim *reclaim, const struct weft_qpair *qp);
void weft_reclaim_stop(struct weft_poll_group *group); /* its last queue pair is gone */
/* Looks at one request, as a reclaim does. */
void weft_stall_look(struct weft_stall *stall, struct weft_req *req);

#endif
