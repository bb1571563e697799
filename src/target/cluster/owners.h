/* owners.h - the owner table: which member of a cluster serves which ANA group, and which is
 * next. */
#ifndef WEFT_TARGET_CLUSTER_OWNERS_H
#define WEFT_TARGET_CLUSTER_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/target.h"

/* The table as the store has it. By group - 1; 0: nobody. */
struct owners {
	uint64_t draining; /* bits by node - 1: these take no group */
	uint8_t owner[WEFT_ANA_GROUP_MAX];
	uint8_t next[WEFT_ANA_GROUP_MAX]; /* who gets it when its owner has released it */
};

/* Which members live, and which one we are. */
struct owners_view {
	unsigned self, nodes;
	uint64_t alive;      /* bits by node - 1 */
	bool successor_late; /* the successor has had its time: anybody may claim */
};

/* What the table says of a group, to one member. That member serves it exactly while it is
 * OURS. */
enum owners_group_state {
	GROUP_UNOWNED,   /* it has no owner: the cluster is new, or its state was lost */
	GROUP_ORPHANED,  /* its owner is gone */
	GROUP_ELSEWHERE, /* another member, which lives, owns it */
	GROUP_OURS,
	GROUP_LEAVING, /* ours, and to go to another member */
};

enum owners_group_state owners_group_state(const struct owners *o, const struct owners_view *view,
					   uint32_t group);
const char *owners_group_state_text(enum owners_group_state state);

/* Why a group has no owner yet: bits. */
enum owners_wait {
	OWNERS_WAIT_SUCCESSOR = 1, /* its successor is to claim it */
	OWNERS_WAIT_STORAGE = 2,   /* a dead member has residual I/O with its storage: ask again */
};

enum { OWNERS_RECORD = 8 + 2 * WEFT_ANA_GROUP_MAX };

void owners_encode(const struct owners *o, uint8_t bytes[OWNERS_RECORD]);
/* @len 0: there is no table yet. -EINVAL: these are not its bytes. */
int owners_decode(struct owners *o, const void *bytes, size_t len);

/* Groups that are not OURS. */
void owners_not_ours(const struct owners *o, const struct owners_view *view,
		     bool not_ours[WEFT_ANA_GROUP_MAX]);
/* The first group that this member serves, as @not_ours says, and another one owns; 0: none. That
 * cannot happen to a living member: only the owner gives a group away, after it has stopped serving
 * it. */
uint32_t owners_lost_group(const struct owners *o, const struct owners_view *view,
			   const bool not_ours[WEFT_ANA_GROUP_MAX]);
/* Which member should have a group whose owner is gone or drains; 0: there is nobody but the
 * owner. */
unsigned owners_successor(const struct owners *o, const struct owners_view *view, uint32_t group);
/* Does this member's next step in the table. A group is not claimed while @has_residual_io(arg, group, node) says
 * that a node, or any that is gone (0), has residual I/O with its storage. Groups that are not
 * served here are released. True: the table has changed. @waits: what groups wait for. */
bool owners_advance(struct owners *o, const struct owners_view *view,
		    bool (*has_residual_io)(void *arg, uint32_t group, unsigned node), void *arg,
		    unsigned *waits);

#endif
