/* owners.h - which member of a cluster serves which group of namespaces: a table, and who is
 * next. */
#ifndef WEFT_TARGET_CLUSTER_OWNERS_H
#define WEFT_TARGET_CLUSTER_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/target.h"

/* As the store has it. By group - 1; 0: nobody. */
struct owners {
	uint64_t draining; /* bits by node - 1: these take no group */
	uint8_t owner[WEFT_ANA_GROUP_MAX];
	uint8_t next[WEFT_ANA_GROUP_MAX]; /* who gets it when its owner has let go of it */
};

/* Who is there, and who asks. */
struct owners_view {
	unsigned self, nodes;
	uint64_t alive;      /* bits by node - 1 */
	bool successor_late; /* who was to take what is nobody's has had its time: anybody does */
};

/* Why a group stays nobody's: bits. */
enum owners_wait {
	OWNERS_WAIT_SUCCESSOR = 1, /* another member is to take it */
	OWNERS_WAIT_STORAGE = 2, /* something of one that is gone is with its storage: ask again */
};

enum { OWNERS_RECORD = 8 + 2 * WEFT_ANA_GROUP_MAX };

void owners_encode(const struct owners *o, uint8_t bytes[OWNERS_RECORD]);
/* @len 0: there is none yet. -EINVAL: these are not its bytes. */
int owners_decode(struct owners *o, const void *bytes, size_t len);

/* Groups that @self does not serve: not its own, or to be let go of. */
void owners_elsewhere(const struct owners *o, unsigned self, bool elsewhere[WEFT_ANA_GROUP_MAX]);
/* The first group that @self serves, as @elsewhere has it, and another has, 0: none. Only the owner
 * gives a group away, and not before it has stopped to serve it. */
uint32_t owners_lost_group(const struct owners *o, unsigned self,
			   const bool elsewhere[WEFT_ANA_GROUP_MAX]);
/* Who should have a group whose owner is gone, or drains; 0: there is nobody but the owner. */
unsigned owners_successor(const struct owners *o, const struct owners_view *view, uint32_t group);
/* Moves the table on by what @self has to do, as far as @left(arg, group, node) does not say that
 * something of a node, or of any that is gone (0), is still with the group's storage. Groups that
 * are not served here have been let go of. True: it changed. @waits: what for, of all groups. */
bool owners_advance(struct owners *o, const struct owners_view *view,
		    bool (*left)(void *arg, uint32_t group, unsigned node), void *arg,
		    unsigned *waits);

#endif
