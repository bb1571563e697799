/* owners.c - the owner table: which member of a cluster serves which ANA group; failover and
 * migration of groups.
 *
 *            ┌ nobody can have it ┐
 *            ▼                    │
 *   ┌────▶ OURS ──── drain, ────▶ LEAVING ── it is not served here any more ──▶ ELSEWHERE
 *   │                move                    (released by its owner)                │
 *   └── no residual I/O with the storage ── ORPHANED ◀── its owner is gone ─────────┘
 *       (claimed)                       └── UNOWNED
 *
 * Only the owner changes the entry of its group, after it has stopped serving it; nobody takes a
 * group from a living member. So two members never serve one group, and one's I/O is over before
 * the next begins. If two members claim a group at once, or a member claims it while the old owner
 * comes back, the store's compare-and-swap lets one of them win. The successor is therefore only a
 * preference: one that does not come within 3 s is not waited for. A group may have no owner
 * because the state was lost: then any member that is gone may have owned it. */
#include "target/cluster/owners.h"

#include <assert.h>
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

/* --- the state of a group --------------------------------------------------------------------- */

#define FROM(state) (1u << GROUP_##state)

/* Steps of the member that sees the group in this state: @from has those that may come before. */
static const struct {
	const char *name;
	unsigned from;
} states[] = {
	[GROUP_UNOWNED] = { "unowned", 0 },
	[GROUP_ORPHANED] = { "orphaned", 0 },
	[GROUP_ELSEWHERE] = { "elsewhere", FROM(LEAVING) },
	[GROUP_OURS] = { "ours", FROM(UNOWNED) | FROM(ORPHANED) | FROM(LEAVING) },
	[GROUP_LEAVING] = { "leaving", FROM(OURS) },
};

static bool node_set_has(uint64_t nodes, unsigned node)
{
	return node && nodes >> (node - 1) & 1;
}

enum owners_group_state owners_group_state(const struct owners *o, const struct owners_view *view,
					   uint32_t group)
{
	uint8_t owner = o->owner[group - 1];

	assert(view->self && view->self <= view->nodes);
	if (!owner)
		return GROUP_UNOWNED;
	if (owner == view->self)
		return o->next[group - 1] ? GROUP_LEAVING : GROUP_OURS;
	return node_set_has(view->alive, owner) ? GROUP_ELSEWHERE : GROUP_ORPHANED;
}

const char *owners_group_state_text(enum owners_group_state state)
{
	assert(state < sizeof(states) / sizeof(states[0]));
	return states[state].name;
}

static void set_group(struct owners *o, const struct owners_view *view, uint32_t group,
		      unsigned owner, unsigned next)
{
	enum owners_group_state was = owners_group_state(o, view, group);

	assert(owner && owner <= WEFT_NODES_MAX && next <= WEFT_NODES_MAX);
	o->owner[group - 1] = (uint8_t)owner;
	o->next[group - 1] = (uint8_t)next;
	assert(states[owners_group_state(o, view, group)].from & 1u << was);
}

void owners_not_ours(const struct owners *o, const struct owners_view *view,
		     bool not_ours[WEFT_ANA_GROUP_MAX])
{
	for (uint32_t group = 1; group <= WEFT_ANA_GROUP_MAX; group++)
		not_ours[group - 1] = owners_group_state(o, view, group) != GROUP_OURS;
}

uint32_t owners_lost_group(const struct owners *o, const struct owners_view *view,
			   const bool not_ours[WEFT_ANA_GROUP_MAX])
{
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (!not_ours[i] && o->owner[i] && o->owner[i] != view->self)
			return i + 1;
	return 0;
}

/* --- the successor ---------------------------------------------------------------------------- */

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

static bool drain_group(struct owners *o, const struct owners_view *view, uint32_t group)
{
	unsigned successor = owners_successor(o, view, group);

	if (!node_set_has(o->draining, view->self) || !successor)
		return false;
	set_group(o, view, group, view->self, successor);
	return true;
}

/* It is not served here any more. */
static bool release_group(struct owners *o, const struct owners_view *view, uint32_t group)
{
	unsigned next = o->next[group - 1];

	set_group(o, view, group, may_own(o, view, next) ? next : view->self, 0);
	return true;
}

static bool claim_group(struct owners *o, const struct owners_view *view, uint32_t group,
			unsigned *waits)
{
	bool instead = view->successor_late && may_own(o, view, view->self);

	if (!instead && owners_successor(o, view, group) != view->self) {
		*waits |= OWNERS_WAIT_SUCCESSOR;
		return false;
	}
	set_group(o, view, group, view->self, 0);
	return true;
}

bool owners_advance(struct owners *o, const struct owners_view *view,
		    bool (*has_residual_io)(void *arg, uint32_t group, unsigned node), void *arg,
		    unsigned *waits)
{
	bool changed = false;

	*waits = 0;
	for (uint32_t group = 1; group <= WEFT_ANA_GROUP_MAX; group++) {
		switch (owners_group_state(o, view, group)) {
		case GROUP_OURS:
			changed |= drain_group(o, view, group);
			break;
		case GROUP_LEAVING:
			changed |= release_group(o, view, group);
			break;
		case GROUP_ELSEWHERE:
			break;
		case GROUP_UNOWNED:
		case GROUP_ORPHANED:
			if (has_residual_io(arg, group, o->owner[group - 1]))
				*waits |= OWNERS_WAIT_STORAGE;
			else
				changed |= claim_group(o, view, group, waits);
			break;
		}
	}
	return changed;
}
