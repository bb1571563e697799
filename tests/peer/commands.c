/* commands.c - commands that a host sends. */
#include "peer/commands.h"

#include <string.h>

#include "peer/input.h"
#include "world/world.h"

static const struct form_kind kinds[] = {
	{ nvme_cmd_read, 0, FORM_BLOCKS },
	{ nvme_cmd_write, 0, FORM_BLOCKS },
	{ nvme_cmd_flush, 0, FORM_DWORDS },
	{ nvme_cmd_compare, 0, FORM_BLOCKS },
	{ nvme_cmd_write_zeroes, 0, FORM_BLOCKS },
	{ nvme_cmd_verify, 0, FORM_BLOCKS },
	{ nvme_cmd_dsm, 0, FORM_DSM },
	{ nvme_cmd_copy, 0, FORM_COPY },
	{ nvme_admin_identify, 0, FORM_PAGE },
	{ nvme_admin_get_log_page, 0, FORM_LOG },
	{ nvme_admin_abort_cmd, 0, FORM_DWORDS },
	{ nvme_admin_set_features, 0, FORM_FEATURE },
	{ nvme_admin_get_features, 0, FORM_FEATURE },
	{ nvme_admin_async_event, 0, FORM_DWORDS },
	{ nvme_admin_keep_alive, 0, FORM_DWORDS },
	{ NVME_FABRICS_OPCODE, NVMF_PROPERTY_GET, FORM_PROPERTY },
	{ NVME_FABRICS_OPCODE, NVMF_PROPERTY_SET, FORM_PROPERTY },
	{ NVME_FABRICS_OPCODE, NVMF_DISCONNECT, FORM_DWORDS },
	{ 0, 0, FORM_BYTES },
	{ nvme_cmd_resv_register, 0, FORM_KEYS },
	{ nvme_cmd_resv_acquire, 0, FORM_KEYS },
	{ nvme_cmd_resv_release, 0, FORM_KEYS },
	{ nvme_cmd_resv_report, 0, FORM_REPORT },
	{ NVME_ADMIN_CROSS_CTRL_RESET, 0, FORM_CCR },
	{ nvme_admin_get_lba_status, 0, FORM_LBA_STATUS },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const struct form_kind *form_kind(uint8_t which)
{
	return &kinds[which % KINDS];
}

bool form_is_to_ctrl(const union nvme_sqe *sqe)
{
	return nvme_cmd_direction(sqe) == NVME_DIR_TO_CTRL;
}

void form_begin(union nvme_sqe *sqe, const struct form_kind *kind, uint8_t flags, uint8_t nsid)
{
	memset(sqe, 0, sizeof(*sqe));
	sqe->common.opcode = kind->opcode;
	sqe->common.flags = (flags & CMD_NO_SGL ? 0 : 1 << 6) | (flags & CMD_FUSE) >> 1;
	sqe->common.nsid = cpu_to_le32(nsid == 0xff ? NVME_NSID_BROADCAST : nsid);
	if (kind->opcode == NVME_FABRICS_OPCODE)
		sqe->connect.fctype = kind->fctype;
}

static uint32_t feature_len(uint8_t fid)
{
	switch (fid) {
	case NVME_FEAT_FID_TIMESTAMP:
		return sizeof(struct nvme_timestamp);
	case NVME_FEAT_FID_HOST_BEHAVIOR:
		return 512;
	case NVME_FEAT_FID_HOST_ID:
		return 16;
	default:
		return 0;
	}
}

static void name_ctrl(struct nvme_ccr_cmd *cmd, unsigned which)
{
	struct world_instance ctrl = world_instance(which);

	cmd->icid = cpu_to_le16(ctrl.cntlid);
	cmd->ciu = ctrl.ciu;
	cmd->cirn = cpu_to_le64(ctrl.cirn);
}

uint32_t form_fill(union nvme_sqe *sqe, enum form form, uint8_t flags, uint32_t a, uint32_t b)
{
	struct nvme_cmd *cmd = &sqe->common;

	cmd->cdw10 = cpu_to_le32(a);
	cmd->cdw11 = cpu_to_le32(b);
	switch (form) {
	case FORM_BLOCKS:
		sqe->rw.slba = cpu_to_le64(flags & CMD_LONG ? -(uint64_t)a : a);
		sqe->rw.nlb = cpu_to_le16((uint16_t)b);
		sqe->rw.control = cpu_to_le16((uint16_t)(b >> 16));
		return ((b & 0xffff) + 1) << world_lba_shift(le32_to_cpu(cmd->nsid));
	case FORM_LOG:
		if (flags & CMD_LONG) {
			cmd->cdw11 = cpu_to_le32(0);
			cmd->cdw12 = cpu_to_le32(b);
		}
		return ((a >> 16) + 1) * 4;
	case FORM_FEATURE:
		return feature_len((uint8_t)a);
	case FORM_DSM:
		return ((a & 0xff) + 1) * (uint32_t)sizeof(struct nvme_dsm_range);
	case FORM_COPY:
		cmd->cdw11 = cpu_to_le32(0);
		cmd->cdw12 = cpu_to_le32(b);
		return ((b & 0xff) + 1) * (uint32_t)sizeof(struct nvme_copy_range);
	case FORM_KEYS:
		return cmd->opcode == nvme_cmd_resv_release ? 8 : 16;
	case FORM_REPORT:
		return ((a & 0xffff) + 1) * 4;
	case FORM_PROPERTY:
		sqe->property.attrib = flags & CMD_LONG ? 1 : 0;
		sqe->property.offset = cpu_to_le32(a);
		sqe->property.value = cpu_to_le64(b);
		return 0;
	case FORM_CCR:
		sqe->ccr.cirn = cpu_to_le64(b);
		if (!(flags & CMD_LONG))
			name_ctrl(&sqe->ccr, a);
		return 0;
	case FORM_LBA_STATUS:
		sqe->lba_status.slba = cpu_to_le64(a);
		sqe->lba_status.rl = cpu_to_le16((uint16_t)b);
		sqe->lba_status.mndw = cpu_to_le32(b >> 16);
		sqe->lba_status.atype = flags & CMD_LONG ? 0x10 : NVME_LBA_STATUS_ALLOCATED;
		return ((b >> 16) + 1) * 4;
	default:
		return form == FORM_PAGE ? 4096 : 0;
	}
}

uint32_t form_read(union nvme_sqe *sqe, uint8_t *flags)
{
	const struct form_kind *kind = form_kind(u8());
	uint8_t nsid;
	uint32_t a, b;

	*flags = u8();
	nsid = u8();
	a = u32();
	b = u32();
	form_begin(sqe, kind, *flags, nsid);
	if (kind->form == FORM_BYTES)
		input_bytes(sqe, sizeof(*sqe), sizeof(*sqe));
	return form_fill(sqe, kind->form, *flags, a, b);
}

/* --- lengths ---------------------------------------------------------------------------------- */

/* Structures, blocks and pages, what fits a capsule, the classes of buffers, multiples of what an
 * R2T asks for at least, the largest transfer and what is beyond it. */
static const uint32_t edges[] = {
	0,         8,         16,        64,        512,       1024,      4 << 10,   8 << 10,
	12 << 10,  16 << 10,  20 << 10,  32 << 10,  48 << 10,  64 << 10,  96 << 10,  128 << 10,
	144 << 10, 192 << 10, 256 << 10, 272 << 10, 320 << 10, 384 << 10, 400 << 10, 512 << 10,
	640 << 10, 768 << 10, 784 << 10, 960 << 10, 1 << 20,   2 << 20,   16 << 20,  1u << 31,
};

enum { BELOW = 3, AROUND = 8 }; /* 3 bytes below an edge to 4 above it; below 0: 2^32 - 1 */
#define EDGES (sizeof(edges) / sizeof(edges[0]))
static_assert(EDGES * AROUND == 256, "a byte says which");
static_assert(EDGES * 3 == FORM_LENGTHS, "three classes each");

unsigned form_length_class(uint32_t len)
{
	unsigned i = EDGES - 1;

	while (edges[i] > len)
		i--;
	return i * 3 + (len == edges[i] ? 0 : len - edges[i] < AROUND ? 1 : 2);
}

static struct {
	bool set;
	uint32_t len;
} next_length;

uint32_t form_length(uint8_t which)
{
	return edges[which / AROUND] + which % AROUND - BELOW;
}

void op_length(void)
{
	next_length.set = true;
	next_length.len = form_length(u8());
}

void form_take_length(uint32_t *len)
{
	if (next_length.set)
		*len = next_length.len;
	next_length.set = false;
}

void form_forget_length(void)
{
	next_length.set = false;
}

/* --- the first commands of a queue ------------------------------------------------------------ */

static const char *const subnqns[] = { WORLD_NQN, WORLD_NQN_GUARDED, NVME_NQN_DISCOVERY,
				       "nqn.2026-11.io.weft:nowhere" };

void form_connect(const struct form_connect *c, union nvme_sqe *sqe, struct nvmf_connect_data *data)
{
	*data = (struct nvmf_connect_data){ .cntlid = cpu_to_le16(c->cntlid) };
	*sqe = (union nvme_sqe){
		.connect = {
			.opcode = NVME_FABRICS_OPCODE,
			.rsvd1 = 1 << 6, /* PSDT: SGL */
			.fctype = NVMF_CONNECT,
			.qid = cpu_to_le16(c->qid),
			.sqsize = cpu_to_le16(c->sqsize),
			.cattr = c->no_flow ? NVMF_CATTR_NO_SQ_FLOW : 0,
			.kato = cpu_to_le32(c->kato),
		},
	};
	memset(data->hostid, c->other_id ? 0x43 : 0x42, sizeof(data->hostid));
	strcpy(data->subsysnqn, subnqns[c->subsys % 4]);
	strcpy(data->hostnqn, c->stranger ? WORLD_HOST "2" : WORLD_HOST);
}

void form_read_connect(struct form_connect *c, uint16_t (*cntlid_of)(uint8_t which))
{
	uint8_t options = u8();

	*c = (struct form_connect){
		.subsys = options & 3,
		.in_capsule = options & 4,
		.no_flow = options & 8,
		.stranger = options & 16,
		.other_id = options & 64,
	};
	c->qid = u8();
	c->sqsize = u16();
	c->cntlid = cntlid_of(u8());
	c->kato = options & 32 ? (uint32_t)u16() << 16 : u16();
}

void form_enable(union nvme_sqe *sqe)
{
	*sqe = (union nvme_sqe){
		.property = {
			.opcode = NVME_FABRICS_OPCODE,
			.rsvd1 = 1 << 6,
			.fctype = NVMF_PROPERTY_SET,
			.offset = cpu_to_le32(NVME_REG_CC),
			.value = cpu_to_le64(0x460001),
		},
	};
}
