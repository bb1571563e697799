/* log_page.c - Get Log Page: each page is built whole, and the host gets the part that it asked
 * for. The discovery log grows with the configuration: only the part is built. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/admin/admin.h"
#include "target/io/io.h"
#include "target/resv/resv.h"

/* Builders return malloc'ed memory. */

static void put_u128(uint8_t to[16], uint64_t value)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

/* Data units are thousands of 512 bytes, rounded up. */
static uint64_t data_units(uint64_t bytes)
{
	return (bytes + 511999) / 512000;
}

static struct tgt_totals subsys_totals(struct weft_subsys *s)
{
	struct tgt_totals sum = { 0 };

	for (unsigned i = 0; i < s->target->npoll_groups; i++)
		tgt_stats_add(&s->stats[i], &sum);
	return sum;
}

static void *log_errors(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_error_log_page *page = calloc(TGT_ERRORS_MAX, sizeof(*page));
	uint64_t n = ctrl->nerrors < TGT_ERRORS_MAX ? ctrl->nerrors : TGT_ERRORS_MAX;

	*size = TGT_ERRORS_MAX * sizeof(*page);
	for (uint64_t i = 0; page && i < n; i++) /* newest first */
		page[i] = ctrl->errors[(ctrl->nerrors - 1 - i) % TGT_ERRORS_MAX];
	return page;
}

static void *log_smart(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_smart_log *page = calloc(1, sizeof(*page));
	struct tgt_totals sum = subsys_totals(ctrl->subsys);

	*size = sizeof(*page);
	if (!page)
		return NULL;
	page->critical_warning = tgt_health_warnings(ctrl->subsys);
	page->avail_spare = 100;
	put_u128(page->data_units_read, data_units(sum.read_bytes));
	put_u128(page->data_units_written, data_units(sum.write_bytes));
	put_u128(page->host_reads, sum.reads);
	put_u128(page->host_writes, sum.writes);
	put_u128(page->power_cycles, 1);
	put_u128(page->media_errors, sum.media_errors);
	put_u128(page->num_err_log_entries, ctrl->nerrors);
	return page;
}

/* There is one group, 1, which the LSI field must name. */
static bool names_group(const struct nvme_cmd *cmd)
{
	return le32_to_cpu(cmd->cdw11) >> 16 == 1;
}

static void *log_endurance_group(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_endurance_group_log *page = calloc(1, sizeof(*page));
	struct tgt_totals sum = subsys_totals(ctrl->subsys);

	*size = sizeof(*page);
	if (!page)
		return NULL;
	page->critical_warning = tgt_health_warnings(ctrl->subsys); /* the same bits */
	page->avl_spare = 100;
	put_u128(page->data_units_read, data_units(sum.read_bytes));
	put_u128(page->data_units_written, data_units(sum.write_bytes));
	put_u128(page->media_units_written, data_units(sum.write_bytes));
	put_u128(page->host_read_cmds, sum.reads);
	put_u128(page->host_write_cmds, sum.writes);
	put_u128(page->media_data_integrity_err, sum.media_errors);
	return page;
}

static void *log_firmware(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_firmware_slot *page = calloc(1, sizeof(*page));

	(void)ctrl;
	*size = sizeof(*page);
	if (!page)
		return NULL;
	page->afi = 1;
	memset(page->frs[0], ' ', sizeof(page->frs[0]));
	memcpy(page->frs[0], WEFT_VERSION, strnlen(WEFT_VERSION, sizeof(page->frs[0])));
	return page;
}

static void *log_changed_ns(struct tgt_ctrl *ctrl, size_t *size)
{
	__le32 *page = calloc(TGT_CHANGED_NS_MAX, sizeof(*page));

	*size = TGT_CHANGED_NS_MAX * sizeof(*page);
	if (!page)
		return NULL;
	assert(ctrl->nchanged <= TGT_CHANGED_NS_MAX);
	for (unsigned i = 0; i < ctrl->nchanged; i++)
		page[i] = cpu_to_le32(ctrl->changed_ns[i]);
	return page;
}

