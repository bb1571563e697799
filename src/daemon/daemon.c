/* daemon.c - the daemon (`weft serve`): starts and stops the target.
 *
 *   threads ─▶ control reactor runs ─▶ start ─┬─ ready ┄┄ signal ┄┄▶ close control socket
 *                                             └─ failed ─▶ stop target ◀──────┘
 *                                                             └─▶ join threads
 *
 * Start and stop both run on the control reactor. A start that fails half way is undone by the stop
 * that a signal begins. */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <weft/weft.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/control/methods.h"
#include "daemon/pidfile.h"
#include "daemon/internal.h"

/* --- stop ------------------------------------------------------------------------------------- */

static void on_target_stopped(void *arg)
{
	struct weft_daemon *d = arg;

	weft_reactor_stop(d->control_reactor);
}

/* No method is under way any more, so nobody else uses objects of the target. */
static void on_control_closed(void *arg)
{
	struct weft_daemon *d = arg;

	if (d->target)
		weft_target_stop(take_ptr(&d->target), on_target_stopped, d);
	else
		on_target_stopped(d);
}

void weft_daemon_stop(struct weft_daemon *d)
{
	while (d->export) /* when one ends, a call that waited may begin the next */
		if (!weft_takeover_export_cancel(d))
			return;
	d->stopping = true;
	weft_daemon_cancel_adds(d);
	if (d->target)
		weft_target_prepare_stop(d->target);
	if (d->control)
		weft_control_socket_close(take_ptr(&d->control), on_control_closed, d);
	else
		on_control_closed(d);
}

/* The file was renamed, by logrotate for example. */
static void reopen_log(void)
{
	struct weft_err err = { "" };

	if (weft_log_reopen(&err) < 0)
		weft_error("the log goes on where it was: %s", err.text);
	else
		weft_info("SIGHUP: the log begins anew");
}

static void on_daemon_signal(struct weft_daemon *d, const struct signalfd_siginfo *info)
{
	const char *name = sigabbrev_np((int)info->ssi_signo);

	if (info->ssi_signo == SIGHUP && d->options->log_file) {
		reopen_log();
		return;
	}
	if (weft_signal_is_bounce(&d->signal_ns, weft_reactor_now_ns(d->control_reactor)))
		return;
	if (d->signalled) {
		weft_warn("SIG%s again: leaving at once", name);
		if (d->err->text[0] && d->options->failed)
			d->options->failed(d->options->user, d->err->text);
		if (d->options->pidfile)
			weft_pidfile_remove(d->options->pidfile);
		_exit(1);
	}
	d->signalled = true;
	weft_info("SIG%s: stopping", name);
	weft_sd_notify("STOPPING=1");
	if (!d->stopping)
		weft_daemon_stop(d);
}

static void on_signals(struct weft_op *op, int res)
{
	struct weft_daemon *d = container_of(op, struct weft_daemon, signal_op);
	struct signalfd_siginfo info;

	while (read(d->signals.fd, &info, sizeof(info)) == sizeof(info))
		on_daemon_signal(d, &info);
	weft_sock_poll(&d->signals, &d->signal_op);
}

/* SIGHUP, too: the terminal is gone, unless the log is in a file. Where nohup ignores it, it stays
 * ignored. */
static const int stop_signals[] = { SIGTERM, SIGINT, SIGHUP };

bool weft_daemon_stop_requested(const struct weft_daemon *d)
{
	sigset_t pending;
	bool shall = d->signalled;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++)
		shall |= sigismember(&pending, stop_signals[i]) == 1 &&
			 (stop_signals[i] != SIGHUP || !d->options->log_file);
	return shall;
}

