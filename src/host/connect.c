/* connect.c - weft_connect() and its opposite: names become addresses, addresses paths, and home's
 * thread begins and ends. */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "host/internal.h"

/* --- the thread -------------------------------------------------------------------------------------- */

static void *home(void *arg)
{
	struct weft_ctrl *ctrl = arg;

	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i])
			host_path_start(ctrl->paths[i]);
	weft_reactor_run(ctrl->reactor);
	return NULL;
}

/* The program's signals are for the program's threads. */
static int start_thread(struct weft_ctrl *ctrl)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&ctrl->thread, NULL, home, ctrl);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_setname_np(ctrl->thread, "weft-host");
	return rc;
}

/* --- birth and death ------------------------------------------------------------------------------------ */

static void destroy(struct weft_ctrl *ctrl)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		host_path_free(ctrl->paths[i]);
	if (ctrl->reactor)
		weft_reactor_destroy(ctrl->reactor);
	if (ctrl->event_fd >= 0)
		close(ctrl->event_fd);
	pthread_cond_destroy(&ctrl->changed);
	pthread_mutex_destroy(&ctrl->lock);
	free(ctrl);
}

static void destroyp(struct weft_ctrl **ctrl)
{
	if (*ctrl)
		destroy(*ctrl);
}

/* Without paths and thread. */
static int create(const struct host_config *config, struct weft_ctrl **out, struct weft_err *err)
{
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL, .cpu = -1 };
	_cleanup_(destroyp) struct weft_ctrl *ctrl = calloc(1, sizeof(*ctrl));
	int rc;

	if (!ctrl)
		return weft_fail(err, -ENOMEM, "no memory for a controller");
	ctrl->config = *config;
	pthread_mutex_init(&ctrl->lock, NULL);
	pthread_cond_init(&ctrl->changed, NULL);
	weft_list_init(&ctrl->queues);
	weft_list_init(&ctrl->namespaces);
	weft_list_init(&ctrl->admin_waiting);
	ctrl->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ctrl->event_fd < 0)
		return weft_fail(err, -errno, "eventfd: %s", strerror(errno));
	rc = weft_reactor_create(&ctrl->reactor, &options, err);
	if (rc < 0)
		return rc;
	*out = take_ptr(&ctrl);
	return 0;
}

static void on_stop(struct weft_msg *msg)
{
	host_paths_stop(container_of(msg, struct weft_ctrl, stop_msg));
}

void weft_disconnect(struct weft_ctrl *ctrl)
{
	if (!ctrl)
		return;
	assert(weft_list_empty(&ctrl->queues) && weft_list_empty(&ctrl->namespaces));
	ctrl->stop_msg.fn = on_stop;
	weft_reactor_post(ctrl->reactor, &ctrl->stop_msg);
	pthread_join(ctrl->thread, NULL);
	destroy(ctrl);
}

/* --- addresses ------------------------------------------------------------------------------------------- */

/* Of a name, in the resolver's order. */
static int look_up(const struct weft_uri_parts *parts, struct host_path *path, struct weft_err *err)
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
	for (struct addrinfo *at = list; at && path->naddrs < HOST_ADDRS_MAX; at = at->ai_next)
		memcpy(&path->addrs[path->naddrs++], at->ai_addr, at->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

static int set_address(const struct weft_uri_parts *parts, struct host_path *path,
		       struct weft_err *err)
{
	int rc = 0;

	if (!weft_addr_parse(parts->host, parts->port, &path->addrs[0]))
		path->naddrs = 1;
	else
		rc = look_up(parts, path, err);
	path->config.addr = path->addrs[0];
	return rc;
}

static int create_path(struct weft_ctrl *ctrl, const struct host_place *place,
		       struct host_path **out, struct weft_err *err)
{
	struct host_path *path = NULL;
	int rc = host_path_create(ctrl, &place->config, &path, err);

	if (rc == 0)
		rc = set_address(&place->parts, path, err);
	if (rc < 0)
		host_path_free(path);
	else
		*out = path;
	return rc;
}

/* --- connecting ------------------------------------------------------------------------------------------ */

/* Under ctrl->lock. 1: one lives; -1: each was tried in vain; 0: neither. */
static int outcome(const struct weft_ctrl *ctrl)
{
	bool waiting = false;

	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		const struct host_path *path = ctrl->paths[i];

		if (path && path->pub.state == WEFT_LIVE)
			return 1;
		waiting |= path && !path->pub.tried;
	}
	return waiting ? 0 : -1;
}

