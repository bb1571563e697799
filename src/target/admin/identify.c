/* identify.c - Identify: the data structures of the controller, its namespaces and its command
 * set. */
#include <string.h>

#include "store/store.h"
#include "target/admin/admin.h"

static void copy_padded(char *to, size_t size, const char *text)
{
	memset(to, ' ', size);
	memcpy(to, text, strnlen(text, size));
}

static uint8_t mdts(const struct weft_subsys *s)
{
	return (uint8_t)__builtin_ctz((s->discovery ? WEFT_ANON_BYTES : WEFT_MDTS_BYTES) / 4096);
}

/* --- the controller --------------------------------------------------------------------------- */

static void ctrl_common(const struct tgt_ctrl *ctrl, struct nvme_id_ctrl *id)
{
	const struct weft_transport *transport = weft_transport_find(ctrl->trtype);
	const struct weft_subsys *s = ctrl->subsys;

	copy_padded(id->sn, sizeof(id->sn), s->serial);
	copy_padded(id->mn, sizeof(id->mn), s->model);
	copy_padded(id->fr, sizeof(id->fr), WEFT_VERSION);
	id->mdts = mdts(s);
	id->cntlid = cpu_to_le16(ctrl->cntlid);
	id->ver = cpu_to_le32(0x20000);
	id->ctratt = cpu_to_le32(NVME_CTRL_CTRATT_128_ID | NVME_CTRL_CTRATT_TBKAS);
	id->acl = 3;
	id->aerl = TGT_AERS_MAX - 1;
	id->elpe = TGT_ERRORS_MAX - 1;
	id->lpa = NVME_CTRL_LPA_EXTENDED;
	id->kas = cpu_to_le16(TGT_KAS_MS / 100);
	id->maxcmd = cpu_to_le16((uint16_t)s->target->depth_max);
	/* Byte granular, in-capsule offsets; buffers may be larger than data. */
	id->sgls = cpu_to_le32(1 | NVME_CTRL_SGLS_OVERSIZE | NVME_CTRL_SGLS_OFFSET |
			       transport->sgls);
	strcpy(id->subnqn, s->discovery ? NVME_NQN_DISCOVERY : s->nqn);
	id->ioccsz = cpu_to_le32((64 + transport->capsule_data) / 16);
	id->iorcsz = cpu_to_le32(1);
	id->msdbd = transport->sgl_descriptors_max;
}

static void ctrl_discovery(struct nvme_id_ctrl *id)
{
	id->cntrltype = NVME_CTRL_CNTRLTYPE_DISCOVERY;
	id->dctype = NVME_CTRL_DCTYPE_DDC;
	id->oaes = cpu_to_le32(NVME_CTRL_OAES_DL);
}

static void ctrl_io(struct nvme_id_ctrl *id)
{
	id->cntrltype = NVME_CTRL_CNTRLTYPE_IO;
	id->rab = 6;
	id->cmic = NVME_CTRL_CMIC_MULTI_PORT | NVME_CTRL_CMIC_MULTI_CTRL |
		   NVME_CTRL_CMIC_MULTI_ANA_REPORTING;
	id->oaes = cpu_to_le32(NVME_CTRL_OAES_NA | NVME_CTRL_OAES_ANA | NVME_CTRL_OAES_CCR);
	id->ctratt |= cpu_to_le32(NVME_CTRL_CTRATT_ENDURANCE_GROUPS);
	id->oacs = cpu_to_le16(NVME_CTRL_OACS_LBA_STATUS);
	id->frmw = 1 << 1 | 1; /* one slot, read only */
	id->lpa |= NVME_CTRL_LPA_CMD_EFFECTS | 1 << 5 /* supported log pages, feature effects */;
	id->endgidmax = cpu_to_le16(1);
	id->sqes = 0x66;
	id->cqes = 0x44;
	id->nn = id->mnan = cpu_to_le32(WEFT_NSID_MAX);
	id->oncs = cpu_to_le16(NVME_CTRL_ONCS_COMPARE | NVME_CTRL_ONCS_DSM |
			       NVME_CTRL_ONCS_WRITE_ZEROES | NVME_CTRL_ONCS_SAVE_FEATURES |
			       NVME_CTRL_ONCS_RESERVATIONS | NVME_CTRL_ONCS_TIMESTAMP |
			       NVME_CTRL_ONCS_VERIFY | NVME_CTRL_ONCS_COPY);
	id->fuses = cpu_to_le16(1); /* Compare and Write */
	/* Always set: a namespace with a cache may be added later, and hosts read this once. Flush
	 * takes one namespace. */
	id->vwc = 1 | 2 << 1;
	id->acwu = cpu_to_le16(TGT_ACWU);
	id->ocfs = cpu_to_le16(1); /* Copy, format 0 */
	id->ofcs = cpu_to_le16(1); /* Disconnect */
}