static void *log_command_effects(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_cmd_effects_log *page = calloc(1, sizeof(*page));
	const struct tgt_command_info *info;

	(void)ctrl;
	*size = sizeof(*page);
	if (!page)
		return NULL;
	for (info = tgt_admin_commands; info->execute; info++)
		page->acs[info->opcode] = cpu_to_le32(info->effects);
	for (info = tgt_io_commands; info->execute; info++)
		page->iocs[info->opcode] = cpu_to_le32(info->effects);
	return page;
}

static void *log_feature_effects(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_fid_supported_effects_log *page = calloc(1, sizeof(*page));

	(void)ctrl;
	*size = sizeof(*page);
	for (int i = 0; page && i < 256; i++)
		page->fid_support[i] = cpu_to_le32(tgt_feature_effects((uint8_t)i));
	return page;
}

static void *log_supported(struct tgt_ctrl *ctrl, size_t *size);

/* --- the table of pages ----------------------------------------------------------------------- */

static const struct log_info {
	uint8_t lid;
	bool on_io, on_discovery;
	void *(*build)(struct tgt_ctrl *ctrl, size_t *size);
	/* A shorter page, for bit 0 of LSP. */
	void *(*brief)(struct tgt_ctrl *ctrl, size_t *size);
	uint64_t (*read)(struct tgt_ctrl *ctrl, uint64_t offset, void *to, uint64_t len);
} logs[] = {
	{ NVME_LOG_LID_SUPPORTED_LOG_PAGES, true, true, log_supported },
	{ NVME_LOG_LID_ERROR, true, true, log_errors },
	{ NVME_LOG_LID_SMART, true, false, log_smart },
	{ NVME_LOG_LID_FW_SLOT, true, false, log_firmware },
	{ NVME_LOG_LID_CHANGED_NS, true, false, log_changed_ns },
	{ NVME_LOG_LID_CMD_EFFECTS, true, false, log_command_effects },
	{ NVME_LOG_LID_ENDURANCE_GROUP, true, false, log_endurance_group },
	{ NVME_LOG_LID_ANA, true, false, tgt_ana_log_page, tgt_ana_log_page_rgo },
	{ NVME_LOG_LID_CCR, true, false, tgt_ccr_log_page },
	{ NVME_LOG_LID_FID_SUPPORTED_EFFECTS, true, false, log_feature_effects },
	{ NVME_LOG_LID_RESERVATION, true, false, tgt_resv_log_page },
	{ NVME_LOG_LID_DISCOVER, false, true, .read = tgt_discovery_read },
};
#define LOGS (sizeof(logs) / sizeof(logs[0]))

static bool log_is_supported(const struct log_info *info, const struct tgt_ctrl *ctrl)
{
	return ctrl->subsys->discovery ? info->on_discovery : info->on_io;
}

static void *log_supported(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_supported_log_pages *page = calloc(1, sizeof(*page));

	*size = sizeof(*page);
	for (size_t i = 0; page && i < LOGS; i++)
		if (log_is_supported(&logs[i], ctrl))
			page->lid_support[logs[i].lid] = cpu_to_le32(1);
	return page;
}

static const struct log_info *find_log(const struct tgt_ctrl *ctrl, uint8_t lid)
{
	for (size_t i = 0; i < LOGS; i++)
		if (logs[i].lid == lid && log_is_supported(&logs[i], ctrl))
			return &logs[i];
	return NULL;
}

/* --- the command ------------------------------------------------------------------------------ */

static uint64_t wanted_bytes(const struct nvme_cmd *cmd)
{
	uint64_t numdl = le32_to_cpu(cmd->cdw10) >> 16, numdu = le32_to_cpu(cmd->cdw11) & 0xffff;

	return ((numdu << 16 | numdl) + 1) * 4;
}

