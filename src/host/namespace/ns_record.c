/* ns_record.c - one record per nsid, shared by all handles that are open: what is unflushed
 * there, and on which paths a scan is due or was refused.
 *
 *   ctrl->ns_records ─▶ record ─▶ open: weft_ns, weft_ns, …
 *                         ├─ dirty: unflushed writes (flush.c)
 *                         └─ by path: on ctrl->due[path], on ctrl->refused[path] (scan.c)
 *
 * A scan concerns one record, however many handles there are. Everything here is under ctrl->lock.
 *
 * Invariant: a record exists while a handle is open, or something of it is dirty. No scan is due
 * for a record without a handle. */
#include <assert.h>
#include <stdlib.h>

#include "host/internal.h"

void host_ns_records_init(struct weft_ctrl *ctrl)
{
	weft_id_hash_init(&ctrl->ns_records_by_id);
	weft_list_init(&ctrl->ns_records);
	weft_list_init(&ctrl->ns_down);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		weft_list_init(&ctrl->due[i]);
		weft_list_init(&ctrl->refused[i]);
	}
}

static void ns_record_free(struct weft_ctrl *ctrl, struct host_ns_record *at)
{
	assert(weft_list_empty(&at->open));
	weft_id_hash_remove(&ctrl->ns_records_by_id, &at->id);
	weft_list_remove(&at->link);
	free(at);
}

void host_ns_records_free(struct weft_ctrl *ctrl)
{
	struct host_ns_record *at, *next;

	weft_list_for_each_safe(at, next, &ctrl->ns_records, link) {
		assert(weft_list_empty(&at->open));
		ns_record_free(ctrl, at);
	}
	weft_id_hash_free(&ctrl->ns_records_by_id);
}

bool host_ns_records_all_closed(const struct weft_ctrl *ctrl)
{
	const struct host_ns_record *at;

	weft_list_for_each(at, &ctrl->ns_records, link)
		if (!weft_list_empty(&at->open))
			return false;
	return true;
}

struct host_ns_record *host_ns_record_find(const struct weft_ctrl *ctrl, uint32_t nsid)
{
	struct weft_id_node *id = weft_id_hash_find(&ctrl->ns_records_by_id, nsid);

	assert_locked(&ctrl->lock);
	return id ? container_of(id, struct host_ns_record, id) : NULL;
}

struct host_ns_record *host_ns_record_get(struct weft_ctrl *ctrl, uint32_t nsid)
{
	struct host_ns_record *at = host_ns_record_find(ctrl, nsid);

	assert_locked(&ctrl->lock);
	if (at)
		return at;
	at = calloc(1, sizeof(*at));
	if (!at || weft_id_hash_add(&ctrl->ns_records_by_id, &at->id, nsid) < 0) {
		free(at);
		return NULL;
	}
	weft_list_init(&at->open);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		weft_list_init(&at->scan_due[i]);
		weft_list_init(&at->scan_refused[i]);
	}
	weft_list_push(&ctrl->ns_records, &at->link);
	return at;
}

bool host_dirty_any(const struct host_dirty *dirty)
{
	bool any = atomic_load(&dirty->gone);

	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		any |= atomic_load(&dirty->by[i]);
	return any;
}

void host_ns_record_free_if_unused(struct weft_ctrl *ctrl, struct host_ns_record *at)
{
	assert_locked(&ctrl->lock);
	if (!weft_list_empty(&at->open))
		return;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		weft_list_remove(&at->scan_due[i]);
		weft_list_remove(&at->scan_refused[i]);
	}
	if (!host_dirty_any(&at->dirty))
		ns_record_free(ctrl, at);
}

/* --- scans ------------------------------------------------------------------------------------ */

static void queue_scan(struct weft_ctrl *ctrl, struct host_ns_record *at, unsigned index)
{
	assert_locked(&ctrl->lock);
	if (weft_list_empty(&at->scan_due[index]))
		weft_list_push(&ctrl->due[index], &at->scan_due[index]);
}

void host_ns_record_mark_due(struct weft_ctrl *ctrl, struct host_ns_record *at, unsigned index)
{
	struct weft_ns *ns;

	assert_locked(&ctrl->lock);
	weft_list_for_each(ns, &at->open, link)
		ns->views[index].scan_due = true;
	if (!weft_list_empty(&at->open))
		queue_scan(ctrl, at, index);
}

/* A scan that is under way does not count for the new handle. */
void host_ns_record_add_handle(struct host_ns_record *at, struct weft_ns *ns)
{
	assert_locked(&ns->ctrl->lock);
	ns->record = at;
	ns->dirty = &at->dirty;
	weft_list_push(&at->open, &ns->link);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		ns->views[i].scan_due = true;
		queue_scan(ns->ctrl, at, i);
	}
}

struct host_ns_record *host_ns_record_pop_due(struct weft_ctrl *ctrl, unsigned index)
{
	struct weft_list *link = weft_list_pop(&ctrl->due[index]);
	struct host_ns_record *at;
	struct weft_ns *ns;

	assert_locked(&ctrl->lock);
	if (!link)
		return NULL;
	at = container_of(link - index, struct host_ns_record, scan_due);
	weft_list_for_each(ns, &at->open, link)
		ns->views[index].scan_due = false;
	return at;
}

void host_ns_record_scanned(struct weft_ctrl *ctrl, struct host_ns_record *at, unsigned index)
{
	bool refused = false;
	struct weft_ns *ns;

	assert_locked(&ctrl->lock);
	weft_list_for_each(ns, &at->open, link)
		refused |= ns->views[index].refused_ns != 0;
	weft_list_remove(&at->scan_refused[index]);
	if (refused)
		weft_list_push(&ctrl->refused[index], &at->scan_refused[index]);
}

void host_ns_records_rescan_refused(struct weft_ctrl *ctrl, unsigned index)
{
	struct weft_list *link;

	assert_locked(&ctrl->lock);
	while ((link = weft_list_pop(&ctrl->refused[index])))
		host_ns_record_mark_due(ctrl,
					container_of(link - index, struct host_ns_record,
						     scan_refused),
					index);
}
