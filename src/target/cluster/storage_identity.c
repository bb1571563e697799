/* storage_identity.c - storage identity: all members must mean the same storage by a namespace, and
 * the same namespace by a storage.
 *
 * A group has one owner; if two configurations put one file into two groups, two members would
 * write to it at once. So each member locks an identity on the storage, as a number, which fails
 * where another member has locked another one:
 *
 *   ┌ hash of subsystem, nsid, uuid and block size │ group, 11 bits ┐
 *
 * And each locks the file's identity under its nsid in the store, so that a namespace is not one
 * file here and another there: a host that changes paths would read old data. */
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
	weft_stable_hash("storage", text, true, hash);
	memcpy(&which, hash, sizeof(which));
	return (le64_to_cpu(which) << GROUP_BITS | ns->ana_group) % WEFT_LOCK_AS_MAX;
}

static int lock_storage_identity(const struct tgt_ns *ns, struct weft_err *err)
{
	const uint64_t as = storage_identity(ns);
	uint64_t other;
	int rc = ns->be->ops->lock_as(ns->be, as, &other);

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

/* A successor has the descriptors that hold these locks: it cannot take them again, and releasing
 * them would release the old process's, too. */
int tgt_cluster_lock_identity(const struct tgt_ns *ns, struct weft_err *err)
{
	int rc;

	assert_on_control(ns->subsys->target);
	if (!ns->subsys->cluster || tgt_store_is_frozen(ns->subsys->target))
		return 0;
	rc = lock_storage_identity(ns, err);
	return rc < 0 ? rc : lock_nsid_identity(ns, err);
}

void tgt_cluster_unlock_identity(const struct tgt_ns *ns)
{
	assert_on_control(ns->subsys->target);
	if (ns->subsys->cluster && !tgt_store_is_frozen(ns->subsys->target))
		weft_store_agree_end(ns->subsys->store, ns->nsid);
}
