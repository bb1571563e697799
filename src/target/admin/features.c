/* features.c - Get and Set Features.
 *
 * Most features are a dword that the host sets and gets back: a row in the table with its default
 * and the bits that may change. Those that do something have functions. None can be saved. */
#include <string.h>

#include "target/admin/admin.h"
#include "target/resv/resv.h"

struct feature {
	bool supported, on_discovery;
	bool per_namespace; /* of a namespace, which may be inaccessible */
	uint32_t initial;
	uint32_t changeable; /* bits of dword 11; 0: the feature cannot be changed */
	uint16_t (*set)(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value);
	uint16_t (*get)(struct weft_req *req, struct tgt_ctrl *ctrl); /* sets result or data */
};

static const struct feature table[256];

/* --- features that do something --------------------------------------------------------------- */

static uint16_t set_queues(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	uint32_t want = (value & 0xffff) > value >> 16 ? value & 0xffff : value >> 16;
	uint32_t most = ctrl->subsys->target->io_queues_max;
	struct tgt_queue *queue;

	if ((value & 0xffff) == 0xffff || value >> 16 == 0xffff)
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	weft_list_for_each(queue, &ctrl->queues, link)
		if (queue->qid && tgt_queue_has_id(queue))
			return SC_GENERIC(CMD_SEQ_ERROR) | SC_DNR;
	ctrl->io_queues = want + 1 < most ? want + 1 : most;
	ctrl->features[NVME_FEAT_FID_NUM_QUEUES] = (ctrl->io_queues - 1) * 0x10001u;
	req->cqe.result = cpu_to_le64(ctrl->features[NVME_FEAT_FID_NUM_QUEUES]);
	return 0;
}

static uint16_t set_kato(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	(void)req;
	if (ctrl->subsys->discovery && value > TGT_DISCOVERY_KATO_MAX_MS)
		return SC_GENERIC(KAT_INVALID) | SC_DNR;
	tgt_ctrl_set_kato(ctrl, value);
	ctrl->features[NVME_FEAT_FID_KATO] = ctrl->kato_ms;
	return 0;
}

static uint16_t get_kato(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	req->cqe.result = cpu_to_le64(ctrl->kato_ms);
	return 0;
}

static uint16_t set_write_cache(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	(void)req;
	atomic_store(&ctrl->write_cache, value & 1);
	ctrl->features[NVME_FEAT_FID_VOLATILE_WC] = value & 1;
	return 0;
}

static uint16_t copy_data_in(struct weft_req *req, void *to, size_t size)
{
	if (req->data_len < size || !req->data)
		return SC_GENERIC(SGL_INVALID_DATA) | SC_DNR;
	memcpy(to, req->data, size);
	return 0;
}

static uint16_t copy_data_out(struct weft_req *req, const void *from, size_t size)
{
	if (req->data_len < size || !req->data)
		return SC_GENERIC(SGL_INVALID_DATA) | SC_DNR;
	memcpy(req->data, from, size);
	req->reply_len = (uint32_t)size;
	return 0;
}

static uint16_t set_host_behavior(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	(void)value;
	return copy_data_in(req, ctrl->host_behavior, sizeof(ctrl->host_behavior));
}

static uint16_t get_host_behavior(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	return copy_data_out(req, ctrl->host_behavior, sizeof(ctrl->host_behavior));
}

static uint64_t control_now_ms(const struct tgt_ctrl *ctrl)
{
	return weft_reactor_now_ns(ctrl->subsys->target->control) / 1000000;
}

static uint16_t set_timestamp(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	struct nvme_timestamp ts;
	uint16_t sc = copy_data_in(req, &ts, sizeof(ts));

	(void)value;
	if (sc)
		return sc;
	ctrl->timestamp_ms = 0;
	for (int i = 5; i >= 0; i--)
		ctrl->timestamp_ms = ctrl->timestamp_ms << 8 | ts.timestamp[i];
	ctrl->timestamp_at_ms = control_now_ms(ctrl);
	ctrl->timestamp_by_host = true;
	return 0;
}

static uint16_t get_timestamp(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	uint64_t ms = ctrl->timestamp_ms + control_now_ms(ctrl) - ctrl->timestamp_at_ms;
	struct nvme_timestamp ts = { .attr = ctrl->timestamp_by_host ? 1 << 1 : 0 };

	for (int i = 0; i < 6; i++)
		ts.timestamp[i] = (uint8_t)(ms >> 8 * i);
	return copy_data_out(req, &ts, sizeof(ts));
}

