/* control_reactor.c - creates and frees a controller, and runs its control reactor on a thread.
 * A discovery service that is followed is a controller as well, but has no thread: it runs on the
 * control reactor of the controller whose paths it lists (follower.c). */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cpus.h"
#include "host/discovery/follower.h"
#include "host/internal.h"

/* --- the thread ------------------------------------------------------------------------------- */

/* A connection with a limited lifetime (host_connect_once()) ends now. */
static void on_lifetime_timeout(struct weft_timer *timer)
{
	struct weft_ctrl *ctrl = container_of(timer, struct weft_ctrl, lifetime);
	struct weft_err why = { "" };
	int rc = host_discovery_fail_timeout(&ctrl->config.options, &why);

	assert_on(ctrl->reactor);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i])
			host_path_broken(ctrl->paths[i], rc, "%s", why.text);
}

static void *control_thread_main(void *arg)
{
	struct weft_ctrl *ctrl = arg;

	ctrl->lifetime.fn = on_lifetime_timeout;
	if (ctrl->lifetime_ms)
		weft_timer_set(ctrl->reactor, &ctrl->lifetime, ctrl->lifetime_ms);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i])
			host_path_start(ctrl->paths[i]);
	host_followers_start(ctrl);
	weft_reactor_run(ctrl->reactor);
	return NULL;
}

/* The program's signals are for the program's threads. */
static int create_thread(struct weft_ctrl *ctrl, const pthread_attr_t *attr)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&ctrl->thread, attr, control_thread_main, ctrl);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int host_control_start(struct weft_ctrl *ctrl, struct weft_err *err)
{
	const cpu_set_t *cpus = &ctrl->config.cpus;
	pthread_attr_t attr;
	char list[128];
	int rc;

	pthread_attr_init(&attr);
	if (CPU_COUNT(cpus))
		pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	rc = create_thread(ctrl, &attr);
	pthread_attr_destroy(&attr);
	weft_cpus_format(cpus, list, sizeof(list));
	if (rc == -EINVAL && CPU_COUNT(cpus))
		return weft_fail(err, rc, "cpus=%s: this process may use none of these", list);
	if (rc < 0)
		return weft_fail(err, rc, "no thread for a controller: %s", strerror(-rc));
	pthread_setname_np(ctrl->thread, "weft-host");
	return 0;
}

/* --- birth and death -------------------------------------------------------------------------- */

void host_ctrl_free(struct weft_ctrl *ctrl)
{
	host_followers_free(ctrl);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		host_path_free(ctrl->paths[i]);
	host_ns_records_free(ctrl);
	weft_task_cancel(&ctrl->reconcile_task);
	if (ctrl->reactor && !ctrl->follower)
		weft_reactor_destroy(ctrl->reactor);
	if (ctrl->event_fd >= 0)
		close(ctrl->event_fd);
	pthread_cond_destroy(&ctrl->changed);
	weft_mutex_destroy(&ctrl->lock);
	free(ctrl);
}

int host_ctrl_create(const struct host_config *config, struct host_follower *follower,
		     struct weft_ctrl **out, struct weft_err *err)
{
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL, .cpu = -1 };
	_cleanup_(host_ctrl_freep) struct weft_ctrl *ctrl = calloc(1, sizeof(*ctrl));
	int rc;

	if (!ctrl)
		return weft_fail(err, -ENOMEM, "no memory for a controller");
	ctrl->config = *config;
	ctrl->follower = follower;
	weft_mutex_init(&ctrl->lock);
	pthread_cond_init(&ctrl->changed, NULL);
	weft_list_init(&ctrl->queues);
	host_ns_records_init(ctrl);
	weft_list_init(&ctrl->admin_waiting);
	host_followers_init(ctrl);
	ctrl->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ctrl->event_fd < 0)
		return weft_fail(err, -errno, "eventfd: %s", strerror(errno));
	ctrl->reactor = follower ? follower->owner->reactor : NULL;
	rc = follower ? 0 : weft_reactor_create(&ctrl->reactor, &options, err);
	if (rc < 0)
		return rc;
	*out = take_ptr(&ctrl);
	return 0;
}

static void on_disconnect_msg(struct weft_msg *msg)
{
	host_paths_stop(container_of(msg, struct weft_ctrl, stop_msg));
}

void weft_disconnect(struct weft_ctrl *ctrl)
{
	if (!ctrl)
		return;
	assert(weft_list_empty(&ctrl->queues) && host_ns_records_all_closed(ctrl));
	ctrl->stop_msg.fn = on_disconnect_msg;
	weft_reactor_post(ctrl->reactor, &ctrl->stop_msg);
	pthread_join(ctrl->thread, NULL);
	host_ctrl_free(ctrl);
}
