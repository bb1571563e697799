/* suspects.h - one whose lock does not show here: is it gone, or are locks not shared? */
#ifndef WEFT_STORE_SUSPECTS_H
#define WEFT_STORE_SUSPECTS_H

#include "store/cycle.h"
#include "store/member_record.h"

struct store_suspects {
	bool own; /* whoever was this node before us */
	struct store_member_record of[WEFT_STORE_NODES_MAX + 1]; /* by node; incarnation 0: none */
	struct store_member_record
		dead[WEFT_STORE_NODES_MAX + 1]; /* that are gone, and do not say so */
	unsigned alive_node; /* the node that lives, though its lock does not show */
};

/* Says in the file that we join, and finds those whose locks do not show here. Under the lock, with
 * our own held. 1: there are some. */
int store_suspects_find(struct store_suspects *suspects, struct store_cycle *cycle);
/* Blocks while they have time to show that they live. 0: none did; -EXDEV: one did. */
int store_suspects_probe(struct store_suspects *suspects, struct store_cycle *cycle);
/* Who is gone is gone for all who look later. Under the lock. */
int store_suspects_mark_left(const struct store_suspects *suspects,
			     const struct store_cycle *cycle);

#endif
