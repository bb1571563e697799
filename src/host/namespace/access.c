/* access.c - computes, for each open namespace, through which paths I/O may go (ANA, multipath),
 * and fails its I/O when no path could be used for fast_io_fail. The control reactor computes;
 * issuing a command is one load.
 *
 *   no path can be used ─▶ fast_io_fail ─▶ rc: I/O fails, queued and new
 *   one can be used again ─▶ rc 0: I/O goes on */
#include <errno.h>

#include "host/internal.h"

/* --- through one path ------------------------------------------------------------------------- */

static enum weft_access access_of_ana_state(uint8_t state)
{
	switch (state) {
	case NVME_ANA_STATE_OPTIMIZED:
		return WEFT_ACCESS_OPTIMIZED;
	case NVME_ANA_STATE_NONOPTIMIZED:
		return WEFT_ACCESS_NON_OPTIMIZED;
	case NVME_ANA_STATE_PERSISTENT_LOSS:
		return WEFT_ACCESS_LOST;
	case NVME_ANA_STATE_CHANGE:
		return WEFT_ACCESS_CHANGING;
	default:
		return WEFT_ACCESS_INACCESSIBLE;
	}
}

static bool ana_state_is_stale(const struct host_path *path, const struct host_ns_view *view)
{
	assert_locked(&path->ctrl->lock);
	return path->ana.groups && view->ana_stale_until > path->ana.reads_applied;
}

static uint32_t group_through(const struct host_path *path, const struct weft_ns *ns)
{
	const struct host_ns_view *view = &ns->views[path->index];

	assert_locked(&path->ctrl->lock);
	return path->ana.groups && view->validated ? view->group : 0;
}

static enum weft_access path_access(const struct host_path *path, const struct weft_ns *ns)
{
	const struct host_ns_view *view = &ns->views[path->index];

	assert_locked(&path->ctrl->lock);
	if (!path->pub.lives || !view->validated || view->refused_ns)
		return WEFT_ACCESS_UNKNOWN;
	if (view->rc)
		return WEFT_ACCESS_ABSENT;
	return ana_state_is_stale(path, view) ?
		       WEFT_ACCESS_CHANGING :
		       access_of_ana_state(host_ana_state(path, view->group));
}

/* The path was inaccessible, and its controller says that this changed. A command that has no other
 * path may try before the log page is read; at worst it is refused once more. */
static bool ana_change_may_allow_io(const struct host_path *path, const struct weft_ns *ns,
				    enum weft_access access)
{
	return path->ana.change_notified && !ana_state_is_stale(path, &ns->views[path->index]) &&
	       (access == WEFT_ACCESS_INACCESSIBLE || access == WEFT_ACCESS_CHANGING);
}

static enum host_access io_access_through(const struct host_path *path, const struct weft_ns *ns)
{
	enum weft_access access = path_access(path, ns);

	if (ana_change_may_allow_io(path, ns, access))
		return HOST_ACCESS_PERHAPS;
	return access == WEFT_ACCESS_OPTIMIZED     ? HOST_ACCESS_OPTIMIZED :
	       access == WEFT_ACCESS_NON_OPTIMIZED ? HOST_ACCESS_NON_OPTIMIZED :
						     HOST_ACCESS_NONE;
}

const char *weft_access_text(enum weft_access access)
{
	static const char *const texts[] = {
		[WEFT_ACCESS_UNKNOWN] = "unknown",
		[WEFT_ACCESS_OPTIMIZED] = "optimized",
		[WEFT_ACCESS_NON_OPTIMIZED] = "non-optimized",
		[WEFT_ACCESS_INACCESSIBLE] = "inaccessible",
		[WEFT_ACCESS_LOST] = "persistent-loss",
		[WEFT_ACCESS_CHANGING] = "change",
		[WEFT_ACCESS_ABSENT] = "absent",
	};

	return (size_t)access < sizeof(texts) / sizeof(texts[0]) ? texts[access] : "unknown";
}

void host_ns_path(const struct host_path *path, const struct weft_ns *ns, struct weft_ns_path *out)
{
	*out = (struct weft_ns_path){ path->id, path_access(path, ns), group_through(path, ns) };
}

unsigned weft_ns_paths(struct weft_ns *ns, struct weft_ns_path *out, unsigned max)
{
	struct host_path *paths[HOST_PATHS_MAX];
	unsigned n;

	weft_mutex_lock(&ns->ctrl->lock);
	n = host_paths_by_id(ns->ctrl, paths);
	for (unsigned i = 0; i < n && i < max; i++)
		host_ns_path(paths[i], ns, &out[i]);
	weft_mutex_unlock(&ns->ctrl->lock);
	return n;
}

/* --- through any path ------------------------------------------------------------------------- */

/* One path that leads to the namespace is enough, also if that path is lost at the moment. If there
 * is none, the causes have a rank: a refused scan (-EIO) means that it may be there; then comes
 * that no controller has it (-ENODEV); last, that another one is in its place (-ESTALE). */
static int ns_rc_over_paths(const struct weft_ctrl *ctrl, const struct weft_ns *ns)
{
	int rc = 0;

	assert_locked(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		const struct host_ns_view *view = &ns->views[i];

		if (!ctrl->paths[i] || !view->validated)
			continue;
		if (!view->rc)
			return 0;
		if (view->rc == -EIO || (rc != -EIO && rc != -ENODEV))
			rc = view->rc;
	}
	return rc;
}

/* --- no path for too long --------------------------------------------------------------------- */

