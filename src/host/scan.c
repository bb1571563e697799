/* scan.c - looking at every open namespace again: at each new connection, and when the controller
 * says that something changed.
 *
 *   next namespace not yet seen in this round ─▶ Identify ─▶ descriptors ─▶ settle ─┐
 *            ▲                                                                      │
 *            └──────────────────────────────────────────────────────────────────────┘
 *
 * No I/O flows on a new connection before its scan is through: a namespace that another one has
 * replaced must not get its data. */
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

/* --- one namespace ------------------------------------------------------------------------------- */

static int compare(const struct weft_ns *ns, const struct nvme_id_ns *id, const void *descriptors)
{
	struct host_ns_ids ids;
	unsigned shift;

	if (!id->nsze)
		return -ENODEV;
	host_ns_ids(id, descriptors, &ids);
	if (host_ns_geometry(id, &shift, NULL) < 0 || shift != ns->block_shift ||
	    memcmp(&ids, &ns->ids, sizeof(ids)))
		return -ESTALE;
	return 0;
}

/* A namespace that is gone may come back; one that was replaced stays unusable. */
static void apply(struct weft_ns *ns, const struct nvme_id_ns *id, int rc)
{
	if (atomic_load(&ns->rc) != -ESTALE)
		atomic_store(&ns->rc, rc);
	if (rc < 0)
		return;
	ns->id = *id;
	atomic_store(&ns->read_only, id->nsattr & 1);
	atomic_store(&ns->size, le64_to_cpu(id->nsze) << ns->block_shift);
}

static void settle(struct host_path *path, bool answered)
{
	const struct nvme_id_ns *id = (const struct nvme_id_ns *)path->scan_page;
	struct weft_ns *ns;

	pthread_mutex_lock(&path->ctrl->lock);
	weft_list_for_each(ns, &path->ctrl->namespaces, link) {
		if (ns->nsid != path->scan_nsid)
			continue;
		ns->scan_round = path->scan_round;
		ns->changed = ns->opening;
		if (ns->opening)
			continue;
		apply(ns, id, answered ? compare(ns, id, path->scan_page + HOST_PAGE) : -ENODEV);
	}
	pthread_mutex_unlock(&path->ctrl->lock);
	next(path);
}

/* What is behind the nsid now is not known: no I/O may go there. */
static void unknown_state(struct host_path *path, uint16_t status)
{
	struct weft_err why = { "" };
	int rc = host_fail_status(&why, "Identify Namespace", status);

	path->scanning = false;
	host_path_broken(path, rc, "%s", why.text);
}

static void on_descriptors(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;
	uint16_t status = host_status(&a->cqe);

	if (rc < 0) {
		path->scanning = false;
		return;
	}
	if ((status & 0x7ff) == SC_GENERIC(INVALID_NS)) { /* it left a moment ago */
		settle(path, false);
		return;
	}
	if (status && !host_has_no_descriptors(status)) {
		unknown_state(path, status);
		return;
	}
	if (status)
		memset(path->scan_page + HOST_PAGE, 0, HOST_PAGE);
	settle(path, true);
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
		path->scanning = false;
	else if (is_unknown(status))
		settle(path, false);
	else if (status)
		unknown_state(path, status);
	else
		start(path, NVME_IDENTIFY_CNS_NS_DESC_LIST, path->scan_page + HOST_PAGE,
		      on_descriptors);
}

/* --- all of them ----------------------------------------------------------------------------------- */

static uint32_t find_next(struct host_path *path)
{
	struct weft_ns *ns;
	uint32_t nsid = 0;

	pthread_mutex_lock(&path->ctrl->lock);
	weft_list_for_each(ns, &path->ctrl->namespaces, link) {
		if (ns->scan_round != path->scan_round) {
			nsid = ns->nsid;
			break;
		}
	}
	pthread_mutex_unlock(&path->ctrl->lock);
	return nsid;
}

static void through(struct host_path *path)
{
	path->scanning = false;
	if (path->scan_for_setup) {
		path->scan_for_setup = false;
		host_path_up(path);
	} else {
		host_event_push(path->ctrl, WEFT_EVENT_NAMESPACES, path->state, 0,
				"namespaces changed");
	}
	if (path->scan_again && path->state == WEFT_LIVE)
		host_scan_start(path, false);
}

static void next(struct host_path *path)
{
	path->scan_nsid = find_next(path);
	if (path->scan_nsid)
		start(path, NVME_IDENTIFY_CNS_NS, path->scan_page, on_identify);
	else
		through(path);
}

void host_scan_start(struct host_path *path, bool for_setup)
{
	path->scan_again = path->scanning;
	if (path->scanning)
		return;
	path->scanning = true;
	path->scan_for_setup = for_setup;
	path->scan_round++;
	next(path);
}
