/* cycle.h - one visit to the file. */
#ifndef WEFT_STORE_CYCLE_H
#define WEFT_STORE_CYCLE_H

#include "store/internal.h"
#include "store/watch.h"

/* The first half is filled in by who asks, the second by the visit. */
struct store_cycle {
	int fd;
	const char *path;
	unsigned node, nodes;
	uint64_t incarnation;
	const struct store_records *records; /* what is known; not freed meanwhile */
	struct weft_list txns;               /* to commit; what became of each is in it */
	uint64_t acked;                      /* by us */
	struct store_watch *watch;           /* of the file; NULL: nobody else writes to it */

	struct store_records *fresh; /* newer than @records; NULL: they are the newest */
	struct store_news news;      /* that was taken: the visit has seen what it is about */
	bool displaced;              /* it is not where it is looked for: nothing was committed */
	bool damaged;                /* the file has lost what we know; the next visit mends it */
	bool mended;
	struct store_member members[WEFT_STORE_NODES_MAX + 1];
};

/* Blocks. -EAGAIN: somebody else is at it, and nothing was done; -errno: the file cannot be
 * used. */
int store_cycle_run(struct store_cycle *cycle);
/* Is the file where it is looked for? Who cannot tell goes on. */
bool store_cycle_is_in_place(const struct store_cycle *cycle);
/* The first: joins, and begins a session where nobody else is there. -EBUSY: somebody else is this
 * node; -EAGAIN: somebody else was at the file all the time; -EPROTO: members count on more nodes,
 * or on fewer. */
int store_cycle_join(struct store_cycle *cycle);

#endif
