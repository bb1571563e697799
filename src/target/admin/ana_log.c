/* ana_log.c - log page 0Ch: the groups that have namespaces, and what this controller shows of them.
 *
 *   header: change count, number of groups
 *   group: id, number of namespaces, change count, state ─▶ ids of its namespaces, ascending
 *
 * The change count moves with everything that the page says: a host that reads it in pieces and finds
 * the same count before and after has read one page. */
#include <stdlib.h>

#include "target/admin/admin.h"

struct page {
	struct nvme_ana_log *log; /* NULL: only measure */
	size_t size;
	bool groups_only;
};

static_assert(sizeof(struct nvme_ana_log) == 16, "header");
static_assert(sizeof(struct nvme_ana_group_desc) == 32, "group");

/* By group - 1; also how many groups have some. */
static unsigned count_namespaces(struct weft_subsys *s, uint32_t counts[WEFT_ANA_GROUP_MAX])
{
	unsigned groups = 0;

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++)
		if (tgt_ns_find(s, nsid))
			groups += !counts[tgt_ns_find(s, nsid)->ana_group - 1]++;
	return groups;
}

static void list_namespaces(struct weft_subsys *s, uint32_t group, struct nvme_ana_group_desc *desc)
{
	unsigned n = 0;

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++)
		if (tgt_ns_find(s, nsid) && tgt_ns_find(s, nsid)->ana_group == group)
			desc->nsids[n++] = cpu_to_le32(nsid);
}

static void add_group(struct page *page, const struct tgt_ctrl *ctrl, uint32_t group,
		      uint32_t namespaces)
{
	struct nvme_ana_group_desc *desc = (void *)((char *)page->log + page->size);
	uint32_t nsids = page->groups_only ? 0 : namespaces;

	page->size += sizeof(*desc) + nsids * sizeof(desc->nsids[0]);
	if (!page->log)
		return;
	desc->grpid = cpu_to_le32(group);
	desc->nnsids = cpu_to_le32(nsids);
	desc->chgcnt = cpu_to_le64(ctrl->subsys->ana.changed[group - 1]);
	desc->state = tgt_ana_wire(ctrl->ana[group - 1]);
	if (nsids)
		list_namespaces(ctrl->subsys, group, desc);
}

static void fill(struct page *page, struct tgt_ctrl *ctrl)
{
	uint32_t counts[WEFT_ANA_GROUP_MAX] = { 0 };
	unsigned groups = count_namespaces(ctrl->subsys, counts);

	page->size = sizeof(*page->log);
	if (page->log) {
		page->log->chgcnt = cpu_to_le64(ctrl->subsys->ana.count);
		page->log->ngrps = cpu_to_le16((uint16_t)groups);
	}
	for (uint32_t group = 1; group <= WEFT_ANA_GROUP_MAX; group++)
		if (counts[group - 1])
			add_group(page, ctrl, group, counts[group - 1]);
}

static void *build(struct tgt_ctrl *ctrl, bool groups_only, size_t *size)
{
	struct page page = { .groups_only = groups_only };

	fill(&page, ctrl);
	page.log = calloc(1, page.size);
	if (page.log)
		fill(&page, ctrl);
	*size = page.size;
	return page.log;
}

void *tgt_ana_page(struct tgt_ctrl *ctrl, size_t *size)
{
	return build(ctrl, false, size);
}

void *tgt_ana_page_groups(struct tgt_ctrl *ctrl, size_t *size)
{
	return build(ctrl, true, size);
}
