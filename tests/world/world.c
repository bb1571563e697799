/* world.c - the target under test, and everything but its hosts. */
#include "world/world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "must.h"
#include "reactor/internal.h"
#include "storage/slow.h"
#include "target/resv/resv.h"
#include "transport/tcp/tcp.h"
#include "world/takeover.h"

enum {
	TURNS_MAX = 400, /* each of 100 ms: longer than a host may take to Connect */
	DEPTH_MAX = 1024,
	SUCCESSOR_DEPTH_MAX = 20000, /* so deep that a command has one R2T only */
	QUEUES_MAX = 6,
	FREEZE_MS = 2000,
	ROUND_MS = 100, /* of a world that waits for time to pass */
	POOLS_EACH = 2 * WEFT_BUFS_CLASSES + 1,
	POOLS_HOSTS = WORLD_GROUPS * POOLS_EACH,
	POOLS_ANON = 2 * WEFT_BUFS_CLASSES, /* of peers that nobody had to let in */
	POOLS = POOLS_HOSTS + WORLD_GROUPS * POOLS_ANON,
};

static const struct plan {
	unsigned subsys;
	uint32_t nsid, block;
	uint64_t size;
	const char *spec; /* NULL: slow storage */
} plans[] = {
	{ 0, NS_MEM, 512, 256 << 10, "mem:256K" },
	{ 0, NS_NULL, 4096, 1 << 30, "null:1G" },
	{ 0, NS_SLOW, 512, SLOW_BYTES, NULL },
	{ 0, NS_READ_ONLY, 4096, 64 << 10, "mem:64K,ro" },
	{ 1, NS_MEM, 4096, 64 << 10, "mem:64K" },
};
#define PLANS (sizeof(plans) / sizeof(plans[0]))

static const char *const nqns[] = { WORLD_NQN, WORLD_NQN_GUARDED };
#define SUBSYSTEMS (sizeof(nqns) / sizeof(nqns[0]))

static struct weft_reactor *reactors[WORLD_GROUPS]; /* the first is the control reactor */
static struct weft_target *target;                  /* NULL: has stopped */
static struct weft_subsys *subsystems[SUBSYSTEMS];  /* NULL: removed, or being removed */
static bool stopping;
static enum { NOT_TAKEN, FREEZING, FROZEN, INHERITING } taking;
static bool only_freeze;
static bool went_on;     /* a frozen target has, since world_relieve() last looked */
static unsigned pending; /* what the user began and has not ended */
static uint64_t now_ns;
static uint32_t hidden[POOLS]; /* buffers that world_starve() took away */

unsigned world_lba_shift(uint32_t nsid)
{
	return nsid == NS_NULL || nsid == NS_READ_ONLY ? 12 : 9;
}

/* --- time ------------------------------------------------------------------------------------- */

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

void world_advance(uint64_t ms)
{
	now_ns += ms * 1000000;
}

void world_doze(void)
{
	for (unsigned i = 0; i < WORLD_GROUPS; i++)
		weft_reactor_prepare_wait(reactors[i]);
}

void world_turn_one(unsigned group, unsigned n)
{
	while (n--)
		weft_reactor_turn(reactors[group], 0);
}

static void take_over(void);

void world_turn(unsigned n)
{
	while (n--) {
		for (unsigned i = 0; i < WORLD_GROUPS; i++)
			world_turn_one(i, 1);
		if (taking == FROZEN)
			take_over();
	}
}

static bool is_in_line(void)
{
	for (unsigned i = 0; i < WORLD_GROUPS; i++)
		if (!weft_list_empty(&reactors[i]->bulk))
			return true;
	return false;
}

/* A piece that storage has is in no line: it comes back within a few turns. */
bool world_is_at_work(void)
{
	for (unsigned i = 0; i < 4; i++) {
		if (is_in_line())
			return true;
		world_turn(1);
	}
	return false;
}

/* --- birth ------------------------------------------------------------------------------------ */

static struct weft_backend *open_backend(const struct plan *plan)
{
	struct weft_backend *be;
	struct weft_spec spec;

	if (!plan->spec)
		return slow_open();
	must(!weft_spec_parse(plan->spec, &spec, NULL));
	must(!weft_backend_open(&be, &spec, NULL));
	return be;
}

