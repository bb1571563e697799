/* ccr.c - Cross-Controller Reset (CCR): a host ends a controller that it has lost, through one that
 * it still has.
 *
 *   command ─▶ close the controller's queues ─▶ drain wait: storage has none of its commands
 *       ├─ in time ─▶ answered: done (IRS)
 *       └─ takes too long ─▶ answered: in progress, a log entry ─▶ done: reported by an event
 *
 * A controller is named by its number and its instance, CIU and CIRN. An instance that does not
 * exist is done already: a number is not given to another controller, and a controller is not ready
 * again after a reset, before storage has none of the old commands. A host may end its own
 * controllers only. A controller of another member of a cluster is ended by that member
 * (cluster/remote_ccr.c).
 *
 * Invariant: ctrl->ccrs has the resets that @ctrl was asked for and has not answered, and those
 * that the log shows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "target/admin/admin.h"
#include "target/admin/ccr.h"

enum { LIMIT_MS = 8000 };

void tgt_ccr_new_instance(struct tgt_ctrl *ctrl)
{
	assert_on_control(ctrl->subsys->target);
	if (getrandom(&ctrl->cirn, sizeof(ctrl->cirn), GRND_NONBLOCK) < 0)
		ctrl->cirn = weft_reactor_now_ns(ctrl->subsys->target->control);
	if (!ctrl->ciu)
		ctrl->ciu = (uint8_t)ctrl->cirn;
	if (!++ctrl->ciu)
		ctrl->ciu = 1;
}

static void free_ccr(struct ccr *ccr)
{
	weft_list_remove(&ccr->link);
	free(ccr);
}

/* --- a reset, from its start to its end ------------------------------------------------------- */

static void ccr_reply(struct ccr *ccr, uint16_t sc, bool done)
{
	assert(done == (ccr->status == NVME_CCR_SUCCESS));
	ccr->req->cqe.result = cpu_to_le64(done ? NVME_CCR_IRS : 0);
	tgt_control_reply(ccr->req, sc);
	ccr->req = NULL;
}

/* Becomes an entry of the log if the host was told that it takes longer. */
static void ccr_finish(struct ccr *ccr, uint16_t sc)
{
	assert(ccr->status == NVME_CCR_IN_PROGRESS);
	ccr->status = sc ? NVME_CCR_FAILED : NVME_CCR_SUCCESS;
	if (ccr->req) {
		ccr_reply(ccr, sc, !sc);
		free_ccr(ccr);
	} else {
		tgt_event_raise(ccr->asked, TGT_EVENT_CCR);
	}
}

static struct ccr *ccr_new(struct weft_req *req)
{
	struct ccr *ccr = calloc(1, sizeof(*ccr));

	if (!ccr)
		return NULL;
	ccr->asked = tgt_queue(req)->ctrl;
	ccr->req = req;
	ccr->icid = le16_to_cpu(req->cmd.ccr.icid);
	ccr->ciu = req->cmd.ccr.ciu;
	weft_list_push(&ccr->asked->ccrs, &ccr->link);
	return ccr;
}

/* --- of a controller of ours ------------------------------------------------------------------ */

static struct tgt_queue *first_of_impacted(const struct tgt_drain_wait *drain)
{
	const struct tgt_ctrl *impacted = container_of(drain, struct ccr, drain)->impacted;

	return weft_list_empty(&impacted->queues) ?
		       NULL :
		       container_of(impacted->queues.next, struct tgt_queue, link);
}

static void ccr_drained(struct tgt_drain_wait *drain, bool all)
{
	struct ccr *ccr = container_of(drain, struct ccr, drain);

	assert(ccr->impacted && ccr->status == NVME_CCR_IN_PROGRESS);
	if (all) {
		ccr_finish(ccr, 0);
		return;
	}
	if (ccr->req)
		ccr_reply(ccr, 0, false);
	tgt_drain_wait_start(drain, 0);
}

/* 0: the reset has begun, and is answered later. */
static uint16_t ccr_start_local(struct weft_req *req, struct tgt_ctrl *impacted)
{
	struct ccr *ccr = ccr_new(req);
	char why[64];

	if (!ccr)
		return SC_GENERIC(INTERNAL);
	ccr->drain.subsys = impacted->subsys;
	ccr->drain.first_awaited = first_of_impacted;
	ccr->drain.done = ccr_drained;
	ccr->impacted = impacted;
	snprintf(why, sizeof(why), "its host resets it through controller %u", ccr->asked->cntlid);
	tgt_ctrl_kill(impacted, why);
	tgt_drain_wait_start(&ccr->drain, LIMIT_MS);
	return 0;
}

/* --- of another member's controller ----------------------------------------------------------- */

