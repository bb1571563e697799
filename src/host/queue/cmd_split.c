/* cmd_split.c - what a piece of a command becomes: an NVMe command and the memory of its data. */
#include <string.h>

#include "host/queue/cmd.h"

static void fill_range(struct weft_link_slot *slot, const struct weft_cmd *cmd, uint64_t at,
		       uint64_t len)
{
	unsigned shift = cmd->ns->block_shift;
	uint16_t control = 0;

	if (cmd->flags & WEFT_FUA)
		control |= NVME_RW_FUA;
	if (cmd->flags & WEFT_UNMAP)
		control |= NVME_WZ_DEAC;
	slot->cmd.rw.slba = cpu_to_le64(at >> shift);
	slot->cmd.rw.nlb = cpu_to_le16((uint16_t)((len >> shift) - 1));
	slot->cmd.rw.control = cpu_to_le16(control);
}

static void use_scratch(struct weft_link_slot *slot, uint32_t len)
{
	assert(len <= sizeof(slot->scratch));
	slot->scratch_iov = (struct iovec){ slot->scratch, len };
	slot->data.iov = &slot->scratch_iov;
	slot->data_len = len;
}

static void fill_trim(struct weft_link_slot *slot, const struct weft_cmd *cmd, uint64_t at,
		      uint64_t len)
{
	unsigned shift = cmd->ns->block_shift;
	struct nvme_dsm_range range = {
		.nlb = cpu_to_le32((uint32_t)(len >> shift)),
		.slba = cpu_to_le64(at >> shift),
	};

	slot->cmd.common.cdw11 = cpu_to_le32(NVME_DSMGMT_AD);
	memcpy(slot->scratch, &range, sizeof(range));
	use_scratch(slot, sizeof(range));
}

static void fill_copy(struct weft_link_slot *slot, const struct weft_cmd *cmd, uint64_t at,
		      uint64_t len)
{
	unsigned shift = cmd->ns->block_shift;
	struct nvme_copy_range range = {
		.slba = cpu_to_le64((cmd->copy_from + (at - cmd->offset)) >> shift),
		.nlb = cpu_to_le16((uint16_t)((len >> shift) - 1)),
	};

	slot->cmd.rw.slba = cpu_to_le64(at >> shift);
	slot->cmd.common.cdw12 = cpu_to_le32(cmd->flags & WEFT_FUA ? 1u << 30 : 0);
	memcpy(slot->scratch, &range, sizeof(range));
	use_scratch(slot, sizeof(range));
}

/* The controller may send less than there is room for, and an adapter does not tell how much it
 * was. So the memory is zeroed first. A device's memory (a dma-buf) cannot be: there the old bytes
 * stay. */
static void clear_data(const struct weft_cmd *cmd)
{
	struct weft_iov_iter iter = { cmd->iov, 0 };
	struct iovec part;

	assert(cmd->op == WEFT_RAW);
	if (!host_memory_is_plain(cmd->iov, cmd->iovcnt))
		return;
	for (uint64_t left = cmd->length; left; left -= part.iov_len) {
		part = weft_iov_iter_next(&iter, left);
		memset(part.iov_base, 0, part.iov_len);
	}
}

static void fill_raw(struct weft_link_slot *slot, struct weft_cmd *cmd)
{
	uint16_t cid = le16_to_cpu(slot->cmd.common.cid);

	memcpy(&slot->cmd, cmd->sqe, sizeof(slot->cmd));
	if (nvme_cmd_direction(&slot->cmd) == NVME_DIR_TO_HOST)
		clear_data(cmd);
	slot->cmd.common.cid = cpu_to_le16(cid);
	slot->data.iov = cmd->iov;
	slot->data_len = (uint32_t)cmd->length;
}

static void take_data(struct weft_link_slot *slot, struct weft_cmd *cmd, uint64_t len)
{
	struct cmd_priv *p = cmd_priv(cmd);

	slot->data = p->data;
	slot->data_len = (uint32_t)len;
	weft_iov_iter_advance(&p->data, len);
}

void cmd_fill_piece(struct weft_cmd *cmd, const struct host_traits *traits,
		    struct weft_link_slot *slot)
{
	const struct host_op_desc *desc = host_op_desc(cmd->op);
	struct cmd_priv *p = cmd_priv(cmd);
	uint64_t at = cmd->offset + p->issued, len = 1;

	slot->cmd.common.opcode = desc->opcode;
	if (cmd->ns)
		slot->cmd.common.nsid = cpu_to_le32(cmd->ns->nsid);
	if (desc->shape == SHAPE_RAW)
		fill_raw(slot, cmd);
	if (desc->shape == SHAPE_DATA || desc->shape == SHAPE_RANGE) {
		len = host_cmd_piece_max(traits, cmd);
		if (len > cmd->length - p->issued)
			len = cmd->length - p->issued;
		if (cmd->op == WEFT_TRIM)
			fill_trim(slot, cmd, at, len);
		else if (cmd->op == WEFT_COPY)
			fill_copy(slot, cmd, at, len);
		else
			fill_range(slot, cmd, at, len);
		if (desc->shape == SHAPE_DATA)
			take_data(slot, cmd, len);
	}
	p->issued += len;
}

/* Compare and Write must follow each other on the wire (NVMe base 2.0, 3.4.2). */
void cmd_fill_fused(struct weft_cmd *cmd, struct weft_link_slot *first,
		    struct weft_link_slot *second)
{
	struct weft_link_slot *slots[] = { first, second };
	static const uint8_t opcodes[] = { nvme_cmd_compare, nvme_cmd_write };
	static const uint8_t fuse[] = { NVME_FUSE_FIRST, NVME_FUSE_SECOND };

	assert(!cmd_priv(cmd)->issued && host_op_desc(cmd->op)->shape == SHAPE_FUSED);
	for (int i = 0; i < 2; i++) {
		slots[i]->cmd.common.opcode = opcodes[i];
		slots[i]->cmd.common.flags = fuse[i];
		slots[i]->cmd.common.nsid = cpu_to_le32(cmd->ns->nsid);
		fill_range(slots[i], cmd, cmd->offset, cmd->length);
		take_data(slots[i], cmd, cmd->length);
	}
	cmd_priv(cmd)->issued = cmd->length;
}
