/* target_thread.c - Weft's own target on threads of the test. */
#include "target_thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/list.h"
#include "base/log.h"
#include "target/target.h"
#ifdef TARGET_ON_FABRIC
#include "fabric.h"
#define LISTEN "nvme+rdma://127.0.0.1:0"
#else
#define LISTEN "nvme+tcp://127.0.0.1:0"
#endif

enum { REACTORS = 2, QUEUES = 16, DEPTH = 128 };

static struct weft_reactor *reactors[REACTORS]; /* the first is home */
static pthread_t threads[REACTORS];
static struct weft_target *target;
static struct weft_subsys *subsys;
static char address[64];

static void must(int rc, const char *what, const struct weft_err *err)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "target: %s: %s\n", what, err ? err->text : strerror(-rc));
	abort();
}

/* --- calls into home ---------------------------------------------------------------------- */

struct call {
	struct weft_msg msg;
	void (*run)(struct call *call);
	uint32_t nsid, block;
	uint64_t size;
	const char *spec, *uuid;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over;
};

static void end_call(void *arg)
{
	struct call *call = arg;

	pthread_mutex_lock(&call->lock);
	call->over = true;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

static void run_call(struct weft_msg *msg)
{
	struct call *call = container_of(msg, struct call, msg);

	call->run(call);
}

/* Until end_call(). */
static void call_home(struct call *call)
{
	call->msg.fn = run_call;
	pthread_mutex_init(&call->lock, NULL);
	pthread_cond_init(&call->changed, NULL);
	weft_reactor_post(reactors[0], &call->msg);
	pthread_mutex_lock(&call->lock);
	while (!call->over)
		pthread_cond_wait(&call->changed, &call->lock);
	pthread_mutex_unlock(&call->lock);
	pthread_cond_destroy(&call->changed);
	pthread_mutex_destroy(&call->lock);
}

/* --- namespaces --------------------------------------------------------------------------- */

static void add(struct call *call)
{
	struct weft_ns_options options = { .nsid = call->nsid,
					   .block = call->block,
					   .uuid = call->uuid };
	struct weft_err err = { "" };
	struct weft_backend *be;
	struct weft_spec spec;

	must(weft_spec_parse(call->spec, &spec, &err), call->spec, &err);
	must(weft_backend_open(&be, &spec, &err), call->spec, &err);
	must(weft_ns_add(subsys, &options, be, &call->nsid, &err), call->spec, &err);
	end_call(call);
}

static void take_away(struct call *call)
{
	struct weft_err err = { "" };

	must(weft_ns_remove(subsys, call->nsid, end_call, call, &err), "remove", &err);
}

static void resized(void *arg, int rc, const struct weft_err *err)
{
	must(rc, "resize", err);
	end_call(arg);
}

static void resize(struct call *call)
{
	struct weft_err err = { "" };

	must(weft_ns_resize(subsys, call->nsid, call->size, resized, call, &err), "resize", &err);
}

void target_ns_add(uint32_t nsid, const char *spec, uint32_t block, const char *uuid)
{
	struct call call = { .run = add, .nsid = nsid, .spec = spec, .block = block, .uuid = uuid };

	call_home(&call);
}

void target_ns_remove(uint32_t nsid)
{
	struct call call = { .run = take_away, .nsid = nsid };

	call_home(&call);
}

void target_ns_resize(uint32_t nsid, uint64_t size)
{
	struct call call = { .run = resize, .nsid = nsid, .size = size };

	call_home(&call);
}

/* --- beginning and end -------------------------------------------------------------------- */

static void note_address(void *arg, const char *uri)
{
	snprintf(address, sizeof(address), "%s", uri);
}

static void start(struct call *call)
{
	static const struct weft_target_visitor visitor = { .listener = note_address };
	struct weft_target_options options = {
		.home = reactors[0],
		.reactors = reactors,
		.nreactors = REACTORS,
		.depth_max = DEPTH,
		.io_queues_max = QUEUES,
		.queues_max = 8 * QUEUES,
	};
	struct weft_subsys_options named = { .nqn = TARGET_NQN, .allow_any_host = true };
	struct weft_err err = { "" };
	struct weft_uri uri;

	must(weft_target_create(&target, &options, &err), "create", &err);
	must(weft_uri_parse(LISTEN, &uri, &err), "address", &err);
	must(weft_listener_add(target, &uri, &err), "listen", &err);
	must(weft_subsys_add(target, &named, &subsys, &err), "subsystem", &err);
	weft_target_visit(target, &visitor, NULL);
	end_call(call);
}

static void stop(struct call *call)
{
	weft_target_stop(target, end_call, call);
}

static void *turn(void *arg)
{
	weft_reactor_run(arg);
	return NULL;
}

static void end_reactor(struct weft_msg *msg)
{
	weft_reactor_stop(weft_reactor_self());
}

#ifdef TARGET_ON_FABRIC
static void fabric_up(void)
{
	fabric_begin();
	rdma_verbs = &fabric_verbs;
}
#else
static void fabric_up(void)
{
}
static void fabric_end(void)
{
}
#endif

void target_start(void)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL, .cpu = -1 };
	struct call call = { .run = start };
	struct weft_err err = { "" };

	weft_log_set_level(WEFT_LOG_ERROR);
	fabric_up();
	for (int i = 0; i < REACTORS; i++) {
		must(weft_reactor_create(&reactors[i], &options, &err), "reactor", &err);
		must(-pthread_create(&threads[i], NULL, turn, reactors[i]), "thread", NULL);
	}
	call_home(&call);
}

void target_stop(void)
{
	struct weft_msg ends[REACTORS];
	struct call call = { .run = stop };

	call_home(&call);
	for (int i = 0; i < REACTORS; i++) {
		ends[i].fn = end_reactor;
		weft_reactor_post(reactors[i], &ends[i]);
	}
	for (int i = 0; i < REACTORS; i++) {
		pthread_join(threads[i], NULL);
		weft_reactor_destroy(reactors[i]);
	}
	fabric_end();
}

const char *target_address(void)
{
	return address;
}
