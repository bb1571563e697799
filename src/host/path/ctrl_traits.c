/* ctrl_traits.c - a controller's traits: what it says in Identify and in its properties, as far as
 * the host acts on it. */
#include <string.h>

#include "base/utf8.h"
#include "host/internal.h"

enum {
	OFCS_DISCONNECT = 1 << 0,
	KAS_UNIT_MS = 100,
	ANATT_DEFAULT_S = 10,       /* for a controller that does not say */
	TRANSFER_DEFAULT = 1 << 20, /* for a controller that names no limit */
};

/* A power of two of pages; the memory page size of CAP.MPSMIN. 0: no limit. */
static uint32_t limit_bytes(const struct host_traits *t, uint8_t power)
{
	unsigned page_shift = 12 + (t->cap >> 48 & 0xf);

	return !power ? 0 : power + page_shift > 31 ? 1u << 31 : 1u << (power + page_shift);
}

static void note_limits(struct host_traits *t, const struct nvme_id_ctrl *id)
{
	uint32_t mdts = limit_bytes(t, id->mdts), ioccsz = le32_to_cpu(id->ioccsz);

	t->transfer_max = mdts && mdts < TRANSFER_DEFAULT ? mdts : TRANSFER_DEFAULT;
	t->zero_max = t->verify_max = mdts ? mdts : UINT32_MAX;
	t->trim_blocks = UINT32_MAX;
	/* A capsule holds the command and its data, in units of 16 bytes; ICDOFF puts data further
	 * in. */
	t->capsule_max = 0;
	if (!le16_to_cpu(id->icdoff) && ioccsz > 4 && le32_to_cpu(id->sgls) & NVME_CTRL_SGLS_OFFSET)
		t->capsule_max = ioccsz < (1 << 16) ? ioccsz * 16 - 64 : 1 << 20;
	t->blocks_max = id->msdbd ? id->msdbd : 1;
}

/* NVMe base 2.3; these bytes are zero before. */
static void note_instance(struct host_traits *t, const char *page)
{
	__le64 cirn;
	__le16 cqt;

	memcpy(&cirn, page + NVME_ID_CTRL_CIRN, sizeof(cirn));
	memcpy(&cqt, page + NVME_ID_CTRL_CQT, sizeof(cqt));
	t->ciu = (uint8_t)page[NVME_ID_CTRL_CIU];
	t->cirn = le64_to_cpu(cirn);
	t->cqt_ms = le16_to_cpu(cqt);
	t->ccrl = (uint8_t)page[NVME_ID_CTRL_CCRL];
}

void host_traits_identify(struct host_traits *t, const struct nvme_id_ctrl *id, bool discovery)
{
	weft_utf8_copy(t->model, id->mn, sizeof(id->mn));
	weft_utf8_copy(t->serial, id->sn, sizeof(id->sn));
	weft_utf8_copy(t->firmware, id->fr, sizeof(id->fr));
	t->discovery = discovery || id->cntrltype == NVME_CTRL_CNTRLTYPE_DISCOVERY;
	t->oacs = le16_to_cpu(id->oacs);
	t->tells_allocated = false;
	t->oncs = le16_to_cpu(id->oncs);
	t->fuses = le16_to_cpu(id->fuses);
	t->ctratt = le32_to_cpu(id->ctratt);
	t->oaes = le32_to_cpu(id->oaes);
	t->vwc = id->vwc;
	t->keepalive_step_ms = le16_to_cpu(id->kas) * KAS_UNIT_MS;
	t->aers = id->aerl < HOST_AERS ? id->aerl + 1 : HOST_AERS;
	t->ana = id->cmic & NVME_CTRL_CMIC_MULTI_ANA_REPORTING && !t->discovery;
	t->anatt_s = id->anatt ? id->anatt : ANATT_DEFAULT_S;
	t->ana_groups = le32_to_cpu(id->nanagrpid);
	t->disconnects = le16_to_cpu(id->ofcs) & OFCS_DISCONNECT;
	if (id->maxcmd && le16_to_cpu(id->maxcmd) < t->depth)
		t->depth = le16_to_cpu(id->maxcmd);
	note_instance(t, (const char *)id);
	note_limits(t, id);
}

/* 0: not limited. */
static void limit_trim(struct host_traits *t, uint64_t blocks)
{
	if (blocks && blocks < t->trim_blocks)
		t->trim_blocks = blocks;
}

void host_traits_limits(struct host_traits *t, const struct nvme_id_ctrl_nvm *nvm)
{
	if (nvm->wzsl)
		t->zero_max = limit_bytes(t, nvm->wzsl);
	if (nvm->vsl)
		t->verify_max = limit_bytes(t, nvm->vsl);
	limit_trim(t, le32toh(nvm->dmrsl));
	limit_trim(t, le64toh(nvm->dmsl));
	t->tells_allocated = t->oacs & NVME_CTRL_OACS_LBA_STATUS &&
			     ((const uint8_t *)nvm)[NVME_ID_CTRL_NVM_AOCS] & NVME_AOCS_RALBAS;
}
