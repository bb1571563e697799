/* ana_log.c - the ANA log page (0Ch): the groups that have namespaces, and the state that this
 * controller shows of each.
 *
 *   header: change count, number of groups
 *   group: id, number of namespaces, change count, state ─▶ ids of its namespaces, ascending
 *
 * The change count grows with every change of the page: a host that reads it in pieces and finds
 * the same count before and after has read one page. */
#include <stdlib.h>
#include <string.h>

#include "target/admin/admin.h"

static_assert(sizeof(struct nvme_ana_log) == 16, "header");
static_assert(sizeof(struct nvme_ana_group_desc) == 32, "group");

struct group_counts {
	unsigned groups, namespaces;
	uint32_t members[WEFT_ANA_GROUP_MAX]; /* by group - 1 */
};

static struct group_counts count_groups(struct weft_subsys *s)
{
	struct group_counts all = { 0 };

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);

		if (!ns)
			continue;
		all.namespaces++;
		all.groups += !all.members[ns->ana_group - 1]++;
	}
	return all;
}

/* Puts each nsid behind the others of its group; @lists by group - 1. */
static void put_nsids(struct weft_subsys *s, char *lists[WEFT_ANA_GROUP_MAX])
{
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);
		__le32 id = cpu_to_le32(nsid);

		if (ns)
			lists[ns->ana_group - 1] = mempcpy(lists[ns->ana_group - 1], &id,
							   sizeof(id));
	}
}

/* Returns where its nsids go, which may be unaligned. */
static char *put_group(char *at, const struct tgt_ctrl *ctrl, uint32_t group, uint32_t members)
{
	struct nvme_ana_group_desc desc = {
		.grpid = cpu_to_le32(group),
		.nnsids = cpu_to_le32(members),
		.chgcnt = cpu_to_le64(ctrl->subsys->ana.changed[group - 1]),
		.state = tgt_ana_wire(ctrl->ana[group - 1]),
	};

	return mempcpy(at, &desc, sizeof(desc));
}

static void *build_ana_log(struct tgt_ctrl *ctrl, bool groups_only, size_t *size)
{
	struct group_counts all = count_groups(ctrl->subsys);
	char *lists[WEFT_ANA_GROUP_MAX], *at;
	struct nvme_ana_log *log;

	assert_on_control(ctrl->subsys->target);
	*size = sizeof(*log) + all.groups * sizeof(log->descs[0]) +
		(groups_only ? 0 : all.namespaces * sizeof(__le32));
	log = calloc(1, *size);
	if (!log)
		return NULL;
	log->chgcnt = cpu_to_le64(ctrl->subsys->ana.count);
	log->ngrps = cpu_to_le16((uint16_t)all.groups);
	at = (char *)log->descs;
	for (uint32_t i = 0; i < WEFT_ANA_GROUP_MAX; i++) {
		uint32_t members = groups_only ? 0 : all.members[i];

		if (!all.members[i])
			continue;
		lists[i] = put_group(at, ctrl, i + 1, members);
		at = lists[i] + members * sizeof(__le32);
	}
	if (!groups_only)
		put_nsids(ctrl->subsys, lists);
	assert(at == (char *)log + *size);
	return log;
}

void *tgt_ana_log_page(struct tgt_ctrl *ctrl, size_t *size)
{
	return build_ana_log(ctrl, false, size);
}

void *tgt_ana_log_page_rgo(struct tgt_ctrl *ctrl, size_t *size)
{
	return build_ana_log(ctrl, true, size);
}
