/* ccr.c - Cross-Controller Reset: a host ends a controller that it lost, over one that it has.
 *
 *   command ─▶ its queues are closed ─▶ nothing of it is left with storage ─▶ answered: over (IRS)
 *                                  └─ takes too long ─▶ answered: in progress, an entry in the log
 *                                                          ─▶ over: told by an event
 *
 * A controller is named by its number and its instance, CIU and CIRN. What is named and not there
 * is over already: a number is not given to another one, nor is it ready again after a reset,
 * before storage has nothing of the time before. A host may end its own controllers only. One of
 * another member of a cluster is ended by that member (cluster/reset.c).
 *
 * Invariant: ctrl->ccrs has what @ctrl was asked for and has not answered, and what the log
 * tells. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "target/admin/admin.h"
#include "target/admin/ccr.h"

enum { LIMIT_MS = 8000 };

void tgt_ccr_new_instance(struct tgt_ctrl *ctrl)
{
	if (getrandom(&ctrl->cirn, sizeof(ctrl->cirn), GRND_NONBLOCK) < 0)
		ctrl->cirn = weft_reactor_now_ns(ctrl->subsys->target->home);
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

/* --- the way of one --------------------------------------------------------------------------- */

static void answer(struct ccr *ccr, uint16_t sc, bool over)
{
	ccr->req->cqe.result = cpu_to_le64(over ? NVME_CCR_IRS : 0);
	tgt_home_reply(ccr->req, sc);
	ccr->req = NULL;
}

/* An entry of the log from now on, if it has been told that it may take longer. */
static void end(struct ccr *ccr, uint16_t sc)
{
	ccr->status = sc ? NVME_CCR_FAILED : NVME_CCR_SUCCESS;
	if (ccr->req) {
		answer(ccr, sc, !sc);
		free_ccr(ccr);
	} else {
		tgt_event(ccr->asked, TGT_EVENT_CCR);
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

/* --- a controller of ours --------------------------------------------------------------------- */

static bool is_of_impacted(const struct tgt_over *over, const struct tgt_queue *queue)
{
	return queue->ctrl == container_of(over, struct ccr, over)->impacted;
}

static void waited(struct tgt_over *over, bool all)
{
	struct ccr *ccr = container_of(over, struct ccr, over);

	if (all) {
		end(ccr, 0);
		return;
	}
	if (ccr->req)
		answer(ccr, 0, false);
	tgt_over_wait(over, 0);
}

/* 0: it is begun, and answered later. */
static uint16_t reset_here(struct weft_req *req, struct tgt_ctrl *impacted)
{
	struct ccr *ccr = ccr_new(req);
	char why[64];

	if (!ccr)
		return SC_GENERIC(INTERNAL);
	ccr->over.subsys = impacted->subsys;
	ccr->over.awaits = is_of_impacted;
	ccr->over.done = waited;
	ccr->impacted = impacted;
	snprintf(why, sizeof(why), "its host resets it through controller %u", ccr->asked->cntlid);
	tgt_ctrl_kill(impacted, why);
	tgt_over_wait(&ccr->over, LIMIT_MS);
	return 0;
}

/* --- of another member's ---------------------------------------------------------------------- */

static void told(struct tgt_reset *reset, int rc)
{
	struct ccr *ccr = container_of(reset, struct ccr, elsewhere);

	if (rc != -ETIMEDOUT)
		end(ccr, rc < 0 ? SC_GENERIC(OP_DENIED) | SC_DNR : 0);
	else if (ccr->req)
		answer(ccr, 0, false);
}

static uint16_t reset_elsewhere(struct weft_req *req)
{
	struct ccr *ccr = ccr_new(req);

	if (!ccr)
		return SC_GENERIC(INTERNAL);
	ccr->elsewhere.done = told;
	if (tgt_cluster_reset(&ccr->elsewhere, ccr->asked, &req->cmd.ccr, LIMIT_MS) == 0)
		return 0;
	free_ccr(ccr);
	return SC_COMMAND(CCR_LIMIT);
}

/* --- the command ------------------------------------------------------------------------------ */

struct tgt_ctrl *tgt_ccr_find(struct weft_subsys *s, uint16_t cntlid, uint8_t ciu, uint64_t cirn)
{
	struct tgt_ctrl *ctrl = tgt_ctrl_by_id(s, cntlid);

	return ctrl && ctrl->ciu == ciu && ctrl->cirn == cirn ? ctrl : NULL;
}

static bool is_ours(const struct weft_subsys *s, uint16_t cntlid)
{
	return cntlid >= s->cntlid_first && cntlid <= s->cntlid_last;
}

static uint16_t check_room(const struct tgt_ctrl *asked, uint16_t icid)
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

/* 0: it is answered, or will be. */
static uint16_t reset(struct weft_req *req)
{
	const struct nvme_ccr_cmd *cmd = &req->cmd.ccr;
	struct tgt_ctrl *asked = tgt_queue(req)->ctrl, *impacted;
	uint16_t icid = le16_to_cpu(cmd->icid), sc;

	/* Of what no member of ours could have made we cannot say that it is over. */
	if (icid == asked->cntlid ||
	    (!is_ours(asked->subsys, icid) && !tgt_cluster_node_of(asked->subsys, icid)))
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	impacted = tgt_ccr_find(asked->subsys, icid, cmd->ciu, le64_to_cpu(cmd->cirn));
	if (!impacted && is_ours(asked->subsys, icid)) {
		req->cqe.result = cpu_to_le64(NVME_CCR_IRS);
		tgt_home_reply(req, 0);
		return 0;
	}
	if (impacted && !tgt_ctrl_is_of(impacted, asked->hostnqn, asked->hostid))
		return SC_GENERIC(OP_DENIED) | SC_DNR;
	sc = check_room(asked, icid);
	if (sc)
		return sc;
	return impacted ? reset_here(req, impacted) : reset_elsewhere(req);
}

void tgt_ccr(struct weft_req *req)
{
	uint16_t sc = reset(req);

	if (sc)
		tgt_home_reply(req, sc);
}

/* --- the end of the one that was asked -------------------------------------------------------- */

void tgt_ccr_cancel(struct tgt_ctrl *ctrl)
{
	struct ccr *ccr;

	weft_list_for_each(ccr, &ctrl->ccrs, link) {
		if (!ccr->req)
			continue;
		tgt_home_reply(ccr->req, SC_GENERIC(ABORT_QUEUE));
		ccr->req = NULL;
	}
}

void tgt_ccr_end(struct tgt_ctrl *ctrl)
{
	struct ccr *ccr, *tmp;

	weft_list_for_each_safe(ccr, tmp, &ctrl->ccrs, link) {
		if (ccr->status == NVME_CCR_IN_PROGRESS && ccr->impacted)
			tgt_over_cancel(&ccr->over);
		else if (ccr->status == NVME_CCR_IN_PROGRESS)
			tgt_cluster_reset_forget(&ccr->elsewhere);
		free_ccr(ccr);
	}
}