static void add_ns(const struct plan *plan)
{
	struct weft_ns_options options = { .nsid = plan->nsid,
					   .block = plan->block,
					   .ana_group = plan->nsid };
	struct weft_subsys *s = subsystems[plan->subsys];
	uint32_t nsid;

	if (s && !tgt_ns_find(s, plan->nsid))
		must(!weft_ns_add(s, &options, open_backend(plan), &nsid, NULL));
}

static void allow_host(void)
{
	if (subsystems[1])
		weft_subsys_allow(subsystems[1], WORLD_HOST, NULL);
}

static void add_subsys(unsigned i)
{
	struct weft_subsys_options options = { .nqn = nqns[i], .allow_any_host = !i };

	if (!subsystems[i])
		must(!weft_subsys_add(target, &options, &subsystems[i], NULL));
	subsystems[i]->cntlid_next = 0;
}

static void parse(const char *text, struct weft_uri *uri)
{
	must(!weft_uri_parse(text, uri, NULL));
}

/* A listener, so that the discovery log has entries; nobody comes that way. */
static void add_listener(void)
{
	struct weft_uri uri;

	parse("nvme+tcp://127.0.0.1:0", &uri);
	weft_listener_add(target, &uri, NULL);
}

static void add_target(uint32_t depth_max)
{
	struct weft_target_options options = {
		.control = reactors[0],
		.reactors = reactors,
		.nreactors = WORLD_GROUPS,
		.depth_max = depth_max,
		.io_queues_max = 3,
		.queues_max = QUEUES_MAX,
	};

	must(!weft_target_create(&target, &options, NULL));
	add_listener();
}

/* --- reservations: an input finds none, or it could not be run again by itself ---------------- */

struct forget {
	struct weft_store_txn txn;
	bool done;
};

static void forgotten(struct weft_store_txn *txn, int rc)
{
	must(!rc);
	container_of(txn, struct forget, txn)->done = true;
}

static void forget_reservation(const struct plan *plan)
{
	struct weft_subsys *s = subsystems[plan->subsys];
	char key[48];
	struct weft_store_write write = { .key = key };
	struct forget forget = { .txn = { &write, 1, forgotten } };

	tgt_resv_key(tgt_ns_find(s, plan->nsid), key);
	if (!weft_store_get(s->store, key))
		return;
	write.version = weft_store_get(s->store, key)->version;
	weft_store_commit(s->store, &forget.txn);
	while (!forget.done)
		world_turn(1);
}

static void changed(void *arg, int rc, const struct weft_err *err);

static void restore_target(void)
{
	if (!target)
		add_target(DEPTH_MAX);
	for (unsigned i = 0; i < SUBSYSTEMS; i++)
		add_subsys(i);
	for (unsigned i = 0; i < PLANS; i++)
		add_ns(&plans[i]);
	weft_subsys_set_any_host(subsystems[1], false);
	allow_host();
	pending++;
	must(!weft_ana_set(subsystems[0], NULL, 0, true, changed, NULL, NULL));
	target->discovery->cntlid_next = 0;
	for (unsigned i = 0; i < PLANS; i++)
		forget_reservation(&plans[i]);
	world_turn(4);
}

void world_create(void)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = clock_ns };

	weft_log_set_level(WEFT_LOG_ERROR);
	world_advance(1000);
	for (unsigned i = 0; i < WORLD_GROUPS; i++)
		must(!weft_reactor_create(&reactors[i], &options, NULL));
	restore_target();
}

int world_connect(unsigned group)
{
	int fds[2];

	if (stopping || !target || taking)
		return -1;
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	atomic_fetch_add(&target->poll_groups[group]->nqpairs, 1);
	must(!tcp_accept(target->poll_groups[group], fds[1], &tgt_qpair_ops));
	takeover_connected(fds[0], fds[1]);
	return fds[0];
}

void world_disconnect(int fd)
{
	takeover_closed(fd);
	close(fd);
}

void world_listen(const char *text)
{
	struct weft_uri uri;

	parse(text, &uri);
	if (target && !stopping)
		weft_listener_add(target, &uri, NULL);
}