/* A namespace never changes its group. */
static void ctrl_ana(struct nvme_id_ctrl *id)
{
	id->anatt = TGT_ANATT_S;
	id->anacap = NVME_CTRL_ANACAP_OPT | NVME_CTRL_ANACAP_NON_OPT |
		     NVME_CTRL_ANACAP_INACCESSIBLE | NVME_CTRL_ANACAP_PERSISTENT_LOSS |
		     NVME_CTRL_ANACAP_CHANGE | NVME_CTRL_ANACAP_GRPID_NO_CHG;
	id->anagrpmax = id->nanagrpid = cpu_to_le32(WEFT_ANA_GROUP_MAX);
}

/* CIU and CIRN name this instance in a Cross-Controller Reset. */
static void ctrl_instance(const struct tgt_ctrl *ctrl, struct nvme_id_ctrl *id)
{
	__le64 cirn = cpu_to_le64(ctrl->cirn);
	__le16 cqt = cpu_to_le16(TGT_CQT_MS);
	uint8_t *bytes = (uint8_t *)id;

	bytes[NVME_ID_CTRL_CIU] = ctrl->ciu;
	memcpy(bytes + NVME_ID_CTRL_CIRN, &cirn, sizeof(cirn));
	memcpy(bytes + NVME_ID_CTRL_CQT, &cqt, sizeof(cqt));
	bytes[NVME_ID_CTRL_CCRL] = TGT_CCRL;
}

static void identify_ctrl(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	struct nvme_id_ctrl id = { 0 };

	ctrl_common(ctrl, &id);
	if (ctrl->subsys->discovery) {
		ctrl_discovery(&id);
	} else {
		ctrl_io(&id);
		ctrl_ana(&id);
		ctrl_instance(ctrl, &id);
	}
	tgt_reply_data(req, &id, sizeof(id));
}

/* --- namespaces ------------------------------------------------------------------------------- */

static uint64_t used_blocks(const struct tgt_ns *ns, uint64_t blocks)
{
	uint64_t used;

	if (!ns->be->ops->used)
		return blocks;
	used = ns->be->ops->used(ns->be) >> ns->lba_shift;
	return used < blocks ? used : blocks;
}

/* Every type of reservation; persistence through power loss where a state file keeps it. */
static uint8_t rescap(const struct tgt_ns *ns)
{
	return NVME_NS_RESCAP_WE | NVME_NS_RESCAP_EA | NVME_NS_RESCAP_WERO | NVME_NS_RESCAP_EARO |
	       NVME_NS_RESCAP_WEAR | NVME_NS_RESCAP_EAAR | NVME_NS_RESCAP_IEK_13 |
	       (weft_store_persistent(ns->subsys->store) ? NVME_NS_RESCAP_PTPL : 0);
}

static void ns_fill(const struct tgt_ctrl *ctrl, const struct tgt_ns *ns, struct nvme_id_ns *id)
{
	uint64_t blocks = atomic_load(&ns->blocks);
	uint16_t page_blocks = (uint16_t)(4096 >> ns->lba_shift);

	id->nsze = id->ncap = cpu_to_le64(blocks);
	id->nuse = cpu_to_le64(tgt_ana_knows_usage(ctrl, ns) ? used_blocks(ns, blocks) : 0);
	id->nsfeat = (ns->be->thin ? NVME_NS_FEAT_THIN : 0) | NVME_NS_FEAT_IO_OPT;
	id->nmic = 1; /* shared by controllers */
	id->rescap = rescap(ns);
	id->dlfeat = 1 << 3 | 1; /* Write Zeroes deallocates; what is deallocated reads as zeroes */
	id->npwg = id->npwa = id->npdg = id->npda = cpu_to_le16(page_blocks - 1);
	id->nows = cpu_to_le16((uint16_t)((128 << 10 >> ns->lba_shift) - 1));
	id->mssrl = cpu_to_le16((uint16_t)(TGT_COPY_RANGE_BYTES >> ns->lba_shift));
	id->mcl = cpu_to_le32(TGT_COPY_BYTES >> ns->lba_shift);
	id->msrc = TGT_COPY_RANGES - 1;
	id->nsattr = ns->be->read_only ? 1 : 0;
	id->anagrpid = cpu_to_le32(ns->ana_group);
	id->endgid = cpu_to_le16(1);
	memcpy(id->nguid, ns->nguid, sizeof(id->nguid));
	id->lbaf[0].ds = ns->lba_shift;
}