/* EXHID: the only form on fabrics is the 128-bit one. */
static uint16_t get_host_id(struct weft_req *req, struct tgt_ctrl *ctrl)
{
	if (!(le32_to_cpu(req->cmd.common.cdw11) & 1))
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	return copy_data_out(req, ctrl->hostid, sizeof(ctrl->hostid));
}

static uint16_t set_power_state(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	(void)req;
	(void)ctrl;
	return value & 0x1f ? SC_GENERIC(INVALID_FIELD) | SC_DNR : 0; /* there is one vector */
}

static uint16_t set_error_recovery(struct weft_req *req, struct tgt_ctrl *ctrl, uint32_t value)
{
	(void)req;
	if (value & 1u << 16) /* DULBE: deallocated blocks read as zeroes, never as an error */
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	ctrl->features[NVME_FEAT_FID_ERR_RECOVERY] = value;
	return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

#define EVENTS_IO        (NVME_CTRL_OAES_NA | NVME_CTRL_OAES_ANA | NVME_CTRL_OAES_CCR)
#define EVENTS_DISCOVERY NVME_CTRL_OAES_DL

static const struct feature table[256] = {
	[NVME_FEAT_FID_ARBITRATION] = { .supported = true, .initial = 7, .changeable = ~0u },
	[NVME_FEAT_FID_POWER_MGMT] = { .supported = true,
				       .changeable = ~0u,
				       .set = set_power_state },
	[NVME_FEAT_FID_TEMP_THRESH] = { .supported = true, .initial = 0xffff, .changeable = ~0u },
	[NVME_FEAT_FID_ERR_RECOVERY] = { .supported = true,
					 .per_namespace = true,
					 .changeable = ~0u,
					 .set = set_error_recovery },
	[NVME_FEAT_FID_VOLATILE_WC] = { .supported = true,
					.initial = 1,
					.changeable = 1,
					.set = set_write_cache },
	[NVME_FEAT_FID_NUM_QUEUES] = { .supported = true, .changeable = ~0u, .set = set_queues },
	[NVME_FEAT_FID_WRITE_ATOMIC] = { .supported = true, .per_namespace = true, .changeable = 1 },
	[NVME_FEAT_FID_ASYNC_EVENT] = { .supported = true,
					.on_discovery = true,
					.changeable = EVENTS_IO | EVENTS_DISCOVERY | 0xff },
	[NVME_FEAT_FID_TIMESTAMP] = { .supported = true,
				      .changeable = ~0u,
				      .set = set_timestamp,
				      .get = get_timestamp },
	[NVME_FEAT_FID_KATO] = { .supported = true,
				 .on_discovery = true,
				 .changeable = ~0u,
				 .set = set_kato,
				 .get = get_kato },
	[NVME_FEAT_FID_HOST_BEHAVIOR] = { .supported = true,
					  .changeable = ~0u,
					  .set = set_host_behavior,
					  .get = get_host_behavior },
	[NVME_FEAT_FID_IOCS_PROFILE] = { .supported = true },
	[NVME_FEAT_FID_RESV_MASK] = { .supported = true,
				      .changeable = TGT_RESV_MASKS,
				      .set = tgt_set_resv_mask,
				      .get = tgt_get_resv_mask,
				      .per_namespace = true },
	[NVME_FEAT_FID_RESV_PERSIST] = { .supported = true,
					 .changeable = 1,
					 .set = tgt_set_resv_persist,
					 .get = tgt_get_resv_persist,
					 .per_namespace = true },
	[NVME_FEAT_FID_HOST_ID] = { .supported = true, .on_discovery = true, .get = get_host_id },
};

static const struct feature *find_feature(struct weft_req *req)
{
	const struct feature *f = &table[le32_to_cpu(req->cmd.common.cdw10) & 0xff];

	if (!f->supported || (tgt_queue(req)->ctrl->subsys->discovery && !f->on_discovery))
		return NULL;
	return f;
}

uint32_t tgt_feature_effects(uint8_t fid)
{
	uint32_t scope = table[fid].per_namespace ? NVME_FID_SUPPORTED_EFFECTS_SCOPE_NS :
						    NVME_FID_SUPPORTED_EFFECTS_SCOPE_CTRL;

	return table[fid].supported ? NVME_FID_SUPPORTED_EFFECTS_FSUPP |
					      scope << NVME_FID_SUPPORTED_EFFECTS_SCOPE_SHIFT :
				      0;
}

uint32_t tgt_feature_initial(const struct tgt_ctrl *ctrl, uint8_t fid)
{
	if (fid == NVME_FEAT_FID_NUM_QUEUES)
		return (ctrl->subsys->target->io_queues_max - 1) * 0x10001u;
	return table[fid].initial;
}

void tgt_features_reset(struct tgt_ctrl *ctrl)
{
	assert_on_control(ctrl->subsys->target);
	for (int i = 0; i < 256; i++)
		ctrl->features[i] = tgt_feature_initial(ctrl, (uint8_t)i);
	ctrl->io_queues = ctrl->subsys->target->io_queues_max;
	atomic_store(&ctrl->write_cache, true);
	memset(ctrl->host_behavior, 0, sizeof(ctrl->host_behavior));
	ctrl->timestamp_ms = 0;
	ctrl->timestamp_at_ms = control_now_ms(ctrl);
	ctrl->timestamp_by_host = false;
}

/* NVMe base 2.2, figure 589: with persistent loss of a namespace none of its features can be set
 * through this controller, and with any namespace inaccessible no feature of all namespaces. */
static uint16_t set_feature_ana_status(struct weft_req *req, const struct feature *f)
{
	uint16_t sc = tgt_ana_check_nsid(tgt_queue(req)->ctrl, tgt_nsid(req));

	if (f->per_namespace || sc == SC_PATH(ANA_PERSISTENT_LOSS) ||
	    tgt_nsid(req) == NVME_NSID_BROADCAST)
		return sc;
	return 0;
}

static uint16_t get_feature_ana_status(struct weft_req *req, const struct feature *f)
{
	if (!f->per_namespace || tgt_nsid(req) == NVME_NSID_BROADCAST)
		return 0;
	return tgt_ana_check_nsid(tgt_queue(req)->ctrl, tgt_nsid(req));
}

static void reply_feature(struct weft_req *req, uint16_t sc)
{
	if (sc != TGT_FEATURE_ANSWERED)
		tgt_control_reply(req, sc);
}

void tgt_set_features(struct weft_req *req)
{
	const struct feature *f = find_feature(req);
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;
	uint32_t cdw10 = le32_to_cpu(req->cmd.common.cdw10);
	uint32_t value = le32_to_cpu(req->cmd.common.cdw11);

	assert_on_control(ctrl->subsys->target);
	if (!f)
		tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
	else if (cdw10 & 1u << 31)
		tgt_control_reply(req, SC_COMMAND(FEATURE_NOT_SAVEABLE) | SC_DNR);
	else if (!f->changeable)
		tgt_control_reply(req, SC_COMMAND(FEATURE_NOT_CHANGEABLE) | SC_DNR);
	else if (set_feature_ana_status(req, f))
		tgt_control_reply(req, set_feature_ana_status(req, f));
	else if (f->set)
		reply_feature(req, f->set(req, ctrl, value));
	else if (value & ~f->changeable)
		tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
	else {
		ctrl->features[cdw10 & 0xff] = value;
		tgt_control_reply(req, 0);
	}
}

/* SEL: current value, default, saved or capabilities. */
void tgt_get_features(struct weft_req *req)
{
	enum { OF_NS = 1 << 1, CHANGEABLE = 1 << 2 };
	const struct feature *f = find_feature(req);
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;
	uint32_t cdw10 = le32_to_cpu(req->cmd.common.cdw10);
	unsigned select = cdw10 >> 8 & 7;

	assert_on_control(ctrl->subsys->target);
	if (!f || select > NVME_GET_FEATURES_SEL_SUPPORTED) {
		tgt_control_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
		return;
	}
	if (get_feature_ana_status(req, f)) {
		tgt_control_reply(req, get_feature_ana_status(req, f));
		return;
	}
	if (select == NVME_GET_FEATURES_SEL_SUPPORTED)
		req->cqe.result = cpu_to_le64((f->changeable ? CHANGEABLE : 0) |
					      (f->per_namespace ? OF_NS : 0));
	else if (select != NVME_GET_FEATURES_SEL_CURRENT)
		req->cqe.result = cpu_to_le64(tgt_feature_initial(ctrl, (uint8_t)cdw10));
	else if (f->get) {
		tgt_control_reply(req, f->get(req, ctrl));
		return;
	} else
		req->cqe.result = cpu_to_le64(ctrl->features[cdw10 & 0xff]);
	tgt_control_reply(req, 0);
}
