/* admin.c - admin commands: the table, and the short ones. All run on the control reactor. */
#include <string.h>

#include "target/admin/admin.h"
#include "target/io/io.h"

enum {
	EFFECT_SUPPORTED = NVME_CMD_EFFECTS_CSUPP,
	FEATURE_BYTES = 4096, /* no feature has more */
};

static void keep_alive(struct weft_req *req)
{
	tgt_ctrl_restart_keepalive(tgt_queue(req)->ctrl);
	tgt_control_reply(req, 0);
}

const struct tgt_command_info tgt_admin_commands[] = {
	{ nvme_admin_get_log_page, true, tgt_get_log_page, EFFECT_SUPPORTED, WEFT_MDTS_BYTES },
	{ nvme_admin_identify, true, tgt_identify, EFFECT_SUPPORTED, NVME_IDENTIFY_DATA_SIZE },
	{ nvme_admin_abort_cmd, true, tgt_abort, EFFECT_SUPPORTED },
	{ nvme_admin_set_features, true, tgt_set_features, EFFECT_SUPPORTED, FEATURE_BYTES },
	{ nvme_admin_get_features, true, tgt_get_features, EFFECT_SUPPORTED, FEATURE_BYTES },
	{ nvme_admin_async_event, true, tgt_aer, EFFECT_SUPPORTED },
	{ nvme_admin_keep_alive, true, keep_alive, EFFECT_SUPPORTED },
	{ nvme_admin_get_lba_status, false, tgt_lba_status, EFFECT_SUPPORTED },
	{ NVME_ADMIN_CROSS_CTRL_RESET, false, tgt_ccr, EFFECT_SUPPORTED },
	{ 0 },
};

void tgt_reply_data(struct weft_req *req, const void *data, size_t size)
{
	if (req->data_len < size) {
		tgt_control_reply(req, SC_GENERIC(SGL_INVALID_DATA) | SC_DNR);
		return;
	}
	memcpy(req->data, data, size);
	req->reply_len = (uint32_t)size;
	tgt_control_reply(req, 0);
}

void tgt_admin(struct weft_req *req)
{
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;
	const struct tgt_command_info *info = tgt_command_find(tgt_admin_commands,
							       req->cmd.common.opcode);

	assert_on_control(ctrl->subsys->target);
	atomic_store_explicit(&ctrl->traffic, true, memory_order_relaxed);
	if (!info || (ctrl->subsys->discovery && !info->on_discovery))
		tgt_control_reply(req, SC_GENERIC(INVALID_OPCODE) | SC_DNR);
	else if (req->cmd.common.flags & NVME_FUSE_MASK)
		tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
	else if (!(ctrl->csts & TGT_CSTS_RDY) && info->opcode != nvme_admin_keep_alive)
		tgt_control_reply(req, SC_GENERIC(CMD_SEQ_ERROR) | SC_DNR);
	else
		info->execute(req);
}
