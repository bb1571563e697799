/* events.c - asynchronous events: the host's Asynchronous Event Requests (AERs) wait here for
 * something to report.
 *
 *   event ─▶ pending ─▶ (an AER is here) ─▶ reported, masked ─▶ (its log page is read) ─▶ unmasked
 *
 * Invariant: an event that the host did not enable is never pending. */
#include <string.h>

#include "base/count.h"
#include "target/admin/admin.h"

static const struct {
	uint32_t enabled_by; /* bit in Async Event Configuration, as in OAES or SMART; 0: always */
	uint8_t type, info, log_page;
} events[TGT_EVENTS] = {
	[TGT_EVENT_HEALTH] = { NVME_SMART_CRIT_DEGRADED, NVME_AER_SMART,
			       NVME_AER_SMART_SUBSYSTEM_RELIABILITY, NVME_LOG_LID_SMART },
	[TGT_EVENT_NS_CHANGED] = { NVME_CTRL_OAES_NA, NVME_AER_NOTICE, NVME_AER_NOTICE_NS_CHANGED,
				   NVME_LOG_LID_CHANGED_NS },
	[TGT_EVENT_ANA] = { NVME_CTRL_OAES_ANA, NVME_AER_NOTICE, NVME_AER_NOTICE_ANA,
			    NVME_LOG_LID_ANA },
	[TGT_EVENT_CCR] = { NVME_CTRL_OAES_CCR, NVME_AER_NOTICE, NVME_AER_NOTICE_CCR,
			    NVME_LOG_LID_CCR },
	[TGT_EVENT_DISCOVERY] = { NVME_CTRL_OAES_DL, NVME_AER_NOTICE, NVME_AER_NOTICE_DISC_CHANGED,
				  NVME_LOG_LID_DISCOVER },
	[TGT_EVENT_RESERVATION] = { 0, NVME_AER_CSS, NVME_AER_CSS_NVM_RESERVATION,
				    NVME_LOG_LID_RESERVATION },
};

uint8_t tgt_event_log_page(enum tgt_event event)
{
	assert(event < TGT_EVENTS);
	return events[event].log_page;
}

static struct weft_req *pop_aer(struct tgt_ctrl *ctrl)
{
	struct weft_list *link = weft_list_pop(&ctrl->aers);

	if (!link) {
		assert(!ctrl->naers);
		return NULL;
	}
	weft_count_down(ctrl->naers);
	return container_of(link, struct weft_req, link);
}

static void report_events(struct tgt_ctrl *ctrl)
{
	for (int i = 0; i < TGT_EVENTS; i++) {
		uint32_t ready = ctrl->events_pending & ~ctrl->events_masked;
		struct weft_req *req;

		if (!(ready & 1u << i))
			continue;
		req = pop_aer(ctrl);
		if (!req)
			return;
		ctrl->events_pending &= ~(1u << i);
		ctrl->events_masked |= 1u << i;
		req->cqe.result = cpu_to_le64(events[i].type | (uint32_t)events[i].info << 8 |
					      (uint32_t)events[i].log_page << 16);
		tgt_control_reply(req, 0);
	}
}

void tgt_event_raise(struct tgt_ctrl *ctrl, enum tgt_event event)
{
	uint32_t enabled_by = events[event].enabled_by;

	assert_on_control(ctrl->subsys->target);
	if (enabled_by && !(ctrl->features[NVME_FEAT_FID_ASYNC_EVENT] & enabled_by))
		return;
	ctrl->events_pending |= 1u << event;
	report_events(ctrl);
}

void tgt_event_log_was_read(struct tgt_ctrl *ctrl, enum tgt_event event)
{
	assert_on_control(ctrl->subsys->target);
	ctrl->events_masked &= ~(1u << event);
	report_events(ctrl);
}

void tgt_aer(struct weft_req *req)
{
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;

	assert_on_control(ctrl->subsys->target);
	if (ctrl->naers >= TGT_AERS_MAX) {
		tgt_control_reply(req, SC_COMMAND(ASYNC_LIMIT) | SC_DNR);
		return;
	}
	weft_list_push(&ctrl->aers, &req->link);
	ctrl->naers++;
	report_events(ctrl);
}

void tgt_aer_cancel_all(struct tgt_ctrl *ctrl, uint16_t status)
{
	struct weft_req *req;

	assert_on_control(ctrl->subsys->target);
	while ((req = pop_aer(ctrl)))
		tgt_control_reply(req, status);
}

bool tgt_aer_cancel(struct tgt_ctrl *ctrl, uint16_t cid)
{
	struct weft_req *req;

	assert_on_control(ctrl->subsys->target);
	weft_list_for_each(req, &ctrl->aers, link) {
		if (le16_to_cpu(req->cmd.common.cid) != cid)
			continue;
		weft_list_remove(&req->link);
		weft_count_down(ctrl->naers);
		tgt_control_reply(req, SC_GENERIC(ABORT_REQ));
		return true;
	}
	return false;
}

/* The list is in ascending order. */
static void add_changed_ns(struct tgt_ctrl *ctrl, uint32_t nsid)
{
	unsigned at = 0;

	while (at < ctrl->nchanged && ctrl->changed_ns[at] < nsid)
		at++;
	if (at < ctrl->nchanged && ctrl->changed_ns[at] == nsid)
		return;
	assert(nsid - 1 < WEFT_NSID_MAX && ctrl->nchanged < TGT_CHANGED_NS_MAX);
	memmove(&ctrl->changed_ns[at + 1], &ctrl->changed_ns[at],
		(ctrl->nchanged - at) * sizeof(ctrl->changed_ns[0]));
	ctrl->changed_ns[at] = nsid;
	ctrl->nchanged++;
}
static_assert(TGT_CHANGED_NS_MAX >= WEFT_NSID_MAX, "every namespace fits");

void tgt_ns_notify_changed(struct weft_subsys *s, uint32_t nsid)
{
	struct tgt_ctrl *ctrl;

	assert_on_control(s->target);
	weft_list_for_each(ctrl, &s->ctrls, link) {
		add_changed_ns(ctrl, nsid);
		tgt_event_raise(ctrl, TGT_EVENT_NS_CHANGED);
	}
	tgt_health_update(s);
}