void world_unlisten(const char *text)
{
	struct weft_uri uri;

	parse(text, &uri);
	if (target && !stopping)
		weft_listener_remove(target, &uri, NULL);
}

/* --- looking ---------------------------------------------------------------------------------- */

static void look_name(void *arg, const char *name)
{
	must(name[0]);
}

static void look_listener(void *arg, const char *uri, uint16_t portid)
{
	must(uri[0] && portid);
}

static void look_subsys(void *arg, const struct weft_subsys_info *info)
{
	must(info->nqn[0] && info->serial[0] && info->model[0]);
}

static void look_reactor(void *arg, const struct weft_reactor_info *info)
{
	must(info->cpu == -1);
	must(info->unknown <= info->unknown_max && info->unknown <= info->queues);
}

static void look_admission(void *arg, const struct weft_admission_info *info)
{
	must(info->discovery <= info->taken && info->taken <= info->max);
}

static void look_ns(void *arg, const struct weft_target_ns_info *info)
{
	must(info->nsid && info->size % info->block == 0 && info->used <= info->size);
	must(strlen(info->uuid) == 36 && strlen(info->nguid) == 32);
}

static void look_ctrl(void *arg, const struct weft_target_ctrl_info *info)
{
	unsigned *count = arg;

	must(info->cntlid && info->hostnqn[0]);
	must(info->kato_ms % TGT_KAS_MS == 0 || info->kato_ms == UINT32_MAX);
	must(strlen(info->hostid) == 36 && strlen(info->peer) < sizeof(info->peer));
	(*count)++;
}

static unsigned count_ctrls(void)
{
	static const struct weft_target_visitor visitor = { .ctrl = look_ctrl };
	unsigned count = 0;

	weft_target_visit(target, &visitor, &count);
	return count;
}

void world_look(void)
{
	static const struct weft_target_visitor visitor = {
		.listener = look_listener,
		.subsys = look_subsys,
		.host = look_name,
		.ns = look_ns,
		.reactor = look_reactor,
		.admission = look_admission,
	};

	if (!target || stopping)
		return;
	must(count_ctrls() <= QUEUES_MAX);
	weft_target_visit(target, &visitor, NULL);
}

struct world_instance world_instance(unsigned which)
{
	struct world_instance found = { 0 };
	struct tgt_ctrl *ctrl;

	if (subsystems[0])
		weft_list_for_each(ctrl, &subsystems[0]->ctrls, link)
			if (!which--)
				found = (struct world_instance){ ctrl->cntlid, ctrl->ciu,
								 ctrl->cirn };
	return found;
}

/* --- its user --------------------------------------------------------------------------------- */

struct call {
	struct weft_msg msg;
	void (*run)(uint32_t which, uint64_t size);
	uint32_t which;
	uint64_t size;
};

static const char *listen_uri; /* of the calls below */

static void ended(void *arg)
{
	must(pending);
	pending--;
}

static void run_call(struct weft_msg *msg)
{
	struct call *call = container_of(msg, struct call, msg);

	if (target && !stopping && !taking)
		call->run(call->which, call->size);
	free(call);
	ended(NULL);
}

static void call_soon(void (*run)(uint32_t which, uint64_t size), uint32_t which, uint64_t size)
{
	struct call *call = malloc(sizeof(*call));

	must(call);
	*call = (struct call){ { .fn = run_call }, run, which, size };
	pending++;
	weft_reactor_post(reactors[0], &call->msg);
}

static void remove_ns(uint32_t nsid, uint64_t size)
{
	struct weft_subsys *s = subsystems[0];

	if (!s || !tgt_ns_find(s, nsid))
		return;
	pending++;
	must(!weft_ns_remove(s, nsid, ended, NULL, NULL));
}

static void add_ns_again(uint32_t nsid, uint64_t size)
{
	for (unsigned i = 0; i < PLANS; i++)
		if (plans[i].subsys == 0 && plans[i].nsid == nsid)
			add_ns(&plans[i]);
}

static void changed(void *arg, int rc, const struct weft_err *err)
{
	must(rc == 0 || err->text[0]);
	ended(arg);
}

