/* connect.c - weft_connect() and its opposite: home's thread, its beginning and end. */
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

	host_path_start(ctrl->paths[0]);
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
	if (ctrl->reactor)
		weft_reactor_destroy(ctrl->reactor);
	if (ctrl->event_fd >= 0)
		close(ctrl->event_fd);
	pthread_cond_destroy(&ctrl->changed);
	pthread_mutex_destroy(&ctrl->lock);
	host_path_free(ctrl->paths[0]);
	free(ctrl);
}

static void destroyp(struct weft_ctrl **ctrl)
{
	if (*ctrl)
		destroy(*ctrl);
}

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
	if (rc == 0)
		rc = host_path_create(ctrl, config, &ctrl->paths[0], err);
	if (rc < 0)
		return rc;
	rc = start_thread(ctrl);
	if (rc < 0)
		return weft_fail(err, rc, "no thread for a controller: %s", strerror(-rc));
	*out = take_ptr(&ctrl);
	return 0;
}

static void on_stop(struct weft_msg *msg)
{
	struct weft_ctrl *ctrl = container_of(msg, struct weft_ctrl, stop_msg);

	ctrl->stopping = true;
	host_path_stop(ctrl->paths[0]);
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

/* --- connecting ------------------------------------------------------------------------------------------ */

static enum weft_state wait_until_settled(struct weft_ctrl *ctrl)
{
	enum weft_state state;

	pthread_mutex_lock(&ctrl->lock);
	while (ctrl->pub.state != WEFT_LIVE && ctrl->pub.state != WEFT_DEAD)
		pthread_cond_wait(&ctrl->changed, &ctrl->lock);
	state = ctrl->pub.state;
	pthread_mutex_unlock(&ctrl->lock);
	return state;
}

static int connect_to(const struct host_config *config, struct weft_ctrl **out,
		      struct weft_err *err)
{
	char address[WEFT_URI_MAX];
	struct weft_ctrl *ctrl = NULL;
	int rc = create(config, &ctrl, err);

	if (rc < 0)
		return rc;
	if (wait_until_settled(ctrl) == WEFT_LIVE) {
		*out = ctrl;
		return 0;
	}
	rc = ctrl->pub.rc;
	weft_uri_format(config->transport->trtype, &config->addr, address, sizeof(address));
	weft_fail(err, rc, "%s: %s", address, ctrl->pub.why.text);
	weft_disconnect(ctrl);
	return rc;
}

/* Addresses of a name, in the resolver's order. */
static int resolve(const struct weft_uri_parts *parts, struct addrinfo **list, struct weft_err *err)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV,
	};
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", parts->port);
	rc = getaddrinfo(parts->host, port, &hints, list);
	if (rc == EAI_SYSTEM)
		return weft_fail(err, -errno, "%s: %s", parts->host, strerror(errno));
	if (rc)
		return weft_fail(err, -EHOSTUNREACH, "%s: %s", parts->host, gai_strerror(rc));
	return 0;
}

/* The next address may work where this one does not answer. */
static bool is_unreachable(int rc)
{
	return rc == -ECONNREFUSED || rc == -EHOSTUNREACH || rc == -ENETUNREACH ||
	       rc == -ETIMEDOUT || rc == -EADDRNOTAVAIL;
}

static int connect_by_name(const struct weft_uri_parts *parts, struct host_config *config,
			   struct weft_ctrl **ctrl, struct weft_err *err)
{
	struct addrinfo *list, *at;
	struct weft_err why = { "" };
	int rc = resolve(parts, &list, err);

	if (rc < 0)
		return rc;
	rc = -EHOSTUNREACH;
	for (at = list; at && is_unreachable(rc); at = at->ai_next) {
		memcpy(&config->addr, at->ai_addr, at->ai_addrlen);
		rc = connect_to(config, ctrl, &why);
	}
	freeaddrinfo(list);
	return rc < 0 ? weft_fail(err, rc, "%s", why.text) : 0;
}

int weft_connect(const char *uri, const struct weft_options *options, struct weft_ctrl **ctrl,
		 struct weft_err *err)
{
	struct weft_uri_parts parts;
	struct host_config config;
	int rc = weft_uri_split(uri, &parts, err);

	if (rc == 0)
		rc = host_config_parse(&parts, options, &config, err);
	if (rc < 0)
		return rc;
	if (!parts.port)
		return weft_fail(err, -EINVAL, "%s: a target does not listen on port 0", uri);
	if (!weft_addr_parse(parts.host, parts.port, &config.addr))
		return connect_to(&config, ctrl, err);
	return connect_by_name(&parts, &config, ctrl, err);
}
