/* follower.c - a discovery follower: the connection to a service whose log lists paths, and its
 * end.
 *
 *   given, or referred to ─▶ connected ─▶ its log is read ─▶ reconcile.c adds and removes paths
 *                              ▲   └ lost: its last log still counts
 *                              └──────┘ reconnects, for ever
 *   dropped ─▶ its connection is shut down ─▶ stopped ─▶ freed, when no caller uses it any more */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/discovery/follower.h"

enum { KATO_MS = 30000 }; /* a service sends events only to hosts with keep-alive */

/* --- adding ----------------------------------------------------------------------------------- */

void host_followers_init(struct weft_ctrl *ctrl)
{
	weft_list_init(&ctrl->followers);
	weft_task_init(&ctrl->reconcile_task, host_paths_reconcile);
}

static void free_follower(struct host_follower *follower)
{
	if (follower->ctrl)
		host_ctrl_free(follower->ctrl);
	free(follower->reading.page);
	free(follower);
}

static void free_followerp(struct host_follower **follower)
{
	if (*follower)
		free_follower(*follower);
}

static struct host_config discovery_config(const struct host_config *wanted)
{
	struct host_config config = *wanted;

	strcpy(config.subnqn, NVME_NQN_DISCOVERY);
	config.nsid = 0;
	if (!config.options.keepalive_ms)
		config.options.keepalive_ms = KATO_MS;
	return config;
}

/* Creates it with a path, whose address is not set yet. */
static int create_follower(struct weft_ctrl *owner, const struct host_config *wanted,
			   struct host_follower **out, struct weft_err *err)
{
	_cleanup_(free_followerp) struct host_follower *follower = calloc(1, sizeof(*follower));
	struct host_config config = discovery_config(wanted);
	struct host_path *path;
	int rc;

	if (follower)
		follower->reading.page = malloc(HOST_DISC_LOG_ENTRIES_PER_CMD *
						sizeof(struct nvmf_disc_log_entry));
	if (!follower || !follower->reading.page)
		return weft_fail(err, -ENOMEM, "no memory for a discovery service");
	follower->owner = owner;
	follower->wanted = *wanted;
	rc = host_ctrl_create(&config, follower, &follower->ctrl, err);
	if (rc == 0)
		rc = host_path_create(follower->ctrl, &config, &path, err);
	if (rc < 0)
		return rc;
	host_paths_insert(path);
	*out = take_ptr(&follower);
	return 0;
}

int host_follower_add(struct weft_ctrl *ctrl, const struct host_path_spec *spec,
		      struct weft_err *err)
{
	struct host_follower *follower;
	int rc = create_follower(ctrl, &spec->config, &follower, err);

	if (rc < 0)
		return rc;
	weft_list_push(&ctrl->followers, &follower->link);
	return host_path_resolve(host_follower_path(follower), &spec->parts, err);
}

void host_follower_add_referral(struct host_follower *from,
				const struct host_discovered_addr *daddr)
{
	struct weft_ctrl *owner = from->owner;
	struct host_follower *follower;
	struct host_path *path;
	unsigned count = 0;

	assert_on(owner->reactor);
	weft_list_for_each(follower, &owner->followers, link)
		count++;
	if (count >= HOST_FOLLOWERS_MAX || count >= from->wanted.options.discovery_services ||
	    create_follower(owner, &from->wanted, &follower, NULL) < 0)
		return;
	follower->depth = from->depth + 1;
	path = host_follower_path(follower);
	host_path_set_addr(path, daddr->transport, &daddr->addr);
	weft_mutex_lock(&owner->lock);
	follower->tried = owner->discovery_timed_out;
	weft_list_push(&owner->followers, &follower->link);
	weft_mutex_unlock(&owner->lock);
	host_path_start(path);
}

/* weft_connect() does not wait for services that take longer. Their logs count when they come. */
static void on_discovery_timeout(struct weft_timer *timer)
{
	struct weft_ctrl *ctrl = container_of(timer, struct weft_ctrl, lifetime);
	struct weft_err why = { "" };
	struct host_follower *follower;
	int rc = host_discovery_fail_timeout(&ctrl->config.options, &why);

	ctrl->discovery_timed_out = true;
	weft_list_for_each(follower, &ctrl->followers, link) {
		if (!follower->tried)
			host_follower_failed(follower, rc, &why);
	}
}