static int watch_signals(struct weft_daemon *d, struct weft_err *err)
{
	sigset_t set;
	int fd, rc;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++)
		sigaddset(&set, stop_signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return weft_fail(err, -errno, "signalfd: %s", strerror(errno));
	rc = weft_sock_open(d->control_reactor, &d->signals, fd);
	if (rc < 0) {
		close(fd);
		return weft_fail(err, rc, "cannot watch signals: %s", strerror(-rc));
	}
	d->signal_op.done = on_signals;
	weft_sock_poll(&d->signals, &d->signal_op);
	return 0;
}

/* --- start ------------------------------------------------------------------------------------ */

int weft_daemon_create_target(struct weft_daemon *d)
{
	const struct weft_target_options options = {
		.control = d->control_reactor,
		.reactors = d->threads.reactors,
		.nreactors = d->threads.count,
		.depth_max = d->config->depth,
		.io_queues_max = d->config->queues,
		.queues_max = d->config->queues_max,
	};

	return weft_target_create(&d->target, &options, d->err);
}

int weft_daemon_open_backends(struct weft_daemon *d)
{
	struct weft_subsys_config *subsys = d->config->subsystems.at;
	int rc = 0;

	for (unsigned i = 0; i < d->config->subsystems.count && !rc; i++)
		rc = weft_config_subsys_open(&subsys[i], true, d->err);
	return rc;
}

static void on_store_closed(void *arg)
{
	(void)arg;
}

/* Opening the store may block: nobody is served yet. */
static int add_subsystem(struct weft_daemon *d, struct weft_subsys_config *subsys)
{
	const struct weft_store_options options = weft_config_store_options(d, subsys);
	struct weft_store *store = NULL;
	struct weft_subsys *s;
	int rc = options.spec[0] ? weft_store_open(&store, &options, d->err) : 0;

	if (rc == -EBUSY && !options.successor)
		weft_config_node_runs(subsys, d->err);
	if (rc < 0)
		return weft_fail(d->err, rc, "%s: %s", subsys->nqn, strerror(-rc));
	rc = weft_config_subsys_apply(d, subsys, store, &s, d->err);
	if (rc < 0 && !s && store)
		weft_store_close(store, on_store_closed, NULL);
	return rc;
}

int weft_daemon_add_subsystems(struct weft_daemon *d)
{
	struct weft_subsys_config *subsys = d->config->subsystems.at;
	int rc = 0;

	for (unsigned i = 0; i < d->config->subsystems.count && !rc; i++)
		rc = add_subsystem(d, &subsys[i]);
	return rc;
}

static int add_listeners(struct weft_daemon *d)
{
	const struct weft_uri *uri = d->config->listen.at;
	int rc = 0;

	for (unsigned i = 0; i < d->config->listen.count && !rc; i++)
		rc = weft_listener_add(d->target, &uri[i], d->err);
	return rc;
}

int weft_daemon_start_control(struct weft_daemon *d)
{
	d->rpc = (struct weft_rpc){ .methods = weft_rpc_methods, .daemon = d };
	return weft_control_socket_serve(d->control, d->control_reactor, &d->rpc, d->err);
}

/* A start that is refused before this removes the files that it created when it closes them. */
static void keep_storage(struct weft_daemon *d)
{
	const struct weft_subsys_config *subsys = d->config->subsystems.at;

	for (unsigned i = 0; i < d->config->subsystems.count; i++)
		weft_subsys_keep_storage(weft_subsys_find(d->target, subsys[i].nqn));
}

/* Whoever starts a node of a cluster twice is told that, not to choose another control socket. */
static void explain_other_target(struct weft_daemon *d)
{
	const struct weft_subsys_config *subsys = d->config->subsystems.at;

	for (unsigned i = 0; i < d->config->subsystems.count; i++)
		if (weft_config_node_runs(&subsys[i], d->err))
			return;
}

