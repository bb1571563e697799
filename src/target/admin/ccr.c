/* ccr.c - Cross-Controller Reset: a host ends a controller that it lost, over one that it has.
 *
 *   command ─▶ its queues are closed ─▶ nothing of it is left with storage ─▶ answered: over (IRS)
 *                                  └─ takes too long ─▶ answered: in progress, an entry in the log
 *                                                          ─▶ over: told by an event
 *
 * A controller is named by its number and its instance, CIU and CIRN. What is named and not there is
 * over already: a number is not given to another one, nor is it ready again after a reset, before
 * storage has nothing of the time before. A host may end its own controllers only.
 *
 * Invariant: ctrl->ccrs has what @ctrl was asked for and has not answered, and what the log tells. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "target/admin/admin.h"
#include "target/cluster/cluster.h"
#include "target/handover_parts.h"

enum {
	LIMIT_MS = 8000,
	ENTRIES_MAX = TGT_CCR_ENTRIES_MAX,
	NO_CNTLID = 0xffff,
	VALIDATED_AND_BEGUN = 3
};

struct ccr {
	struct weft_list link; /* asked->ccrs */
	struct tgt_over over;
	struct tgt_ctrl *asked;
	const struct tgt_ctrl *impacted;
	struct weft_req *req; /* NULL: it is answered, and this is an entry of the log */
	uint16_t icid;
	uint8_t ciu, status; /* enum nvme_ccr_status */
};

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

/* --- the way of one ---------------------------------------------------------------------------------- */

static bool is_of_impacted(const struct tgt_over *over, const struct tgt_queue *queue)
{
	return queue->ctrl == container_of(over, struct ccr, over)->impacted;
}

static void answer(struct ccr *ccr, bool over)
{
	ccr->req->cqe.result = cpu_to_le64(over ? NVME_CCR_IRS : 0);
	tgt_home_reply(ccr->req, 0);
	ccr->req = NULL;
}

static void waited(struct tgt_over *over, bool all)
{
	struct ccr *ccr = container_of(over, struct ccr, over);

	if (!all) {
		if (ccr->req)
			answer(ccr, false);
		tgt_over_wait(over, 0);
		return;
	}
	ccr->status = NVME_CCR_SUCCESS;
	if (ccr->req) {
		answer(ccr, true);
		free_ccr(ccr);
	} else {
		tgt_event(ccr->asked, TGT_EVENT_CCR);
	}
}

static uint16_t begin(struct weft_req *req, struct tgt_ctrl *asked, struct tgt_ctrl *impacted)
{
	struct ccr *ccr = calloc(1, sizeof(*ccr));
	char why[64];

	if (!ccr)
		return SC_GENERIC(INTERNAL);
	ccr->over.subsys = asked->subsys;
	ccr->over.awaits = is_of_impacted;
	ccr->over.done = waited;
	ccr->asked = asked;
	ccr->impacted = impacted;
	ccr->req = req;
	ccr->icid = impacted->cntlid;
	ccr->ciu = impacted->ciu;
	weft_list_push(&asked->ccrs, &ccr->link);
	snprintf(why, sizeof(why), "its host resets it through controller %u", asked->cntlid);
	tgt_ctrl_kill(impacted, why);
	tgt_over_wait(&ccr->over, LIMIT_MS);
	return 0;
}

/* --- the command --------------------------------------------------------------------------------------- */

static struct tgt_ctrl *find_instance(struct weft_subsys *s, const struct nvme_ccr_cmd *cmd)
{
	struct tgt_ctrl *ctrl;

	weft_list_for_each(ctrl, &s->ctrls, link)
		if (ctrl->cntlid == le16_to_cpu(cmd->icid))
			return ctrl->ciu == cmd->ciu && ctrl->cirn == le64_to_cpu(cmd->cirn) ?
				       ctrl :
				       NULL;
	return NULL;
}

/* Of what we could not have made we cannot say that it is over, unless who could is. */
static bool can_tell(struct weft_subsys *s, uint16_t cntlid)
{
	return (cntlid >= s->cntlid_first && cntlid <= s->cntlid_last) ||
	       tgt_cluster_is_over(s, cntlid);
}

static bool same_host(const struct tgt_ctrl *a, const struct tgt_ctrl *b)
{
	return !strcmp(a->hostnqn, b->hostnqn) && !memcmp(a->hostid, b->hostid, sizeof(a->hostid));
}

