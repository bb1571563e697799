/* access.c - through which paths a namespace's I/O may go.
 *
 * Home works it out when something has changed; who issues a command loads a byte. */
#include <errno.h>

#include "host/internal.h"

static enum host_access through(const struct host_path *path, const struct weft_ns *ns)
{
	const struct host_ns_view *view = &ns->views[path->index];

	if (path->pub.state != WEFT_LIVE || !view->looked || view->rc)
		return HOST_ACCESS_NONE;
	switch (host_ana_state(path, view->group)) {
	case NVME_ANA_STATE_OPTIMIZED:
		return HOST_ACCESS_OPTIMIZED;
	case NVME_ANA_STATE_NONOPTIMIZED:
		return HOST_ACCESS_NON_OPTIMIZED;
	default:
		return HOST_ACCESS_NONE;
	}
}

/* One path that leads to it is enough, also if that is lost at the moment. That nobody knows it
 * outweighs that another one is in its place on some. */
static int sum_up(const struct weft_ctrl *ctrl, const struct weft_ns *ns)
{
	int rc = 0;

	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		const struct host_ns_view *view = &ns->views[i];

		if (!ctrl->paths[i] || !view->looked)
			continue;
		if (!view->rc)
			return 0;
		if (rc != -ENODEV)
			rc = view->rc;
	}
	return rc;
}

void host_access_update(struct weft_ctrl *ctrl)
{
	struct weft_ns *ns;

	weft_list_for_each(ns, &ctrl->namespaces, link) {
		if (ns->opening)
			continue;
		for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
			if (ctrl->paths[i])
				atomic_store_explicit(&ns->access[i], through(ctrl->paths[i], ns),
						      memory_order_relaxed);
		atomic_store(&ns->rc, sum_up(ctrl, ns));
	}
}
