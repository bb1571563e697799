/* connect.c - weft_connect() and weft_path_add(): names become addresses, and addresses paths. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/discovery/follower.h"

/* --- addresses -------------------------------------------------------------------------------- */

/* Fills in the addresses of a name, in the resolver's order. */
static int resolve_name(const struct weft_uri_parts *parts, struct host_path *path,
			struct weft_err *err)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV,
	};
	struct addrinfo *list;
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", parts->port);
	rc = getaddrinfo(parts->host, port, &hints, &list);
	if (rc == EAI_SYSTEM)
		return weft_fail(err, -errno, "%s: %s", parts->host, strerror(errno));
	if (rc)
		return weft_fail(err, -EHOSTUNREACH, "%s: %s", parts->host, gai_strerror(rc));
	for (struct addrinfo *at = list; at && path->addrs.count < HOST_ADDRS_MAX; at = at->ai_next)
		memcpy(&path->addrs.list[path->addrs.count++], at->ai_addr, at->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

int host_path_resolve(struct host_path *path, const struct weft_uri_parts *parts,
		      struct weft_err *err)
{
	int rc = 0;

	if (!weft_addr_parse(parts->host, parts->port, &path->addrs.list[0]))
		path->addrs.count = 1;
	else
		rc = resolve_name(parts, path, err);
	path->config.addr = path->addrs.list[0];
	return rc;
}

static int create_path(struct weft_ctrl *ctrl, const struct host_path_spec *spec,
		       struct host_path **out, struct weft_err *err)
{
	struct host_path *path = NULL;
	int rc = host_path_create(ctrl, &spec->config, &path, err);

	if (rc == 0)
		rc = host_path_resolve(path, &spec->parts, err);
	if (rc < 0)
		host_path_free(path);
	else
		*out = path;
	return rc;
}

/* --- connecting ------------------------------------------------------------------------------- */

/* 1: a path is live; -1: every path was tried and failed; 0: neither yet. */
static int connect_outcome(const struct weft_ctrl *ctrl)
{
	assert_locked(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i] && ctrl->paths[i]->pub.state == WEFT_LIVE)
			return 1;
	return host_ctrl_has_untried_path(ctrl) ? 0 : -1;
}

static bool wait_for_first_path(struct weft_ctrl *ctrl)
{
	int rc;

	weft_mutex_lock(&ctrl->lock);
	while (!(rc = connect_outcome(ctrl)))
		weft_mutex_wait(&ctrl->lock, &ctrl->changed);
	weft_mutex_unlock(&ctrl->lock);
	return rc > 0;
}

struct failures {
	struct weft_err text;
	size_t used;
	int rc; /* of the first */
};

static void add_failure(struct failures *all, const char *address, int rc, const char *why)
{
	size_t size = sizeof(all->text.text);

	all->rc = all->rc ? all->rc : rc;
	if (all->used < size)
		all->used += (size_t)snprintf(all->text.text + all->used, size - all->used,
					      "%s%s: %s", all->used ? "; " : "", address, why);
}

/* "ADDRESS: why" for every path, and for every discovery service that could have listed more. */
static int report_failures(struct weft_ctrl *ctrl, struct weft_err *err)
{
	struct failures all = { .rc = 0 };
	struct host_follower *follower;

	weft_mutex_lock(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i])
			add_failure(&all, ctrl->paths[i]->pub.address, ctrl->paths[i]->pub.rc,
				    ctrl->paths[i]->pub.why.text);
	weft_list_for_each(follower, &ctrl->followers, link) {
		if (follower->rc)
			add_failure(&all, follower->address, follower->rc, follower->why.text);
	}
	weft_mutex_unlock(&ctrl->lock);
	return weft_fail(err, all.rc, "%s", all.text.text);
}

static int add_path_spec(struct weft_ctrl *ctrl, const struct host_path_spec *spec,
			 struct weft_err *err)
{
	struct host_path *path;
	int rc;

