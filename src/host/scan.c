/* scan.c - looking at open namespaces through a path: at each new connection, when the controller
 * says that something changed, when the program opens one.
 *
 *   due ─▶ Identify ─▶ descriptors ─▶ sight.c: is it the one? ─▶ the next that is due ─▶ … ─▶ through
 *
 * No I/O flows on a new connection before its scan is through: a namespace that another one has
 * replaced must not get its data.
 *
 * Invariant: what becomes due while it is looked at is looked at again. */
#include <errno.h>
#include <string.h>

#include "host/internal.h"

static void next(struct host_path *path);

static void start(struct host_path *path, uint8_t cns, char *page,
		  void (*done)(struct host_admin *a, int rc))
{
	struct host_admin *a = &path->scan;

	memset(a, 0, sizeof(*a));
	memset(page, 0, HOST_PAGE);
	a->name = "Identify Namespace";
	a->done = done;
	a->iov = (struct iovec){ page, HOST_PAGE };
	host_fill_identify(&a->cmd, cns, path->scan_nsid);
	host_admin_start(path, a, path->config.options.admin_ms);
}

static struct host_ns_view *view_of(const struct host_path *path, struct weft_ns *ns)
{
	return &ns->views[path->index];
}

enum { LOSSES_MAX = 3 }; /* of a connection, while it is looked at first */

/* --- what a look has brought ------------------------------------------------------------------ */

static void settle(struct host_path *path, int rc, const struct weft_err *why)
{
	struct weft_ctrl *ctrl = path->ctrl;
	bool differs = false, alone = host_path_is_alone(path);
	struct weft_ns *ns;

	pthread_mutex_lock(&ctrl->lock);
	weft_list_for_each(ns, &ctrl->namespaces, link)
		if (ns->nsid == path->scan_nsid && !view_of(path, ns)->due)
			differs |= host_sight(path, ns, rc, *why);
	host_access_update(ctrl);
	host_paths_wake(ctrl);
	pthread_mutex_unlock(&ctrl->lock);
	if (differs && !alone)
		host_event_push(ctrl, WEFT_EVENT_PATH, path->state, 0,
				"%s: not used for namespace %u: it is another one there",
				path->pub.address, path->scan_nsid);
	next(path);
}

static void found_none(struct host_path *path)
{
	struct weft_err why = { "there is no such namespace" };

	settle(path, -ENODEV, &why);
}

/* The connection is lost. Who opens one is not kept waiting by a controller that breaks of it. */
static void lost(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;
	struct weft_ns *ns;

	path->scanning = false;
	pthread_mutex_lock(&ctrl->lock);
	weft_list_for_each(ns, &ctrl->namespaces, link) {
		if (ns->nsid != path->scan_nsid || !ns->opening)
			continue;
		if (path->why_rc != -ETIMEDOUT && ++ns->losses < LOSSES_MAX)
			continue;
		host_sight_fail(ns, path->why_rc == -ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET,
				&path->why);
	}
	pthread_cond_broadcast(&ctrl->changed);
	pthread_mutex_unlock(&ctrl->lock);
}

/* Under ctrl->lock. */
static bool is_open(struct host_path *path)
{
	struct weft_ns *ns;

	weft_list_for_each(ns, &path->ctrl->namespaces, link)
		if (ns->nsid == path->scan_nsid && !ns->opening)
			return true;
	return false;
}

/* What is behind the nsid now is not known: no I/O may go there. */
static void unknown_state(struct host_path *path, uint16_t status)
{
	struct weft_err why = { "" };
	int rc = host_fail_status(&why, "Identify Namespace", status);
	bool open;

	pthread_mutex_lock(&path->ctrl->lock);
	open = is_open(path);
	pthread_mutex_unlock(&path->ctrl->lock);
	if (!open) {
		settle(path, rc, &why);
		return;
	}
	path->scanning = false;
	host_path_broken(path, rc, "%s", why.text);
}

/* --- one look --------------------------------------------------------------------------------- */

static void on_descriptors(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;
	uint16_t status = host_status(&a->cqe);
	const struct weft_err none = { "" };

	if (rc < 0) {
		lost(path);
		return;
	}
	if ((status & 0x7ff) == SC_GENERIC(INVALID_NS)) { /* it left a moment ago */
		found_none(path);
		return;
	}
	if (status && !host_has_no_descriptors(status)) {
		unknown_state(path, status);
		return;
	}
	if (status)
		memset(path->scan_page + HOST_PAGE, 0, HOST_PAGE);
	settle(path, 0, &none);
}

static bool is_unknown(uint16_t status)
{
	return (status & 0x7ff) == SC_GENERIC(INVALID_NS) ||
	       (status & 0x7ff) == SC_GENERIC(INVALID_FIELD);
}

static void on_identify(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;
	uint16_t status = host_status(&a->cqe);

	if (rc < 0)
		lost(path);
	else if (is_unknown(status))
		found_none(path);
	else if (status)
		unknown_state(path, status);
	else
		start(path, NVME_IDENTIFY_CNS_NS_DESC_LIST, path->scan_page + HOST_PAGE,
		      on_descriptors);
}

/* --- all that are due ------------------------------------------------------------------------- */

static uint32_t take_due(struct host_path *path)
{
	struct weft_ns *ns;
	uint32_t nsid = 0;

	pthread_mutex_lock(&path->ctrl->lock);
	weft_list_for_each(ns, &path->ctrl->namespaces, link) {
		if (!view_of(path, ns)->due || (nsid && ns->nsid != nsid))
			continue;
		nsid = ns->nsid;
		view_of(path, ns)->due = false;
	}
	pthread_mutex_unlock(&path->ctrl->lock);
	return nsid;
}

static void through(struct host_path *path)
{
	bool tells = path->scan_tells;

	path->scanning = path->scan_tells = false;
	if (path->scan_for_setup) {
		path->scan_for_setup = false;
		host_path_up(path);
	} else if (tells) {
		host_event_push(path->ctrl, WEFT_EVENT_NAMESPACES, path->state, 0,
				"namespaces changed");
	}
}

static void next(struct host_path *path)
{
	path->scan_nsid = take_due(path);
	if (path->scan_nsid)
		start(path, NVME_IDENTIFY_CNS_NS, path->scan_page, on_identify);
	else
		through(path);
}

void host_scan_due(struct host_path *path)
{
	if (path->scanning)
		return;
	path->scanning = true;
	next(path);
}

void host_scan_all(struct host_path *path, bool for_setup)
{
	struct weft_ns *ns;

	path->scan_for_setup |= for_setup;
	path->scan_tells |= !for_setup;
	pthread_mutex_lock(&path->ctrl->lock);
	weft_list_for_each(ns, &path->ctrl->namespaces, link)
		view_of(path, ns)->due = true;
	pthread_mutex_unlock(&path->ctrl->lock);
	host_scan_due(path);
}
