/* foreign_target_cmd.c - what a stranger's target answers: as much as a host needs, and no more. */
#include <string.h>

#include "foreign_target_internal.h"
#include "proto/status.h"

enum { CSTS_RDY = 1, CSTS_SHST_DONE = 2 << 2, CC_EN = 1, CC_SHN = 3 << 14, KAS = 1 };

/* --- fabrics ---------------------------------------------------------------------------------- */

static void connect_queue(struct talk *talk, const struct nvmf_connect_cmd *cmd, const void *data)
{
	const struct nvmf_connect_data *d = data;
	struct owner *owner = NULL;

	if (!le16_to_cpu(cmd->qid))
		owner = foreign_own(talk, le32_to_cpu(cmd->kato));
	else
		owner = foreign_find(talk->stranger, le16_to_cpu(d->cntlid));
	if (!owner || owner->knows) {
		foreign_answer(talk, le16_to_cpu(cmd->cid), SC_COMMAND(CONNECT_INVALID_PARAM), 0);
		return;
	}
	talk->qid = le16_to_cpu(cmd->qid);
	foreign_join(talk, owner);
	foreign_answer(talk, le16_to_cpu(cmd->cid), 0, owner->cntlid);
}

static uint64_t property(const struct owner *owner, uint32_t offset)
{
	switch (offset) {
	case NVME_REG_CAP:
		return (STRANGER_DEPTH - 1) | 1 << 16 | 10 << 24 | UINT64_C(1) << 37;
	case NVME_REG_VS:
		return 0x20000;
	case NVME_REG_CC:
		return owner->cc;
	default:
		return owner->csts;
	}
}

static void set_cc(struct owner *owner, uint32_t value)
{
	owner->cc = value;
	owner->csts = value & CC_EN ? CSTS_RDY : 0;
	if (value & CC_SHN)
		owner->csts |= CSTS_SHST_DONE;
}

static void fabrics(struct talk *talk, const union nvme_sqe *sqe, const void *data)
{
	uint16_t cid = le16_to_cpu(sqe->common.cid);

	switch (sqe->connect.fctype) {
	case NVMF_CONNECT:
		connect_queue(talk, &sqe->connect, data);
		break;
	case NVMF_PROPERTY_GET:
		foreign_answer(talk, cid, 0,
			       property(talk->owner, le32_to_cpu(sqe->property.offset)));
		break;
	case NVMF_PROPERTY_SET:
		set_cc(talk->owner, (uint32_t)le64_to_cpu(sqe->property.value));
		foreign_answer(talk, cid, 0, 0);
		break;
	default:
		foreign_answer(talk, cid, SC_GENERIC(INVALID_OPCODE) | SC_DNR, 0);
	}
}

/* --- admin ------------------------------------------------------------------------------------ */

static void identify_ctrl(const struct owner *owner, char *page)
{
	const __le16 cqt = cpu_to_le16((uint16_t)owner->stranger->kind->cqt_ms);
	struct nvme_id_ctrl *id = (struct nvme_id_ctrl *)page;

	memcpy(id->sn, "STRANGER", 8);
	memcpy(id->mn, "not ours", 8);
	id->cntlid = cpu_to_le16(owner->cntlid);
	id->ver = cpu_to_le32(0x20000);
	id->ctratt = cpu_to_le32(NVME_CTRL_CTRATT_TBKAS);
	id->cntrltype = NVME_CTRL_CNTRLTYPE_IO;
	id->aerl = 3;
	id->kas = cpu_to_le16(KAS);
	id->sqes = 0x66;
	id->cqes = 0x44;
	id->maxcmd = cpu_to_le16(STRANGER_DEPTH);
	id->nn = cpu_to_le32(DISKS);
	id->vwc = 1;
	id->sgls = cpu_to_le32(1 | NVME_CTRL_SGLS_OFFSET);
	id->ioccsz = cpu_to_le32((64 + STRANGER_CAPSULE) / 16);
	id->iorcsz = cpu_to_le32(1);
	id->msdbd = 1;
	memcpy(page + NVME_ID_CTRL_CQT, &cqt, sizeof(cqt));
}

