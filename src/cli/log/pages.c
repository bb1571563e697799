/* pages.c - the log pages that weft log knows by name; the small ones are taken apart here. */
#include <stdio.h>
#include <string.h>

#include "cli/id/id.h"
#include "cli/log/log.h"

/* --- firmware slots --------------------------------------------------------------------------- */

static void explain_afi(const void *page, uint64_t value, char *text, size_t size)
{
	(void)page;
	snprintf(text, size, "slot %u is active", (unsigned)(value & 7));
	if (value >> 4 & 7)
		snprintf(text, size, "slot %u is active, slot %u after a reset",
			 (unsigned)(value & 7), (unsigned)(value >> 4 & 7));
}

#define SLOT(n)                                                                            \
	{                                                                                  \
		"frs" #n, offsetof(struct nvme_firmware_slot, frs[n - 1]), 8, ID_TEXT, "", \
			.optional = true                                                   \
	}

static const struct id_field firmware_fields[] = {
	{ "afi", offsetof(struct nvme_firmware_slot, afi), 1, ID_NUMBER, "",
	  .explain = explain_afi },
	SLOT(1),
	SLOT(2),
	SLOT(3),
	SLOT(4),
	SLOT(5),
	SLOT(6),
	SLOT(7),
	{},
};

static json_t *firmware_json(const void *page, size_t size)
{
	(void)size;
	return weft_id_json(firmware_fields, page);
}

static void firmware_print(const void *page, size_t size)
{
	(void)size;
	weft_id_print_names(firmware_fields, page);
}

/* --- reservation notifications ---------------------------------------------------------------- */

static void explain_notice(const void *page, uint64_t value, char *text, size_t size)
{
	static const char *const types[] = { "none", "registration preempted",
					     "reservation released", "reservation preempted" };

	(void)page;
	snprintf(text, size, "%s", value < 4 ? types[value] : "reserved");
}

#define AT(field)                                           \
	offsetof(struct nvme_resv_notification_log, field), \
		sizeof(((struct nvme_resv_notification_log *)0)->field)

static const struct id_field reservation_fields[] = {
	{ "count", AT(lpc), ID_NUMBER, "" },
	{ "rn_log_type", AT(rnlpt), ID_NUMBER, "", .explain = explain_notice },
	{ "num_logs", AT(nalp), ID_NUMBER, "" },
	{ "nsid", AT(nsid), ID_NUMBER, "" },
	{},
};

static json_t *reservation_json(const void *page, size_t size)
{
	(void)size;
	return weft_id_json(reservation_fields, page);
}

static void reservation_print(const void *page, size_t size)
{
	const struct nvme_resv_notification_log *log = page;

	(void)size;
	if (log->lpc || log->rnlpt)
		weft_id_print_names(reservation_fields, page);
	else
		printf("  none on this connection, which is new; \"weft resv report\" shows what there\n"
		       "  is now, and the target's log tells of changes\n");
}

/* --- asymmetric namespace access -------------------------------------------------------------- */

static void ana_print(const void *page, size_t size)
{
	json_auto_t *ana = weft_id_ana_json(page, size);

	weft_id_ana_print(ana);
}

/* --- sizes ------------------------------------------------------------------------------------ */

#define SIZE(name, type)                                    \
	static uint32_t name(const struct nvme_id_ctrl *id) \
	{                                                   \
		(void)id;                                   \
		return sizeof(type);                        \
	}

SIZE(supported_size, struct nvme_supported_log_pages)
SIZE(smart_size, struct nvme_smart_log)
SIZE(firmware_size, struct nvme_firmware_slot)
SIZE(changed_size, struct nvme_ns_list)
SIZE(effects_size, struct nvme_cmd_effects_log)
SIZE(endurance_size, struct nvme_endurance_group_log)
SIZE(features_size, struct nvme_fid_supported_effects_log)
SIZE(reservation_size, struct nvme_resv_notification_log)

static uint32_t error_size(const struct nvme_id_ctrl *id)
{
	return (id->elpe + 1u) * (uint32_t)sizeof(struct nvme_error_log_page);
}

/* --- all of them ------------------------------------------------------------------------------ */

const struct log_page weft_log_pages[] = {
	{ "supported", "supported-log-pages", "Supported Log Pages",
	  NVME_LOG_LID_SUPPORTED_LOG_PAGES, .size = supported_size, .json = weft_log_supported_json,
	  .print = weft_log_supported_print },
	{ "error", "error-log", "Error Information", NVME_LOG_LID_ERROR, .size = error_size,
	  .json = weft_log_error_json, .print = weft_log_error_print },
	{ "smart", "smart-log", "SMART / Health Information", NVME_LOG_LID_SMART, .of_ns = true,
	  .size = smart_size, .json = weft_log_smart_json, .print = weft_log_smart_print },
	{ "firmware", "fw-log", "Firmware Slot Information", NVME_LOG_LID_FW_SLOT,
	  .size = firmware_size, .json = firmware_json, .print = firmware_print },
	{ "changed-ns", "changed-ns-list-log", "Changed Namespace List", NVME_LOG_LID_CHANGED_NS,
	  .size = changed_size, .json = weft_log_changed_json, .print = weft_log_changed_print },
	{ "effects", "effects-log", "Commands Supported and Effects", NVME_LOG_LID_CMD_EFFECTS,
	  .size = effects_size, .json = weft_log_effects_json, .print = weft_log_effects_print },
	{ "endurance", "endurance-log", "Endurance Group Information", NVME_LOG_LID_ENDURANCE_GROUP,
	  .of_group = true, .size = endurance_size, .json = weft_log_endurance_json,
	  .print = weft_log_endurance_print },
	{ "ana", "ana-log", "Asymmetric Namespace Access", NVME_LOG_LID_ANA,
	  .size = weft_id_ana_size, .json = weft_id_ana_json, .print = ana_print },
	{ "features", "fid-support-effects-log", "Feature Identifiers Supported and Effects",
	  NVME_LOG_LID_FID_SUPPORTED_EFFECTS, .size = features_size, .json = weft_log_features_json,
	  .print = weft_log_features_print },
	{ "reservation", "resv-notif-log", "Reservation Notification", NVME_LOG_LID_RESERVATION,
	  .size = reservation_size, .json = reservation_json, .print = reservation_print },
	{},
};

const struct log_page *weft_log_page_named(const char *name)
{
	for (const struct log_page *page = weft_log_pages; page->name; page++) {
		if (!strcmp(page->name, name) || !strcmp(page->also, name))
			return page;
	}
	return NULL;
}

const struct log_page *weft_log_page_numbered(uint8_t lid)
{
	for (const struct log_page *page = weft_log_pages; page->name; page++) {
		if (page->lid == lid)
			return page;
	}
	return NULL;
}
