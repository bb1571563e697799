/* export.c - the old process of a takeover.
 *
 *   the successor calls        it connects         it sends           the target
 *   "takeover": a socket       and gets "prepare"  "freeze"           stands still
 *        ─▶ OFFERED ──────────▶ PREPARING ────────▶ FREEZING ────────▶ EXPORTING
 *              │                    │                  │                  ├─▶ "go" sent: exit
 *              └────────────────────┴──────────────────┴─ it failed ──────┴─▶ GIVEN_UP
 *
 *   EXPORTING: send "state" ─▶ receive "ready" ─▶ send "go". GIVEN_UP: hosts are served as before.
 *
 * Until "go" is sent this process owns every connection: the successor has built its objects and
 * used none of them. After "go" the successor serves, and this process exits without closing a
 * connection towards a host. A stop signal before "go" ends the takeover.
 *
 * From "state" to "go" the control reactor blocks. The target is frozen then, and every wait has
 * a time limit. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/takeover/frames.h"
#include "daemon/takeover/successor.h"
#include "daemon/control/methods.h"
#include "daemon/pidfile.h"
#include "daemon/internal.h"

enum {
	CONNECT_MS = 10000, /* from the call to the connection */
	PREPARE_MS = 60000, /* opening namespaces may take long; hosts are served meanwhile */
	FREEZE_MS = 2000,   /* after this the takeover fails, and hosts are served again */
	FRAME_MS = 1000,    /* for the rest of a frame that has begun */
	READY_MS = 5000,
};

enum export_state {
	EXPORT_OFFERED,
	EXPORT_PREPARING,
	EXPORT_FREEZING,
	EXPORT_EXPORTING,
	EXPORT_GIVEN_UP
};

#define FROM(state) (1u << EXPORT_##state)

static const struct {
	const char *name;
	unsigned from; /* states that it may follow */
} states[] = {
	[EXPORT_OFFERED] = { "offered", 0 },
	[EXPORT_PREPARING] = { "preparing", FROM(OFFERED) },
	[EXPORT_FREEZING] = { "freezing", FROM(PREPARING) },
	[EXPORT_EXPORTING] = { "exporting", FROM(FREEZING) },
	[EXPORT_GIVEN_UP] = { "given up",
			      FROM(OFFERED) | FROM(PREPARING) | FROM(FREEZING) | FROM(EXPORTING) },
};

struct weft_takeover_export {
	struct weft_daemon *daemon;
	enum export_state state;
	struct weft_sock listener; /* while OFFERED */
	struct weft_sock channel;  /* after that */
	struct weft_op op;
	struct weft_timer timeout;
	struct weft_successor successor;
	uint32_t format;        /* the newest that both processes know */
	bool polling;           /* @op is under way */
	bool stop;              /* this process is told to stop */
	bool pidfile_is_theirs; /* the successor has the same pid file as we */
	uint64_t since_ns;
};

static const char stop_reason[] = "this target is told to stop";

static void export_enter(struct weft_takeover_export *export, enum export_state state)
{
	assert_on(export->daemon->control_reactor);
	assert(states[state].from & 1u << export->state);
	export->state = state;
}

/* --- a takeover that fails -------------------------------------------------------------------- */

static void dismiss_successor(struct weft_takeover_export *export, const char *why)
{
	assert(export->state != EXPORT_OFFERED && export->state != EXPORT_GIVEN_UP);
	weft_channel_send_failed(export->channel.fd, why);
	weft_successor_release(&export->successor, export->channel.fd);
	weft_control_socket_resume(export->daemon->control);
	weft_sock_close(&export->channel);
}

static void abort_export(struct weft_takeover_export *export, const char *why)
{
	struct weft_daemon *d = export->daemon;
	bool stop = export->stop;

	assert(d->export == export);
	weft_warn("takeover given up: %s (while %s)", why, states[export->state].name);
	weft_timer_stop(d->control_reactor, &export->timeout);
	d->export = NULL;
	if (export->state == EXPORT_OFFERED)
		weft_sock_close(&export->listener);
	else
		dismiss_successor(export, why);
	export_enter(export, EXPORT_GIVEN_UP);
	if (!export->polling)
		free(export);
	if (stop)
		weft_daemon_stop(d);
}

static void export_poll(struct weft_takeover_export *export, struct weft_sock *sock,
			void (*then)(struct weft_op *op, int res))
{
	assert(!export->polling);
	export->op.done = then;
	export->polling = true;
	weft_sock_poll(sock, &export->op);
}

/* NULL: the takeover was given up meanwhile, and is freed now. */
static struct weft_takeover_export *export_poll_done(struct weft_op *op)
{
	struct weft_takeover_export *export = container_of(op, struct weft_takeover_export, op);

