/* import.c - the new process (successor) of a takeover.
 *
 *   call "takeover" ─▶ receive "prepare": check the configuration, open storage ─▶ send "freeze"
 *     ─▶ receive "state": build listeners, controllers, queues ─▶ send "ready"
 *         ─▶ receive "go" ─▶ serve
 *
 * Hosts wait from "freeze" to "go". Before "go" the old process owns all descriptors: after an
 * error this process exits at once and sends nothing on them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/control/client.h"
#include "daemon/takeover/frames.h"
#include "daemon/pidfile.h"
#include "daemon/internal.h"

enum {
	CALL_MS = 10000, /* an old process that is stopped, or hangs, cannot be taken over */
	PREPARE_MS = 10000,
	STATE_MS = 10000, /* its commands under way have to end first */
	GO_MS = 10000,
};

struct weft_takeover_import {
	struct weft_daemon *daemon;
	int fd;
	pid_t pid;
	struct weft_running_config running; /* what the old process served */
	struct weft_frame frame;            /* @state came in it; freed after hosts are served */
	struct weft_takeover_state state;
};

static void fail_import(struct weft_takeover_import *import, const char *why)
{
	const struct weft_serve_options *options = import->daemon->options;
	struct weft_err err = { "" };

	if (import->fd >= 0)
		weft_channel_send_failed(import->fd, why);
	weft_fail(&err, -ECANCELED, "takeover failed: %s", why);
	if (options->failed)
		options->failed(options->user, err.text);
	_exit(1);
}

/* --- serve ------------------------------------------------------------------------------------ */

static double ms_since(uint64_t ns)
{
	return (double)(weft_monotonic_ns() - ns) / 1e6;
}

static void start_serving(struct weft_takeover_import *import)
{
	struct weft_daemon *d = import->daemon;
	const struct weft_takeover_state *state = &import->state;

	assert_on(d->control_reactor);
	assert(d->import == import && !d->export);
	weft_target_thaw(d->target);
	weft_info("took over from pid %d with %u connection%s, which waited for %.2f ms, %.2f of it "
		  "for what was under way",
		  (int)import->pid, state->target.queues.count,
		  weft_plural(state->target.queues.count), ms_since(state->since_ns),
		  (double)(state->still_ns - state->since_ns) / 1e6);
	close(import->fd);
	weft_takeover_apply_access(d, &import->running);
	weft_takeover_warn_kept(d, &import->state.target);
	weft_running_config_free(&import->running);
	weft_frame_free(&import->frame);
	weft_target_state_free(&import->state.target);
	if (weft_daemon_start_control(d) < 0)
		weft_error("%s; weft ctl will not work", d->err->text);
	weft_daemon_announce_ready(d);
	d->import = NULL;
	free(import);
	weft_takeover_retry_listeners(d);
}

/* --- build the target ------------------------------------------------------------------------- */

/* With our pid file: the old process leaves the file to us if it has the same one. */
static int send_ready(const struct weft_takeover_import *import)
{
	const char *path = import->daemon->options->pidfile;
	struct weft_frame frame = { .doc = json_pack("{s:s}", "step", "ready") };
	struct weft_pidfile_id id;
	int rc;

	if (path && weft_pidfile_identify(path, &id))
		json_object_set_new(frame.doc, "pidfile", json_string(id.text));
	rc = weft_channel_send(import->fd, &frame);
	weft_frame_free(&frame);
	return rc;
}

static int wait_for_go(struct weft_takeover_import *import, struct weft_err *err)
{
	struct weft_frame frame;
	int rc = send_ready(import);

	if (rc < 0)
		return weft_fail(err, rc, "the running target went away: %s", strerror(-rc));
	rc = weft_channel_recv(import->fd, "go", GO_MS, &frame, err);
	if (!rc)
		weft_frame_free(&frame);
	return rc;
}