static uint16_t check_room(const struct tgt_ctrl *asked, const struct tgt_ctrl *impacted)
{
	unsigned under_way = 0, all = 0;
	struct ccr *ccr;

	weft_list_for_each(ccr, &asked->ccrs, link) {
		if (ccr->impacted == impacted && ccr->status == NVME_CCR_IN_PROGRESS)
			return SC_COMMAND(CCR_IN_PROGRESS);
		under_way += ccr->status == NVME_CCR_IN_PROGRESS;
		all++;
	}
	if (under_way >= TGT_CCRL)
		return SC_COMMAND(CCR_LIMIT);
	return all >= ENTRIES_MAX ? SC_COMMAND(CCR_LOG_FULL) : 0;
}

/* 0: it is begun, and answered later. */
static uint16_t reset(struct weft_req *req, struct tgt_ctrl *asked, struct tgt_ctrl *impacted)
{
	uint16_t sc;

	if (!same_host(asked, impacted))
		return SC_GENERIC(OP_DENIED) | SC_DNR;
	sc = check_room(asked, impacted);
	return sc ? sc : begin(req, asked, impacted);
}

void tgt_ccr(struct weft_req *req)
{
	struct tgt_ctrl *asked = tgt_queue(req)->ctrl, *impacted;
	uint16_t icid = le16_to_cpu(req->cmd.ccr.icid), sc;

	if (icid == asked->cntlid || !can_tell(asked->subsys, icid)) {
		tgt_home_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
		return;
	}
	impacted = find_instance(asked->subsys, &req->cmd.ccr);
	if (!impacted) {
		req->cqe.result = cpu_to_le64(NVME_CCR_IRS);
		tgt_home_reply(req, 0);
		return;
	}
	sc = reset(req, asked, impacted);
	if (sc)
		tgt_home_reply(req, sc);
}

/* --- its log page ---------------------------------------------------------------------------------------- */

void *tgt_ccr_page(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_ccr_log *page;
	unsigned n = 0;
	struct ccr *ccr;

	*size = sizeof(*page) + ENTRIES_MAX * sizeof(page->entries[0]);
	page = calloc(1, *size);
	if (!page)
		return NULL;
	weft_list_for_each(ccr, &ctrl->ccrs, link) {
		if (ccr->req)
			continue;
		page->entries[n++] = (struct nvme_ccr_entry){
			.icid = cpu_to_le16(ccr->icid),
			.ciu = ccr->ciu,
			.acid = cpu_to_le16(NO_CNTLID),
			.ccrs = ccr->status,
			.ccrf = VALIDATED_AND_BEGUN,
		};
	}
	page->ne = cpu_to_le16((uint16_t)n);
	return page;
}

unsigned tgt_ccr_list(struct tgt_ctrl *ctrl, struct weft_paths_entry *entries)
{
	unsigned n = 0;
	struct ccr *ccr;

	weft_list_for_each(ccr, &ctrl->ccrs, link)
		entries[n++] = (struct weft_paths_entry){ .id = ccr->icid,
							  .value = ccr->ciu | (uint32_t)ccr->status
										      << 8 };
	return n;
}

int tgt_ccr_inherit(struct tgt_ctrl *ctrl, const struct weft_paths_entry *entry)
{
	struct ccr *ccr = calloc(1, sizeof(*ccr));

	if (!ccr)
		return -ENOMEM;
	ccr->icid = (uint16_t)entry->id;
	ccr->ciu = (uint8_t)entry->value;
	ccr->status = (uint8_t)(entry->value >> 8);
	ccr->asked = ctrl;
	weft_list_push(&ctrl->ccrs, &ccr->link);
	return ccr->status == NVME_CCR_IN_PROGRESS ? -EINVAL : 0;
}

void tgt_ccr_forget(struct tgt_ctrl *ctrl)
{
	struct ccr *ccr, *tmp;

	weft_list_for_each_safe(ccr, tmp, &ctrl->ccrs, link)
		if (ccr->status != NVME_CCR_IN_PROGRESS)
			free_ccr(ccr);
}

/* --- the end of the one that was asked -------------------------------------------------------------------- */

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
		if (ccr->status == NVME_CCR_IN_PROGRESS)
			tgt_over_cancel(&ccr->over);
		free_ccr(ccr);
	}
}
