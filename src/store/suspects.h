/* suspects.h - suspects: members whose lock does not show here. Are they dead, or are locks not
 * shared? */
#ifndef WEFT_STORE_SUSPECTS_H
#define WEFT_STORE_SUSPECTS_H

#include "store/cycle.h"
#include "store/member_record.h"

struct store_suspects {
	bool own; /* the process that was this node before us is a suspect */
	struct store_member_record of[WEFT_STORE_NODES_MAX + 1]; /* by node; incarnation 0: none */
	/* Dead, and not marked "left" yet. */
	struct store_member_record dead[WEFT_STORE_NODES_MAX + 1];
	unsigned alive_node; /* the suspect that lives */
};

/* Writes "joining" into our record, and finds suspects. Under the lock, with our member lock held.
 * 1: there are some. */
int store_suspects_find(struct store_suspects *suspects, struct store_cycle *cycle);
/* Blocks while suspects have time to answer. 0: none did; -EXDEV: one did. */
int store_suspects_probe(struct store_suspects *suspects, struct store_cycle *cycle);
/* Marks the dead ones "left" for all that join later. Under the lock. */
int store_suspects_mark_left(const struct store_suspects *suspects,
			     const struct store_cycle *cycle);

#endif