static void resize_ns(uint32_t nsid, uint64_t size)
{
	pending++;
	if (!subsystems[0] ||
	    weft_ns_resize(subsystems[0], nsid, size, true, changed, NULL, NULL) < 0)
		pending--;
}

static void set_ana(uint32_t group, uint64_t state)
{
	struct weft_ana_rule rule = { .group = group, .state = (unsigned)state };

	if (!subsystems[0])
		return;
	pending++;
	must(!weft_ana_set(subsystems[0], &rule, 1, false, changed, NULL, NULL));
}

static void remove_subsys(uint32_t index, uint64_t size)
{
	struct weft_subsys *s = subsystems[index];

	subsystems[index] = NULL;
	if (!s)
		return;
	pending++;
	weft_subsys_remove(s, ended, NULL);
}

static void change_host(uint32_t allow, uint64_t size)
{
	if (allow)
		allow_host();
	else if (subsystems[1])
		weft_subsys_refuse(subsystems[1], WORLD_HOST, NULL);
}

static void change_any_host(uint32_t allow, uint64_t size)
{
	if (subsystems[1])
		weft_subsys_set_any_host(subsystems[1], allow);
}

static void stopped(void *arg)
{
	target = NULL;
	stopping = false;
	ended(arg);
}

static void feed_all(void)
{
	for (unsigned i = 0; i < POOLS; i++)
		while (hidden[i])
			world_feed(i);
}

static void stop_target(uint32_t which, uint64_t size)
{
	feed_all();
	stopping = true;
	memset(subsystems, 0, sizeof(subsystems));
	pending++;
	weft_target_stop(target, stopped, NULL);
}

/* --- a takeover ------------------------------------------------------------------------------- */

static struct weft_target *old;
static struct weft_target_state state;

static void old_stopped(void *arg)
{
	old = NULL;
	ended(arg);
}

/* The old target's hosts are gone: it ends like one that lost them. */
static void imported(void *arg, int rc, const struct weft_err *err)
{
	must(rc == 0);
	weft_target_state_free(&state);
	taking = NOT_TAKEN;
	went_on = true;
	weft_target_thaw(target);
	weft_target_thaw(old);
	weft_target_stop(old, old_stopped, NULL);
}

/* A target with the same subsystems and namespaces as there were. */
static void build_successor(void)
{
	struct weft_subsys *before[SUBSYSTEMS];

	memcpy(before, subsystems, sizeof(before));
	memset(subsystems, 0, sizeof(subsystems));
	add_target(SUCCESSOR_DEPTH_MAX);
	must(!weft_target_start_frozen(target));
	for (unsigned i = 0; i < SUBSYSTEMS; i++)
		if (before[i])
			add_subsys(i);
	for (unsigned i = 0; i < PLANS; i++)
		if (before[plans[i].subsys] && tgt_ns_find(before[plans[i].subsys], plans[i].nsid))
			add_ns(&plans[i]);
	allow_host();
}

static void take_over(void)
{
	taking = INHERITING;
	feed_all(); /* they are the old target's */
	must(!weft_target_export(target, &state));
	old = target;
	build_successor();
	takeover_move(&state);
	free(state.listeners.at);
	state.listeners = (struct weft_items){ 0 }; /* the successor has one */
	weft_target_import(target, &state, imported, NULL);
}

static void frozen(void *arg, int rc, const struct weft_err *err)
{
	must(rc == 0 || err->text[0]);
	if (rc == 0 && !only_freeze) {
		taking = FROZEN;
		return;
	}
	taking = NOT_TAKEN;
	went_on = true;
	if (rc == 0)
		weft_target_thaw(target);
	ended(arg);
}

static void freeze_target(uint32_t only, uint64_t size)
{
	if (old)
		return;
	only_freeze = only;
	taking = FREEZING;
	pending++;
	weft_target_freeze(target, FREEZE_MS, frozen, NULL);
}

void world_takeover(bool only)
{
	call_soon(freeze_target, only, 0);
}

void world_ns_remove(uint32_t nsid)
{
	call_soon(remove_ns, nsid, 0);
}

void world_ns_add(uint32_t nsid)
{
	call_soon(add_ns_again, nsid, 0);
}

