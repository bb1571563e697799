/* ccr_log.c - the Cross-Controller Reset log page: resets that took longer than their answer. */
#include <errno.h>
#include <stdlib.h>

#include "target/admin/admin.h"
#include "target/admin/ccr.h"
#include "target/takeover/parts.h"

enum { NO_CNTLID = 0xffff, VALIDATED_AND_BEGUN = 3 };

void *tgt_ccr_log_page(struct tgt_ctrl *ctrl, size_t *size)
{
	struct nvme_ccr_log *page;
	unsigned n = 0;
	struct ccr *ccr;

	*size = sizeof(*page) + TGT_CCR_ENTRIES_MAX * sizeof(page->entries[0]);
	page = calloc(1, *size);
	if (!page)
		return NULL;
	weft_list_for_each(ccr, &ctrl->ccrs, link) {
		if (ccr->req)
			continue;
		assert(n < TGT_CCR_ENTRIES_MAX);
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

unsigned tgt_ccr_export(struct tgt_ctrl *ctrl, struct weft_takeover_entry *entries)
{
	unsigned n = 0;
	struct ccr *ccr;

	weft_list_for_each(ccr, &ctrl->ccrs, link) {
		assert(n < TGT_CCR_ENTRIES_MAX && !ccr->req);
		entries[n++] = (struct weft_takeover_entry){
			.id = ccr->icid, .value = ccr->ciu | (uint32_t)ccr->status << 8
		};
	}
	return n;
}

int tgt_ccr_import(struct tgt_ctrl *ctrl, const struct weft_takeover_entry *entry)
{
	uint8_t status = (uint8_t)(entry->value >> 8);
	struct ccr *ccr;

	if (status == NVME_CCR_IN_PROGRESS) /* nothing here would complete it */
		return -EINVAL;
	ccr = calloc(1, sizeof(*ccr));
	if (!ccr)
		return -ENOMEM;
	ccr->icid = (uint16_t)entry->id;
	ccr->ciu = (uint8_t)entry->value;
	ccr->status = status;
	ccr->asked = ctrl;
	weft_list_push(&ctrl->ccrs, &ccr->link);
	return 0;
}

void tgt_ccr_remove_completed(struct tgt_ctrl *ctrl)
{
	struct ccr *ccr, *tmp;

	assert_on_control(ctrl->subsys->target);
	weft_list_for_each_safe(ccr, tmp, &ctrl->ccrs, link) {
		if (ccr->status != NVME_CCR_IN_PROGRESS) {
			weft_list_remove(&ccr->link);
			free(ccr);
		}
	}
}
