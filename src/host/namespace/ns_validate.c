/* ns_validate.c - namespace validation: compares what a scan found with the namespace that was
 * opened. The first path that shows a namespace defines its identity; a path that shows another
 * one, none, or refuses to tell, is not used for it.
 *
 *   opening ─▶ the first path that shows it defines its identity ─▶ open
 *   open ─▶ the same? ─▶ its size and attributes are updated
 *             ├─ gone, or another one ─▶ not through this path
 *             └─ refused ─▶ not through this path, until a scan is answered
 *
 * Everything here is under ctrl->lock; the Identify data is in path->scan.page. */
#include <errno.h>
#include <string.h>

#include "host/internal.h"

#define REFUSED_FAIL_NS UINT64_C(10000000000) /* I/O waits so long while scans are refused */

/* A namespace whose blocks do not fit into a command cannot be read. */
static int check_transfer(const struct host_path *path, unsigned shift, struct weft_err *err)
{
	if (path->assoc.traits.transfer_max >> shift)
		return 0;
	return weft_fail(err, -EPROTO,
			 "its blocks are larger than what the controller moves at once");
}

static void update_ns_attrs(struct weft_ns *ns, const struct nvme_id_ns *id)
{
	ns->capacity = le64_to_cpu(id->ncap) << ns->block_shift;
	ns->used = le64_to_cpu(id->nuse) << ns->block_shift;
	ns->dlfeat = id->dlfeat;
	ns->optimal_write = id->nsfeat & 1 << 4 ? (le16_to_cpu(id->nows) + 1u) << ns->block_shift :
						  0;
	atomic_store(&ns->read_only, id->nsattr & 1);
	atomic_store(&ns->size, le64_to_cpu(id->nsze) << ns->block_shift);
}

static int init_ns_from_identify(const struct host_path *path, struct weft_ns *ns,
				 struct weft_err *why)
{
	const struct nvme_id_ns *id = (const struct nvme_id_ns *)path->scan.page;
	int rc = host_ns_geometry(id, &ns->block_shift, why);

	if (rc == 0)
		rc = check_transfer(path, ns->block_shift, why);
	if (rc < 0)
		return rc;
	host_ns_ids(id, path->scan.page + HOST_PAGE, &ns->ids);
	ns->copy_max = host_ns_copy_max(id, ns->block_shift);
	ns->first_path = path->id;
	ns->shared = id->nmic & 1;
	update_ns_attrs(ns, id);
	ns->opening = false;
	ns->open_rc = 0;
	return 0;
}

void host_ns_open_failed(struct weft_ns *ns, int rc, const struct weft_err *why)
{
	assert_locked(&ns->ctrl->lock);
	if (!ns->open_rc) {
		ns->open_rc = rc;
		ns->open_err = *why;
	}
	ns->opening = host_ns_has_pending_scan(ns);
}

/* Without identifiers nobody can tell whether another path leads to the same namespace. */
static int compare_ns_identity(const struct host_path *path, const struct weft_ns *ns)
{
	const struct nvme_id_ns *id = (const struct nvme_id_ns *)path->scan.page;
	struct host_ns_ids ids;
	unsigned shift;

	if (!id->nsze)
		return -ENODEV;
	host_ns_ids(id, path->scan.page + HOST_PAGE, &ids);
	if (host_ns_geometry(id, &shift, NULL) < 0 || shift != ns->block_shift ||
	    memcmp(&ids, &ns->ids, sizeof(ids)))
		return -ESTALE;
	if (check_transfer(path, shift, NULL) < 0)
		return -ESTALE;
	return host_ns_has_ids(ns) || path->id == ns->first_path ? 0 : -ESTALE;
}

/* A namespace that is gone may come back; one that was replaced stays unusable on this path. */
static void revalidate_ns(const struct host_path *path, struct weft_ns *ns, int rc)
{
	struct host_ns_view *view = &ns->views[path->index];

	if (!view->validated || view->rc != -ESTALE)
		view->rc = rc;
	view->validated = true;
	view->refused_ns = 0;
	ns->scan_error.text[0] = '\0';
	if (view->rc == 0)
		update_ns_attrs(ns, (const struct nvme_id_ns *)path->scan.page);
}

bool host_ns_validate(struct host_path *path, struct weft_ns *ns, int rc, struct weft_err why)
{
	struct host_ns_view *view = &ns->views[path->index];
	bool differed = view->validated && view->rc == -ESTALE;

	assert_locked(&path->ctrl->lock);
	view->group = le32_to_cpu(((const struct nvme_id_ns *)path->scan.page)->anagrpid);
	if (!ns->opening) {
		revalidate_ns(path, ns, rc ? rc : compare_ns_identity(path, ns));
		return view->rc == -ESTALE && !differed;
	}
	if (rc == 0)
		rc = init_ns_from_identify(path, ns, &why);
	view->validated = true;
	view->rc = rc;
	if (rc < 0)
		host_ns_open_failed(ns, rc, &why);
	return false;
}

/* Whether the namespace is still the same is not known. As long as the next scan may tell, the last
 * result decides whether I/O waits. */
bool host_ns_validate_refused(struct host_path *path, struct weft_ns *ns, int rc,
			      const struct weft_err *why, bool final)
{
	struct host_ns_view *view = &ns->views[path->index];
	uint64_t now = weft_reactor_now_ns(path->reactor);
	bool news = !view->refused_ns && !ns->opening;

	assert_locked(&path->ctrl->lock);
	if (!view->refused_ns)
		view->refused_ns = now;
	if (ns->opening) {
		host_ns_validate(path, ns, rc, *why);
		return false;
	}
	ns->scan_error = *why;
	final |= now - view->refused_ns >= REFUSED_FAIL_NS;
	if (final && !(view->validated && view->rc == -ESTALE)) {
		view->validated = true;
		view->rc = -EIO;
	}
	return news;
}