void world_ns_resize(uint32_t nsid, uint64_t size)
{
	call_soon(resize_ns, nsid, size);
}

void world_ana(unsigned which)
{
	call_soon(set_ana, 1 + which / WEFT_ANA_STATES % NS_READ_ONLY, which % WEFT_ANA_STATES);
}

void world_subsys_remove(unsigned index)
{
	call_soon(remove_subsys, index % SUBSYSTEMS, 0);
}

void world_host_allow(void)
{
	call_soon(change_host, true, 0);
}

void world_host_refuse(void)
{
	call_soon(change_host, false, 0);
}

void world_any_host(bool allow)
{
	call_soon(change_any_host, allow, 0);
}

static void change_listener(uint32_t on, uint64_t size)
{
	if (on)
		world_listen(listen_uri);
	else
		world_unlisten(listen_uri);
}

void world_listen_soon(const char *uri)
{
	listen_uri = uri;
	call_soon(change_listener, true, 0);
}

void world_unlisten_soon(const char *uri)
{
	listen_uri = uri;
	call_soon(change_listener, false, 0);
}

void world_stop(void)
{
	call_soon(stop_target, 0, 0);
}

/* --- buffers ---------------------------------------------------------------------------------- */

/* The bottom of the stack of free buffers is out of the pool's sight. */

/* NULL: such buffers are too large for them. */
static struct weft_pool *anon_pool_at(unsigned index)
{
	struct weft_poll_group *group = target->poll_groups[index / POOLS_ANON];
	struct weft_bufs *bufs = index / WEFT_BUFS_CLASSES % 2 ? &group->anon_out : &group->anon_in;

	index %= WEFT_BUFS_CLASSES;
	return (int)index < bufs->classes ? &bufs->pools[index] : NULL;
}

static struct weft_pool *pool_at(unsigned index)
{
	struct weft_poll_group *group;

	if (index >= POOLS_HOSTS)
		return anon_pool_at(index - POOLS_HOSTS);
	group = target->poll_groups[index / POOLS_EACH];
	index %= POOLS_EACH;
	if (index < WEFT_BUFS_CLASSES)
		return &group->in.pools[index];
	if (index < 2 * WEFT_BUFS_CLASSES)
		return &group->out.pools[index - WEFT_BUFS_CLASSES];
	return NULL;
}

/* The group whose spare chunks are meant; NULL: buffers are. */
static struct weft_poll_group *chunks_at(unsigned index)
{
	bool is_chunks = index < POOLS_HOSTS && index % POOLS_EACH == POOLS_EACH - 1;

	return is_chunks ? target->poll_groups[index / POOLS_EACH] : NULL;
}

/* A connection has its own chunk in any case. */
static void starve_chunks(struct weft_poll_group *group, unsigned index, unsigned leave)
{
	uint32_t *spare = &tcp_poll_group_of(group)->spare_chunks;
	uint32_t left = TCP_SPARE_CHUNKS - *spare, n = left > leave ? left - leave : 0;

	*spare += n;
	hidden[index] += n;
}

static void feed_chunks(struct weft_poll_group *group, unsigned index)
{
	hidden[index]--;
	tcp_poll_group_of(group)->spare_chunks--;
	if (tcp_has_chunk_waiters(group))
		weft_reactor_defer(group->reactor, &group->serve_waiters);
}

void world_starve(unsigned index, unsigned leave)
{
	struct weft_pool *pool;
	uint32_t n;

	index %= POOLS;
	if (!target || stopping || taking)
		return;
	if (chunks_at(index)) {
		starve_chunks(chunks_at(index), index, leave);
		return;
	}
	pool = pool_at(index);
	if (!pool)
		return;
	n = pool->nfree > leave ? pool->nfree - leave : 0;
	pool->free += n;
	pool->nfree -= n;
	hidden[index] += n;
}