/* NSID FFFFFFFFh asks for what all namespaces have in common; an inactive one reads as zeroes. */
static void identify_ns(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	uint32_t nsid = tgt_nsid(req);
	struct tgt_ns *ns = tgt_ns_find(ctrl->subsys, nsid);
	struct nvme_id_ns id = { 0 };

	if (!ns && (!nsid || nsid > WEFT_NSID_MAX)) {
		tgt_control_reply(req, SC_GENERIC(INVALID_NS) | SC_DNR);
		return;
	}
	if (ns)
		ns_fill(ctrl, ns, &id);
	tgt_reply_data(req, &id, sizeof(id));
}

static void identify_ns_independent(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	struct tgt_ns *ns = tgt_ns_find(ctrl->subsys, tgt_nsid(req));
	struct nvme_id_independent_id_ns id = { 0 };

	if (!ns) {
		tgt_control_reply(req, SC_GENERIC(INVALID_NS) | SC_DNR);
		return;
	}
	id.nmic = 1;
	id.anagrpid = cpu_to_le32(ns->ana_group);
	id.rescap = rescap(ns);
	id.nsattr = ns->be->read_only ? 1 : 0;
	id.endgid = cpu_to_le16(1);
	id.nstat = 1; /* ready */
	tgt_reply_data(req, &id, sizeof(id));
}

static void reply_ns_list(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t above)
{
	__le32 list[1024] = { 0 };
	unsigned n = 0;

	if (above >= NVME_NSID_BROADCAST - 1) {
		tgt_control_reply(req, SC_GENERIC(INVALID_NS) | SC_DNR);
		return;
	}
	for (uint32_t nsid = above + 1; nsid <= WEFT_NSID_MAX && n < 1024; nsid++)
		if (tgt_ns_find(ctrl->subsys, nsid))
			list[n++] = cpu_to_le32(nsid);
	tgt_reply_data(req, list, sizeof(list));
}

static void identify_ns_list(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	reply_ns_list(req, ctrl, tgt_nsid(req));
}

static size_t add_desc(char *page, size_t at, uint8_t type, uint8_t len, const void *value)
{
	struct nvme_ns_id_desc *desc = (struct nvme_ns_id_desc *)(page + at);

	assert(at + sizeof(*desc) + len <= NVME_IDENTIFY_DATA_SIZE);
	desc->nidt = type;
	desc->nidl = len;
	memcpy(desc->nid, value, len);
	return at + sizeof(*desc) + len;
}

static void identify_ns_descs(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	static const uint8_t csi = NVME_CSI_NVM;
	struct tgt_ns *ns = tgt_ns_find(ctrl->subsys, tgt_nsid(req));
	char page[4096] = { 0 };
	size_t at = 0;

	if (!ns) {
		tgt_control_reply(req, SC_GENERIC(INVALID_NS) | SC_DNR);
		return;
	}
	at = add_desc(page, at, NVME_NIDT_NGUID, NVME_NIDT_NGUID_LEN, ns->nguid);
	at = add_desc(page, at, NVME_NIDT_UUID, NVME_NIDT_UUID_LEN, ns->uuid);
	add_desc(page, at, NVME_NIDT_CSI, NVME_NIDT_CSI_LEN, &csi);
	tgt_reply_data(req, page, sizeof(page));
}

/* --- I/O command sets: there is one, NVM ------------------------------------------------------ */

static bool asks_for_nvm(struct weft_req *req)
{
	uint8_t csi = (uint8_t)(le32_to_cpu(req->cmd.common.cdw11) >> 24);

	if (csi == NVME_CSI_NVM)
		return true;
	tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
	return false;
}

static void identify_csi_ns(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	struct nvme_nvm_id_ns id = { 0 };

	if (!asks_for_nvm(req))
		return;
	if (!tgt_ns_find(ctrl->subsys, tgt_nsid(req)))
		tgt_control_reply(req, SC_GENERIC(INVALID_NS) | SC_DNR);
	else
		tgt_reply_data(req, &id, sizeof(id));
}

