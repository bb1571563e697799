/* resv.c - takeover of reservation notifications that a controller has not delivered to its host
 * yet.
 *
 * Reservations themselves are in the subsystem's store, which is exported as a whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/takeover/parts.h"

/* --- export ----------------------------------------------------------------------------------- */

/* The oldest first. */
static int export_notification_log(struct weft_items *items, const struct tgt_resv_log *log)
{
	struct nvme_resv_notification_log *to = calloc(log->n + 1, sizeof(*to));

	if (!to)
		return -ENOMEM;
	for (unsigned i = 0; i < log->n; i++)
		to[i] = log->pages[(log->first + i) % TGT_RESV_PAGES];
	*items = (struct weft_items){ to, log->n * (unsigned)sizeof(*to) };
	return 0;
}

/* By nsid, up to the last that has one. */
static int export_notification_masks(struct weft_items *items, const uint8_t masks[WEFT_NSID_MAX])
{
	unsigned count = WEFT_NSID_MAX;

	while (count && !masks[count - 1])
		count--;
	items->at = malloc(count + 1);
	if (!items->at)
		return -ENOMEM;
	memcpy(items->at, masks, count);
	items->count = count;
	return 0;
}

int tgt_resv_export_ctrl(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl)
{
	int rc = export_notification_log(&state->resv_pages, &ctrl->resv_log);

	assert_on_control(ctrl->subsys->target);
	state->resv_count = ctrl->resv_log.count;
	return rc < 0 ? rc : export_notification_masks(&state->resv_masks, ctrl->resv_mask);
}

void tgt_resv_free_ctrl_state(struct weft_ctrl_state *state)
{
	free(state->resv_pages.at);
	free(state->resv_masks.at);
}

/* --- import ----------------------------------------------------------------------------------- */

int tgt_resv_import_ctrl(const struct weft_ctrl_state *state, struct tgt_ctrl *ctrl)
{
	struct tgt_resv_log *log = &ctrl->resv_log;
	unsigned n = state->resv_pages.count / (unsigned)sizeof(log->pages[0]);

	if (state->resv_pages.count % sizeof(log->pages[0]) || n > TGT_RESV_PAGES ||
	    n > state->resv_count || state->resv_masks.count > WEFT_NSID_MAX)
		return -EINVAL;
	log->count = state->resv_count;
	log->n = n;
	memcpy(log->pages, state->resv_pages.at, state->resv_pages.count);
	memcpy(ctrl->resv_mask, state->resv_masks.at, state->resv_masks.count);
	return 0;
}
