/* owners.c - the owner table: which member of a cluster serves which ANA group; failover and
 * migration of groups.
 *
 *   owner 1, next 2 ──▶ (1 has stopped serving it) ──▶ owner 2              released by 1 itself
 *   owner 1 is gone ──▶ (1 has no residual I/O with the storage) ──▶ owner 2   claimed by 2
 *
 * Only the owner changes the entry of its group, after it has stopped serving it; nobody takes a
 * group from a living member. So two members never serve one group, and one's I/O is over before
 * the next begins. If two members claim a group at once, or a member claims it while the old owner
 * comes back, the store's compare-and-swap lets one of them win. The successor is therefore only a
 * preference: one that does not come within 3 s is not waited for. A group may have no owner
 * because the state was lost: then any member that is gone may have owned it. */
#include "target/cluster/owners.h"

#include <errno.h>
#include <string.h>

#include "proto/nvme.h"

void owners_encode(const struct owners *o, uint8_t bytes[OWNERS_RECORD])
{
	__le64 draining = cpu_to_le64(o->draining);

	memcpy(bytes, &draining, 8);
	memcpy(bytes + 8, o->owner, sizeof(o->owner));
	memcpy(bytes + 8 + sizeof(o->owner), o->next, sizeof(o->next));
}

static bool nodes_are_valid(const uint8_t *nodes)
{
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (nodes[i] > WEFT_NODES_MAX)
			return false;
	return true;
}

int owners_decode(struct owners *o, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	__le64 draining;

	memset(o, 0, sizeof(*o));
	if (!len)
		return 0;
	if (len != OWNERS_RECORD)
		return -EINVAL;
	memcpy(&draining, at, 8);
	o->draining = le64_to_cpu(draining);
	memcpy(o->owner, at + 8, sizeof(o->owner));
	memcpy(o->next, at + 8 + sizeof(o->owner), sizeof(o->next));
	return nodes_are_valid(o->owner) && nodes_are_valid(o->next) ? 0 : -EINVAL;
}

void owners_elsewhere(const struct owners *o, unsigned self, bool elsewhere[WEFT_ANA_GROUP_MAX])
{
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		elsewhere[i] = o->owner[i] != self || o->next[i];
}

uint32_t owners_lost_group(const struct owners *o, unsigned self,
			   const bool elsewhere[WEFT_ANA_GROUP_MAX])
{
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (!elsewhere[i] && o->owner[i] && o->owner[i] != self)
			return i + 1;
	return 0;
}

/* --- the successor ---------------------------------------------------------------------------- */

static bool node_set_has(uint64_t nodes, unsigned node)
{
	return node && nodes >> (node - 1) & 1;
}

static bool may_own(const struct owners *o, const struct owners_view *view, unsigned node)
{
	return node_set_has(view->alive, node) && !node_set_has(o->draining, node);
}

/* Counted from the node that the group belongs to if all are there, so that groups spread. */
unsigned owners_successor(const struct owners *o, const struct owners_view *view, uint32_t group)
{
	uint8_t owner = o->owner[group - 1], next = o->next[group - 1];

	if (next != owner && may_own(o, view, next))
		return next;
	for (unsigned i = 0; i < view->nodes; i++) {
		unsigned node = (group - 1 + i) % view->nodes + 1;

		if (node != owner && may_own(o, view, node))
			return node;
	}
	return node_set_has(view->alive, owner) ? 0 : view->self;
}

/* --- one step of the table -------------------------------------------------------------------- */

/* A group of ours that goes to another member. */
static bool release_group(struct owners *o, const struct owners_view *view, unsigned i)
{
	unsigned successor = owners_successor(o, view, i + 1);

	if (o->next[i]) { /* the group is served here no more */
		o->owner[i] = may_own(o, view, o->next[i]) ? o->next[i] : o->owner[i];
		o->next[i] = 0;
		return true;
	}
	if (!node_set_has(o->draining, view->self) || !successor)
		return false;
	o->next[i] = (uint8_t)successor;
	return true;
}

static bool claim_group(struct owners *o, const struct owners_view *view, unsigned i)
{
	bool instead = view->successor_late && may_own(o, view, view->self);

	if (!instead && owners_successor(o, view, i + 1) != view->self)
		return false;
	o->owner[i] = (uint8_t)view->self;
	o->next[i] = 0;
	return true;
}

bool owners_advance(struct owners *o, const struct owners_view *view,
		    bool (*left)(void *arg, uint32_t group, unsigned node), void *arg,
		    unsigned *waits)
{
	bool changed = false;

	*waits = 0;
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++) {
		uint8_t owner = o->owner[i];

		if (owner == view->self)
			changed |= release_group(o, view, i);
		else if (node_set_has(view->alive, owner))
			continue;
		else if (left(arg, i + 1, owner))
			*waits |= OWNERS_WAIT_STORAGE;
		else if (claim_group(o, view, i))
			changed = true;
		else
			*waits |= OWNERS_WAIT_SUCCESSOR;
	}
	return changed;
}
