/* access.c - through which paths a namespace's I/O may go, and for how long it waits for one.
 *
 * Home works it out when something has changed; who issues a command loads a byte, and ns->rc.
 *
 *   no path can be used ─▶ fast_io_fail ─▶ rc: I/O fails, what waits and what comes
 *   one can be used again ─▶ rc 0: it goes on */
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

/* --- no path for too long ------------------------------------------------------------------------------ */

static bool is_usable(const struct weft_ns *ns)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (atomic_load_explicit(&ns->access[i], memory_order_relaxed))
			return true;
	return false;
}

/* When it is to fail; 0: it is not. */
static uint64_t fails_at_ns(const struct weft_ctrl *ctrl, const struct weft_ns *ns)
{
	uint64_t patience = ctrl->config.options.fast_io_fail_ms * UINT64_C(1000000);

	return ns->down_ns && patience ? ns->down_ns + patience : 0;
}

static void on_fail_timer(struct weft_timer *timer)
{
	struct weft_ctrl *ctrl = container_of(timer, struct weft_ctrl, fail_timer);

	pthread_mutex_lock(&ctrl->lock);
	host_access_update(ctrl);
	host_paths_wake(ctrl);
	pthread_mutex_unlock(&ctrl->lock);
}

static void watch(struct weft_ctrl *ctrl, uint64_t first_ns)
{
	uint64_t now = weft_reactor_now_ns(ctrl->reactor);

	weft_timer_stop(ctrl->reactor, &ctrl->fail_timer);
	ctrl->fail_timer.fn = on_fail_timer;
	if (first_ns)
		weft_timer_set(ctrl->reactor, &ctrl->fail_timer, (first_ns - now) / 1000000 + 1);
}

/* --- all of it ----------------------------------------------------------------------------------------- */

static void update_paths(struct weft_ctrl *ctrl, struct weft_ns *ns)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i])
			atomic_store_explicit(&ns->access[i], through(ctrl->paths[i], ns),
					      memory_order_relaxed);
}

void host_access_update(struct weft_ctrl *ctrl)
{
	uint64_t now = weft_reactor_now_ns(ctrl->reactor), first = 0, at;
	struct weft_ns *ns;
	int rc;

	weft_list_for_each(ns, &ctrl->namespaces, link) {
		if (ns->opening)
			continue;
		update_paths(ctrl, ns);
		ns->down_ns = is_usable(ns) ? 0 : ns->down_ns ? ns->down_ns : now;
		at = fails_at_ns(ctrl, ns);
		rc = sum_up(ctrl, ns);
		atomic_store(&ns->rc, rc == 0 && at && at <= now ? -EIO : rc);
		if (at > now && (!first || at < first))
			first = at;
	}
	watch(ctrl, first);
}