	assert(export->polling);
	export->polling = false;
	if (export->state != EXPORT_GIVEN_UP)
		return export;
	free(export);
	return NULL;
}

bool weft_takeover_export_cancel(struct weft_daemon *d)
{
	struct weft_takeover_export *export = d->export;

	assert_on(d->control_reactor);
	if (export->state == EXPORT_FREEZING) {
		export->stop = true;
		return false;
	}
	abort_export(export, stop_reason);
	return true;
}

static void on_successor_timeout(struct weft_timer *timer)
{
	struct weft_takeover_export *export = container_of(timer, struct weft_takeover_export,
							   timeout);

	assert(export->state == EXPORT_OFFERED || export->state == EXPORT_PREPARING);
	abort_export(export, "the other process takes too long");
}

/* --- freeze and export ------------------------------------------------------------------------ */

static int send_state(struct weft_takeover_export *export)
{
	struct weft_daemon *d = export->daemon;
	struct weft_takeover_state state = { .format = export->format,
					     .since_ns = export->since_ns,
					     .still_ns = weft_monotonic_ns(),
					     .control = weft_control_socket_fd(d->control) };
	struct weft_frame frame = { 0 };
	int rc = weft_target_export(d->target, &state.target);

	assert(export->state == EXPORT_EXPORTING);
	if (!rc)
		rc = weft_takeover_state_encode(&state, &frame);
	if (!rc)
		rc = weft_channel_send(export->channel.fd, &frame);
	weft_frame_free_borrowed(&frame);
	weft_target_state_free(&state.target);
	return rc;
}

/* Before "go": after it the successor writes its pid into that file. An older weft does not say
 * which file it has; then our file is removed, and it creates a new one. */
static bool is_our_pidfile(const struct weft_takeover_export *export, const json_t *ready)
{
	const char *theirs = json_string_value(json_object_get(ready, "pidfile"));
	const char *path = export->daemon->options->pidfile;
	struct weft_pidfile_id ours;

	return theirs && path && weft_pidfile_identify(path, &ours) && !strcmp(theirs, ours.text);
}

static int send_and_wait_ready(struct weft_takeover_export *export, struct weft_err *err)
{
	struct weft_frame frame;
	int rc = send_state(export);

	if (rc < 0)
		return weft_fail(err, rc, "telling the other process: %s", strerror(-rc));
	rc = weft_channel_recv(export->channel.fd, "ready", READY_MS, &frame, err);
	if (rc < 0)
		return rc;
	export->pidfile_is_theirs = is_our_pidfile(export, frame.doc);
	weft_frame_free(&frame);
	if (weft_daemon_stop_requested(export->daemon))
		return weft_fail(err, -ECANCELED, "%s", stop_reason);
	rc = weft_channel_send_step(export->channel.fd, "go");
	return rc < 0 ? weft_fail(err, rc, "the other process went away") : 0;
}

/* The service manager is told while it still listens to us. */
static void exit_after_export(struct weft_takeover_export *export)
{
	char state[32];

	assert(export->state == EXPORT_EXPORTING && !export->stop);
	snprintf(state, sizeof(state), "MAINPID=%d", (int)export->successor.pid);
	weft_sd_notify(state);
	weft_info("pid %d has taken over; leaving", (int)export->successor.pid);
	if (export->daemon->options->pidfile && !export->pidfile_is_theirs)
		weft_pidfile_remove(export->daemon->options->pidfile);
	_exit(0);
}

static void on_frozen(void *arg, int rc, const struct weft_err *why)
{
	struct weft_takeover_export *export = arg;
	struct weft_err err = { "" };

	assert(!export->polling);
	if (rc < 0) {
		abort_export(export, why->text);
		return;
	}
	export_enter(export, EXPORT_EXPORTING);
	if (send_and_wait_ready(export, &err) == 0)
		exit_after_export(export);
	weft_target_thaw(export->daemon->target);
	abort_export(export, err.text);
}

/* --- the successor has prepared, or has failed ------------------------------------------------ */

static void on_freeze_frame(struct weft_op *op, int res)
{
	struct weft_takeover_export *export = export_poll_done(op);
	struct weft_frame frame;
	struct weft_err err = { "" };

	if (!export)
		return;
	if (weft_channel_recv(export->channel.fd, "freeze", FRAME_MS, &frame, &err) < 0) {
		abort_export(export, err.text);
		return;
	}
	weft_frame_free(&frame);
	weft_timer_stop(export->daemon->control_reactor, &export->timeout);
	export_enter(export, EXPORT_FREEZING);
	export->since_ns = weft_monotonic_ns();
	weft_target_freeze(export->daemon->target, FREEZE_MS, on_frozen, export);
}