static uint64_t wanted_offset(const struct nvme_cmd *cmd)
{
	return le32_to_cpu(cmd->cdw12) | (uint64_t)le32_to_cpu(cmd->cdw13) << 32;
}

static unsigned lsp(const struct nvme_cmd *cmd)
{
	return le32_to_cpu(cmd->cdw10) >> 8 & 0x7f;
}

static void *build_log_page(const struct log_info *info, struct tgt_ctrl *ctrl,
			    const struct nvme_cmd *cmd, size_t *size)
{
	bool brief = info->brief && lsp(cmd) & 1;

	return brief ? info->brief(ctrl, size) : info->build(ctrl, size);
}

/* Reading a page clears its event, unless the host asks to retain it. */
static void log_page_was_read(struct tgt_ctrl *ctrl, const struct nvme_cmd *cmd, uint8_t lid)
{
	if (lid == NVME_LOG_LID_CCR && lsp(cmd) & NVME_LOG_CCR_RMC)
		tgt_ccr_remove_completed(ctrl);
	if (le32_to_cpu(cmd->cdw10) & 1u << 15)
		return;
	if (lid == NVME_LOG_LID_SMART) {
		tgt_event_log_was_read(ctrl, TGT_EVENT_HEALTH);
	} else if (lid == NVME_LOG_LID_CHANGED_NS) {
		ctrl->nchanged = 0;
		tgt_event_log_was_read(ctrl, TGT_EVENT_NS_CHANGED);
	} else if (lid == NVME_LOG_LID_ANA) {
		tgt_event_log_was_read(ctrl, TGT_EVENT_ANA);
	} else if (lid == NVME_LOG_LID_CCR) {
		tgt_event_log_was_read(ctrl, TGT_EVENT_CCR);
	} else if (lid == NVME_LOG_LID_DISCOVER) {
		tgt_event_log_was_read(ctrl, TGT_EVENT_DISCOVERY);
	} else if (lid == NVME_LOG_LID_RESERVATION) {
		tgt_resv_log_read(ctrl);
	}
}

static uint16_t check_log_part(const struct weft_req *req)
{
	if (wanted_offset(&req->cmd.common) % 4)
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	return wanted_bytes(&req->cmd.common) > req->data_len ?
		       SC_GENERIC(SGL_INVALID_DATA) | SC_DNR :
		       0;
}

/* The buffer came zeroed: what is asked for beyond the page's end reads as zeroes. */
static uint16_t copy_log_part(struct weft_req *req, struct tgt_ctrl *ctrl,
			      const struct log_info *info)
{
	uint64_t offset = wanted_offset(&req->cmd.common), len = wanted_bytes(&req->cmd.common);
	_cleanup_(weft_freep) char *page = NULL;
	size_t size;

	assert(len <= req->data_len);
	if (info->read) {
		size = info->read(ctrl, offset, req->data, len);
	} else {
		page = build_log_page(info, ctrl, &req->cmd.common, &size);
		if (!page)
			return SC_GENERIC(INTERNAL);
	}
	if (offset > size)
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	if (page)
		memcpy(req->data, page + offset, len < size - offset ? len : size - offset);
	req->reply_len = (uint32_t)len;
	return 0;
}

static uint16_t log_page_get(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	uint8_t lid = le32_to_cpu(req->cmd.common.cdw10) & 0xff;
	const struct log_info *info = find_log(ctrl, lid);
	uint16_t sc;

	if (!info)
		return SC_COMMAND(INVALID_LOG_PAGE) | SC_DNR;
	if (lid == NVME_LOG_LID_ENDURANCE_GROUP && !names_group(&req->cmd.common))
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	sc = check_log_part(req);
	if (!sc)
		sc = copy_log_part(req, ctrl, info);
	if (!sc)
		log_page_was_read(ctrl, &req->cmd.common, lid);
	return sc;
}

void tgt_get_log_page(struct weft_req *req)
{
	uint16_t sc = log_page_get(req, tgt_queue(req)->ctrl);

	tgt_control_reply(req, sc);
}