void world_feed(unsigned index)
{
	struct weft_pool *pool;

	index %= POOLS;
	if (!hidden[index])
		return;
	if (chunks_at(index)) {
		feed_chunks(chunks_at(index), index);
		return;
	}
	pool = pool_at(index);
	hidden[index]--;
	pool->free--;
	pool->nfree++;
	if (weft_pool_wanted(pool))
		pool->wake(pool->wake_arg);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* A target that is to freeze, and a preempted host's commands, are looked at now and then. */
bool world_waits_for_time(void)
{
	bool waits = taking;

	for (unsigned i = 0; i < SUBSYSTEMS; i++)
		waits |= subsystems[i] && !tgt_resv_is_idle(subsystems[i]);
	return waits;
}

bool world_relieve(void)
{
	bool busy = false;

	for (unsigned i = 0; i < POOLS; i++)
		busy |= hidden[i] != 0;
	feed_all();
	slow_refuse(0);
	for (; slow_end(1000, 0); busy = true)
		world_turn(1);
	if (world_waits_for_time()) {
		world_advance(ROUND_MS);
		busy = true;
	}
	busy |= went_on;
	went_on = false;
	return busy;
}

static bool is_empty(void)
{
	for (unsigned i = 0; target && i < WORLD_GROUPS; i++)
		if (atomic_load(&target->poll_groups[i]->nqpairs))
			return false;
	return true;
}

static void check_ns(const struct plan *plan)
{
	struct weft_subsys *s = subsystems[plan->subsys];
	struct tgt_ns *ns = s ? tgt_ns_find(s, plan->nsid) : NULL;

	if (!ns)
		return;
	must(tgt_ns_quiesce_idle(ns));
	for (unsigned i = 0; i < WORLD_GROUPS; i++)
		must(weft_list_empty(&ns->local[i].waiting) && !ns->local[i].barrier);
}

static void check_group(const struct weft_poll_group *group)
{
	const struct weft_preconnect *unknown = &group->preconnect;

	must(weft_list_empty(&group->qpairs) && !group->frozen);
	must(weft_list_empty(&unknown->qpairs) && !atomic_load(&unknown->now) &&
	     !weft_addr_counts_max(&unknown->counts));
	for (unsigned i = 0; i < WEFT_TRANSPORTS_MAX; i++)
		must(!group->slots[i].reserved);
}

static void check_pool(const struct weft_pool *pool)
{
	must(!pool || (pool->nfree == pool->count && !weft_pool_wanted(pool)));
}

static void check_target(void)
{
	must(!target->nqueues && !count_ctrls());
	must(!target->ndiscovery && !target->nevicting &&
	     !weft_addr_counts_max(&target->anonymous));
	must(weft_list_empty(&target->drain_waits) && !target->teardowns &&
	     target->freeze_state == TGT_SERVING);
	for (unsigned i = 0; i < WORLD_GROUPS; i++)
		check_group(target->poll_groups[i]);
	for (unsigned i = 0; i < POOLS; i++)
		check_pool(pool_at(i));
	for (unsigned i = 0; i < PLANS; i++)
		check_ns(&plans[i]);
}

/* What was resized is made anew, what was written is zeroed. */
static void renew_ns(const struct plan *plan)
{
	struct weft_subsys *s = subsystems[plan->subsys];
	struct tgt_ns *ns = s ? tgt_ns_find(s, plan->nsid) : NULL;

	if (!ns)
		return;
	if (ns->be->size != plan->size)
		remove_ns(plan->nsid, 0);
	else if (!plan->spec)
		slow_clear(ns->be);
	else if (ns->be->ops->map)
		memset(ns->be->ops->map(ns->be, 0), 0, ns->be->size);
}

static void renew_target(void)
{
	for (unsigned i = 0; i < PLANS; i++)
		renew_ns(&plans[i]);
	world_turn(pending ? 8 : 0);
	must(!pending);
}

static void wait_for_end(void)
{
	for (unsigned i = 0; i < TURNS_MAX && (pending || !is_empty()); i++) {
		world_relieve();
		world_turn(1);
		world_advance(ROUND_MS);
	}
	must(!pending);
	must(is_empty());
	world_turn(4);
}

void world_end(void)
{
	wait_for_end();
	if (target && target->depth_max != DEPTH_MAX) {
		check_target();
		stop_target(0, 0);
		wait_for_end();
	}
	if (target) {
		check_target();
		renew_target();
	}
	restore_target();
}
