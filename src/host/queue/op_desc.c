/* op_desc.c - the table of operations: what each needs, and whether it is idempotent.
 *
 * A command whose connection breaks may have been executed, or not, or may yet be. It is sent again
 * only if that makes no difference. Copy is not idempotent: its ranges may overlap. */
#include "host/queue/op_desc.h"

#include <errno.h>

const struct host_op_desc host_op_descs[HOST_OP_DESCS] = {
	[WEFT_READ] = { "Read", nvme_cmd_read, SHAPE_DATA, false, true, 0, 0 },
	[WEFT_WRITE] = { "Write", nvme_cmd_write, SHAPE_DATA, true, true, 0, WEFT_FUA },
	[WEFT_FLUSH] = { "Flush", nvme_cmd_flush, SHAPE_NONE, false, true, 0, 0 },
	[WEFT_COMPARE] = { "Compare", nvme_cmd_compare, SHAPE_DATA, false, true,
			   NVME_CTRL_ONCS_COMPARE, 0 },
	[WEFT_ZERO] = { "Write Zeroes", nvme_cmd_write_zeroes, SHAPE_RANGE, true, true,
			NVME_CTRL_ONCS_WRITE_ZEROES, WEFT_FUA | WEFT_UNMAP },
	[WEFT_TRIM] = { "Deallocate", nvme_cmd_dsm, SHAPE_RANGE, true, true, NVME_CTRL_ONCS_DSM,
			0 },
	[WEFT_VERIFY] = { "Verify", nvme_cmd_verify, SHAPE_RANGE, false, true,
			  NVME_CTRL_ONCS_VERIFY, 0 },
	[WEFT_COPY] = { "Copy", nvme_cmd_copy, SHAPE_RANGE, true, false, NVME_CTRL_ONCS_COPY,
			WEFT_FUA },
	[WEFT_COMPARE_AND_WRITE] = { "Compare and Write", nvme_cmd_compare, SHAPE_FUSED, true,
				     false, NVME_CTRL_ONCS_COMPARE, 0 },
	[WEFT_RAW] = { "command", 0, SHAPE_RAW, false, false, 0, WEFT_IDEMPOTENT },
};

bool host_cmd_is_idempotent(const struct weft_cmd *cmd)
{
	return host_op_descs[cmd->op].idempotent || cmd->flags & WEFT_IDEMPOTENT;
}

/* A raw command may do anything, so it counts as a write. */
bool host_cmd_may_write(const struct weft_cmd *cmd)
{
	return host_op_descs[cmd->op].writes || cmd->op == WEFT_RAW;
}

bool host_cmd_may_retry_refused(const struct weft_cmd *cmd)
{
	return cmd->op != WEFT_RAW || host_cmd_is_idempotent(cmd);
}

static uint64_t iov_length(const struct weft_cmd *cmd)
{
	uint64_t total = 0;

	for (int i = 0; i < cmd->iovcnt; i++)
		total += cmd->iov[i].iov_len;
	return total;
}

static int check_raw(const struct host_traits *traits, const struct weft_cmd *cmd)
{
	if (!cmd->sqe || cmd->offset || iov_length(cmd) < cmd->length)
		return -EINVAL;
	return cmd->length > traits->transfer_max ? -EMSGSIZE : 0;
}

static int check_inside(const struct weft_ns *ns, uint64_t offset, uint64_t length)
{
	uint64_t size = atomic_load_explicit(&ns->size, memory_order_relaxed);

	if ((offset | length) & ((1u << ns->block_shift) - 1) || !length)
		return -EINVAL;
	return offset > size || length > size - offset ? -ERANGE : 0;
}

static int check_cmd_range(const struct host_traits *traits, const struct weft_cmd *cmd,
			   const struct host_op_desc *desc)
{
	int rc = check_inside(cmd->ns, cmd->offset, cmd->length);

	if (rc == 0 && cmd->op == WEFT_COPY)
		rc = check_inside(cmd->ns, cmd->copy_from, cmd->length);
	if (rc < 0)
		return rc;
	if (desc->shape == SHAPE_DATA && iov_length(cmd) < cmd->length)
		return -EINVAL;
	if (desc->shape != SHAPE_FUSED)
		return 0;
	if (cmd->length > traits->transfer_max)
		return -EMSGSIZE;
	return iov_length(cmd) / 2 < cmd->length ? -EINVAL : 0;
}

int host_cmd_check(const struct host_traits *traits, const struct weft_cmd *cmd)
{
	const struct host_op_desc *desc = host_op_desc(cmd->op);
	int rc;

	if (!desc || cmd->flags & ~desc->flags || cmd->iovcnt < 0)
		return -EINVAL;
	if (desc->shape == SHAPE_RAW)
		return check_raw(traits, cmd);
	if (!cmd->ns)
		return -EINVAL;
	rc = atomic_load_explicit(&cmd->ns->rc, memory_order_relaxed);
	if (rc < 0)
		return rc;
	if (desc->writes && cmd->ns->read_only)
		return -EROFS;
	if (desc->oncs && !(traits->oncs & desc->oncs))
		return -EOPNOTSUPP;
	if (desc->shape == SHAPE_FUSED && (!(traits->fuses & 1) || traits->depth < 2))
		return -EOPNOTSUPP;
	return desc->shape == SHAPE_NONE ? 0 : check_cmd_range(traits, cmd, desc);
}

static uint64_t min_bytes(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t op_max_bytes(const struct host_traits *traits, const struct weft_cmd *cmd)
{
	unsigned shift = cmd->ns->block_shift;
	uint64_t by_nlb = UINT64_C(65536) << shift; /* NLB has 16 bits, 0's based */

	switch (cmd->op) {
	case WEFT_ZERO:
		return min_bytes(by_nlb, traits->zero_max);
	case WEFT_VERIFY:
		return min_bytes(by_nlb, traits->verify_max);
	case WEFT_TRIM:
		return traits->trim_blocks << shift;
	case WEFT_COPY:
		return min_bytes(by_nlb, cmd->ns->copy_max);
	default:
		return min_bytes(by_nlb, traits->transfer_max);
	}
}

/* Whole blocks, and at least one: a namespace whose blocks do not fit is not opened. */
uint64_t host_cmd_piece_max(const struct host_traits *traits, const struct weft_cmd *cmd)
{
	uint64_t block = UINT64_C(1) << cmd->ns->block_shift, limit = op_max_bytes(traits, cmd);

	return limit < block ? block : limit & ~(block - 1);
}