/* The listeners are the old process's, the allowed hosts are those of our configuration. */
static int check_takeover_exposure(struct weft_daemon *d, struct weft_err *err)
{
	void *first = json_object_iter(d->open_by_default);
	char exposed[WEFT_URI_MAX];

	weft_daemon_exposed_listener(d, exposed);
	if (!exposed[0] || !first)
		return 0;
	return weft_fail(err, -EPERM,
			 "the running target listens on %s, and nothing says which hosts may use "
			 "%s; name them (--allow, hosts:), or let any host in",
			 exposed, json_object_iter_key(first));
}

static void on_target_imported(void *arg, int rc, const struct weft_err *why)
{
	struct weft_takeover_import *import = arg;
	struct weft_daemon *d = import->daemon;
	struct weft_err err = { "" };

	assert_on(d->control_reactor);
	assert(import->fd >= 0 && !d->control);
	if (rc < 0)
		fail_import(import, why->text[0] ? why->text : strerror(-rc));
	rc = check_takeover_exposure(d, &err);
	if (!rc)
		rc = weft_takeover_open_listeners(d, &import->state.target, &err);
	if (!rc)
		rc = weft_control_socket_adopt(&d->control, d->config->control,
					       take_fd(&import->state.control));
	if (!rc)
		rc = wait_for_go(import, &err);
	if (rc < 0)
		fail_import(import, err.text[0] ? err.text : strerror(-rc));
	start_serving(import);
}

static int request_state(struct weft_takeover_import *import, struct weft_err *err)
{
	int rc = weft_channel_send_step(import->fd, "freeze");

	if (rc < 0)
		return weft_fail(err, rc, "the running target went away: %s", strerror(-rc));
	rc = weft_channel_recv(import->fd, "state", STATE_MS, &import->frame, err);
	return rc < 0 ? rc : weft_takeover_state_decode(&import->frame, &import->state, err);
}

/* --- prepare ---------------------------------------------------------------------------------- */

static int call_takeover(struct weft_takeover_import *import, struct weft_err *err)
{
	struct weft_daemon *d = import->daemon;
	json_t *params = json_pack("{s:i, s:b}", "format", WEFT_TAKEOVER_FORMAT, "drop_rdma",
				   d->options->drop_rdma);
	json_auto_t *result = weft_ctl_call(d->config->control, "takeover", params,
					    (struct weft_ctl_limit){ CALL_MS }, err);
	const char *name = json_string_value(json_object_get(result, "socket"));

	assert(import->fd < 0);
	if (!result)
		return -EIO;
	if (!name)
		return weft_fail(err, -EPROTO, "the running target names no socket");
	import->fd = weft_channel_connect(name, &import->pid, err);
	return import->fd < 0 ? import->fd : 0;
}

static int receive_storage(struct weft_takeover_import *import, struct weft_err *err)
{
	struct weft_daemon *d = import->daemon;
	struct weft_frame frame;
	int rc = weft_channel_recv(import->fd, "prepare", PREPARE_MS, &frame, err);

	if (rc < 0)
		return rc;
	rc = weft_running_config_decode(&frame, &import->running, err);
	weft_frame_free(&frame);
	if (!rc)
		rc = weft_takeover_check_config(d->config, &import->running, err);
	return rc < 0 ? rc : weft_daemon_open_backends(d);
}

static int prepare_import(struct weft_takeover_import *import)
{
	struct weft_daemon *d = import->daemon;
	int rc = call_takeover(import, d->err);

	if (!rc)
		rc = receive_storage(import, d->err);
	if (!rc)
		rc = weft_daemon_create_target(d);
	if (!rc)
		rc = weft_target_start_frozen(d->target);
	if (!rc)
		rc = weft_daemon_add_subsystems(d);
	return rc < 0 ? rc : request_state(import, d->err);
}

void weft_takeover_import_start(struct weft_daemon *d)
{
	static struct weft_takeover_import none = { .fd = -1 };
	struct weft_takeover_import *import = calloc(1, sizeof(*import));
	int rc;

	if (!import)
		fail_import(&none, "out of memory");
	import->daemon = d;
	import->fd = -1;
	assert(!d->import && !d->target);
	d->import = import;
	rc = prepare_import(import);
	if (rc < 0)
		fail_import(import, d->err->text[0] ? d->err->text : strerror(-rc));
	weft_target_import(d->target, &import->state.target, on_target_imported, import);
}