static int accept_channel(struct weft_takeover_export *export, struct weft_err *err)
{
	pid_t pid;
	int fd = weft_channel_accept(export->listener.fd, &pid, err), rc;

	assert(export->state == EXPORT_OFFERED);
	if (fd < 0)
		return fd;
	/* It blocks, so the reactor only polls it. */
	rc = weft_sock_open(export->daemon->control_reactor, &export->channel, fd);
	if (rc < 0) {
		close(fd);
		return weft_fail(err, rc, "the socket of the takeover: %s", strerror(-rc));
	}
	weft_sock_close(&export->listener);
	weft_successor_open(&export->successor, pid);
	export_enter(export, EXPORT_PREPARING);
	return 0;
}

static void on_successor_connected(struct weft_op *op, int res)
{
	struct weft_takeover_export *export = export_poll_done(op);
	struct weft_err err = { "" };
	struct weft_daemon *d;
	int rc;

	if (!export)
		return;
	d = export->daemon;
	rc = accept_channel(export, &err);
	if (rc == -EPERM) { /* another user's process: the successor may still connect */
		weft_warn("%s", err.text);
		export_poll(export, &export->listener, on_successor_connected);
		return;
	}
	if (rc < 0) {
		abort_export(export, err.text);
		return;
	}
	weft_info("pid %d prepares to take over", (int)export->successor.pid);
	weft_control_socket_pause(d->control);
	if (weft_control_socket_calls(
		    d->control)) { /* what it changes, the other one would not know */
		abort_export(export, "a call over the control socket is still under way");
		return;
	}
	rc = weft_takeover_export_config(d, export->format, export->channel.fd);
	if (rc < 0) {
		abort_export(export, strerror(-rc));
		return;
	}
	weft_timer_set(d->control_reactor, &export->timeout, PREPARE_MS);
	export_poll(export, &export->channel, on_freeze_frame);
}

/* --- the call of the successor ---------------------------------------------------------------- */

static void count_rdma(void *arg, const struct weft_queue_info *info)
{
	*(unsigned *)arg += !strcmp(info->transport, "rdma");
}

static void ignore_ctrl(void *arg, const struct weft_target_ctrl_info *info)
{
	(void)arg;
	(void)info;
}

static int check_rdma(struct weft_daemon *d, bool drop, struct weft_err *err)
{
	const struct weft_target_visitor visitor = { .ctrl = ignore_ctrl, .queue = count_rdma };
	unsigned queues = 0;

	weft_target_visit(d->target, &visitor, &queues);
	if (!queues || drop)
		return 0;
	return weft_fail(err, -EBUSY,
			 "%u RDMA connection%s cannot be handed over; --drop-rdma ends them, and "
			 "their hosts connect again",
			 queues, weft_plural(queues));
}

static int check_export(struct weft_daemon *d, const struct weft_takeover_params *p,
			struct weft_err *err)
{
	if (!p->format)
		return weft_fail(err, -EPROTONOSUPPORT,
				 "this target hands over in formats 1 to %d, and the other one "
				 "reads none of them; stop this one and start the other one",
				 WEFT_TAKEOVER_FORMAT);
	return check_rdma(d, p->drop_rdma, err);
}

static int offer_channel(struct weft_daemon *d, uint32_t format, char name[WEFT_CHANNEL_NAME_MAX],
			 struct weft_err *err)
{
	struct weft_takeover_export *export = calloc(1, sizeof(*export));
	int fd = weft_channel_listen(name);
	int rc = export ? 0 : -ENOMEM;

	assert(!d->import);
	if (!rc)
		rc = fd < 0 ? fd : weft_sock_open(d->control_reactor, &export->listener, fd);
	if (rc < 0) {
		weft_closep(&fd);
		free(export);
		return weft_fail(err, rc, "a socket for the takeover: %s", strerror(-rc));
	}
	if (d->export) {
		assert(d->export->state == EXPORT_OFFERED); /* while one prepares, calls wait */
		abort_export(d->export, "another process calls");
	}
	export->daemon = d;
	export->format = format < WEFT_TAKEOVER_FORMAT ? format : WEFT_TAKEOVER_FORMAT;
	export->timeout.fn = on_successor_timeout;
	export_poll(export, &export->listener, on_successor_connected);
	weft_timer_set(d->control_reactor, &export->timeout, CONNECT_MS);
	d->export = export;
	return 0;
}

void weft_method_takeover(struct weft_rpc_call *call, void *params)
{
	struct weft_daemon *d = call->rpc->daemon;
	const struct weft_takeover_params *p = params;
	char name[WEFT_CHANNEL_NAME_MAX];
	struct weft_err err = { "" };
	int rc = check_export(d, p, &err);

	if (!rc)
		rc = offer_channel(d, p->format, name, &err);
	if (rc < 0)
		weft_rpc_fail(call, rc, &err);
	else
		weft_rpc_result(call, json_pack("{s:s}", "socket", name));
}