static void identify_csi_ctrl(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	/* Verify and Write Zeroes move no data: their sizes have no limit but the field's. */
	struct nvme_id_ctrl_nvm id = { .dmrl = (uint8_t)(TGT_DSM_RANGES - 1),
				       .dmrsl = htole32(TGT_DSM_BLOCKS),
				       .dmsl = htole64(TGT_DSM_BLOCKS) };

	(void)ctrl;
	((uint8_t *)&id)[NVME_ID_CTRL_NVM_AOCS] = NVME_AOCS_RALBAS;
	if (asks_for_nvm(req))
		tgt_reply_data(req, &id, sizeof(id));
}

static void identify_csi_ns_list(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	if (asks_for_nvm(req))
		reply_ns_list(req, ctrl, tgt_nsid(req));
}

static void identify_command_sets(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	__le64 combinations[512] = { cpu_to_le64(1) };

	(void)ctrl;
	tgt_reply_data(req, combinations, sizeof(combinations));
}

/* --- controllers of the subsystem ------------------------------------------------------------- */

enum { IDS = 1 << 16, WORD = 64 };

/* Controllers are listed in order of arrival; a bit for each puts their ids in order. */
static void mark_ctrls(const struct weft_subsys *s, uint64_t marks[IDS / WORD])
{
	struct tgt_ctrl *ctrl;

	weft_list_for_each(ctrl, &s->ctrls, link)
		if (!ctrl->dying)
			marks[ctrl->cntlid / WORD] |= 1ull << ctrl->cntlid % WORD;
}

/* The lowest ids from the given one on; a host that wants more asks again behind the last.
 * Controllers of other members of a cluster are not in the list: no member knows them. */
static void identify_ctrl_list(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	uint32_t id = le32_to_cpu(req->cmd.common.cdw10) >> 16;
	uint64_t marks[IDS / WORD] = { 0 };
	struct nvme_ctrl_list list = { 0 };
	unsigned n = 0;

	mark_ctrls(ctrl->subsys, marks);
	for (; id < IDS && n < NVME_ID_CTRL_LIST_MAX; id++)
		if (marks[id / WORD] >> id % WORD & 1)
			list.identifier[n++] = cpu_to_le16((uint16_t)id);
	list.num = cpu_to_le16((uint16_t)n);
	tgt_reply_data(req, &list, sizeof(list));
}

static void identify_ns_ctrl_list(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	if (!tgt_ns_find(ctrl->subsys, tgt_nsid(req)))
		tgt_control_reply(req, SC_GENERIC(INVALID_NS) | SC_DNR);
	else
		identify_ctrl_list(req, ctrl);
}

/* --- dispatch --------------------------------------------------------------------------------- */

static const struct {
	void (*execute)(struct weft_req *req, struct tgt_ctrl *ctrl);
	bool on_discovery;
} by_cns[256] = {
	[NVME_IDENTIFY_CNS_NS] = { identify_ns, false },
	[NVME_IDENTIFY_CNS_CTRL] = { identify_ctrl, true },
	[NVME_IDENTIFY_CNS_NS_ACTIVE_LIST] = { identify_ns_list, false },
	[NVME_IDENTIFY_CNS_NS_DESC_LIST] = { identify_ns_descs, false },
	[NVME_IDENTIFY_CNS_CSI_NS] = { identify_csi_ns, false },
	[NVME_IDENTIFY_CNS_CSI_CTRL] = { identify_csi_ctrl, false },
	[NVME_IDENTIFY_CNS_CSI_NS_ACTIVE_LIST] = { identify_csi_ns_list, false },
	[NVME_IDENTIFY_CNS_CSI_INDEPENDENT_ID_NS] = { identify_ns_independent, false },
	/* Namespaces are created outside of NVMe: allocated is the same as active. */
	[NVME_IDENTIFY_CNS_ALLOCATED_NS_LIST] = { identify_ns_list, false },
	[NVME_IDENTIFY_CNS_ALLOCATED_NS] = { identify_ns, false },
	[NVME_IDENTIFY_CNS_NS_CTRL_LIST] = { identify_ns_ctrl_list, false },
	[NVME_IDENTIFY_CNS_CTRL_LIST] = { identify_ctrl_list, false },
	[NVME_IDENTIFY_CNS_COMMAND_SET_STRUCTURE] = { identify_command_sets, false },
};

void tgt_identify(struct weft_req *req)
{
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;
	uint8_t cns = le32_to_cpu(req->cmd.common.cdw10) & 0xff;

	assert_on_control(ctrl->subsys->target);
	if (!by_cns[cns].execute || (ctrl->subsys->discovery && !by_cns[cns].on_discovery))
		tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
	else
		by_cns[cns].execute(req, ctrl);
}
