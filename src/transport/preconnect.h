/* preconnect.h - connections on which no Connect has succeeded yet, and what they may cost.
 *
 *   accepted ─▶ pre-connect ─▶ Connect succeeds ─▶ a queue
 *                 └ 30 s are over, or a newer connection needs the place ─▶ closed
 *
 * Nobody has checked who the peer is. So it may have one command at a time, of a Connect's size, in
 * buffers that hosts do not use. A reactor has @max of them. One more is accepted all the same, and
 * the oldest connection of the address that has most of them is closed: a flood from one address
 * closes its own. */
#ifndef WEFT_TRANSPORT_PRECONNECT_H
#define WEFT_TRANSPORT_PRECONNECT_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/addr_counts.h"

struct weft_qpair;

enum {
	WEFT_PRECONNECT_MAX = 1024,    /* of the whole target, shared by its reactors */
	WEFT_PRECONNECT_MAX_EACH = 64, /* but no fewer than that on one of them */
};

struct weft_preconnect {
	struct weft_list qpairs; /* weft_qpair.preconnect, the oldest first */
	struct weft_addr_counts counts;
	uint32_t max;
	/* Statistics: other threads read them. */
	atomic_uint now;
	_Atomic uint64_t displaced; /* closed to make room for another */
};

void weft_preconnect_init(struct weft_preconnect *preconnect, uint32_t max);
/* On the group's reactor; qp->peer is known. */
void weft_preconnect_add(struct weft_preconnect *preconnect, struct weft_qpair *qp);
void weft_preconnect_remove(struct weft_preconnect *preconnect,
			    struct weft_qpair *qp); /* if it is one */

#endif
