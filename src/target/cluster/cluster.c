/* cluster.c - one member of a cluster: serve the ANA groups that it owns, release what others
 * should own, claim what nobody owns.
 *
 *   the store changed, a node is gone, a request came ─▶ reconcile
 *       ├─ served groups differ from the table ─▶ ANA change, which drains I/O ─▶ reconcile
 *       ├─ the table can advance ─▶ commit ─▶ reconcile
 *       └─ nothing to do ─▶ complete migration requests
 *
 * Invariant: every group that is served here is ours in the newest copy of the table. One ANA
 * change or commit is under way at a time. */
#include "target/cluster/cluster.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/resv/resv.h"

enum {
	COMMIT_RETRY_MS = 1000,
	SUCCESSOR_MS =
		3000, /* on another machine it learns within a second that it is the successor */
};

static const char key[] = "owners";

static void cluster_reconcile(struct tgt_cluster *c);

/* --- the owner table -------------------------------------------------------------------------- */

static void set_draining_bit(struct tgt_cluster *c, struct owners *o)
{
	uint64_t bit = 1ull << (c->view.self - 1);

	o->draining = c->draining ? o->draining | bit : o->draining & ~bit;
}

static int load_owners(struct tgt_cluster *c)
{
	struct weft_store *store = c->subsys->store;
	const struct weft_store_record *record = weft_store_get(store, key);

	assert(!c->busy); /* what is under way was decided by the copy that it replaces */
	c->revision = weft_store_revision(store);
	c->version = record ? record->version : 0;
	c->view.alive = 0;
	for (unsigned node = 1; node <= c->view.nodes; node++)
		c->view.alive |= (uint64_t)weft_store_alive(store, node) << (node - 1);
	return owners_decode(&c->owners, record ? record->value : NULL, record ? record->len : 0);
}

static void cluster_reconcile_in(struct tgt_cluster *c, uint64_t ms)
{
	weft_timer_set(c->subsys->target->control, &c->timer, ms);
}

static void cluster_reconcile_next(struct tgt_cluster *c)
{
	assert(c->busy);
	c->busy = false;
	cluster_reconcile(c);
}

static void record_committed(struct weft_store_txn *txn, int rc)
{
	struct tgt_cluster *c = container_of(txn, struct tgt_cluster, txn);

	assert(c->busy);
	if (rc == -ECANCELED || rc == -EOWNERDEAD) { /* the store closes, or we are no member */
		c->busy = false;
		return;
	}
	if (rc == 0 || rc == -ESTALE) {
		cluster_reconcile_next(c);
		return;
	}
	weft_error("%s: %s cannot be changed in its state: %s; trying again", c->subsys->nqn,
		   c->next.key, strerror(-rc));
	c->busy = false;
	cluster_reconcile_in(c, COMMIT_RETRY_MS);
}

/* Members that were absent when the table was computed: their groups may be claimed, unless one is
 * back. */
static uint64_t gone_nodes(const struct tgt_cluster *c)
{
	uint64_t all = c->view.nodes < 64 ? (1ull << c->view.nodes) - 1 : ~0ull;

	return all & ~c->view.alive;
}

/* Writes c->next. */
static void commit_record(struct tgt_cluster *c)
{
	struct tgt_cluster_write *next = &c->next;

	assert(!c->busy && next->len <= sizeof(next->bytes));
	c->write = (struct weft_store_write){ next->key, next->version, next->bytes, next->len };
	c->txn = (struct weft_store_txn){ &c->write, 1, record_committed, gone_nodes(c) };
	c->busy = true;
	weft_store_commit(c->subsys->store, &c->txn);
}

static void commit_owners(struct tgt_cluster *c, const struct owners *o)
{
	/* What is served is a part of what is owned, also by the new table. */
	assert(!owners_lost_group(o, &c->view, c->subsys->ana.rules->elsewhere));
	strcpy(c->next.key, key);
	c->next.version = c->version;
	c->next.len = OWNERS_RECORD;
	owners_encode(o, (uint8_t *)c->next.bytes);
	commit_record(c);
}

/* --- served groups ---------------------------------------------------------------------------- */

static void log_served_change(struct tgt_cluster *c, const bool *was, const bool *is)
{
	bool used[WEFT_ANA_GROUP_MAX];

	tgt_cluster_used_groups(c->subsys, used);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (used[i] && was[i] != is[i])
			weft_info("%s: group %u is %s", c->subsys->nqn, i + 1,
				  is[i] ? "served elsewhere" : "served here");
}

static void served_groups_set(void *arg, int rc, const struct weft_err *err)
{
	struct tgt_cluster *c = arg;

	(void)err;
	assert(c->busy);
	if (rc < 0) {
		c->busy = false;
		cluster_reconcile_in(c, COMMIT_RETRY_MS);
	} else {
		cluster_reconcile_next(c);
	}
}

