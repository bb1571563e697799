/* ctrl.c - a controller as its program sees it: state, properties, paths. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/discovery/follower.h"

enum weft_state weft_ctrl_state(struct weft_ctrl *ctrl, struct weft_err *why)
{
	enum weft_state state;

	weft_mutex_lock(&ctrl->lock);
	state = ctrl->pub.state;
	if (why)
		*why = ctrl->pub.why;
	weft_mutex_unlock(&ctrl->lock);
	return state;
}

static void fill_ctrl_info(const struct host_traits *t, struct weft_ctrl_info *info)
{
	memcpy(info->model, t->model, sizeof(info->model));
	memcpy(info->serial, t->serial, sizeof(info->serial));
	memcpy(info->firmware, t->firmware, sizeof(info->firmware));
	info->version = t->version;
	info->cntlid = t->cntlid;
	info->discovery = t->discovery;
	info->queues = t->queues;
	info->depth = t->depth;
	info->transfer_max = t->transfer_max;
	info->volatile_cache = t->vwc & 1;
	info->can_compare = t->oncs & NVME_CTRL_ONCS_COMPARE;
	info->can_zero = t->oncs & NVME_CTRL_ONCS_WRITE_ZEROES;
	info->can_trim = t->oncs & NVME_CTRL_ONCS_DSM;
	info->can_verify = t->oncs & NVME_CTRL_ONCS_VERIFY;
	info->can_copy = t->oncs & NVME_CTRL_ONCS_COPY;
	info->can_fuse = t->fuses & 1;
}

void weft_ctrl_info(struct weft_ctrl *ctrl, struct weft_ctrl_info *info)
{
	const struct host_config *config = &ctrl->config;

	memset(info, 0, sizeof(*info));
	snprintf(info->subnqn, sizeof(info->subnqn), "%s", config->subnqn);
	snprintf(info->hostnqn, sizeof(info->hostnqn), "%s", config->hostnqn);
	info->nsid = config->nsid;
	info->keepalive_ms = config->options.keepalive_ms;
	weft_mutex_lock(&ctrl->lock);
	memcpy(info->address, ctrl->pub.address, sizeof(info->address));
	fill_ctrl_info(&ctrl->pub.traits, info);
	info->discovering = host_followers_pending(ctrl);
	info->reconnects = ctrl->pub.reconnects;
	info->losses = ctrl->pub.losses;
	weft_mutex_unlock(&ctrl->lock);
}

void weft_ctrl_path(struct weft_ctrl *ctrl, struct weft_path *path)
{
	weft_mutex_lock(&ctrl->lock);
	*path = ctrl->pub.path;
	weft_mutex_unlock(&ctrl->lock);
}

static void fill_path_info(const struct host_path *path, struct weft_path_info *info)
{
	const struct host_published *pub = &path->pub;

	assert_locked(&path->ctrl->lock);
	*info = (struct weft_path_info){ .path = path->id,
					 .state = pub->state,
					 .why = pub->why,
					 .cntlid = pub->traits.cntlid,
					 .queues = pub->traits.queues,
					 .depth = pub->traits.depth,
					 .reconnects = pub->reconnects };
	memcpy(info->address, pub->address, sizeof(info->address));
	memcpy(info->from, path->discovered_by, sizeof(info->from));
}

unsigned host_paths_by_id(struct weft_ctrl *ctrl, struct host_path *paths[HOST_PATHS_MAX])
{
	unsigned n = 0, at;

	assert_locked(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *path = ctrl->paths[i];

		if (!path || host_path_is_removing(path))
			continue;
		for (at = n++; at && paths[at - 1]->id > path->id; at--)
			paths[at] = paths[at - 1];
		paths[at] = path;
	}
	return n;
}

bool host_ctrl_has_untried_path(const struct weft_ctrl *ctrl)
{
	bool is = host_followers_pending(ctrl);

	assert_locked(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		is |= ctrl->paths[i] && !ctrl->paths[i]->pub.tried;
	return is;
}

unsigned weft_ctrl_paths(struct weft_ctrl *ctrl, struct weft_path_info *infos, unsigned max)
{
	struct host_path *paths[HOST_PATHS_MAX];
	unsigned n;

	weft_mutex_lock(&ctrl->lock);
	n = host_paths_by_id(ctrl, paths);
	for (unsigned i = 0; i < n && i < max; i++)
		fill_path_info(paths[i], &infos[i]);
	weft_mutex_unlock(&ctrl->lock);
	return n;
}

void host_ctrl_address(struct weft_ctrl *ctrl, struct sockaddr_storage *addr)
{
	struct host_path *paths[HOST_PATHS_MAX];

	memset(addr, 0, sizeof(*addr));
	weft_mutex_lock(&ctrl->lock);
	if (host_paths_by_id(ctrl, paths))
		*addr = paths[0]->config.addr;
	weft_mutex_unlock(&ctrl->lock);
}

static void on_reset(struct weft_msg *msg)
{
	struct weft_ctrl *ctrl = container_of(msg, struct weft_ctrl, reset_msg);

	assert_on(ctrl->reactor);
	atomic_store(&ctrl->reset_posted, false);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i] && host_path_is_connected(ctrl->paths[i]))
			host_path_broken(ctrl->paths[i], -ECONNRESET, "reset by the program");
}

void weft_ctrl_reset(struct weft_ctrl *ctrl)
{
	if (atomic_exchange(&ctrl->reset_posted, true))
		return;
	ctrl->reset_msg.fn = on_reset;
	weft_reactor_post(ctrl->reactor, &ctrl->reset_msg);
}
