/* give.c - this target hands everything over to the process that takes its place.
 *
 *   takeover ─▶ offered ─▶ preparing ──"freeze"──▶ freezing ─▶ "state", "ready", "go" ─▶ gone
 *                 └───────────┴──── went away ─────────┴──────────┴──▶ on as before
 *
 * Until "go" is sent nothing is lost: the other process has built all that it was given and has not
 * touched it. From then on it serves, and this process ends without a word to any host. Who is told
 * to stop before that gives nothing away.
 *
 * The last exchange blocks home. It stands still anyway, and what is waited for is bounded. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/plural.h"
#include "daemon/handoff.h"
#include "daemon/heir.h"
#include "daemon/methods.h"
#include "daemon/notify.h"
#include "daemon/pidfile.h"
#include "daemon/state.h"

enum {
	COME_MS = 10000,    /* from the call to the connection */
	PREPARE_MS = 60000, /* opening namespaces may take long; hosts are served meanwhile */
	FREEZE_MS = 2000, /* somebody who does not come to rest stops the takeover, not its peers */
	WORD_MS = 1000,   /* for a frame that has begun */
	READY_MS = 5000,
};

struct weft_give {
	struct weft_daemon *daemon;
	struct weft_sock sock; /* the listener, then the channel */
	struct weft_op op;
	struct weft_timer limit;
	struct weft_heir heir;
	uint32_t format; /* the newest that both know */
	bool waiting;    /* @op is under way */
	bool accepted, freezing, stop, ended;
	bool pidfile_is_theirs; /* our pid file is the other process's, too */
	uint64_t since_ns;
};

static const char told_to_stop[] = "this target is told to stop";

/* --- the end of a takeover that was none ------------------------------------------------------ */

static void end(struct weft_give *give, const char *why)
{
	struct weft_daemon *d = give->daemon;
	bool stop = give->stop;

	weft_warn("takeover given up: %s", why);
	weft_timer_stop(d->home, &give->limit);
	d->give = NULL;
	if (give->accepted) {
		weft_channel_send_failed(give->sock.fd, why);
		weft_heir_part(&give->heir, give->sock.fd);
		weft_control_resume(d->control);
	}
	weft_sock_close(&give->sock);
	give->ended = true;
	if (!give->waiting)
		free(give);
	if (stop)
		weft_daemon_stop(d);
}

static void wait_for(struct weft_give *give, void (*then)(struct weft_op *op, int res))
{
	give->op.done = then;
	give->waiting = true;
	weft_sock_poll(&give->sock, &give->op);
}

/* NULL: it has ended meanwhile, and is gone now. */
static struct weft_give *waited(struct weft_op *op)
{
	struct weft_give *give = container_of(op, struct weft_give, op);

	give->waiting = false;
	if (!give->ended)
		return give;
	free(give);
	return NULL;
}

bool weft_give_cancel(struct weft_daemon *d)
{
	struct weft_give *give = d->give;

	if (give->freezing) {
		give->stop = true;
		return false;
	}
	end(give, told_to_stop);
	return true;
}

static void on_limit(struct weft_timer *timer)
{
	end(container_of(timer, struct weft_give, limit), "the other process takes too long");
}

/* --- standing still --------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int send_state(struct weft_give *give)
{
	struct weft_daemon *d = give->daemon;
	struct weft_state state = { .format = give->format,
				    .since_ns = give->since_ns,
				    .still_ns = now_ns(),
				    .control = weft_control_descriptor(d->control) };
	struct weft_frame frame = { 0 };
	int rc = weft_target_export(d->target, &state.target);

	if (!rc)
		rc = weft_state_write(&state, &frame);
	if (!rc)
		rc = weft_channel_send(give->sock.fd, &frame);
	weft_frame_sent_free(&frame);
	weft_target_state_free(&state.target);
	return rc;
}

/* Before "go": from then on the other process writes its pid into that file. An older weft does not
 * say which file it has; then our file is removed, and it makes a new one. */
static bool is_our_pidfile(const struct weft_give *give, const json_t *ready)
{
	const char *theirs = json_string_value(json_object_get(ready, "pidfile"));
	const char *path = give->daemon->options->pidfile;
	struct weft_pidfile_id ours;

	return theirs && path && weft_pidfile_identify(path, &ours) && !strcmp(theirs, ours.text);
}

static int hand_over(struct weft_give *give, struct weft_err *err)
{
	struct weft_frame frame;
	int rc = send_state(give);

	if (rc < 0)
		return weft_fail(err, rc, "telling the other process: %s", strerror(-rc));
	rc = weft_channel_recv(give->sock.fd, "ready", READY_MS, &frame, err);
	if (rc < 0)
		return rc;
	give->pidfile_is_theirs = is_our_pidfile(give, frame.doc);
	weft_frame_free(&frame);
	if (weft_daemon_shall_stop(give->daemon))
		return weft_fail(err, -ECANCELED, "%s", told_to_stop);
	rc = weft_channel_send_step(give->sock.fd, "go");
	return rc < 0 ? weft_fail(err, rc, "the other process went away") : 0;
}

/* The service manager hears of it while we are still the one it listens to. */
static void leave(struct weft_give *give)
{
	char state[32];

	snprintf(state, sizeof(state), "MAINPID=%d", (int)give->heir.pid);
	weft_notify(state);
	weft_info("pid %d has taken over; leaving", (int)give->heir.pid);
	if (give->daemon->options->pidfile && !give->pidfile_is_theirs)
		weft_pidfile_remove(give->daemon->options->pidfile);
	_exit(0);
}