static void identify_ns(char *page)
{
	struct nvme_id_ns *id = (struct nvme_id_ns *)page;

	id->nsze = id->ncap = id->nuse = cpu_to_le64(DISK_BLOCKS);
	id->lbaf[0].ds = 12;
}
static_assert(DISK_BLOCK == 1 << 12, "its format");

static void identify_descriptors(uint32_t nsid, char *page)
{
	page[0] = NVME_NIDT_UUID;
	page[1] = 16;
	memset(page + 4, 0x5e, 16);
	page[19] = (char)nsid;
}

static void identify(struct talk *talk, const union nvme_sqe *sqe)
{
	uint16_t cid = le16_to_cpu(sqe->common.cid);
	uint32_t nsid = le32_to_cpu(sqe->common.nsid);
	char page[4096] = "";

	switch (le32_to_cpu(sqe->common.cdw10) & 0xff) {
	case NVME_IDENTIFY_CNS_CTRL:
		identify_ctrl(talk->owner, page);
		break;
	case NVME_IDENTIFY_CNS_NS:
		identify_ns(page);
		break;
	case NVME_IDENTIFY_CNS_NS_DESC_LIST:
		identify_descriptors(nsid, page);
		break;
	default:
		foreign_answer(talk, cid, SC_GENERIC(INVALID_FIELD) | SC_DNR, 0);
		return;
	}
	foreign_answer_data(talk, cid, page, sizeof(page));
}

static void admin(struct talk *talk, const union nvme_sqe *sqe)
{
	uint16_t cid = le16_to_cpu(sqe->common.cid);
	const uint32_t queues = STRANGER_QUEUES - 1;

	switch (sqe->common.opcode) {
	case nvme_admin_identify:
		identify(talk, sqe);
		break;
	case nvme_admin_async_event: /* nothing ever happens */
		break;
	case nvme_admin_set_features:
		foreign_answer(talk, cid, 0, queues | queues << 16);
		break;
	case nvme_admin_abort_cmd: /* it does not */
		foreign_answer(talk, cid, 0, 1);
		break;
	case nvme_admin_keep_alive:
		foreign_answer(talk, cid, 0, 0);
		break;
	default:
		foreign_answer(talk, cid, SC_GENERIC(INVALID_OPCODE) | SC_DNR, 0);
	}
}

/* --- I/O -------------------------------------------------------------------------------------- */

static void io(struct talk *talk, const union nvme_sqe *sqe, const void *data, uint32_t length)
{
	bool write = sqe->common.opcode == nvme_cmd_write;
	struct weft_io asked = {
		.kind = sqe->common.opcode == nvme_cmd_flush ? WEFT_IO_FLUSH :
			write                                ? WEFT_IO_WRITE :
							       WEFT_IO_READ,
	};

	if (asked.kind != WEFT_IO_FLUSH) {
		must(!sqe->rw.nlb && (!write || length == DISK_BLOCK));
		asked.offset = le64_to_cpu(sqe->rw.slba) * DISK_BLOCK;
		asked.length = DISK_BLOCK;
		asked.buf = (void *)data;
		if (le16_to_cpu(sqe->rw.control) & NVME_RW_FUA)
			asked.flags = WEFT_IO_FUA;
	}
	foreign_keep(talk, le16_to_cpu(sqe->common.cid), le32_to_cpu(sqe->common.nsid) - 1, &asked);
}

void foreign_command(struct talk *talk, const union nvme_sqe *sqe, const void *data,
		     uint32_t length)
{
	if (talk->owner)
		talk->owner->traffic = true;
	if (sqe->common.opcode == NVME_FABRICS_OPCODE)
		fabrics(talk, sqe, data);
	else if (talk->qid)
		io(talk, sqe, data, length);
	else
		admin(talk, sqe);
}