void host_followers_start(struct weft_ctrl *ctrl)
{
	struct host_follower *follower;

	if (!weft_list_empty(&ctrl->followers)) {
		ctrl->lifetime.fn = on_discovery_timeout;
		weft_timer_set(ctrl->reactor, &ctrl->lifetime, ctrl->config.options.discovery_ms);
	}
	weft_list_for_each(follower, &ctrl->followers, link)
		host_path_start(host_follower_path(follower));
}

/* --- dropping --------------------------------------------------------------------------------- */

void host_follower_drop(struct host_follower *follower)
{
	assert_on(follower->ctrl->reactor);
	host_follower_read_stop(follower);
	host_paths_stop(follower->ctrl);
}

void host_followers_stop(struct weft_ctrl *ctrl)
{
	struct host_follower *follower;

	weft_list_for_each(follower, &ctrl->followers, link)
		host_follower_drop(follower);
}

static void free_follower_msg(struct weft_msg *msg)
{
	struct host_follower *follower = container_of(msg, struct host_follower, msg);
	struct weft_ctrl *owner = follower->owner;

	assert(follower->stopped && follower->ctrl->stopping);
	weft_mutex_lock(&owner->lock);
	weft_list_remove(&follower->link);
	weft_mutex_unlock(&owner->lock);
	free_follower(follower);
	if (owner->stopping)
		host_control_stop_if_idle(owner);
	else
		host_paths_reconcile_soon(owner);
}

void host_follower_stopped(struct host_follower *follower)
{
	assert_on(follower->ctrl->reactor);
	if (follower->stopped)
		return;
	follower->stopped = true;
	follower->msg.fn = free_follower_msg;
	weft_reactor_post(follower->ctrl->reactor, &follower->msg);
}

void host_followers_free(struct weft_ctrl *ctrl)
{
	struct weft_list *link;

	while ((link = weft_list_pop(&ctrl->followers)))
		free_follower(container_of(link, struct host_follower, link));
}

/* --- state changes ---------------------------------------------------------------------------- */

bool host_follower_is_at(const struct host_follower *follower,
			 const struct host_discovered_addr *daddr)
{
	const struct host_config *config = &host_follower_path(follower)->config;

	return config->transport == daddr->transport &&
	       weft_addr_equal(&config->addr, &daddr->addr);
}

void host_follower_log_complete(struct host_follower *follower)
{
	assert_on(follower->owner->reactor);
	follower->answered = follower->fresh = true;
	host_paths_reconcile_soon(follower->owner);
}

void host_follower_failed(struct host_follower *follower, int rc, const struct weft_err *why)
{
	struct weft_ctrl *owner = follower->owner;

	assert_on(owner->reactor);
	weft_mutex_lock(&owner->lock);
	follower->tried = true;
	follower->rc = rc;
	follower->why = *why;
	host_path_address(host_follower_path(follower), follower->address,
			  sizeof(follower->address));
	pthread_cond_broadcast(&owner->changed);
	weft_mutex_unlock(&owner->lock);
}

bool host_followers_pending(const struct weft_ctrl *ctrl)
{
	struct host_follower *follower;

	assert_locked(&ctrl->lock);
	weft_list_for_each(follower, &ctrl->followers, link) {
		if (!follower->tried)
			return true;
	}
	return false;
}

static void push_follower_event(const struct host_follower *follower, const struct host_path *path)
{
	host_event_push(follower->owner, WEFT_EVENT_DISCOVERY, path->pub.state, 0, "%s: %s%s%s",
			path->pub.address, weft_state_text(path->pub.state),
			path->assoc.why.text[0] ? ": " : "", path->assoc.why.text);
}

void host_follower_update(struct host_follower *follower)
{
	const struct host_path *path = host_follower_path(follower);

	assert_on(path->reactor);
	if (host_path_is_stopping(path))
		return;
	if (path->pub.state != follower->state && path->assoc.generation && follower->generation)
		push_follower_event(follower, path);
	follower->state = path->pub.state;
	if (host_path_is_connected(path) && path->assoc.generation != follower->generation) {
		follower->generation = path->assoc.generation;
		host_follower_read_log(follower);
	} else if (path->pub.state == WEFT_RECONNECTING && path->reconnect.tried) {
		host_follower_failed(follower, path->assoc.rc, &path->assoc.why);
	}
}
