/* cycle.h - one cycle on the state file: a locked visit to it. */
#ifndef WEFT_STORE_CYCLE_H
#define WEFT_STORE_CYCLE_H

#include "store/internal.h"
#include "store/member_record.h"
#include "store/watch.h"

/* The caller fills in the first half, the cycle the second. */
struct store_cycle {
	int fd;
	int lock_probe_fd; /* another open file description; -1: there is none */
	const char *path;
	unsigned node, nodes;
	uint64_t lock_domain;                /* store_lock_domain() */
	bool remote;                         /* other machines may write to the file */
	struct store_member_record own;      /* our member record */
	const struct store_records *records; /* our copy; not freed meanwhile */
	struct weft_list txns;               /* to commit; the result of each is in it */
	struct store_watch *watch;           /* of the file; NULL: nobody else writes to it */
	const atomic_bool *cancelled;        /* the join was cancelled */

	struct store_records *fresh; /* newer than @records; NULL: they are the newest */
	/* Events that were drained: the cycle has read what they are about. */
	struct store_file_events file_events;
	bool displaced; /* the file is not at its path: nothing was committed */
	bool damaged;   /* the file has lost records; the next cycle repairs it */
	bool repaired;
	/* Our last commit failed, and nobody knows whether it is in the file: the next cycle finds
	 * out. */
	bool in_doubt;
	const char *lost; /* with -EOWNERDEAD: how we know */
	struct store_member members[WEFT_STORE_NODES_MAX + 1];
};

/* Blocks. -EAGAIN: another process has the lock, and nothing was done; -EOWNERDEAD: others do not
 * count us as a member any more, and nothing was done; -errno: the file cannot be used. */
int store_cycle_run(struct store_cycle *cycle);
/* Maps an error of the file system to one that has no other meaning for a commit. */
int store_cycle_error(int rc);
/* Is the file at its path? True if that cannot be found out. */
bool store_cycle_is_in_place(const struct store_cycle *cycle);
/* The first cycle: joins, and begins a session if no other member lives. -EBUSY: another process is
 * this node; -EAGAIN: others had the lock all the time; -EPROTO: members expect another number of
 * nodes; -EXDEV: node *@hidden lives, and its lock does not show here; -ECANCELED: the join was
 * cancelled. */
int store_cycle_join(struct store_cycle *cycle, unsigned *hidden);
/* Pauses a join for a moment. -ECANCELED: it was cancelled. */
int store_cycle_sleep(const struct store_cycle *cycle);
/* Marks our record as left; the lock is released when the file is closed. */
void store_cycle_leave(struct store_cycle *cycle);

#endif
