/* agree.c - what a piece of shared storage is, every member says of it alike.
 *
 * A group has one owner, so who serves a group may use all storage in it. That holds only while a
 * piece of storage is in one group: by two configurations that differ it would be in two, and two
 * members would serve it at once. So a namespace says to the storage itself which one it is and in
 * which group, as a number; another member's number must be the same.
 *
 *   ┌ hash of subsystem, id and uuid │ group, 11 bits ┐ */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"
#include "target/cluster/cluster.h"

enum { GROUP_BITS = 11 };
static_assert(WEFT_ANA_GROUP_MAX < 1 << GROUP_BITS, "a group fits");

static uint64_t number_of(const struct tgt_ns *ns)
{
	char uuid[37], text[WEFT_NQN_MAX + 64];
	uint8_t hash[32];
	__le64 which;

	weft_uuid_format(ns->uuid, uuid);
	snprintf(text, sizeof(text), "%s\n%u\n%s", ns->subsys->nqn, ns->nsid, uuid);
	weft_digest("storage", text, true, hash);
	memcpy(&which, hash, sizeof(which));
	return (le64_to_cpu(which) << GROUP_BITS | ns->ana_group) % WEFT_AS_MAX;
}

int tgt_cluster_agree(const struct tgt_ns *ns, struct weft_err *err)
{
	const uint64_t as = ns->subsys->cluster ? number_of(ns) : 0;
	uint64_t other;
	int rc = as ? ns->be->ops->agree(ns->be, as, &other) : 0;

	if (rc == -ENOTUNIQ && other >> GROUP_BITS == as >> GROUP_BITS)
		return weft_fail(err, rc,
				 "%s: another member has it in ANA group %u, here it is in ANA "
				 "group %u; ana_group must be the same for all",
				 ns->be->spec, (unsigned)(other % (1 << GROUP_BITS)),
				 ns->ana_group);
	if (rc == -ENOTUNIQ)
		return weft_fail(err, rc,
				 "%s: another member has it as another namespace; nqn, nsid and "
				 "uuid must be the same for all",
				 ns->be->spec);
	return rc < 0 ? weft_fail(err, rc, "%s: cannot lock it: %s", ns->be->spec, strerror(-rc)) :
			0;
}
