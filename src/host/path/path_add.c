/* path_add.c - adds and removes paths while others carry I/O. A removed path takes no new
 * commands, is stopped when its last path queue is gone, and is then freed.
 *
 *   OUTSIDE ─┬─────────▶ MEMBER ─┬─▶ REMOVING ─▶ its last path queue is gone ─▶ stop ─▶ free
 *            └─▶ ADDING ──▲──────┘
 *                weft_path_add() waits for its first attempt; nobody else removes it meanwhile
 *
 * Invariant: ctrl->paths changes on the control reactor, under ctrl->lock; a path that has a path
 * queue is in ctrl->paths. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/count.h"
#include "host/discovery/follower.h"

#define FROM(state) (1u << HOST_PATH_##state)

/* States that may come before. */
static const unsigned edges[] = {
	[HOST_PATH_OUTSIDE] = 0,
	[HOST_PATH_ADDING] = FROM(OUTSIDE),
	[HOST_PATH_MEMBER] = FROM(OUTSIDE) | FROM(ADDING),
	[HOST_PATH_REMOVING] = FROM(ADDING) | FROM(MEMBER),
};

static void membership_enter(struct host_path *path, enum host_path_membership membership)
{
	assert_locked(&path->ctrl->lock);
	assert(edges[membership] & 1u << path->membership);
	path->membership = membership;
}

/* --- adding ----------------------------------------------------------------------------------- */

int host_path_create(struct weft_ctrl *ctrl, const struct host_config *config,
		     struct host_path **out, struct weft_err *err)
{
	struct host_path *path = calloc(1, sizeof(*path));

	if (path) {
		path->ctrl = ctrl;
		host_admin_init(path);
		path->setup.page = malloc(HOST_PAGE);
		path->aer.page = malloc(HOST_AERS * HOST_PAGE);
		path->scan.page = malloc(2 * HOST_PAGE);
	}
	if (!path || !path->setup.page || !path->aer.page || !path->scan.page) {
		host_path_free(path);
		return weft_fail(err, -ENOMEM, "no memory for a controller");
	}
	path->reactor = ctrl->reactor;
	path->config = *config;
	if (getrandom(&path->reconnect.random, sizeof(path->reconnect.random), GRND_NONBLOCK) < 0)
		path->reconnect.random = (unsigned)getpid();
	*out = path;
	return 0;
}

void host_path_set_addr(struct host_path *path, const struct weft_link_transport *transport,
			const struct sockaddr_storage *addr)
{
	struct weft_options *options = &path->config.options;

	path->config.transport = transport;
	path->config.addr = path->addrs.list[0] = *addr;
	path->addrs.count = 1;
	if (transport->trtype == NVMF_TRTYPE_RDMA)
		options->hdgst = options->ddgst = false;
}

static int insert_path(struct host_path *path, enum host_path_membership membership)
{
	struct weft_ctrl *ctrl = path->ctrl;
	unsigned i = 0;

	assert_on(ctrl->reactor);
	assert(path->membership == HOST_PATH_OUTSIDE && path->state == HOST_PATH_NEW);
	weft_mutex_lock(&ctrl->lock);
	while (i < HOST_PATHS_MAX && ctrl->paths[i])
		i++;
	if (i < HOST_PATHS_MAX) {
		path->index = i;
		path->id = ctrl->next_path++;
		membership_enter(path, membership);
		ctrl->paths[i] = path;
		host_path_address(path, path->pub.address, sizeof(path->pub.address));
		host_ns_reset_path(ctrl, i);
	}
	weft_mutex_unlock(&ctrl->lock);
	return i < HOST_PATHS_MAX ? 0 : -EUSERS;
}

int host_paths_insert(struct host_path *path)
{
	return insert_path(path, HOST_PATH_MEMBER);
}

static void on_add_msg(struct weft_msg *msg)
{
	struct host_path *path = container_of(msg, struct host_path, msg);
	struct weft_ctrl *ctrl = path->ctrl;

	if (insert_path(path, HOST_PATH_ADDING) == 0) {
		host_path_start(path);
		return;
	}
	weft_mutex_lock(&ctrl->lock);
	path->pub.tried = true;
	path->pub.rc = weft_fail(&path->pub.why, -EUSERS, "there are %d paths already",
				 HOST_PATHS_MAX);
	pthread_cond_broadcast(&ctrl->changed);
	weft_mutex_unlock(&ctrl->lock);
}

void host_path_add_async(struct host_path *path)
{
	path->msg.fn = on_add_msg;
	weft_reactor_post(path->reactor, &path->msg);
}

void host_path_added(struct host_path *path)
{
	membership_enter(path, HOST_PATH_MEMBER);
}