/* The control socket first: it shows whether another target is running. */
static int start_target(struct weft_daemon *d)
{
	int rc;

	rc = weft_control_socket_open(&d->control, d->config->control, d->config->control_default,
				      d->err);
	if (rc == -EADDRINUSE)
		explain_other_target(d);
	if (!rc)
		rc = weft_daemon_create_target(d);
	if (!rc)
		rc = weft_daemon_open_backends(d);
	if (!rc)
		rc = weft_daemon_add_subsystems(d);
	if (!rc)
		rc = add_listeners(d);
	if (!rc)
		rc = weft_daemon_start_control(d);
	if (!rc)
		keep_storage(d);
	return rc;
}

void weft_daemon_announce_ready(struct weft_daemon *d)
{
	struct weft_err err = { "" };

	if (d->options->pidfile && weft_pidfile_write(d->options->pidfile, &err) < 0)
		weft_error("%s", err.text);
	weft_daemon_log_started(d);
	weft_sd_notify("READY=1");
	if (d->options->ready)
		d->options->ready(d->options->user);
}

static void on_start(struct weft_task *task)
{
	struct weft_daemon *d = container_of(task, struct weft_daemon, start);

	if (d->options->takeover) {
		weft_takeover_import_start(d);
		return;
	}
	d->rc = start_target(d);
	if (d->rc < 0) {
		weft_fail(d->err, d->rc, "cannot start: %s", strerror(-d->rc));
		weft_daemon_stop(d);
		return;
	}
	weft_daemon_announce_ready(d);
}

/* --- the process ------------------------------------------------------------------------------ */

/* Every connection is a descriptor. */
static void raise_nofile(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		weft_warn("cannot raise the limit of open files: %s", strerror(errno));
}

/* The control reactor waits for admin commands and the control socket: it never polls and is bound
 * to no CPU. Its engine is epoll, which releases a port at once when the process is killed; the
 * kernel takes a ring apart later, and the next start would find the port taken. */
static int create_control_reactor(struct weft_daemon *d)
{
	const struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL, .cpu = -1 };

	return weft_reactor_create(&d->control_reactor, &options, d->err);
}

static int start_threads(struct weft_daemon *d)
{
	const struct weft_reactor_options options = {
		.engine = d->config->engine,
		.poll = d->config->poll,
	};

	return weft_reactor_threads_start(&d->threads, &d->config->cpus, &options, d->err);
}

static void run_control_reactor(struct weft_daemon *d)
{
	weft_task_init(&d->start, on_start);
	weft_reactor_defer(d->control_reactor, &d->start);
	weft_reactor_run(d->control_reactor);
}

static int run_daemon(struct weft_daemon *d)
{
	int rc;

	rc = watch_signals(d, d->err);
	if (!rc)
		rc = start_threads(d);
	if (!rc)
		run_control_reactor(d);
	weft_reactor_threads_stop(&d->threads);
	/* Its reactor ends the wait for signals. */
	weft_reactor_destroy(d->control_reactor);
	if (d->signals.fd > 0)
		close(d->signals.fd);
	return rc < 0 ? rc : d->rc;
}

int weft_serve(struct weft_config *config, const struct weft_doc *doc,
	       const struct weft_serve_options *options, struct weft_err *err)
{
	struct weft_daemon d = { .config = config, .doc = doc, .options = options, .err = err };
	json_auto_t *open_by_default = d.open_by_default = json_object();
	json_auto_t *warnings = weft_config_warnings(config);
	int rc;

	weft_list_init(&d.adds);
	weft_list_init(&d.saves);
	d.started_ns = weft_monotonic_ns();
	raise_nofile();
	weft_info("weft %s, pid %d", weft_version(), (int)getpid());
	weft_daemon_log_warnings(warnings);
	rc = options->pidfile ? weft_pidfile_check(options->pidfile, err) : 0;
	if (!rc)
		rc = create_control_reactor(&d);
	if (!rc)
		rc = run_daemon(&d);
	if (options->pidfile)
		weft_pidfile_remove(options->pidfile);
	if (rc < 0)
		return weft_fail(err, rc, "%s", strerror(-rc));
	weft_info("stopped");
	return 0;
}