	if (spec->config.options.paths == WEFT_PATHS_DISCOVER)
		return host_follower_add(ctrl, spec, err);
	rc = create_path(ctrl, spec, &path, err);
	if (rc == 0)
		host_paths_insert(path);
	return rc;
}

static int connect_path_specs(const struct host_path_spec *specs, int count, uint32_t lifetime_ms,
			      struct weft_ctrl **out, struct weft_err *err)
{
	_cleanup_(host_ctrl_freep) struct weft_ctrl *ctrl = NULL;
	int rc = host_ctrl_create(&specs[0].config, NULL, &ctrl, err);

	if (rc == 0)
		ctrl->lifetime_ms = lifetime_ms;
	for (int i = 0; rc == 0 && i < count; i++)
		rc = add_path_spec(ctrl, &specs[i], err);
	if (rc == 0)
		rc = host_control_start(ctrl, err);
	if (rc < 0)
		return rc;
	if (wait_for_first_path(ctrl)) {
		*out = take_ptr(&ctrl);
		return 0;
	}
	rc = report_failures(ctrl, err);
	weft_disconnect(take_ptr(&ctrl));
	return rc;
}

int weft_connect(const char *uris, const struct weft_options *options, struct weft_ctrl **ctrl,
		 struct weft_err *err)
{
	struct host_path_spec specs[HOST_PATHS_MAX];
	int count = host_path_specs_parse(uris, options, specs, err);

	return count < 0 ? count : connect_path_specs(specs, count, 0, ctrl, err);
}

int host_connect_once(const struct host_path_spec *specs, int count, uint32_t lifetime_ms,
		      struct weft_ctrl **ctrl, struct weft_err *err)
{
	struct host_path_spec brief[HOST_PATHS_MAX];

	memcpy(brief, specs, (size_t)count * sizeof(*specs));
	for (int i = 0; i < count; i++) {
		brief[i].config.options.keepalive_ms = 0;
		brief[i].config.options.loss_ms = 0;
	}
	return connect_path_specs(brief, count, lifetime_ms, ctrl, err);
}

/* --- later ------------------------------------------------------------------------------------ */

/* Waits until the path's first attempt is over. */
static int wait_for_path(struct host_path *path, struct weft_err *err)
{
	struct weft_ctrl *ctrl = path->ctrl;
	struct weft_err why;
	int rc;

	weft_mutex_lock(&ctrl->lock);
	while (!path->pub.tried)
		weft_mutex_wait(&ctrl->lock, &ctrl->changed);
	rc = path->pub.state == WEFT_LIVE ? (int)path->id : path->pub.rc;
	why = path->pub.why;
	if (rc >= 0)
		host_path_added(path);
	weft_mutex_unlock(&ctrl->lock);
	return rc < 0 ? weft_fail(err, rc, "%s", why.text) : rc;
}

int weft_path_add(struct weft_ctrl *ctrl, const char *uri, struct weft_err *err)
{
	struct weft_options options = ctrl->config.options;
	struct host_path_spec specs[HOST_PATHS_MAX];
	struct host_path *path;
	int rc;

	options.paths = WEFT_PATHS_GIVEN;
	rc = host_path_specs_parse(uri, &options, specs, err);
	if (rc > 1)
		return weft_fail(err, -EINVAL, "one path at a time");
	if (rc > 0 && specs[0].config.options.paths != WEFT_PATHS_GIVEN)
		return weft_fail(err, -EINVAL, "paths=discover is for weft_connect()");
	if (rc > 0)
		rc = host_path_specs_agree(&ctrl->config, &specs[0].config, err);
	if (rc == 0)
		rc = create_path(ctrl, &specs[0], &path, err);
	if (rc < 0)
		return rc;
	host_path_add_async(path);
	rc = wait_for_path(path, err);
	if (rc < 0)
		host_path_remove(path);
	return rc;
}
