/* scan.c - looking at open namespaces through a path: at each new connection, when the controller
 * says that something changed, when the program opens one.
 *
 *   due ─▶ Identify ─▶ descriptors ─▶ settle: is it the one? ─▶ the next that is due ─▶ … ─▶ through
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

/* --- a namespace that is being opened; all of this under ctrl->lock --------------------------------- */

enum { LOSSES_MAX = 3 }; /* of a connection, while it is looked at first */

/* A namespace whose blocks do not fit into a command cannot be read. */
static int check_transfer(const struct host_path *path, unsigned shift, struct weft_err *err)
{
	if (path->traits.transfer_max >> shift)
		return 0;
	return weft_fail(err, -EPROTO,
			 "its blocks are larger than what the controller moves at once");
}

static void take_in(struct weft_ns *ns, const struct nvme_id_ns *id)
{
	ns->id = *id;
	atomic_store(&ns->read_only, id->nsattr & 1);
	atomic_store(&ns->size, le64_to_cpu(id->nsze) << ns->block_shift);
}

static int adopt(const struct host_path *path, struct weft_ns *ns, struct weft_err *why)
{
	const struct nvme_id_ns *id = (const struct nvme_id_ns *)path->scan_page;
	int rc = host_ns_geometry(id, &ns->block_shift, why);

	if (rc == 0)
		rc = check_transfer(path, ns->block_shift, why);
	if (rc < 0)
		return rc;
	host_ns_ids(id, path->scan_page + HOST_PAGE, &ns->ids);
	ns->copy_max = host_ns_copy_max(id, ns->block_shift);
	ns->first_path = path->id;
	take_in(ns, id);
	ns->opening = false;
	ns->open_rc = 0;
	return 0;
}

static void fail_opening(struct weft_ns *ns, int rc, const struct weft_err *why)
{
	if (!ns->open_rc) {
		ns->open_rc = rc;
		ns->open_err = *why;
	}
	ns->opening = host_ns_is_awaited(ns);
}

/* --- one that is open; under ctrl->lock --------------------------------------------------------------- */

/* Without an identity there is no telling whether another path leads to the same one. */
static int compare(const struct host_path *path, const struct weft_ns *ns)
{
	const struct nvme_id_ns *id = (const struct nvme_id_ns *)path->scan_page;
	struct host_ns_ids ids;
	unsigned shift;

	if (!id->nsze)
		return -ENODEV;
	host_ns_ids(id, path->scan_page + HOST_PAGE, &ids);
	if (host_ns_geometry(id, &shift, NULL) < 0 || shift != ns->block_shift ||
	    memcmp(&ids, &ns->ids, sizeof(ids)))
		return -ESTALE;
	if (check_transfer(path, shift, NULL) < 0)
		return -ESTALE;
	return host_ns_has_ids(ns) || path->id == ns->first_path ? 0 : -ESTALE;
}

/* A namespace that is gone may come back; one that was replaced stays unusable on this path. */
static void look_again(const struct host_path *path, struct weft_ns *ns, int rc)
{
	struct host_ns_view *view = view_of(path, ns);

	if (!view->looked || view->rc != -ESTALE)
		view->rc = rc;
	view->looked = true;
	if (view->rc == 0)
		take_in(ns, (const struct nvme_id_ns *)path->scan_page);
}

/* --- what a look has brought ------------------------------------------------------------------------- */

/* @rc 0: it was answered; else why not, or that there is none. true: another one is there. */
static bool settle_one(struct host_path *path, struct weft_ns *ns, int rc, struct weft_err why)
{
	struct host_ns_view *view = view_of(path, ns);
	bool differed = view->looked && view->rc == -ESTALE;

	view->group = le32_to_cpu(((const struct nvme_id_ns *)path->scan_page)->anagrpid);
	if (!ns->opening) {
		look_again(path, ns, rc ? rc : compare(path, ns));
		return view->rc == -ESTALE && !differed;
	}
	if (rc == 0)
		rc = adopt(path, ns, &why);
	view->looked = true;
	view->rc = rc;
	if (rc < 0)
		fail_opening(ns, rc, &why);
	return false;
}

static void settle(struct host_path *path, int rc, const struct weft_err *why)
{
	struct weft_ctrl *ctrl = path->ctrl;
	bool differs = false, alone = host_path_is_alone(path);
	struct weft_ns *ns;

	pthread_mutex_lock(&ctrl->lock);
	weft_list_for_each(ns, &ctrl->namespaces, link)
		if (ns->nsid == path->scan_nsid && !view_of(path, ns)->due)
			differs |= settle_one(path, ns, rc, *why);
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
		fail_opening(ns, path->why_rc == -ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET, &path->why);
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

/* --- one look ------------------------------------------------------------------------------------------ */

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

/* --- all that are due ------------------------------------------------------------------------------------ */

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
