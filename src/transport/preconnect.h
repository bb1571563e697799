/* preconnect.h - connections on which no Connect has succeeded yet, and what they may cost.
 *
 *   accepted ─▶ unknown ─▶ Connect succeeds ─▶ a queue
 *                 └─ too long; or one of the busiest address, when a reactor has too many ─▶ closed
 *
 * Nobody has looked at who they are. So each may have one command at a time, with the data of a
 * Connect; their buffers are not those of hosts (see weft_qpair.in); and there are at most @max on
 * a reactor: beyond that the newest comes in, and the oldest one of the address that has most of
 * them goes. A flood from one address closes its own. */
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
	struct weft_list qpairs; /* weft_qpair.unknown, the oldest first */
	struct weft_addr_counts counts;
	uint32_t max;
	/* Read by who shows them. */
	atomic_uint now;
	_Atomic uint64_t displaced; /* closed to make room for another */
};

void weft_preconnect_init(struct weft_preconnect *preconnect, uint32_t max);
/* On the group's reactor; qp->peer is known. */
void weft_preconnect_add(struct weft_preconnect *preconnect, struct weft_qpair *qp);
void weft_preconnect_remove(struct weft_preconnect *preconnect,
			    struct weft_qpair *qp); /* if it is one */

#endif
