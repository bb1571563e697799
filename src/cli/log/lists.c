/* lists.c - pages that are lists: which log pages there are, what commands do, which features there
 * are, which namespaces changed (NVMe base 2.0, 5.16.1.1, .6, .18 and .5). */
#include <inttypes.h>
#include <stdio.h>

#include "cli/feature/feature.h"
#include "cli/log/log.h"
#include "cli/passthru.h"

/* --- supported log pages ---------------------------------------------------------------------- */

/* Of those that weft log does not take apart. */
static const struct {
	uint8_t lid;
	const char *title;
} others[] = {
	{ NVME_LOG_LID_DEVICE_SELF_TEST, "Device Self-test" },
	{ NVME_LOG_LID_TELEMETRY_HOST, "Telemetry Host-Initiated" },
	{ NVME_LOG_LID_TELEMETRY_CTRL, "Telemetry Controller-Initiated" },
	{ NVME_LOG_LID_PREDICTABLE_LAT_NVMSET, "Predictable Latency Per NVM Set" },
	{ NVME_LOG_LID_PREDICTABLE_LAT_AGG, "Predictable Latency Event Aggregate" },
	{ NVME_LOG_LID_PERSISTENT_EVENT, "Persistent Event Log" },
	{ NVME_LOG_LID_LBA_STATUS, "LBA Status Information" },
	{ NVME_LOG_LID_ENDURANCE_GRP_EVT, "Endurance Group Event Aggregate" },
	{ NVME_LOG_LID_MEDIA_UNIT_STATUS, "Media Unit Status" },
	{ NVME_LOG_LID_SUPPORTED_CAP_CONFIG_LIST, "Supported Capacity Configuration List" },
	{ NVME_LOG_LID_CCR, "Cross-Controller Reset" },
	{ NVME_LOG_LID_DISCOVER, "Discovery" },
	{ NVME_LOG_LID_SANITIZE, "Sanitize Status" },
};

static const char *title_of(uint8_t lid)
{
	const struct log_page *page = weft_log_page_numbered(lid);

	if (page)
		return page->title;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (others[i].lid == lid)
			return others[i].title;
	}
	return lid >= 0xc0 ? "Vendor Specific" : "Unknown";
}

static const char *name_of(uint8_t lid)
{
	const struct log_page *page = weft_log_page_numbered(lid);

	return page ? page->name : "";
}

static bool is_supported(const void *page, unsigned lid)
{
	const struct nvme_supported_log_pages *log = page;

	return le32_to_cpu(log->lid_support[lid]) & 1;
}

json_t *weft_log_supported_json(const void *page, size_t size)
{
	json_t *list = json_array();

	for (unsigned lid = 0; lid < size / sizeof(__le32); lid++) {
		if (is_supported(page, lid))
			json_array_append_new(list, json_pack("{s:i, s:s, s:s}", "lid", lid, "name",
							      name_of((uint8_t)lid), "title",
							      title_of((uint8_t)lid)));
	}
	return json_pack("{s:o}", "supported_log_pages", list);
}

void weft_log_supported_print(const void *page, size_t size)
{
	for (unsigned lid = 0; lid < size / sizeof(__le32); lid++) {
		if (is_supported(page, lid))
			printf("  0x%02x  %-16s %s\n", lid, name_of((uint8_t)lid),
			       title_of((uint8_t)lid));
	}
}

/* --- commands supported and effects ----------------------------------------------------------- */

static const struct {
	uint32_t bit;
	const char *text;
} effects[] = {
	{ NVME_CMD_EFFECTS_LBCC, "changes data" },
	{ NVME_CMD_EFFECTS_NCC, "changes a namespace's capabilities" },
	{ NVME_CMD_EFFECTS_NIC, "changes which namespaces there are" },
	{ NVME_CMD_EFFECTS_CCC, "changes the controller's capabilities" },
	{ 1 << 16, "not beside another one of the namespace" },
	{ 1 << 17, "not beside another one at all" },
};

static json_t *command_json(uint8_t opcode, bool admin, uint32_t value)
{
	return json_pack("{s:i, s:s, s:s, s:I, s:b, s:b, s:b, s:b, s:i}", "opcode", opcode, "name",
			 weft_opcode_text(admin, opcode), "queue", admin ? "admin" : "io",
			 "effects", (json_int_t)value, "lbcc", !!(value & NVME_CMD_EFFECTS_LBCC),
			 "ncc", !!(value & NVME_CMD_EFFECTS_NCC), "nic",
			 !!(value & NVME_CMD_EFFECTS_NIC), "ccc", !!(value & NVME_CMD_EFFECTS_CCC),
			 "cse", (int)(value >> 16 & 7));
}