static void on_frozen(void *arg, int rc, const struct weft_err *why)
{
	struct weft_give *give = arg;
	struct weft_err err = { "" };

	give->freezing = false;
	if (rc < 0) {
		end(give, why->text);
		return;
	}
	if (hand_over(give, &err) == 0)
		leave(give);
	weft_target_thaw(give->daemon->target);
	end(give, err.text);
}

/* --- the other process says that it is prepared, or that it is not ---------------------------- */

static void on_word(struct weft_op *op, int res)
{
	struct weft_give *give = waited(op);
	struct weft_frame frame;
	struct weft_err err = { "" };

	if (!give)
		return;
	if (weft_channel_recv(give->sock.fd, "freeze", WORD_MS, &frame, &err) < 0) {
		end(give, err.text);
		return;
	}
	weft_frame_free(&frame);
	weft_timer_stop(give->daemon->home, &give->limit);
	give->freezing = true;
	give->since_ns = now_ns();
	weft_target_freeze(give->daemon->target, FREEZE_MS, on_frozen, give);
}

static int take_channel(struct weft_give *give, struct weft_err *err)
{
	pid_t pid;
	int fd = weft_channel_accept(give->sock.fd, &pid, err), rc;

	if (fd < 0)
		return fd;
	weft_heir_meet(&give->heir, pid);
	weft_sock_close(&give->sock);
	/* It blocks, and so is only polled by the reactor. */
	rc = weft_sock_open(give->daemon->home, &give->sock, fd);
	assert(!rc); /* epoll watches any socket */
	give->accepted = true;
	return rc;
}

static void on_connected(struct weft_op *op, int res)
{
	struct weft_give *give = waited(op);
	struct weft_err err = { "" };
	struct weft_daemon *d;
	int rc;

	if (!give)
		return;
	d = give->daemon;
	rc = take_channel(give, &err);
	if (rc == -EPERM) { /* of another user: the one that called may still come */
		weft_warn("%s", err.text);
		wait_for(give, on_connected);
		return;
	}
	if (rc < 0) {
		end(give, err.text);
		return;
	}
	weft_info("pid %d prepares to take over", (int)give->heir.pid);
	weft_control_pause(d->control);
	if (weft_control_calls(d->control)) { /* what it changes, the other one would not know */
		end(give, "a call over the control socket is still under way");
		return;
	}
	rc = weft_give_running(d, give->format, give->sock.fd);
	if (rc < 0) {
		end(give, strerror(-rc));
		return;
	}
	weft_timer_set(d->home, &give->limit, PREPARE_MS);
	wait_for(give, on_word);
}

/* --- the call --------------------------------------------------------------------------------- */

static void count_rdma(void *arg, const struct weft_queue_info *info)
{
	*(unsigned *)arg += !strcmp(info->transport, "rdma");
}

static void see_ctrl(void *arg, const struct weft_target_ctrl_info *info)
{
	(void)arg;
	(void)info;
}

static int check_rdma(struct weft_daemon *d, bool drop, struct weft_err *err)
{
	const struct weft_target_visitor visitor = { .ctrl = see_ctrl, .queue = count_rdma };
	unsigned queues = 0;

	weft_target_visit(d->target, &visitor, &queues);
	if (!queues || drop)
		return 0;
	return weft_fail(err, -EBUSY,
			 "%u RDMA connection%s cannot be handed over; --drop-rdma ends them, and "
			 "their hosts connect again",
			 queues, weft_plural(queues));
}

static int check(struct weft_daemon *d, const struct weft_takeover_params *p, struct weft_err *err)
{
	if (!p->format)
		return weft_fail(err, -EPROTONOSUPPORT,
				 "this target hands over in formats 1 to %d, and the other one "
				 "reads none of them; stop this one and start the other one",
				 WEFT_HANDOFF_FORMAT);
	return check_rdma(d, p->drop_rdma, err);
}

static int offer(struct weft_daemon *d, uint32_t format, char name[WEFT_CHANNEL_NAME_MAX],
		 struct weft_err *err)
{
	struct weft_give *give = calloc(1, sizeof(*give));
	int fd = weft_channel_listen(name);
	int rc = give ? 0 : -ENOMEM;

	if (!rc)
		rc = fd < 0 ? fd : weft_sock_open(d->home, &give->sock, fd);
	if (rc < 0) {
		weft_closep(&fd);
		free(give);
		return weft_fail(err, rc, "a socket for the takeover: %s", strerror(-rc));
	}
	if (d->give) /* nobody came; who does makes calls wait */
		end(d->give, "another process calls");
	give->daemon = d;
	give->format = format < WEFT_HANDOFF_FORMAT ? format : WEFT_HANDOFF_FORMAT;
	give->limit.fn = on_limit;
	wait_for(give, on_connected);
	weft_timer_set(d->home, &give->limit, COME_MS);
	d->give = give;
	return 0;
}

void weft_method_takeover(struct weft_call *call, void *params)
{
	struct weft_daemon *d = call->rpc->daemon;
	const struct weft_takeover_params *p = params;
	char name[WEFT_CHANNEL_NAME_MAX];
	struct weft_err err = { "" };
	int rc = check(d, p, &err);

	if (!rc)
		rc = offer(d, p->format, name, &err);
	if (rc < 0)
		weft_call_fail(call, rc, &err);
	else
		weft_call_result(call, json_pack("{s:s}", "socket", name));
}
