/* features.c - Reservation Notification Mask and Reservation Persistence: features of a
 * namespace. */
#include <string.h>

#include "target/admin/admin.h"
#include "target/resv/resv.h"

uint16_t tgt_set_resv_mask(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	uint32_t nsid = tgt_nsid(req);

	if (value & ~(uint32_t)TGT_RESV_MASKS)
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	if (nsid == NVME_NSID_BROADCAST)
		memset(ctrl->resv_mask, (int)value, sizeof(ctrl->resv_mask));
	else if (tgt_ns_find(ctrl->subsys, nsid))
		ctrl->resv_mask[nsid - 1] = (uint8_t)value;
	else
		return SC_GENERIC(INVALID_NS) | SC_DNR;
	return 0;
}

uint16_t tgt_get_resv_mask(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	uint32_t nsid = tgt_nsid(req);

	if (!tgt_ns_find(ctrl->subsys, nsid))
		return SC_GENERIC(INVALID_NS) | SC_DNR;
	req->cqe.result = cpu_to_le64(ctrl->resv_mask[nsid - 1]);
	return 0;
}

/* A change of the reservation's state, answered when it is settled. */
uint16_t tgt_set_resv_persist(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	if (value & ~1u)
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	if (!tgt_ns_find(ctrl->subsys, tgt_nsid(req)))
		return SC_GENERIC(INVALID_NS) | SC_DNR;
	tgt_resv_set_persist(req, value & 1);
	return TGT_FEATURE_ANSWERED;
}

uint16_t tgt_get_resv_persist(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	struct tgt_ns *ns = tgt_ns_find(ctrl->subsys, tgt_nsid(req));
	const struct weft_store_record *record;
	struct resv_state st;

	if (!ns)
		return SC_GENERIC(INVALID_NS) | SC_DNR;
	if (tgt_resv_state(ns, &st, &record) < 0)
		return SC_GENERIC(INTERNAL);
	req->cqe.result = cpu_to_le64(st.ptpl);
	return 0;
}