static void remote_ccr_done(struct tgt_remote_ccr *reset, int rc)
{
	struct ccr *ccr = container_of(reset, struct ccr, remote);

	assert(!ccr->impacted && ccr->status == NVME_CCR_IN_PROGRESS);
	if (rc != -ETIMEDOUT)
		ccr_finish(ccr, rc < 0 ? SC_GENERIC(OP_DENIED) | SC_DNR : 0);
	else if (ccr->req)
		ccr_reply(ccr, 0, false);
}

static uint16_t ccr_start_remote(struct weft_req *req)
{
	struct ccr *ccr = ccr_new(req);

	if (!ccr)
		return SC_GENERIC(INTERNAL);
	ccr->remote.done = remote_ccr_done;
	if (tgt_cluster_ccr_start(&ccr->remote, ccr->asked, &req->cmd.ccr, LIMIT_MS) == 0)
		return 0;
	free_ccr(ccr);
	return SC_COMMAND(CCR_LIMIT);
}

/* --- the command ------------------------------------------------------------------------------ */

struct tgt_ctrl *tgt_ccr_find(struct weft_subsys *s, uint16_t cntlid, uint8_t ciu, uint64_t cirn)
{
	struct tgt_ctrl *ctrl = tgt_ctrl_by_id(s, cntlid);

	assert_on_control(s->target);
	return ctrl && ctrl->ciu == ciu && ctrl->cirn == cirn ? ctrl : NULL;
}

static bool cntlid_is_local(const struct weft_subsys *s, uint16_t cntlid)
{
	return cntlid >= s->cntlid_first && cntlid <= s->cntlid_last;
}

static uint16_t check_ccr_limits(const struct tgt_ctrl *asked, uint16_t icid)
{
	unsigned under_way = 0, all = 0;
	struct ccr *ccr;

	weft_list_for_each(ccr, &asked->ccrs, link) {
		if (ccr->icid == icid && ccr->status == NVME_CCR_IN_PROGRESS)
			return SC_COMMAND(CCR_IN_PROGRESS);
		under_way += ccr->status == NVME_CCR_IN_PROGRESS;
		all++;
	}
	if (under_way >= TGT_CCRL)
		return SC_COMMAND(CCR_LIMIT);
	return all >= TGT_CCR_ENTRIES_MAX ? SC_COMMAND(CCR_LOG_FULL) : 0;
}

/* 0: @req was answered, or will be. */
static uint16_t ccr_start(struct weft_req *req)
{
	const struct nvme_ccr_cmd *cmd = &req->cmd.ccr;
	struct tgt_ctrl *asked = tgt_queue(req)->ctrl, *impacted;
	uint16_t icid = le16_to_cpu(cmd->icid), sc;

	/* For an id that no member gives, we cannot say that it is done. */
	if (icid == asked->cntlid || (!cntlid_is_local(asked->subsys, icid) &&
				      !tgt_cluster_node_of_cntlid(asked->subsys, icid)))
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	impacted = tgt_ccr_find(asked->subsys, icid, cmd->ciu, le64_to_cpu(cmd->cirn));
	if (!impacted && cntlid_is_local(asked->subsys, icid)) {
		req->cqe.result = cpu_to_le64(NVME_CCR_IRS);
		tgt_control_reply(req, 0);
		return 0;
	}
	if (impacted && !tgt_ctrl_is_of_host(impacted, asked->hostnqn, asked->hostid))
		return SC_GENERIC(OP_DENIED) | SC_DNR;
	sc = check_ccr_limits(asked, icid);
	if (sc)
		return sc;
	return impacted ? ccr_start_local(req, impacted) : ccr_start_remote(req);
}

void tgt_ccr(struct weft_req *req)
{
	uint16_t sc;

	assert_on_control(tgt_queue(req)->ctrl->subsys->target);
	sc = ccr_start(req);
	if (sc)
		tgt_control_reply(req, sc);
}

/* --- the end of the controller that was asked ------------------------------------------------- */

void tgt_ccr_abort_requests(struct tgt_ctrl *ctrl)
{
	struct ccr *ccr;

	assert_on_control(ctrl->subsys->target);
	weft_list_for_each(ccr, &ctrl->ccrs, link) {
		if (!ccr->req)
			continue;
		tgt_control_reply(ccr->req, SC_GENERIC(ABORT_QUEUE));
		ccr->req = NULL;
	}
}

void tgt_ccr_ctrl_gone(struct tgt_ctrl *ctrl)
{
	struct ccr *ccr, *tmp;

	assert_on_control(ctrl->subsys->target);
	weft_list_for_each_safe(ccr, tmp, &ctrl->ccrs, link) {
		assert(!ccr->req); /* its admin queue has ended: tgt_ccr_abort_requests() */
		if (ccr->status == NVME_CCR_IN_PROGRESS && ccr->impacted)
			tgt_drain_wait_cancel(&ccr->drain);
		else if (ccr->status == NVME_CCR_IN_PROGRESS)
			tgt_cluster_ccr_cancel(&ccr->remote);
		free_ccr(ccr);
	}
}
