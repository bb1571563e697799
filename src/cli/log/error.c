/* error.c - Error Information: one entry per command that failed, the newest first (NVMe base 2.0,
 * 5.16.1.2). An entry whose error count is 0 is none. */
#include <stdio.h>

#include "cli/id/id.h"
#include "cli/log/log.h"
#include "cli/passthru.h"

enum { CSI_AT = 30, OPCODE_AT = 31 }; /* since NVMe base 2.0; <nvme/types.h> has them reserved */

static void explain_location(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	if (value != 0xffff)
		snprintf(text, size, "byte %u, bit %u of the command", (unsigned)(value & 0xff),
			 (unsigned)(value >> 8 & 7));
}

static void explain_opcode(const void *page, uint64_t value, char *text, size_t size)
{
	const struct nvme_error_log_page *entry = page;

	/* Before NVMe 2.0 the byte was 0, which is Flush, or Delete I/O Submission Queue. */
	if (value)
		snprintf(text, size, "%s",
			 weft_opcode_text(!le16_to_cpu(entry->sqid), (uint8_t)value));
}

static void explain_status(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "%s", weft_status_text((uint16_t)(value >> 1)));
}

#define AT(field)                                    \
	offsetof(struct nvme_error_log_page, field), \
		sizeof(((struct nvme_error_log_page *)0)->field)

static const struct id_field entry_fields[] = {
	{ "error_count", AT(error_count), ID_NUMBER, "" },
	{ "sqid", AT(sqid), ID_NUMBER, "" },
	{ "cmdid", AT(cmdid), ID_NUMBER, "" },
	{ "status_field", AT(status_field), ID_HEX, "", .explain = explain_status },
	{ "parm_error_location", AT(parm_error_location), ID_NUMBER, "",
	  .explain = explain_location },
	{ "lba", AT(lba), ID_NUMBER, "" },
	{ "nsid", AT(nsid), ID_NUMBER, "" },
	{ "vs", AT(vs), ID_NUMBER, "" },
	{ "trtype", AT(trtype), ID_NUMBER, "" },
	{ "csi", CSI_AT, 1, ID_NUMBER, "" },
	{ "opcode", OPCODE_AT, 1, ID_NUMBER, "", .explain = explain_opcode },
	{ "cs", AT(cs), ID_NUMBER, "" },
	{ "trtype_spec_info", AT(trtype_spec_info), ID_NUMBER, "" },
	{},
};

/* As nvme-cli has it: the phase tag, which is bit 0, is a field of its own. */
static json_t *error_entry_json(const struct nvme_error_log_page *entry)
{
	json_t *object = weft_id_json(entry_fields, entry);
	uint16_t status = le16_to_cpu(entry->status_field);

	json_object_set_new(object, "status_field", json_integer(status >> 1));
	json_object_set_new(object, "phase_tag", json_integer(status & 1));
	return object;
}

json_t *weft_log_error_json(const void *page, size_t size)
{
	const struct nvme_error_log_page *entry = page;
	json_t *errors = json_array();

	for (size_t i = 0; i < size / sizeof(*entry); i++) {
		if (entry[i].error_count)
			json_array_append_new(errors, error_entry_json(&entry[i]));
	}
	return json_pack("{s:o}", "errors", errors);
}

void weft_log_error_print(const void *page, size_t size)
{
	const struct nvme_error_log_page *entry = page;
	unsigned shown = 0;

	for (size_t i = 0; i < size / sizeof(*entry); i++) {
		if (!entry[i].error_count)
			continue;
		printf("%serror %u\n", shown ? "\n" : "", shown);
		weft_id_print_names(entry_fields, &entry[i]);
		shown++;
	}
	if (!shown)
		printf("  none on this connection, whose controller is a new one; the target's log\n"
		       "  tells of other hosts' errors, \"weft ctl status\" of those of its storage\n");
}