static void add_commands(json_t *list, const __le32 *commands, bool admin)
{
	for (unsigned i = 0; i < 256; i++) {
		uint32_t value = le32_to_cpu(commands[i]);

		if (value & NVME_CMD_EFFECTS_CSUPP)
			json_array_append_new(list, command_json((uint8_t)i, admin, value));
	}
}

json_t *weft_log_effects_json(const void *page, size_t size)
{
	const struct nvme_cmd_effects_log *log = page;
	json_t *list = json_array();

	(void)size;
	add_commands(list, log->acs, true);
	add_commands(list, log->iocs, false);
	return json_pack("{s:o}", "commands", list);
}

static void print_effects(uint32_t value)
{
	const char *between = "  ";

	for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
		if (!(value & effects[i].bit))
			continue;
		printf("%s%s", between, effects[i].text);
		between = ", ";
	}
	putchar('\n');
}

static void print_set(const char *title, const __le32 *commands, bool admin)
{
	printf("  %s\n", title);
	for (unsigned i = 0; i < 256; i++) {
		uint32_t value = le32_to_cpu(commands[i]);

		if (!(value & NVME_CMD_EFFECTS_CSUPP))
			continue;
		printf("    0x%02x  %-28s 0x%08" PRIx32, i, weft_opcode_text(admin, (uint8_t)i),
		       value);
		print_effects(value);
	}
}

void weft_log_effects_print(const void *page, size_t size)
{
	const struct nvme_cmd_effects_log *log = page;

	(void)size;
	print_set("admin commands", log->acs, true);
	print_set("I/O commands", log->iocs, false);
}

/* --- features supported and effects ----------------------------------------------------------- */

static const char *feature_title(uint8_t fid)
{
	const struct feature *feature = weft_feature_numbered(fid);

	return feature ? feature->title : fid >= 0xc0 ? "Vendor Specific" : "Unknown";
}

static bool has_feature(const void *page, unsigned fid)
{
	const struct nvme_fid_supported_effects_log *log = page;

	return le32_to_cpu(log->fid_support[fid]) & NVME_FID_SUPPORTED_EFFECTS_FSUPP;
}

json_t *weft_log_features_json(const void *page, size_t size)
{
	const struct nvme_fid_supported_effects_log *log = page;
	json_t *list = json_array();

	for (unsigned fid = 0; fid < size / sizeof(__le32) && fid < 256; fid++) {
		if (has_feature(page, fid))
			json_array_append_new(list,
					      json_pack("{s:i, s:s, s:I}", "fid", fid, "name",
							feature_title((uint8_t)fid), "effects",
							(json_int_t)le32_to_cpu(
								log->fid_support[fid])));
	}
	return json_pack("{s:o}", "features", list);
}

void weft_log_features_print(const void *page, size_t size)
{
	const struct nvme_fid_supported_effects_log *log = page;

	for (unsigned fid = 0; fid < size / sizeof(__le32) && fid < 256; fid++) {
		if (has_feature(page, fid))
			printf("  0x%02x  %-40s 0x%08" PRIx32 "\n", fid,
			       feature_title((uint8_t)fid), le32_to_cpu(log->fid_support[fid]));
	}
}

/* --- changed namespaces ----------------------------------------------------------------------- */

/* FFFFFFFFh in the first place: more than the page has room for. */
static bool is_too_long(const __le32 *nsids)
{
	return le32_to_cpu(nsids[0]) == NVME_NSID_BROADCAST;
}

static size_t count_of(const __le32 *nsids, size_t size)
{
	size_t count = 0;

	while (!is_too_long(nsids) && count < size / sizeof(*nsids) && nsids[count])
		count++;
	return count;
}

json_t *weft_log_changed_json(const void *page, size_t size)
{
	const __le32 *nsids = page;
	size_t count = count_of(nsids, size);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_integer(le32_to_cpu(nsids[i])));
	return json_pack("{s:b, s:o}", "too_many", is_too_long(nsids), "nsids", list);
}

void weft_log_changed_print(const void *page, size_t size)
{
	const __le32 *nsids = page;
	size_t count = count_of(nsids, size);

	if (is_too_long(nsids))
		printf("  more than the page has room for\n");
	else if (!count)
		printf("  none on this connection, which is new; \"weft ls\" shows what there is now,\n"
		       "  and the target's log tells of changes\n");
	for (size_t i = 0; i < count; i++)
		printf("  %" PRIu32 "\n", le32_to_cpu(nsids[i]));
}
