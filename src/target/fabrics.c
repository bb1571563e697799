/* fabrics.c - Property Get and Set; a second Connect on a queue is refused (the first: connect.c).
 * Disconnect: disconnect.c. */
#include "target/io/io.h"

static uint64_t cap_value(const struct tgt_ctrl *ctrl)
{
	uint64_t mqes = ctrl->subsys->target->depth_max - 1;

	return mqes | 1ull << 16 /* CQR */ | 20ull << 24 /* TO: 10 s */ |
	       1ull << 37 /* CSS: NVM */ | 1ull << 43 /* CSS: one or more command sets */ |
	       1ull << 59 /* CRMS: ready with media */;
}

/* Returns the property's size in bytes, 0 if there is none at @offset. */
static unsigned property_read(const struct tgt_ctrl *ctrl, uint32_t offset, uint64_t *value)
{
	switch (offset) {
	case NVME_REG_CAP:
		*value = cap_value(ctrl);
		return 8;
	case NVME_REG_VS:
		*value = 0x20000;
		return 4;
	case NVME_REG_CC:
		*value = ctrl->cc;
		return 4;
	case NVME_REG_CSTS:
		*value = ctrl->csts;
		return 4;
	case NVME_REG_CRTO:
		*value = 20; /* CRWMT: as CAP.TO */
		return 4;
	default:
		return 0;
	}
}

static unsigned attrib_size(uint8_t attrib)
{
	return (attrib & 7) == 0 ? 4 : (attrib & 7) == 1 ? 8 : 0;
}

static void property_get(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	const struct nvmf_property_cmd *cmd = &req->cmd.property;
	uint64_t value = 0;
	unsigned size = property_read(ctrl, le32_to_cpu(cmd->offset), &value);

	if (!size || size != attrib_size(cmd->attrib)) {
		tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
		return;
	}
	req->cqe.result = cpu_to_le64(value);
	tgt_control_reply(req, 0);
}

/* Also for a host that asks a second time before the first shutdown is complete. */
static bool has_to_flush(const struct tgt_ctrl *ctrl, uint32_t old)
{
	bool was_complete = NVME_CC_SHN(old) && ctrl->csts & TGT_CSTS_SHUT_DOWN;

	return !was_complete && !ctrl->subsys->discovery;
}

static void property_set(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	const struct nvmf_property_cmd *cmd = &req->cmd.property;
	uint32_t old = ctrl->cc, cc = (uint32_t)le64_to_cpu(cmd->value);

	if (le32_to_cpu(cmd->offset) != NVME_REG_CC || attrib_size(cmd->attrib) != 4) {
		tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
		return;
	}
	tgt_ctrl_set_cc(ctrl, cc);
	if (NVME_CC_SHN(cc) && has_to_flush(ctrl, old))
		tgt_post_reactor(req, tgt_io_shutdown);
	else {
		if (NVME_CC_SHN(cc))
			tgt_ctrl_shutdown_done(ctrl);
		tgt_control_reply(req, 0);
	}
}

void tgt_fabrics(struct weft_req *req)
{
	struct tgt_queue *queue = tgt_queue(req);
	uint8_t fctype = req->cmd.connect.fctype;

	assert_on(req->qp->group->control);
	tgt_ctrl_restart_keepalive(queue->ctrl);
	if (fctype == NVMF_CONNECT)
		tgt_control_reply(req, SC_GENERIC(CMD_SEQ_ERROR) | SC_DNR);
	else if (fctype == NVMF_DISCONNECT)
		tgt_disconnect(req);
	else if (fctype == NVMF_PROPERTY_GET && !queue->qid)
		property_get(req, queue->ctrl);
	else if (fctype == NVMF_PROPERTY_SET && !queue->qid)
		property_set(req, queue->ctrl);
	else
		tgt_control_reply(req, (fctype == NVMF_PROPERTY_GET || fctype == NVMF_PROPERTY_SET ?
						SC_GENERIC(INVALID_FIELD) :
						SC_GENERIC(INVALID_OPCODE)) |
					       SC_DNR);
}
