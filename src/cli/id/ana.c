/* ana.c - the log page of asymmetric namespace access: which groups there are, and how this
 * controller reaches them (NVMe base 2.0, 5.16.1.13).
 *
 * The page is the peer's: its counts end the walk where they leave what was read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/plural.h"
#include "cli/id/id.h"

enum { READ_MAX = 64 << 10 };

/* At most what is worth showing. */
uint32_t weft_id_ana_size(const struct nvme_id_ctrl *id)
{
	uint64_t namespaces = le32_to_cpu(id->mnan) ? le32_to_cpu(id->mnan) : le32_to_cpu(id->nn);
	uint64_t size = sizeof(struct nvme_ana_log) +
			le32_to_cpu(id->nanagrpid) * sizeof(struct nvme_ana_group_desc) +
			namespaces * sizeof(__le32);

	return (size < READ_MAX ? (uint32_t)size : READ_MAX) & ~3u;
}

static const char *state_text(unsigned state)
{
	switch (state) {
	case NVME_ANA_STATE_OPTIMIZED:
		return "optimized";
	case NVME_ANA_STATE_NONOPTIMIZED:
		return "non-optimized";
	case NVME_ANA_STATE_INACCESSIBLE:
		return "inaccessible";
	case NVME_ANA_STATE_PERSISTENT_LOSS:
		return "persistent-loss";
	case NVME_ANA_STATE_CHANGE:
		return "change";
	default:
		return "reserved";
	}
}

static json_t *group_json(const struct nvme_ana_group_desc *group, const __le32 *nsid,
			  uint32_t count)
{
	json_t *nsids = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(nsids, json_integer(le32_to_cpu(nsid[i])));
	return json_pack("{s:I, s:I, s:s, s:i, s:o}", "grpid",
			 (json_int_t)le32_to_cpu(group->grpid), "chgcnt",
			 (json_int_t)le64_to_cpu(group->chgcnt), "state",
			 state_text(group->state & 0xf), "state_raw", group->state & 0xf, "nsids",
			 nsids);
}

/* Descriptors follow each other at multiples of 4. */
json_t *weft_id_ana_json(const void *page, size_t size)
{
	const struct nvme_ana_log *log = page;
	size_t at = sizeof(*log);
	json_t *groups = json_array();

	for (unsigned i = 0; i < le16_to_cpu(log->ngrps); i++) {
		struct nvme_ana_group_desc group;
		uint32_t count;

		if (size - at < sizeof(group))
			break;
		memcpy(&group, (const char *)page + at, sizeof(group));
		at += sizeof(group);
		count = le32_to_cpu(group.nnsids);
		if (count > (size - at) / sizeof(__le32))
			break;
		json_array_append_new(groups,
				      group_json(&group, (const __le32 *)page + at / 4, count));
		at += count * sizeof(__le32);
	}
	return json_pack("{s:I, s:i, s:o}", "chgcnt", (json_int_t)le64_to_cpu(log->chgcnt), "ngrps",
			 le16_to_cpu(log->ngrps), "groups", groups);
}

int weft_id_ana(struct weft_ctrl *ctrl, const struct nvme_id_ctrl *id, json_t **ana,
		struct weft_err *err)
{
	uint32_t size = weft_id_ana_size(id);
	_cleanup_(weft_freep) void *page = calloc(1, size);
	int rc;

	if (!page)
		return weft_fail(err, -ENOMEM, "no memory for the ANA log page");
	rc = weft_log_page(ctrl, NVME_LOG_LID_ANA, NVME_NSID_BROADCAST, 0, page, size, err);
	if (rc == 0)
		*ana = weft_id_ana_json(page, size);
	return rc;
}

/* --- lines ------------------------------------------------------------------------------------ */

static json_int_t number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static void print_group(const json_t *group)
{
	json_t *nsids = json_object_get(group, "nsids"), *nsid;
	char name[32], text[600];
	size_t index, used;

	snprintf(name, sizeof(name), "group %lld", (long long)number(group, "grpid"));
	used = (size_t)snprintf(text, sizeof(text), "changed %lld time%s, namespace%s",
				(long long)number(group, "chgcnt"),
				weft_plural((uint64_t)number(group, "chgcnt")),
				weft_plural(json_array_size(nsids)));
	json_array_foreach(nsids, index, nsid) {
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, " %lld",
						 (long long)json_integer_value(nsid));
	}
	weft_id_print_line(name, json_string_value(json_object_get(group, "state")),
			   json_array_size(nsids) ? text : "no namespaces");
}

void weft_id_ana_print(const json_t *ana)
{
	const json_t *groups = json_object_get(ana, "groups");
	const json_t *group;
	size_t index;

	json_array_foreach(groups, index, group)
		print_group(group);
	if (json_array_size(groups) < (size_t)number(ana, "ngrps"))
		printf("  … %zu more\n", (size_t)number(ana, "ngrps") - json_array_size(groups));
}
