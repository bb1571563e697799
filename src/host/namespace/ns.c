/* ns.c - weft_ns_open(): a namespace that the program holds open.
 *
 *   open ─▶ its nsid's record ─▶ a scan is due on every path ─▶ the control reactor scans (scan.c)
 *                              └─▶ the first path that shows the namespace defines its identity */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "host/internal.h"

void host_ns_reset_path(struct weft_ctrl *ctrl, unsigned index)
{
	struct host_ns_record *at;
	struct weft_ns *ns;

	assert_locked(&ctrl->lock);
	weft_list_for_each(at, &ctrl->ns_records, link) {
		weft_list_for_each(ns, &at->open, link) {
			ns->views[index] = (struct host_ns_view){};
			atomic_store(&ns->access[index], HOST_ACCESS_NONE);
		}
		host_ns_record_scanned(ctrl, at, index); /* no scan was refused */
		host_ns_record_mark_due(ctrl, at, index);
	}
}

static void on_ns_open_msg(struct weft_msg *msg)
{
	struct weft_ctrl *ctrl = container_of(msg, struct weft_ctrl, open_msg);

	assert_on(ctrl->reactor);
	atomic_store(&ctrl->open_posted, false);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i] && host_path_is_connected(ctrl->paths[i]))
			host_scan_due(ctrl->paths[i]);
}

static int register_ns(struct weft_ns *ns)
{
	struct weft_ctrl *ctrl = ns->ctrl;
	struct host_ns_record *at;

	weft_mutex_lock(&ctrl->lock);
	at = host_ns_record_get(ctrl, ns->nsid);
	ns->opening = true;
	if (at)
		host_ns_record_add_handle(at, ns);
	weft_mutex_unlock(&ctrl->lock);
	if (!at)
		return -ENOMEM;
	if (atomic_exchange(&ctrl->open_posted, true))
		return 0;
	ctrl->open_msg.fn = on_ns_open_msg;
	weft_reactor_post(ctrl->reactor, &ctrl->open_msg);
	return 0;
}

bool host_ns_has_pending_scan(const struct weft_ns *ns)
{
	struct host_path *const *paths = ns->ctrl->paths;

	assert_locked(&ns->ctrl->lock);
	if (host_ctrl_has_untried_path(ns->ctrl))
		return true;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (paths[i] && paths[i]->pub.state == WEFT_LIVE && !ns->views[i].validated)
			return true;
	return false;
}

/* A path has failed to show it, and no other path is left to wait for; or there is none at all. */
static bool open_is_hopeless(const struct weft_ns *ns)
{
	assert_locked(&ns->ctrl->lock);
	return ns->ctrl->pub.state == WEFT_DEAD || (ns->open_rc && !host_ns_has_pending_scan(ns));
}

static int wait_for_first_scan(struct weft_ns *ns, struct weft_err *err)
{
	struct weft_ctrl *ctrl = ns->ctrl;
	struct weft_err why;
	int rc;

	weft_mutex_lock(&ctrl->lock);
	while (ns->opening && !open_is_hopeless(ns))
		weft_mutex_wait(&ctrl->lock, &ctrl->changed);
	rc = ns->opening && !ns->open_rc ? -ENOTCONN : ns->open_rc;
	why = rc == -ENOTCONN ? ctrl->pub.why : ns->open_err;
	weft_mutex_unlock(&ctrl->lock);
	return rc < 0 ? weft_fail(err, rc, "namespace %u: %s", ns->nsid, why.text) : 0;
}

int weft_ns_open(struct weft_ctrl *ctrl, uint32_t nsid, struct weft_ns **out, struct weft_err *err)
{
	struct weft_ns *ns = calloc(1, sizeof(*ns));
	int rc;

	if (!ns)
		return weft_fail(err, -ENOMEM, "no memory for a namespace");
	ns->ctrl = ctrl;
	ns->nsid = nsid;
	weft_list_init(&ns->link);
	weft_list_init(&ns->down);
	rc = register_ns(ns);
	rc = rc < 0 ? weft_fail(err, rc, "no memory for a namespace") :
		      wait_for_first_scan(ns, err);
	if (rc < 0)
		weft_ns_close(ns);
	else
		*out = ns;
	return rc;
}

void weft_ns_close(struct weft_ns *ns)
{
	if (!ns)
		return;
	weft_mutex_lock(&ns->ctrl->lock);
	weft_list_remove(&ns->link);
	weft_list_remove(&ns->down);
	if (ns->record)
		host_ns_record_free_if_unused(ns->ctrl, ns->record);
	weft_mutex_unlock(&ns->ctrl->lock);
	free(ns);
}

void weft_ns_info(struct weft_ns *ns, struct weft_ns_info *info)
{
	static const uint8_t none[16];

	memset(info, 0, sizeof(*info));
	info->nsid = ns->nsid;
	info->block_size = 1u << ns->block_shift;
	info->size = atomic_load(&ns->size);
	info->read_only = atomic_load(&ns->read_only);
	info->shared = ns->shared;
	info->unflushed = host_dirty_any(ns->dirty);
	if (memcmp(ns->ids.uuid, none, sizeof(none)))
		weft_uuid_format(ns->ids.uuid, info->uuid);
	memcpy(info->nguid, ns->ids.nguid, sizeof(info->nguid));
	memcpy(info->eui64, ns->ids.eui64, sizeof(info->eui64));
	weft_mutex_lock(&ns->ctrl->lock);
	info->capacity = ns->capacity;
	info->used = ns->used;
	info->optimal_write = ns->optimal_write;
	weft_mutex_unlock(&ns->ctrl->lock);
}
