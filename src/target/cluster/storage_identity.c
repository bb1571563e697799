/* storage_identity.c - what a piece of shared storage is, every member says of it alike, and of a namespace
 * which storage it has.
 *
 * A group has one owner, so who serves a group may use all storage in it. That holds only while a
 * piece of storage is in one group: by two configurations that differ it would be in two, and two
 * members would serve it at once. So a namespace says to the storage itself which one it is and in
 * which group, as a number; another member's number must be the same.
 *
 *   ┌ hash of subsystem, id, uuid and block size │ group, 11 bits ┐
 *
 * The other way round, a namespace that is one file here and another one there would be old data to
 * a host that changes paths. So each says to the common state which storage it has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"
#include "target/cluster/cluster.h"

enum { GROUP_BITS = 11 };
static_assert(WEFT_ANA_GROUP_MAX < 1 << GROUP_BITS, "a group fits");

static uint64_t storage_identity(const struct tgt_ns *ns)
{
	char uuid[37], text[WEFT_NQN_MAX + 64];
	uint8_t hash[32];
	__le64 which;

	weft_uuid_format(ns->uuid, uuid);
	snprintf(text, sizeof(text), "%s\n%u\n%s\n%u", ns->subsys->nqn, ns->nsid, uuid,
		 1u << ns->lba_shift);
	weft_digest("storage", text, true, hash);
	memcpy(&which, hash, sizeof(which));
	return (le64_to_cpu(which) << GROUP_BITS | ns->ana_group) % WEFT_AS_MAX;
}

static int lock_storage_identity(const struct tgt_ns *ns, struct weft_err *err)
{
	const uint64_t as = storage_identity(ns);
	uint64_t other;
	int rc = ns->be->ops->agree(ns->be, as, &other);

	if (rc == -ENOTUNIQ && other >> GROUP_BITS == as >> GROUP_BITS)
		return weft_fail(err, rc,
				 "%s: another member has it in ANA group %u, here it is in ANA "
				 "group %u; ana_group must be the same for all",
				 ns->be->spec, (unsigned)(other % (1 << GROUP_BITS)),
				 ns->ana_group);
	if (rc == -ENOTUNIQ)
		return weft_fail(err, rc,
				 "%s: another member has it as another namespace; nqn, nsid, uuid "
				 "and block must be the same for all",
				 ns->be->spec);
	return rc < 0 ? weft_fail(err, rc, "%s: cannot lock it: %s", ns->be->spec, strerror(-rc)) :
			0;
}

static int lock_nsid_identity(const struct tgt_ns *ns, struct weft_err *err)
{
	struct weft_store *store = ns->subsys->store;
	uint64_t identity = ns->be->ops->identity(ns->be);
	int rc = identity ? weft_store_agree(store, ns->nsid, identity) : 0;

	if (rc == -ENOTUNIQ)
		return weft_fail(err, rc,
				 "%s: another member has another file as namespace %u; backend "
				 "must lead all to the same",
				 ns->be->spec, ns->nsid);
	return rc < 0 ? weft_fail(err, rc, "%s: cannot lock it: %s", weft_store_spec(store),
				  strerror(-rc)) :
			0;
}

/* Who takes over has descriptors on which all of this is said: to say it anew would be in vain, to
 * take it back would take it from the other process, too. */
int tgt_cluster_lock_identity(const struct tgt_ns *ns, struct weft_err *err)
{
	int rc;

	if (!ns->subsys->cluster || ns->subsys->target->store_frozen)
		return 0;
	rc = lock_storage_identity(ns, err);
	return rc < 0 ? rc : lock_nsid_identity(ns, err);
}

void tgt_cluster_unlock_identity(const struct tgt_ns *ns)
{
	if (ns->subsys->cluster && !ns->subsys->target->store_frozen)
		weft_store_agree_end(ns->subsys->store, ns->nsid);
}
