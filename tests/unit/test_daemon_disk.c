/* test_daemon_disk.c - a disk that stands still under a call over the control socket: other calls
 * are answered meanwhile, so the control thread serves hosts as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control/client.h"
#include "daemon/daemon.h"
#include "running.h"
#include "storage/stuck.h"

static char dir[] = "/tmp/weft-calls-XXXXXX";
static char control[64];
static const struct weft_ctl_limit no_limit;

/* --- the daemon ------------------------------------------------------------------------------- */

static pthread_t server;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool ready;
static atomic_bool stopped;

static void on_ready(void *user)
{
	pthread_mutex_lock(&lock);
	ready = true;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static void *serve(void *arg)
{
	const struct weft_serve_options options = { .ready = on_ready };
	struct weft_config config;
	struct weft_err err = { "" };
	struct weft_doc doc;
	int rc = weft_doc_init(&doc);

	weft_doc_set(&doc, "control", json_string(control), "--control");
	weft_doc_set(&doc, "listen", json_array(), "--listen");
	weft_doc_set(&doc, "cpus", json_integer(0), "--cpus");
	weft_doc_set(&doc, "subsystems",
		     json_pack("[{s:s, s:[{s:s}]}]", "nqn", "nqn.2026-11.io.weft:unit",
			       "namespaces", "backend", "mem:1M"),
		     "--nqn");
	if (!rc)
		rc = weft_config_read(&config, &doc, &err);
	if (!rc) {
		rc = weft_serve(&config, &doc, &options, &err);
		weft_config_free(&config);
	}
	weft_doc_free(&doc);
	atomic_store(&stopped, true);
	if (rc < 0) {
		fprintf(stderr, "serve: %s\n", err.text);
		abort();
	}
	return NULL;
}

/* Signals that end it are the daemon's. */
static int start_daemon(void **state)
{
	sigset_t all;

	alarm(110); /* what never comes is a hang */
	sigemptyset(&all);
	sigaddset(&all, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	weft_log_set_level(WEFT_LOG_ERROR);
	if (!control[0] && !mkdtemp(dir))
		return -1;
	snprintf(control, sizeof(control), "%s/control", dir);
	ready = false;
	atomic_store(&stopped, false);
	if (pthread_create(&server, NULL, serve, NULL))
		return -1;
	pthread_mutex_lock(&lock);
	while (!ready)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int stop_daemon(void **state)
{
	kill(getpid(), SIGTERM);
	return pthread_join(server, NULL);
}

/* --- calls ------------------------------------------------------------------------------------ */

struct call {
	pthread_t thread;
	const char *method;
	json_t *params, *result;
	struct weft_err err;
	atomic_bool over;
};

static void *call_in_background(void *arg)
{
	struct call *call = arg;

	call->result = weft_ctl_call(control, call->method, call->params, no_limit, &call->err);
	atomic_store(&call->over, true);
	return NULL;
}

static void begin(struct call *call, const char *method, json_t *params)
{
	*call = (struct call){ .method = method, .params = params };
	assert_int_equal(pthread_create(&call->thread, NULL, call_in_background, call), 0);
}

static json_t *end(struct call *call)
{
	pthread_join(call->thread, NULL);
	return call->result;
}

/* false: the daemon answers no more. */
static bool is_answered(const char *method)
{
	struct weft_err err = { "" };
	json_auto_t *result = weft_ctl_call(control, method, json_object(), no_limit, &err);

	return result;
}

static json_t *file_of(const char *name)
{
	return json_sprintf("file:%s/%s,size=1M", dir, name);
}

static json_t *ns_params(void)
{
	return json_pack("{s:s, s:o}", "nqn", "nqn.2026-11.io.weft:unit", "backend", file_of("ns"));
}

static json_t *subsys_params(void)
{
	return json_pack("{s:s, s:[{s:o}]}", "nqn", "nqn.2026-11.io.weft:other", "namespaces",
			 "backend", file_of("subsys"));
}

static json_t *save_params(void)
{
	return json_pack("{s:o}", "path", json_sprintf("%s/saved.yaml", dir));
}

static json_t *resize_params(void)
{
	return json_pack("{s:s, s:i, s:i}", "nqn", "nqn.2026-11.io.weft:unit", "nsid", 2, "size",
			 2 << 20);
}

static const struct {
	const char *method;
	json_t *(*params)(void);
} calls[] = {
	{ "namespace-add", ns_params },
	{ "subsystem-add", subsys_params },
	{ "save", save_params },
	{ "namespace-resize", resize_params },
};

static void disk_holds_up_one_call(void **state)
{
	for_each_named(i, calls, method) {
		struct call call;
		json_t *result;

		stuck_hold(STUCK_AT_SYNC);
		begin(&call, calls[i].method, calls[i].params());
		stuck_until_one_waits();
		for (int times = 0; times < 20; times++)
			assert_true(is_answered("status"));
		assert_false(atomic_load(&call.over));
		stuck_hold(STUCK_NOWHERE);
		result = end(&call);
		if (!result)
			fail_msg("%s: %s", calls[i].method, call.err.text);
		json_decref(result);
	}
}

/* What somebody else has taken meanwhile is not given a second time. */
static void namespace_is_checked_again(void **state)
{
	const char *uuid = "0b1e5ae6-0c3d-4a5e-9f60-7c8d9e0f1a2b";
	struct weft_err err = { "" };
	struct call call;
	json_t *quick;

	stuck_hold(STUCK_AT_SYNC);
	begin(&call, "namespace-add",
	      json_pack("{s:s, s:o, s:s}", "nqn", "nqn.2026-11.io.weft:unit", "backend",
			file_of("again"), "uuid", uuid));
	stuck_until_one_waits();
	quick = weft_ctl_call(control, "namespace-add",
			      json_pack("{s:s, s:s, s:s}", "nqn", "nqn.2026-11.io.weft:unit",
					"backend", "mem:1M", "uuid", uuid),
			      no_limit, &err);
	assert_non_null(quick);
	json_decref(quick);
	stuck_hold(STUCK_NOWHERE);
	assert_null(end(&call));
	assert_non_null(strstr(call.err.text, uuid));
}

/* Who called is told at once that there is no answer. */
static void stop_waits_for_the_disk(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct call call;

		stuck_hold(STUCK_AT_SYNC);
		begin(&call, calls[i].method, calls[i].params());
		stuck_until_one_waits();
		kill(getpid(), SIGTERM);
		while (is_answered("status"))
			usleep(100);
		assert_null(end(&call));
		assert_false(atomic_load(&stopped));
		stuck_hold(STUCK_NOWHERE);
		pthread_join(server, NULL);
		start_daemon(state);
	}
}

static int forget_files(void **state)
{
	const char *const names[] = { "ns", "subsys", "again", "saved.yaml" };
	char path[128];

	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return 0;
}

static int end_all(void **state)
{
	int rc = stop_daemon(state);

	forget_files(state);
	return rc ? rc : rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(disk_holds_up_one_call, forget_files),
		cmocka_unit_test(namespace_is_checked_again),
		cmocka_unit_test_setup(stop_waits_for_the_disk, forget_files),
	};

	return cmocka_run_group_tests(tests, start_daemon, end_all);
}