/* --- removing --------------------------------------------------------------------------------- */

void host_path_free(struct host_path *path)
{
	if (!path)
		return;
	assert(!path->assoc.link && weft_list_empty(&path->admin.inflight));
	weft_task_cancel(&path->admin.pump);
	host_ana_free(path);
	free(path->setup.page);
	free(path->aer.page);
	free(path->scan.page);
	free(path);
}

static void on_unused_msg(struct weft_msg *msg)
{
	host_path_stop(container_of(msg, struct host_path, msg));
}

static void begin_remove(struct host_path *path)
{
	assert_locked(&path->ctrl->lock);
	membership_enter(path, HOST_PATH_REMOVING);
	path->msg.fn = on_unused_msg;
	if (!path->path_queues)
		weft_reactor_post(path->reactor, &path->msg);
	host_ctrl_wake_all(path->ctrl);
}

void host_path_remove(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;

	if (path->membership == HOST_PATH_OUTSIDE) {
		host_path_free(path);
		return;
	}
	weft_mutex_lock(&ctrl->lock);
	begin_remove(path);
	weft_mutex_unlock(&ctrl->lock);
}

void host_path_put(struct host_path *path)
{
	assert_locked(&path->ctrl->lock);
	if (!weft_count_down(path->path_queues) && host_path_is_removing(path))
		weft_reactor_post(path->reactor, &path->msg);
}

/* The path with this id, if it can be removed; @others gets how many other paths there are. */
static struct host_path *find_removable_path(struct weft_ctrl *ctrl, unsigned id, unsigned *others)
{
	struct host_path *found = NULL;

	assert_locked(&ctrl->lock);
	*others = 0;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *path = ctrl->paths[i];

		if (!path || path->membership != HOST_PATH_MEMBER)
			continue;
		if (path->id == id)
			found = path;
		else
			++*others;
	}
	return found;
}

int weft_path_remove(struct weft_ctrl *ctrl, unsigned id, struct weft_err *err)
{
	struct host_path *path;
	unsigned others;
	int rc = 0;

	weft_mutex_lock(&ctrl->lock);
	path = find_removable_path(ctrl, id, &others);
	if (!path)
		rc = weft_fail(err, -ENOENT, "there is no path %u", id);
	else if (path->discovered_by[0])
		rc = weft_fail(err, -EBUSY, "path %u comes and goes with the discovery log of %s",
			       id, path->discovered_by);
	else if (!others)
		rc = weft_fail(err, -EBUSY, "path %u is the last one", id);
	else
		begin_remove(path);
	weft_mutex_unlock(&ctrl->lock);
	return rc;
}

static void free_path_msg(struct weft_msg *msg)
{
	struct host_path *path = container_of(msg, struct host_path, msg);
	struct weft_ctrl *ctrl = path->ctrl;

	assert(path->state == HOST_PATH_STOPPED && host_path_is_removing(path));
	assert(!path->path_queues && ctrl->paths[path->index] == path);
	weft_mutex_lock(&ctrl->lock);
	ctrl->paths[path->index] = NULL;
	host_ctrl_merge_paths(ctrl);
	host_ns_reset_path(ctrl, path->index);
	host_dirty_path_removed(ctrl, path->index);
	host_access_update(ctrl);
	host_ctrl_wake_all(ctrl);
	weft_mutex_unlock(&ctrl->lock);
	host_path_free(path);
	host_paths_reconcile_soon(ctrl); /* there is room for another path */
}

/* The control reactor ends with the last path. */
void host_control_stop_if_idle(struct weft_ctrl *ctrl)
{
	assert_on(ctrl->reactor);
	assert(ctrl->stopping);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i] && ctrl->paths[i]->state != HOST_PATH_STOPPED)
			return;
	if (ctrl->follower)
		host_follower_stopped(ctrl->follower);
	else if (weft_list_empty(&ctrl->followers))
		weft_reactor_stop(ctrl->reactor);
}

void host_path_stopped(struct host_path *path)
{
	assert_on(path->reactor);
	assert(path->state == HOST_PATH_STOPPED);
	if (path->ctrl->stopping) {
		host_control_stop_if_idle(path->ctrl);
		return;
	}
	path->msg.fn = free_path_msg; /* later: callers up the stack still use it */
	weft_reactor_post(path->reactor, &path->msg);
}

void host_paths_stop(struct weft_ctrl *ctrl)
{
	assert_on(ctrl->reactor);
	ctrl->stopping = true;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i])
			host_path_stop(ctrl->paths[i]);
	host_followers_stop(ctrl);
	host_control_stop_if_idle(ctrl);
}
