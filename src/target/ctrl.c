/* ctrl.c - a controller: an association with one host, from Connect until its last queue is gone.
 *
 * A controller lives as long as it has queues. When its admin queue ends, keep-alive expires or its
 * host is not allowed any more, its other queues are closed, and the last one to go frees it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/admin/admin.h"
#include "target/resv/resv.h"

static bool has_io_queues(const struct tgt_ctrl *ctrl);
static void ctrl_reset_done(struct tgt_ctrl *ctrl);

/* --- create and free -------------------------------------------------------------------------- */

static struct weft_list *cntlid_bucket(struct weft_subsys *s, uint16_t cntlid)
{
	return &s->by_cntlid[cntlid % TGT_CNTLID_BUCKETS];
}

struct tgt_ctrl *tgt_ctrl_by_id(struct weft_subsys *s, uint16_t cntlid)
{
	struct tgt_ctrl *ctrl;

	assert_on_control(s->target);
	weft_list_for_each(ctrl, cntlid_bucket(s, cntlid), by_cntlid)
		if (ctrl->cntlid == cntlid)
			return ctrl;
	return NULL;
}

struct tgt_ctrl *tgt_ctrl_find(struct weft_subsys *s, uint16_t cntlid)
{
	struct tgt_ctrl *ctrl = tgt_ctrl_by_id(s, cntlid);

	assert_on_control(s->target);
	return ctrl && !ctrl->dying ? ctrl : NULL;
}

uint64_t tgt_host_hash(const struct weft_target *t, const char *hostnqn, const uint8_t hostid[16])
{
	struct {
		uint64_t hostnqn;
		uint8_t hostid[16];
	} host = { .hostnqn = weft_keyed_hash(&t->hash_key, hostnqn, strlen(hostnqn)) };

	memcpy(host.hostid, hostid, sizeof(host.hostid));
	return weft_keyed_hash(&t->hash_key, &host, sizeof(host));
}

void tgt_ctrl_set_host(struct tgt_ctrl *ctrl, const char *hostnqn, const uint8_t hostid[16])
{
	strcpy(ctrl->hostnqn, hostnqn);
	memcpy(ctrl->hostid, hostid, sizeof(ctrl->hostid));
	ctrl->host_hash = tgt_host_hash(ctrl->subsys->target, hostnqn, hostid);
}

bool tgt_ctrl_is_of_host(const struct tgt_ctrl *ctrl, const char *hostnqn, const uint8_t hostid[16])
{
	return !strcmp(ctrl->hostnqn, hostnqn) &&
	       !memcmp(ctrl->hostid, hostid, sizeof(ctrl->hostid));
}

/* Ids are given in turn, so that one is not used again soon after its controller went. */
static int choose_cntlid(struct weft_subsys *s)
{
	for (unsigned tries = s->cntlid_first; tries <= s->cntlid_last; tries++) {
		if (s->cntlid_next < s->cntlid_first || s->cntlid_next >= s->cntlid_last)
			s->cntlid_next = s->cntlid_first - 1;
		s->cntlid_next++;
		if (!tgt_ctrl_by_id(s, s->cntlid_next))
			return s->cntlid_next;
	}
	return -1;
}

static struct tgt_ctrl *ctrl_new(struct weft_subsys *s, uint16_t cntlid)
{
	struct tgt_ctrl *ctrl = calloc(1, sizeof(*ctrl));

	assert(!tgt_ctrl_by_id(s, cntlid));
	if (!ctrl)
		return NULL;
	ctrl->subsys = s;
	ctrl->cntlid = cntlid;
	weft_list_init(&ctrl->queues);
	weft_list_init(&ctrl->aers);
	weft_list_init(&ctrl->ccrs);
	weft_list_push(&s->ctrls, &ctrl->link);
	weft_list_push(cntlid_bucket(s, cntlid), &ctrl->by_cntlid);
	tgt_features_reset(ctrl);
	return ctrl;
}

struct tgt_ctrl *tgt_ctrl_create(struct weft_subsys *s)
{
	int cntlid = choose_cntlid(s);

	assert_on_control(s->target);
	return cntlid < 0 ? NULL : ctrl_new(s, (uint16_t)cntlid);
}

