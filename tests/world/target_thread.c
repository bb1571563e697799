/* target_thread.c - Weft's own target on threads of the test. */
#include "world/target_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/list.h"
#include "base/log.h"
#include "target/cluster/owners.h"
#include "target/takeover/takeover.h"
#include "target/internal.h"
#include "target/target.h"
#ifdef TARGET_ON_FABRIC
#include "fabric/fabric.h"
#define LISTEN "nvme+rdma://127.0.0.1:0"
#else
#define LISTEN "nvme+tcp://127.0.0.1:0"
#endif

enum { REACTORS = 2, QUEUES = 16, DEPTH = 128 };

static struct weft_reactor *reactors[REACTORS]; /* the first is the control reactor */
static pthread_t threads[REACTORS];
static struct weft_target *target, *other; /* @other: of a pair */
static struct weft_subsys *subsys, *other_subsys;
static char address[64], other_address[64];
static char state_path[64]; /* of a pair */

static void must(int rc, const char *what, const struct weft_err *err)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "target: %s: %s\n", what, err ? err->text : strerror(-rc));
	abort();
}

/* --- calls into the control reactor -------------------------------------------------------------------------- */

struct call {
	struct weft_msg msg;
	void (*run)(struct call *call);
	uint32_t nsid, block, group, limit_ms;
	int rc;
	struct weft_err err;
	uint16_t cntlid;
	uint64_t size;
	const char *spec, *uuid;
	struct weft_backend *be;

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

static void begin_call(struct call *call)
{
	call->msg.fn = run_call;
	pthread_mutex_init(&call->lock, NULL);
	pthread_cond_init(&call->changed, NULL);
	weft_reactor_post(reactors[0], &call->msg);
}

/* Until end_call(). */
static void wait_call(struct call *call)
{
	pthread_mutex_lock(&call->lock);
	while (!call->over)
		pthread_cond_wait(&call->changed, &call->lock);
	pthread_mutex_unlock(&call->lock);
	pthread_cond_destroy(&call->changed);
	pthread_mutex_destroy(&call->lock);
}

static void call_control(struct call *call)
{
	begin_call(call);
	wait_call(call);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static void add_ns(struct call *call)
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

static void add_ns_on(struct call *call)
{
	struct weft_ns_options options = { .nsid = call->nsid,
					   .block = 512,
					   .ana_group = call->group };

	call->rc = weft_ns_add(subsys, &options, call->be, &call->nsid, &call->err);
	end_call(call);
}

static void remove_ns(struct call *call)
{
	struct weft_err err = { "" };

	must(weft_ns_remove(subsys, call->nsid, end_call, call, &err), "remove", &err);
}

static void resized(void *arg, int rc, const struct weft_err *err)
{
	struct call *call = arg;

	call->rc = rc;
	call->err = *err;
	end_call(call);
}

static void resize_ns(struct call *call)
{
	struct weft_err err = { "" };

	must(weft_ns_resize(subsys, call->nsid, call->size, true, resized, call, &err), "resize",
	     &err);
}

static void look_for(struct call *call)
{
	call->rc = tgt_ns_find(subsys, call->nsid) != NULL;
	end_call(call);
}

void target_ns_add(uint32_t nsid, const char *spec, uint32_t block, const char *uuid)
{
	struct call call = {
		.run = add_ns, .nsid = nsid, .spec = spec, .block = block, .uuid = uuid
	};

	call_control(&call);
}

void target_ns_add_on(uint32_t nsid, struct weft_backend *be, uint32_t ana_group)
{
	struct call call = { .run = add_ns_on, .nsid = nsid, .be = be, .group = ana_group };

	call_control(&call);
	must(call.rc, "add", &call.err);
}

int target_ns_try_on(uint32_t nsid, struct weft_backend *be, uint32_t ana_group)
{
	struct call call = { .run = add_ns_on, .nsid = nsid, .be = be, .group = ana_group };

	call_control(&call);
	return call.rc;
}

void target_ns_remove(uint32_t nsid)
{
	struct call call = { .run = remove_ns, .nsid = nsid };

	call_control(&call);
}

void target_ns_resize(uint32_t nsid, uint64_t size)
{
	struct call call = { .run = resize_ns, .nsid = nsid, .size = size };

	call_control(&call);
	must(call.rc, "resize", &call.err);
}

int target_ns_try_resize(uint32_t nsid, uint64_t size)
{
	struct call call = { .run = resize_ns, .nsid = nsid, .size = size };

	call_control(&call);
	return call.rc;
}

bool target_ns_is_there(uint32_t nsid)
{
	struct call call = { .run = look_for, .nsid = nsid };

	call_control(&call);
	return call.rc;
}

/* --- standing still --------------------------------------------------------------------------- */

static void frozen(void *arg, int rc, const struct weft_err *err)
{
	struct call *call = arg;

	call->rc = rc;
	end_call(call);
}

static void freeze(struct call *call)
{
	weft_target_freeze(target, call->limit_ms, frozen, call);
}

static void thaw(struct call *call)
{
	weft_target_thaw(target);
	end_call(call);
}

int target_freeze(uint32_t limit_ms)
{
	struct call call = { .run = freeze, .limit_ms = limit_ms };

	call_control(&call);
	return call.rc;
}

void target_thaw(void)
{
	struct call call = { .run = thaw };

	call_control(&call);
}

/* --- moves ------------------------------------------------------------------------------------ */

static struct call moving;

static void group_moved(void *arg, int rc, const struct weft_err *err)
{
	must(rc, "move", err);
	end_call(arg);
}

static void move_group(struct call *call)
{
	must(weft_cluster_move(subsys, call->group, 2, group_moved, call, &call->err), "move",
	     &call->err);
}

static void look_at_state(struct call *call)
{
	call->rc = weft_store_is_quiesced(subsys->store);
	end_call(call);
}

void target_move_start(uint32_t group)
{
	moving = (struct call){ .run = move_group, .group = group };
	begin_call(&moving);
}

void target_move_wait(void)
{
	wait_call(&moving);
}

bool target_state_is_still(void)
{
	struct call call = { .run = look_at_state };

	call_control(&call);
	return call.rc;
}

/* --- a member that takes what is not its own -------------------------------------------------- */

struct taking {
	struct call call;
	struct weft_store_txn txn;
	struct weft_store_write write;
	uint8_t bytes[OWNERS_RECORD];
};

static void try_taking(struct call *call);

/* Somebody may have been faster. */
static void taken(struct weft_store_txn *txn, int rc)
{
	struct taking *taking = container_of(txn, struct taking, txn);

	if (rc == -ESTALE) {
		try_taking(&taking->call);
		return;
	}
	must(rc, "take", NULL);
	end_call(&taking->call);
}

static void try_taking(struct call *call)
{
	struct taking *taking = container_of(call, struct taking, call);
	const struct weft_store_record *record = weft_store_get(other_subsys->store, "owners");
	struct owners owners;

	must(record ? owners_decode(&owners, record->value, record->len) : -ENOENT, "take", NULL);
	owners.owner[call->group - 1] = 2;
	owners_encode(&owners, taking->bytes);
	taking->write = (struct weft_store_write){ "owners", record->version, taking->bytes,
						   sizeof(taking->bytes) };
	taking->txn = (struct weft_store_txn){ &taking->write, 1, taken };
	weft_store_commit(other_subsys->store, &taking->txn);
}

void target_pair_take(uint32_t group)
{
	struct taking taking = { .call = { .run = try_taking, .group = group } };

	call_control(&taking.call);
}

/* --- time ------------------------------------------------------------------------------------- */

static _Atomic uint64_t ahead_ns;

static uint64_t target_clock(void *arg)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + atomic_load(&ahead_ns);
}

/* A turn of the control reactor's, which finds its timers due. */
static void look_at_the_clock(struct call *call)
{
	end_call(call);
}

void target_time_passes(uint32_t ms)
{
	struct call call = { .run = look_at_the_clock };

	atomic_fetch_add(&ahead_ns, ms * 1000000ull);
	call_control(&call);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static void set_next_cntlid(struct call *call)
{
	subsys->cntlid_next = (uint16_t)(call->cntlid - 1);
	end_call(call);
}

void target_next_cntlid(uint16_t cntlid)
{
	struct call call = { .run = set_next_cntlid, .cntlid = cntlid };

	call_control(&call);
}

/* --- ANA -------------------------------------------------------------------------------------- */

struct target_ana {
	struct call call;
	struct weft_ana_rule rule;
};

static void ana_done(void *arg, int rc, const struct weft_err *err)
{
	must(rc, "ana", err);
	end_call(arg);
}

static void ana_set(struct call *call)
{
	struct target_ana *ana = container_of(call, struct target_ana, call);
	struct weft_err err = { "" };

	must(weft_ana_set(subsys, &ana->rule, 1, false, ana_done, call, &err), "ana", &err);
}

static unsigned state_of(const char *word)
{
	unsigned state = 0;

	while (weft_ana_names[state] && strcmp(weft_ana_names[state], word))
		state++;
	return state;
}

struct target_ana *target_ana_start(uint32_t group, const char *state)
{
	struct target_ana *ana = calloc(1, sizeof(*ana));

	must(ana ? 0 : -ENOMEM, "ana", NULL);
	ana->call.run = ana_set;
	ana->rule = (struct weft_ana_rule){ .group = group, .state = state_of(state) };
	begin_call(&ana->call);
	return ana;
}

bool target_ana_over(struct target_ana *ana)
{
	bool over;

	pthread_mutex_lock(&ana->call.lock);
	over = ana->call.over;
	pthread_mutex_unlock(&ana->call.lock);
	return over;
}

void target_ana_wait(struct target_ana *ana)
{
	wait_call(&ana->call);
	free(ana);
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void note_address(void *arg, const char *uri, uint16_t portid)
{
	snprintf(arg, sizeof(address), "%s", uri);
}

/* Member @node of two; 0: it is alone. */
static struct weft_target *create_target(unsigned node, struct weft_subsys **s, char *where)
{
	static const struct weft_target_visitor visitor = { .listener = note_address };
	struct weft_target_options options = {
		.control = reactors[0],
		.reactors = reactors,
		.nreactors = REACTORS,
		.depth_max = DEPTH,
		.io_queues_max = QUEUES,
		.queues_max = 8 * QUEUES,
	};
	struct weft_subsys_options named = {
		.nqn = TARGET_NQN, .allow_any_host = true, .node = node, .nodes = node ? 2 : 0
	};
	struct weft_store_options store = { reactors[0], state_path, node, 2 };
	struct weft_err err = { "" };
	struct weft_target *made;
	struct weft_uri uri;

	must(weft_target_create(&made, &options, &err), "create", &err);
	must(weft_uri_parse(LISTEN, &uri, &err), "address", &err);
	must(weft_listener_add(made, &uri, &err), "listen", &err);
	if (node)
		must(weft_store_open(&named.store, &store, &err), "state", &err);
	must(weft_subsys_add(made, &named, s, &err), "subsystem", &err);
	weft_target_visit(made, &visitor, where);
	return made;
}

static void start_target(struct call *call)
{
	target = create_target(0, &subsys, address);
	end_call(call);
}

static void start_pair(struct call *call)
{
	target = create_target(1, &subsys, address);
	other = create_target(2, &other_subsys, other_address);
	weft_subsys_start(other_subsys);
	end_call(call);
}

static void begin_cluster(struct call *call)
{
	weft_subsys_start(subsys);
	end_call(call);
}

static void stop_target(struct call *call)
{
	weft_target_stop(target, end_call, call);
}

static void stop_other(struct call *call)
{
	weft_target_stop(other, end_call, call);
}

static void *reactor_main(void *arg)
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

static void start_with(void (*how)(struct call *call))
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = target_clock };
	struct call call = { .run = how };
	struct weft_err err = { "" };

	weft_log_set_level(WEFT_LOG_ERROR);
	fabric_up();
	for (int i = 0; i < REACTORS; i++) {
		must(weft_reactor_create(&reactors[i], &options, &err), "reactor", &err);
		must(-pthread_create(&threads[i], NULL, reactor_main, reactors[i]), "thread", NULL);
	}
	call_control(&call);
}

void target_start(void)
{
	start_with(start_target);
}

void target_start_pair(void)
{
	char file[] = "/tmp/weft-pair-XXXXXX";
	int fd = mkstemp(file);

	must(fd, "state", NULL);
	close(fd);
	snprintf(state_path, sizeof(state_path), "file:%s", file);
	start_with(start_pair);
}

void target_pair_begin(void)
{
	struct call call = { .run = begin_cluster };

	call_control(&call);
}

void target_stop(void)
{
	struct weft_msg ends[REACTORS];
	struct call call = { .run = stop_target }, second = { .run = stop_other };

	call_control(&call);
	if (other) {
		call_control(&second);
		unlink(strchr(state_path, '/'));
	}
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

const char *target_other_address(void)
{
	return other_address;
}