static bool ns_is_usable(const struct weft_ns *ns)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (atomic_load_explicit(&ns->access[i], memory_order_relaxed) >
		    HOST_ACCESS_PERHAPS)
			return true;
	return false;
}

/* When its I/O is to fail; 0: never. */
static uint64_t fast_io_fail_at_ns(const struct weft_ctrl *ctrl, const struct weft_ns *ns)
{
	uint64_t patience = ctrl->config.options.fast_io_fail_ms * UINT64_C(1000000);

	return ns->down_ns && patience ? ns->down_ns + patience : 0;
}

/* All namespaces have the same timeout: the first that went down fails first. NULL: none is
 * down. */
static struct weft_ns *first_down(const struct weft_ctrl *ctrl)
{
	assert_locked(&ctrl->lock);
	return weft_list_empty(&ctrl->ns_down) ?
		       NULL :
		       container_of(ctrl->ns_down.next, struct weft_ns, down);
}

static void update_down_since(struct weft_ctrl *ctrl, struct weft_ns *ns, uint64_t now)
{
	assert_locked(&ctrl->lock);
	if (ns_is_usable(ns)) {
		ns->down_ns = 0;
		weft_list_remove(&ns->down);
	} else if (!ns->down_ns) {
		ns->down_ns = now;
		weft_list_push(&ctrl->ns_down, &ns->down);
	}
}

static bool fast_io_fail_expired(const struct weft_ctrl *ctrl, struct weft_ns *ns, uint64_t now)
{
	uint64_t at = fast_io_fail_at_ns(ctrl, ns);

	if (!at || at > now)
		return false;
	weft_list_remove(&ns->down);
	return true;
}

/* --- the update ------------------------------------------------------------------------------- */

static void update_paths(struct weft_ctrl *ctrl, struct weft_ns *ns)
{
	uint8_t scan_pending = 0, replaced = 0;

	assert_locked(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		const struct host_path *path = ctrl->paths[i];

		if (!path)
			continue;
		atomic_store_explicit(&ns->access[i], io_access_through(path, ns),
				      memory_order_relaxed);
		if (path->pub.state == WEFT_LIVE && !ns->views[i].validated &&
		    !ns->views[i].refused_ns)
			scan_pending |= (uint8_t)(1u << i);
		if (ns->views[i].validated && ns->views[i].rc == -ESTALE)
			replaced |= (uint8_t)(1u << i);
	}
	atomic_store(&ns->scan_pending, scan_pending);
	atomic_store(&ns->replaced, replaced);
}

static void update_ns_access(struct weft_ctrl *ctrl, struct weft_ns *ns, uint64_t now)
{
	int rc;

	assert_on(ctrl->reactor);
	if (ns->opening)
		return;
	update_paths(ctrl, ns);
	update_down_since(ctrl, ns, now);
	rc = ns_rc_over_paths(ctrl, ns);
	if (fast_io_fail_expired(ctrl, ns, now) && rc == 0)
		rc = -EIO;
	/* Before I/O sees @rc: what a path says later is not why it failed. */
	if (rc == -EIO)
		host_paths_text(ctrl, ns, ns->io_error.text, sizeof(ns->io_error.text));
	atomic_store(&ns->rc, rc);
}

static void arm_fail_timer(struct weft_ctrl *ctrl);

static void on_fail_timer(struct weft_timer *timer)
{
	struct weft_ctrl *ctrl = container_of(timer, struct weft_ctrl, fail_timer);
	uint64_t now = weft_reactor_now_ns(ctrl->reactor);
	struct weft_ns *ns;

	weft_mutex_lock(&ctrl->lock);
	while ((ns = first_down(ctrl)) && fast_io_fail_at_ns(ctrl, ns) <= now)
		update_ns_access(ctrl, ns, now);
	arm_fail_timer(ctrl);
	host_ctrl_wake_all(ctrl);
	weft_mutex_unlock(&ctrl->lock);
}

static void arm_fail_timer(struct weft_ctrl *ctrl)
{
	uint64_t now = weft_reactor_now_ns(ctrl->reactor), at;
	const struct weft_ns *ns = first_down(ctrl);

	assert_locked(&ctrl->lock);
	weft_timer_stop(ctrl->reactor, &ctrl->fail_timer);
	ctrl->fail_timer.fn = on_fail_timer;
	at = ns ? fast_io_fail_at_ns(ctrl, ns) : 0;
	if (at)
		weft_timer_set(ctrl->reactor, &ctrl->fail_timer,
			       at > now ? (at - now) / 1000000 + 1 : 1);
}

static void update_record_access(struct weft_ctrl *ctrl, struct host_ns_record *at, uint64_t now)
{
	struct weft_ns *ns;

	weft_list_for_each(ns, &at->open, link)
		update_ns_access(ctrl, ns, now);
}

void host_access_update_one(struct weft_ctrl *ctrl, struct host_ns_record *at)
{
	assert_locked(&ctrl->lock);
	update_record_access(ctrl, at, weft_reactor_now_ns(ctrl->reactor));
	arm_fail_timer(ctrl);
}

void host_access_update(struct weft_ctrl *ctrl)
{
	uint64_t now = weft_reactor_now_ns(ctrl->reactor);
	struct host_ns_record *at;

	assert_locked(&ctrl->lock);
	weft_list_for_each(at, &ctrl->ns_records, link)
		update_record_access(ctrl, at, now);
	arm_fail_timer(ctrl);
}