struct tgt_ctrl *tgt_ctrl_adopt(struct weft_subsys *s, uint16_t cntlid)
{
	assert_on_control(s->target);
	return tgt_ctrl_by_id(s, cntlid) ? NULL : ctrl_new(s, cntlid);
}

void tgt_ctrl_free(struct tgt_ctrl *ctrl)
{
	assert_on_control(ctrl->subsys->target);
	assert(weft_list_empty(&ctrl->queues) && !ctrl->naers && weft_list_empty(&ctrl->ccrs));
	weft_timer_stop(ctrl->subsys->target->control, &ctrl->ka_timer);
	tgt_flow_leave(ctrl);
	weft_list_remove(&ctrl->link);
	weft_list_remove(&ctrl->by_cntlid);
	free(ctrl);
}

const char *tgt_host_name(const char *hostnqn)
{
	return hostnqn[0] ? hostnqn : "(no name)";
}

void tgt_ctrl_kill(struct tgt_ctrl *ctrl, const char *why)
{
	struct tgt_queue *queue;

	assert_on_control(ctrl->subsys->target);
	if (ctrl->dying)
		return;
	ctrl->dying = true;
	snprintf(ctrl->why, sizeof(ctrl->why), "%s", why);
	weft_peer_log(WEFT_LOG_INFO, "%s: controller %u of host %s ends: %s", ctrl->subsys->nqn,
		      ctrl->cntlid, tgt_host_name(ctrl->hostnqn), why);
	weft_list_for_each(queue, &ctrl->queues, link)
		tgt_queue_close(queue, ctrl->why);
}

void tgt_ctrl_queue_gone(struct tgt_ctrl *ctrl, struct tgt_queue *queue)
{
	struct weft_subsys *s = ctrl->subsys;

	assert_on_control(ctrl->subsys->target);
	weft_list_remove(&queue->link);
	tgt_admission_remove_queue(queue);
	if (queue == ctrl->admin) {
		ctrl->admin = NULL;
		tgt_ctrl_kill(ctrl, queue->qp->why);
	}
	if (ctrl->resetting && !has_io_queues(ctrl))
		ctrl_reset_done(ctrl);
	weft_list_remove(&queue->ending_link);
	tgt_drain_wait_queue_gone(queue);
	if (!weft_list_empty(&ctrl->queues))
		return;
	tgt_ccr_ctrl_gone(ctrl);
	tgt_ctrl_free(ctrl);
	tgt_subsys_ctrl_gone(s);
}

/* --- keep-alive: any command proves that the host lives --------------------------------------- */

/* The silence may be ours: when a stopped process or machine continues, timers run before the
 * reactors have read what hosts sent meanwhile. So a silent host gets a grace period before its
 * controller is ended. */
static void ka_expired(struct weft_timer *timer)
{
	struct tgt_ctrl *ctrl = container_of(timer, struct tgt_ctrl, ka_timer);

	assert(ctrl->kato_ms && ctrl->subsys->target->freeze_state != TGT_FROZEN);
	if (atomic_exchange(&ctrl->traffic, false)) {
		tgt_ctrl_restart_keepalive(ctrl);
	} else if (!ctrl->ka_grace) {
		ctrl->ka_grace = true;
		weft_timer_set(ctrl->subsys->target->control, &ctrl->ka_timer, TGT_KA_GRACE_MS);
	} else {
		tgt_ctrl_kill(ctrl, "keep-alive timeout");
	}
}

void tgt_ctrl_restart_keepalive(struct tgt_ctrl *ctrl)
{
	assert_on_control(ctrl->subsys->target);
	ctrl->ka_grace = false;
	if (ctrl->kato_ms)
		weft_timer_set(ctrl->subsys->target->control, &ctrl->ka_timer, ctrl->kato_ms);
}

void tgt_ctrl_set_kato(struct tgt_ctrl *ctrl, uint32_t kato_ms)
{
	uint64_t rounded = ((uint64_t)kato_ms + TGT_KAS_MS - 1) / TGT_KAS_MS * TGT_KAS_MS;

	assert_on_control(ctrl->subsys->target);
	if (ctrl->subsys->discovery && !rounded)
		rounded = TGT_DISCOVERY_KATO_MS;
	ctrl->ka_timer.fn = ka_expired;
	ctrl->kato_ms = rounded < UINT32_MAX ? (uint32_t)rounded : UINT32_MAX;
	if (ctrl->kato_ms)
		tgt_ctrl_restart_keepalive(ctrl);
	else
		weft_timer_stop(ctrl->subsys->target->control, &ctrl->ka_timer);
}