/* True: groups are served as the table says. */
static bool apply_ownership(struct tgt_cluster *c)
{
	const bool *was = c->subsys->ana.rules->elsewhere;
	bool elsewhere[WEFT_ANA_GROUP_MAX];

	assert(!c->busy && c->started);
	owners_not_ours(&c->owners, &c->view, elsewhere);
	if (!memcmp(was, elsewhere, sizeof(elsewhere)))
		return true;
	log_served_change(c, was, elsewhere);
	c->busy = true;
	if (tgt_ana_set_served_groups(c->subsys, elsewhere, served_groups_set, c) < 0)
		served_groups_set(c, -ENOMEM, NULL);
	return false;
}

/* --- reconcile -------------------------------------------------------------------------------- */

static uint64_t successor_left_ms(const struct tgt_cluster *c)
{
	uint64_t now = weft_reactor_now_ns(c->subsys->target->control);
	uint64_t had = c->successor_since_ns ? (now - c->successor_since_ns) / 1000000 : 0;

	return had < SUCCESSOR_MS ? SUCCESSOR_MS - had : 0;
}

/* True: the table has changed. */
static bool advance_owners(struct tgt_cluster *c, struct owners *next, unsigned *waits)
{
	struct tgt_cluster_storage storage;

	tgt_cluster_scan_storage(&storage, c->subsys, next);
	c->view.successor_late = !successor_left_ms(c);
	if (owners_advance(next, &c->view, tgt_cluster_group_has_residual_io, &storage, waits))
		return true;
	if (!(*waits & OWNERS_WAIT_SUCCESSOR))
		c->successor_since_ns = 0;
	else if (!c->successor_since_ns)
		c->successor_since_ns = weft_reactor_now_ns(c->subsys->target->control);
	return false;
}

static void schedule_recheck(struct tgt_cluster *c, unsigned waits)
{
	if (!(waits & OWNERS_WAIT_STORAGE))
		tgt_cluster_residual_wait_end(c);
	if (waits & OWNERS_WAIT_STORAGE)
		cluster_reconcile_in(c, tgt_cluster_residual_wait_ms(c));
	else if (waits & OWNERS_WAIT_SUCCESSOR && successor_left_ms(c))
		cluster_reconcile_in(c, successor_left_ms(c));
}

static bool serves_what_it_owns(const struct tgt_cluster *c)
{
	bool elsewhere[WEFT_ANA_GROUP_MAX];

	owners_not_ours(&c->owners, &c->view, elsewhere);
	return !memcmp(c->subsys->ana.rules->elsewhere, elsewhere, sizeof(elsewhere));
}

/* A group that is to go is committed as LEAVING first. It is handed over by a later commit, when
 * it is not served here any more. */
static void advance_table(struct tgt_cluster *c)
{
	struct owners next = c->owners;
	unsigned waits = 0;

	assert(serves_what_it_owns(c));
	tgt_cluster_complete_moves(c);
	set_draining_bit(c, &next);
	tgt_cluster_apply_migrations(c, &next);
	if (memcmp(&next, &c->owners, sizeof(next)) || advance_owners(c, &next, &waits)) {
		commit_owners(c, &next);
	} else if (tgt_cluster_ports_record_is_stale(c, &c->next) ||
		   tgt_cluster_namespaces_record_is_stale(c, &c->next)) {
		commit_record(c);
	} else {
		schedule_recheck(c, waits);
		tgt_cluster_check_migrations(c);
	}
}

/* Another member has taken a group that we serve: it took us for gone. */
static bool check_group_lost(struct tgt_cluster *c)
{
	uint32_t group = owners_lost_group(&c->owners, &c->view, c->subsys->ana.rules->elsewhere);
	char why[96];

	if (!group)
		return false;
	snprintf(why, sizeof(why), "node %u has taken group %u, which was served here",
		 c->owners.owner[group - 1], group);
	weft_store_set_lost(c->subsys->store, why);
	return true;
}

static bool may_reconcile(const struct tgt_cluster *c)
{
	return !c->busy && !c->subsys->removing && !tgt_store_is_frozen(c->subsys->target) &&
	       !weft_store_is_lost(c->subsys->store);
}

static void cluster_reconcile(struct tgt_cluster *c)
{
	if (!may_reconcile(c))
		return;
	if (load_owners(c) < 0) {
		weft_error("%s: the table of who serves which group cannot be read",
			   c->subsys->nqn);
		return;
	}
	if (check_group_lost(c) || (c->started && !apply_ownership(c)))
		return;
	tgt_store_consumed(c->subsys, TGT_CONSUMER_CLUSTER, c->revision);
	if (!c->started)
		return;
	tgt_cluster_check_namespaces(c);
	advance_table(c);
}

static void cluster_reconcile_on_timer(struct weft_timer *timer)
{
	cluster_reconcile(container_of(timer, struct tgt_cluster, timer));
}