static bool wait_for_one(struct weft_ctrl *ctrl)
{
	int rc;

	pthread_mutex_lock(&ctrl->lock);
	while (!(rc = outcome(ctrl)))
		pthread_cond_wait(&ctrl->changed, &ctrl->lock);
	pthread_mutex_unlock(&ctrl->lock);
	return rc > 0;
}

/* "ADDRESS: why", of every path. */
static int tell_failures(struct weft_ctrl *ctrl, struct weft_err *err)
{
	char text[sizeof(err->text)] = "";
	size_t used = 0;
	int rc = 0;

	pthread_mutex_lock(&ctrl->lock);
	for (unsigned i = 0; i < HOST_PATHS_MAX && used < sizeof(text); i++) {
		const struct host_path *path = ctrl->paths[i];

		if (!path)
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s: %s",
					 used ? "; " : "", path->pub.address, path->pub.why.text);
		rc = rc ? rc : path->pub.rc;
	}
	pthread_mutex_unlock(&ctrl->lock);
	return weft_fail(err, rc, "%s", text);
}

static int add_paths(struct weft_ctrl *ctrl, const struct host_place *places, int count,
		     struct weft_err *err)
{
	struct host_path *path;
	int rc = 0;

	for (int i = 0; rc == 0 && i < count; i++) {
		rc = create_path(ctrl, &places[i], &path, err);
		if (rc == 0)
			host_paths_insert(path);
	}
	return rc;
}

int weft_connect(const char *uris, const struct weft_options *options, struct weft_ctrl **out,
		 struct weft_err *err)
{
	_cleanup_(destroyp) struct weft_ctrl *ctrl = NULL;
	struct host_place places[HOST_PATHS_MAX];
	int rc, count = host_places_parse(uris, options, places, err);

	if (count < 0)
		return count;
	rc = create(&places[0].config, &ctrl, err);
	if (rc == 0)
		rc = add_paths(ctrl, places, count, err);
	if (rc < 0)
		return rc;
	rc = start_thread(ctrl);
	if (rc < 0)
		return weft_fail(err, rc, "no thread for a controller: %s", strerror(-rc));
	if (wait_for_one(ctrl)) {
		*out = take_ptr(&ctrl);
		return 0;
	}
	rc = tell_failures(ctrl, err);
	weft_disconnect(take_ptr(&ctrl));
	return rc;
}

/* --- later ----------------------------------------------------------------------------------------------- */

/* Until the first attempt is over. */
static int wait_for_path(struct host_path *path, struct weft_err *err)
{
	struct weft_ctrl *ctrl = path->ctrl;
	struct weft_err why;
	int rc;

	pthread_mutex_lock(&ctrl->lock);
	while (!path->pub.tried)
		pthread_cond_wait(&ctrl->changed, &ctrl->lock);
	rc = path->pub.state == WEFT_LIVE ? (int)path->id : path->pub.rc;
	why = path->pub.why;
	path->adding = false;
	pthread_mutex_unlock(&ctrl->lock);
	return rc < 0 ? weft_fail(err, rc, "%s", why.text) : rc;
}

int weft_path_add(struct weft_ctrl *ctrl, const char *uri, struct weft_err *err)
{
	struct host_place places[HOST_PATHS_MAX];
	struct host_path *path;
	int rc = host_places_parse(uri, &ctrl->config.options, places, err);

	if (rc > 1)
		return weft_fail(err, -EINVAL, "one path at a time");
	if (rc > 0)
		rc = host_places_agree(&ctrl->config, &places[0].config, err);
	if (rc == 0)
		rc = create_path(ctrl, &places[0], &path, err);
	if (rc < 0)
		return rc;
	host_path_join(path);
	rc = wait_for_path(path, err);
	if (rc < 0)
		host_path_leave(path);
	return rc;
}
