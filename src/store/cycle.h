/* cycle.h - one visit to the file. */
#ifndef WEFT_STORE_CYCLE_H
#define WEFT_STORE_CYCLE_H

#include "store/internal.h"
#include "store/member_record.h"
#include "store/watch.h"

/* The first half is filled in by who asks, the second by the visit. */
struct store_cycle {
	int fd;
	int lock_probe_fd; /* another description of the file; -1: there is none */
	const char *path;
	unsigned node, nodes;
	uint64_t lock_domain;                /* store_lock_domain() */
	bool remote;                         /* other machines may write to it */
	struct store_member_record own;      /* what we say in the file */
	const struct store_records *records; /* what is known; not freed meanwhile */
	struct weft_list txns;               /* to commit; what became of each is in it */
	struct store_watch *watch;           /* of the file; NULL: nobody else writes to it */
	const atomic_bool *cancelled;        /* nobody wants us to join any more */

	struct store_records *fresh; /* newer than @records; NULL: they are the newest */
	struct store_file_events
		file_events; /* that was taken: the visit has seen what it is about */
	bool displaced;      /* it is not where it is looked for: nothing was committed */
	bool damaged;        /* the file has lost what we know; the next visit mends it */
	bool repaired;
	const char *lost; /* with -EOWNERDEAD: how we know */
	struct store_member members[WEFT_STORE_NODES_MAX + 1];
};

/* Blocks. -EAGAIN: somebody else is at it, and nothing was done; -EOWNERDEAD: others do not count us
 * as a member any more, and nothing was done; -errno: the file cannot be used. */
int store_cycle_run(struct store_cycle *cycle);
/* What the file system says, for who committed: an error that means something to it does not. */
int store_cycle_error(int rc);
/* Is the file where it is looked for? Who cannot tell goes on. */
bool store_cycle_is_in_place(const struct store_cycle *cycle);
/* The first: joins, and begins a session where nobody else is there. -EBUSY: somebody else is this
 * node; -EAGAIN: somebody else was at the file all the time; -EPROTO: members count on more nodes,
 * or on fewer; -EXDEV: node *@hidden lives, and its lock does not show here; -ECANCELED: it was
 * given up. */
int store_cycle_join(struct store_cycle *cycle, unsigned *hidden);
/* Who joins waits for a moment. -ECANCELED: it was given up. */
int store_cycle_sleep(const struct store_cycle *cycle);
/* We go, once; the lock does when the file is closed. */
void store_cycle_leave(struct store_cycle *cycle);

#endif