void tgt_cluster_reconcile(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (s->cluster)
		cluster_reconcile(s->cluster);
}

void tgt_cluster_membership_lost(struct weft_subsys *s)
{
	assert_on_control(s->target);
	assert(weft_store_is_lost(s->store));
	if (!s->cluster)
		return;
	weft_timer_stop(s->target->control, &s->cluster->timer);
	tgt_cluster_cancel_migrations(s->cluster, "it is not a member of the cluster any more");
}

void tgt_cluster_storage_released(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (!s->cluster)
		return;
	cluster_reconcile(s->cluster);
	tgt_cluster_ccr_reconcile(s);
}

void tgt_cluster_store_moved(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (!s->cluster)
		return;
	tgt_cluster_check_ports(s->cluster);
	tgt_cluster_ccr_reconcile(s);
	cluster_reconcile(s->cluster);
}

void weft_subsys_start(struct weft_subsys *s)
{
	assert_on_control(s->target);
	tgt_resv_sweep(s);
	if (!s->cluster)
		return;
	assert(!s->cluster->started);
	s->cluster->started = true;
	cluster_reconcile(s->cluster);
}

bool tgt_cluster_is_idle(const struct weft_subsys *s)
{
	const struct tgt_cluster *c = s->cluster;

	assert_on_control(s->target);
	return !c || (!c->busy && weft_list_empty(&c->migrations) && !c->reset_writing &&
		      weft_list_empty(&c->resets));
}

/* --- describe --------------------------------------------------------------------------------- */

unsigned weft_subsys_node(const struct weft_subsys *s)
{
	return s->cluster ? s->cluster->view.self : 0;
}

unsigned tgt_cluster_nodes(const struct weft_subsys *s)
{
	return s->cluster->view.nodes;
}

void tgt_cluster_member_info(struct weft_subsys *s, unsigned node, struct weft_member_info *info)
{
	const struct owners *o = &s->cluster->owners;
	bool used[WEFT_ANA_GROUP_MAX];

	assert_on_control(s->target);
	assert(node && node <= WEFT_NODES_MAX);
	tgt_cluster_used_groups(s, used);
	*info = (struct weft_member_info){
		.node = node,
		.alive = weft_store_alive(s->store, node),
		.draining = o->draining >> (node - 1) & 1,
	};
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		info->serves[i] = used[i] && o->owner[i] == node;
	memcpy(info->lacks, s->cluster->lacks[node].has, sizeof(info->lacks));
	tgt_cluster_namespaces_info(s->cluster, info);
}

bool tgt_cluster_group_info(struct weft_subsys *s, uint32_t group, struct weft_group_info *info)
{
	const struct tgt_cluster *c = s->cluster;
	bool used[WEFT_ANA_GROUP_MAX];

	assert_on_control(s->target);
	assert(group - 1 < WEFT_ANA_GROUP_MAX);
	tgt_cluster_used_groups(s, used);
	*info = (struct weft_group_info){
		.group = group,
		.owner = c->owners.owner[group - 1],
		.next = c->owners.next[group - 1],
		.state = owners_group_state_text(owners_group_state(&c->owners, &c->view, group)),
	};
	return used[group - 1];
}

unsigned tgt_cluster_held_by(const struct tgt_ns *ns)
{
	const struct tgt_cluster *c = ns->subsys->cluster;

	return c ? c->held_by[ns->nsid - 1] : 0;
}

/* --- beginning and end ------------------------------------------------------------------------ */

int tgt_cluster_new(struct weft_subsys *s, const struct weft_subsys_options *options)
{
	struct tgt_cluster *c;

	assert(!s->cluster);
	if (options->nodes <= 1) {
		s->consumed[TGT_CONSUMER_CLUSTER] = UINT64_MAX;
		return 0;
	}
	assert(options->node && options->node <= options->nodes);
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->subsys = s;
	c->view.self = options->node;
	c->view.nodes = options->nodes;
	c->timer.fn = cluster_reconcile_on_timer;
	weft_list_init(&c->migrations);
	tgt_cluster_ccr_init(c);
	memset(s->ana.rules->elsewhere, true, sizeof(s->ana.rules->elsewhere));
	s->cluster = c;
	return 0;
}
static_assert(WEFT_NODES_MAX == WEFT_STORE_NODES_MAX, "a node is a member of the store");

void tgt_cluster_free(struct weft_subsys *s)
{
	struct tgt_cluster *c = s->cluster;

	assert_on_control(s->target);
	if (!c)
		return;
	weft_timer_stop(s->target->control, &c->timer);
	weft_timer_stop(s->target->control, &c->reset_timer);
	tgt_cluster_cancel_migrations(c, "the subsystem is being removed");
	assert(!c->busy && !c->reset_writing && weft_list_empty(&c->resets));
	free(c);
	s->cluster = NULL;
}