/* --- CC and CSTS ------------------------------------------------------------------------------ */

static bool cc_valid(uint32_t cc)
{
	return (NVME_CC_CSS(cc) == NVME_CC_CSS_NVM || NVME_CC_CSS(cc) == NVME_CC_CSS_CSI) &&
	       !NVME_CC_MPS(cc) && !NVME_CC_AMS(cc);
}

static void ctrl_enable(struct tgt_ctrl *ctrl)
{
	assert(!ctrl->resetting && NVME_CC_EN(ctrl->cc));
	ctrl->csts |= cc_valid(ctrl->cc) ? TGT_CSTS_RDY : TGT_CSTS_CFS;
	tgt_ccr_new_instance(ctrl);
}

static bool has_io_queues(const struct tgt_ctrl *ctrl)
{
	struct tgt_queue *queue;

	weft_list_for_each(queue, &ctrl->queues, link)
		if (queue->qid)
			return true;
	return false;
}

/* Waits for the last I/O queue, and with it for the last write from before the reset. */
static void ctrl_reset_done(struct tgt_ctrl *ctrl)
{
	assert(ctrl->resetting && !has_io_queues(ctrl));
	ctrl->resetting = false;
	ctrl->csts = 0;
	tgt_features_reset(ctrl);
	if (NVME_CC_EN(ctrl->cc))
		ctrl_enable(ctrl);
}

static void ctrl_reset(struct tgt_ctrl *ctrl)
{
	struct tgt_queue *queue;

	ctrl->resetting = true;
	tgt_aer_cancel_all(ctrl, SC_GENERIC(ABORT_QUEUE));
	tgt_ccr_remove_completed(ctrl);
	ctrl->events_pending = ctrl->events_masked = 0;
	ctrl->nchanged = 0;
	tgt_resv_log_reset(ctrl);
	weft_list_for_each(queue, &ctrl->queues, link)
		if (queue->qid)
			tgt_queue_close(queue, "controller reset");
	if (!has_io_queues(ctrl))
		ctrl_reset_done(ctrl);
}

void tgt_ctrl_set_cc(struct tgt_ctrl *ctrl, uint32_t cc)
{
	uint32_t changed = ctrl->cc ^ cc;

	assert_on_control(ctrl->subsys->target);
	ctrl->cc = cc;
	if (!NVME_CC_EN(changed))
		return;
	if (!NVME_CC_EN(cc))
		ctrl_reset(ctrl);
	else if (!ctrl->resetting)
		ctrl_enable(ctrl);
}

/* A reset may have cancelled the shutdown meanwhile. */
void tgt_ctrl_shutdown_done(struct tgt_ctrl *ctrl)
{
	assert_on_control(ctrl->subsys->target);
	if (NVME_CC_SHN(ctrl->cc))
		ctrl->csts |= TGT_CSTS_SHUT_DOWN;
}

/* --- the error log ---------------------------------------------------------------------------- */

/* Other commands have a count, a key, or nothing in these dwords. */
static bool has_slba(const struct weft_req *req)
{
	return req->qp->sqid && nvme_io_traits(req->cmd.common.opcode) & NVME_IO_SLBA;
}

void tgt_ctrl_log_error(struct tgt_ctrl *ctrl, struct weft_req *req, uint16_t status)
{
	struct nvme_error_log_page *entry = &ctrl->errors[ctrl->nerrors++ % TGT_ERRORS_MAX];

	assert_on_control(ctrl->subsys->target);
	*entry = (struct nvme_error_log_page){
		.error_count = cpu_to_le64(ctrl->nerrors),
		.sqid = cpu_to_le16(req->qp->sqid),
		.cmdid = req->cmd.common.cid,
		.status_field = cpu_to_le16((uint16_t)(status << 1)),
		.parm_error_location = cpu_to_le16(0xffff),
		.lba = has_slba(req) ? req->cmd.rw.slba : cpu_to_le64(0),
		.nsid = req->cmd.common.nsid,
	};
}
