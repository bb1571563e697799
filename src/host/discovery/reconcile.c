/* reconcile.c - makes the paths there are those that the discovery logs list. A listed address
 * without a path gets one; a discovered path that no log lists is removed once a listed path is
 * live. Paths that the program gave are not touched, and a service that is lost keeps its last log.
 *
 *   an address is listed and has no path ───────────────────▶ a path is added
 *   a discovered path is not listed ─ a listed one is live ─▶ it is drained and removed
 *
 * So a service that is lost, or whose log is empty, takes no path away: its last log still counts,
 * and an empty log lists no path that could be live. */
#include <errno.h>

#include "host/discovery/follower.h"

enum { NOT_REFERRED = HOST_REFERRAL_DEPTH_MAX + 1 };

static bool follower_has_log(const struct host_follower *follower)
{
	return follower->answered && !follower->ctrl->stopping;
}

/* --- referrals -------------------------------------------------------------------------------- */

static void follow_referral(struct host_follower *from, const struct host_discovered_addr *daddr)
{
	struct host_follower *follower;

	assert(from->depth < HOST_REFERRAL_DEPTH_MAX);
	weft_list_for_each(follower, &from->owner->followers, link) {
		if (!host_follower_is_at(follower, daddr))
			continue;
		if (follower->depth == NOT_REFERRED)
			follower->depth = from->depth + 1;
		return;
	}
	host_follower_add_referral(from, daddr);
}

/* Starts from the services that were given, and goes level by level: services that only refer to
 * each other are not reached, and are dropped. */
static void follow_referrals(struct weft_ctrl *ctrl)
{
	struct host_follower *follower;

	weft_list_for_each(follower, &ctrl->followers, link)
		follower->depth = follower->depth ? NOT_REFERRED : 0;
	for (unsigned depth = 0; depth < HOST_REFERRAL_DEPTH_MAX; depth++) {
		weft_list_for_each(follower, &ctrl->followers, link) {
			if (follower->depth != depth || !follower_has_log(follower))
				continue;
			for (unsigned i = 0; i < follower->log.nreferrals; i++)
				follow_referral(follower, &follower->log.referrals[i]);
		}
	}
	weft_list_for_each(follower, &ctrl->followers, link) {
		if (follower->depth == NOT_REFERRED && !follower->ctrl->stopping)
			host_follower_drop(follower);
	}
}

/* --- paths ------------------------------------------------------------------------------------ */

static bool path_is_at(const struct host_path *path, const struct host_discovered_addr *daddr)
{
	return path->config.transport == daddr->transport &&
	       weft_addr_equal(&path->config.addr, &daddr->addr);
}

/* The program may be removing a path that it gave. */
static bool path_is_removing(const struct host_path *path)
{
	bool removing;

	weft_mutex_lock(&path->ctrl->lock);
	removing = host_path_is_removing(path);
	weft_mutex_unlock(&path->ctrl->lock);
	return removing;
}

static struct host_path *find_path(const struct weft_ctrl *ctrl,
				   const struct host_discovered_addr *daddr)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i] && path_is_at(ctrl->paths[i], daddr))
			return ctrl->paths[i];
	return NULL;
}

static void add_discovered_path(struct host_follower *follower,
				const struct host_discovered_addr *daddr)
{
	const struct host_path *from = host_follower_path(follower);
	struct host_path *path;

	assert_on(follower->owner->reactor);
	if (host_path_create(follower->owner, &follower->wanted, &path, NULL) < 0)
		return;
	host_path_set_addr(path, daddr->transport, &daddr->addr);
	host_path_address(from, path->discovered_by, sizeof(path->discovered_by));
	if (host_paths_insert(path) == 0) {
		host_path_start(path);
		return;
	}
	if (follower->fresh)
		host_event_push(follower->owner, WEFT_EVENT_PATH, WEFT_DEAD, 0,
				"%s: listed and not used, there are %d paths", path->pub.address,
				HOST_PATHS_MAX);
	host_path_free(path);
}

/* A dead path gets another chance when a new log lists it. */
static void add_discovered_paths(struct host_follower *follower)
{
	for (unsigned i = 0; i < follower->log.naddrs; i++) {
		struct host_path *path = find_path(follower->owner, &follower->log.addrs[i]);

		if (!path)
			add_discovered_path(follower, &follower->log.addrs[i]);
		else if (follower->fresh && path->discovered_by[0] &&
			 path->state == HOST_PATH_DEAD && !path_is_removing(path))
			host_path_remove(path); /* and is added again when it is gone */
	}
	follower->fresh = false;
}

static bool path_is_discovered(const struct host_path *path)
{
	struct host_follower *follower;

	weft_list_for_each(follower, &path->ctrl->followers, link) {
		if (!follower_has_log(follower))
			continue;
		for (unsigned i = 0; i < follower->log.naddrs; i++)
			if (path_is_at(path, &follower->log.addrs[i]))
				return true;
	}
	return false;
}

static bool any_discovered_path_lives(const struct weft_ctrl *ctrl)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		const struct host_path *path = ctrl->paths[i];

		if (path && host_path_is_connected(path) && !path_is_removing(path) &&
		    path_is_discovered(path))
			return true;
	}
	return false;
}

static void remove_undiscovered_paths(struct weft_ctrl *ctrl)
{
	if (!any_discovered_path_lives(ctrl))
		return;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *path = ctrl->paths[i];

		if (!path || !path->discovered_by[0] || path_is_removing(path) ||
		    path_is_discovered(path))
			continue;
		host_event_push(ctrl, WEFT_EVENT_PATH, host_path_public_state(path), 0,
				"%s: is not listed any more, and removed", path->pub.address);
		host_path_remove(path);
	}
}

/* --- the task --------------------------------------------------------------------------------- */

/* For a thread that waits in weft_connect(). */
static void report_log_result(struct host_follower *follower)
{
	assert_locked(&follower->owner->lock);
	follower->tried = true;
	follower->why.text[0] = '\0';
	follower->rc = follower->log.naddrs ? 0 :
					      weft_fail(&follower->why, -ENOENT,
							"the discovery log does not list %s",
							follower->wanted.subnqn);
}

static void report_log_results(struct weft_ctrl *ctrl)
{
	struct host_follower *follower;

	weft_mutex_lock(&ctrl->lock);
	weft_list_for_each(follower, &ctrl->followers, link) {
		if (follower->answered)
			report_log_result(follower);
	}
	pthread_cond_broadcast(&ctrl->changed);
	weft_mutex_unlock(&ctrl->lock);
}

/* Dead is final: a dead controller gets no more paths. */
void host_paths_reconcile(struct weft_task *task)
{
	struct weft_ctrl *ctrl = container_of(task, struct weft_ctrl, reconcile_task);
	struct host_follower *follower;

	assert_on(ctrl->reactor);
	if (ctrl->stopping || ctrl->pub.state == WEFT_DEAD)
		return;
	follow_referrals(ctrl);
	weft_list_for_each(follower, &ctrl->followers, link) {
		if (follower_has_log(follower))
			add_discovered_paths(follower);
	}
	remove_undiscovered_paths(ctrl);
	report_log_results(ctrl);
}

void host_paths_reconcile_soon(struct weft_ctrl *ctrl)
{
	assert_on(ctrl->reactor);
	if (!weft_list_empty(&ctrl->followers))
		weft_reactor_defer(ctrl->reactor, &ctrl->reconcile_task);
}
