/* nsid.c - what is known of an nsid: one record for all who have opened it.
 *
 *   ctrl->nsids ─▶ record ─▶ open: weft_ns, weft_ns, …
 *                    ├─ dirty: what was written there and not flushed (flush.c)
 *                    └─ by path: on ctrl->due[path], on ctrl->refused[path] (scan.c)
 *
 * What a controller says of a namespace concerns one record, however many there are. All of it is
 * under ctrl->lock.
 *
 * Invariant: a record is there while somebody has it open, or something of it is dirty. Nobody is to
 * look at one that nobody has open. */
#include <assert.h>
#include <stdlib.h>

#include "host/internal.h"

void host_nsids_init(struct weft_ctrl *ctrl)
{
	weft_ids_init(&ctrl->nsids);
	weft_list_init(&ctrl->namespaces);
	weft_list_init(&ctrl->down);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		weft_list_init(&ctrl->due[i]);
		weft_list_init(&ctrl->refused[i]);
	}
}

static void nsid_free(struct weft_ctrl *ctrl, struct host_nsid *at)
{
	weft_ids_remove(&ctrl->nsids, &at->id);
	weft_list_remove(&at->link);
	free(at);
}

void host_nsids_free(struct weft_ctrl *ctrl)
{
	struct host_nsid *at, *next;

	weft_list_for_each_safe(at, next, &ctrl->namespaces, link) {
		assert(weft_list_empty(&at->open));
		nsid_free(ctrl, at);
	}
	weft_ids_free(&ctrl->nsids);
}

bool host_nsids_closed(const struct weft_ctrl *ctrl)
{
	const struct host_nsid *at;

	weft_list_for_each(at, &ctrl->namespaces, link)
		if (!weft_list_empty(&at->open))
			return false;
	return true;
}

struct host_nsid *host_nsid_find(const struct weft_ctrl *ctrl, uint32_t nsid)
{
	struct weft_id *id = weft_ids_find(&ctrl->nsids, nsid);

	return id ? container_of(id, struct host_nsid, id) : NULL;
}

struct host_nsid *host_nsid_of(struct weft_ctrl *ctrl, uint32_t nsid)
{
	struct host_nsid *at = host_nsid_find(ctrl, nsid);

	if (at)
		return at;
	at = calloc(1, sizeof(*at));
	if (!at || weft_ids_add(&ctrl->nsids, &at->id, nsid) < 0) {
		free(at);
		return NULL;
	}
	weft_list_init(&at->open);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		weft_list_init(&at->due[i]);
		weft_list_init(&at->refused[i]);
	}
	weft_list_push(&ctrl->namespaces, &at->link);
	return at;
}

bool host_is_dirty(const struct host_dirty *dirty)
{
	bool any = atomic_load(&dirty->gone);

	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		any |= atomic_load(&dirty->by[i]);
	return any;
}

void host_nsid_closed(struct weft_ctrl *ctrl, struct host_nsid *at)
{
	if (!weft_list_empty(&at->open))
		return;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		weft_list_remove(&at->due[i]);
		weft_list_remove(&at->refused[i]);
	}
	if (!host_is_dirty(&at->dirty))
		nsid_free(ctrl, at);
}

/* --- looks ------------------------------------------------------------------------------------ */

static void line_up(struct weft_ctrl *ctrl, struct host_nsid *at, unsigned index)
{
	if (weft_list_empty(&at->due[index]))
		weft_list_push(&ctrl->due[index], &at->due[index]);
}

void host_nsid_due(struct weft_ctrl *ctrl, struct host_nsid *at, unsigned index)
{
	struct weft_ns *ns;

	weft_list_for_each(ns, &at->open, link)
		ns->views[index].due = true;
	if (!weft_list_empty(&at->open))
		line_up(ctrl, at, index);
}

/* A look that is under way is the others'. */
void host_nsid_opened(struct host_nsid *at, struct weft_ns *ns)
{
	ns->at = at;
	ns->dirty = &at->dirty;
	weft_list_push(&at->open, &ns->link);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		ns->views[i].due = true;
		line_up(ns->ctrl, at, i);
	}
}

struct host_nsid *host_nsid_take_due(struct weft_ctrl *ctrl, unsigned index)
{
	struct weft_list *link = weft_list_pop(&ctrl->due[index]);
	struct host_nsid *at;
	struct weft_ns *ns;

	if (!link)
		return NULL;
	at = container_of(link - index, struct host_nsid, due);
	weft_list_for_each(ns, &at->open, link)
		ns->views[index].due = false;
	return at;
}

void host_nsid_looked(struct weft_ctrl *ctrl, struct host_nsid *at, unsigned index)
{
	bool refused = false;
	struct weft_ns *ns;

	weft_list_for_each(ns, &at->open, link)
		refused |= ns->views[index].refused_ns != 0;
	weft_list_remove(&at->refused[index]);
	if (refused)
		weft_list_push(&ctrl->refused[index], &at->refused[index]);
}

void host_nsids_refused_due(struct weft_ctrl *ctrl, unsigned index)
{
	struct weft_list *link;

	while ((link = weft_list_pop(&ctrl->refused[index])))
		host_nsid_due(ctrl, container_of(link - index, struct host_nsid, refused), index);
}
