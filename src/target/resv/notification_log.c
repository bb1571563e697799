/* notification_log.c - the Reservation Notification log of a controller: a queue, read one page at
 * a time.
 *
 * Invariant: while the log has pages that were not reported, the event is pending or masked. */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "target/admin/admin.h"
#include "target/resv/resv.h"

static bool is_masked(const struct tgt_ctrl *ctrl, uint32_t nsid, uint8_t type)
{
	assert(nsid - 1 < WEFT_NSID_MAX);
	return ctrl->resv_mask[nsid - 1] & 1u << type;
}

/* When the log is full the newest notification is dropped; the gap in the page numbers shows it. */
static void append_notification(struct tgt_ctrl *ctrl, uint32_t nsid, uint8_t type)
{
	struct tgt_resv_log *log = &ctrl->resv_log;
	unsigned at = (log->first + log->n) % TGT_RESV_PAGES;

	assert(log->first < TGT_RESV_PAGES && log->n <= TGT_RESV_PAGES);
	log->count++;
	if (log->n == TGT_RESV_PAGES)
		return;
	log->n++;
	log->pages[at] = (struct nvme_resv_notification_log){
		.lpc = cpu_to_le64(log->count),
		.rnlpt = type,
		.nsid = cpu_to_le32(nsid),
	};
	tgt_event_raise(ctrl, TGT_EVENT_RESERVATION);
}

void tgt_resv_notify(struct tgt_ctrl *ctrl, uint32_t nsid, uint8_t type)
{
	if (!is_masked(ctrl, nsid, type))
		append_notification(ctrl, nsid, type);
}

/* An empty log is a page of zeroes. */
void *tgt_resv_log_page(struct tgt_ctrl *ctrl, size_t *size)
{
	const struct tgt_resv_log *log = &ctrl->resv_log;
	struct nvme_resv_notification_log *page = calloc(1, sizeof(*page));

	assert_on_control(ctrl->subsys->target);
	*size = sizeof(*page);
	if (!page || !log->n)
		return page;
	*page = log->pages[log->first];
	page->nalp = (uint8_t)(log->n - 1);
	return page;
}
static_assert(sizeof(struct nvme_resv_notification_log) == 64, "Reservation Notification log page");

void tgt_resv_log_read(struct tgt_ctrl *ctrl)
{
	struct tgt_resv_log *log = &ctrl->resv_log;

	assert_on_control(ctrl->subsys->target);
	tgt_event_log_was_read(ctrl, TGT_EVENT_RESERVATION);
	if (!log->n)
		return;
	log->first = (log->first + 1) % TGT_RESV_PAGES;
	weft_count_down(log->n);
	if (log->n)
		tgt_event_raise(ctrl, TGT_EVENT_RESERVATION);
}

void tgt_resv_log_reset(struct tgt_ctrl *ctrl)
{
	assert_on_control(ctrl->subsys->target);
	memset(&ctrl->resv_log, 0, sizeof(ctrl->resv_log));
	memset(ctrl->resv_mask, 0, sizeof(ctrl->resv_mask));
}
