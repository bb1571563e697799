/* cluster.c - one member's part: serve the groups that are ours, hand over, take what is nobody's.
 *
 *   moved, gone, asked ─▶ act ─▶ not served as the table says? ─▶ ANA change, which waits for I/O ─┐
 *                          ▲  └▶ the table is to move on? ─▶ commit ──────────────────────────────┤
 *                          └──────────────────────────────────────────────────────────────────────┘
 *
 * Invariant: what is served here is, by the newest copy of the table, ours; one thing at a time. */
#include "target/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/resv/resv.h"

enum {
	FAILED_MS = 1000,
	HEIR_MS = 3000, /* on another machine it learns within a second that it is one */
};

static const char key[] = "owners";

static void act(struct tgt_cluster *c);

/* --- the table -------------------------------------------------------------------------------- */

static void tell_draining(struct tgt_cluster *c, struct owners *o)
{
	uint64_t bit = 1ull << (c->view.self - 1);

	o->draining = c->draining ? o->draining | bit : o->draining & ~bit;
}

static int load(struct tgt_cluster *c)
{
	struct weft_store *store = c->subsys->store;
	const struct weft_record *record = weft_store_get(store, key);

	c->revision = weft_store_revision(store);
	c->version = record ? record->version : 0;
	c->view.alive = 0;
	for (unsigned node = 1; node <= c->view.nodes; node++)
		c->view.alive |= (uint64_t)weft_store_alive(store, node) << (node - 1);
	return owners_decode(&c->owners, record ? record->value : NULL, record ? record->len : 0);
}

static void again_in(struct tgt_cluster *c, uint64_t ms)
{
	weft_timer_set(c->subsys->target->home, &c->timer, ms);
}

static void go_on(struct tgt_cluster *c)
{
	c->busy = false;
	act(c);
}

static void committed(struct weft_txn *txn, int rc)
{
	struct tgt_cluster *c = container_of(txn, struct tgt_cluster, txn);

	if (rc == -ECANCELED || rc == -EOWNERDEAD) { /* the end; we are no member */
		c->busy = false;
		return;
	}
	if (rc == 0 || rc == -ESTALE) {
		go_on(c);
		return;
	}
	weft_error("%s: %s cannot be changed in its state: %s; trying again", c->subsys->nqn,
		   c->next.key, strerror(-rc));
	c->busy = false;
	again_in(c, FAILED_MS);
}

/* By whose absence the table was worked out: what they had may be taken, unless one is back. */
static uint64_t gone_nodes(const struct tgt_cluster *c)
{
	uint64_t all = c->view.nodes < 64 ? (1ull << c->view.nodes) - 1 : ~0ull;

	return all & ~c->view.alive;
}

/* Writes c->next. */
static void commit(struct tgt_cluster *c)
{
	struct tgt_cluster_write *next = &c->next;

	c->write = (struct weft_store_write){ next->key, next->version, next->bytes, next->len };
	c->txn = (struct weft_txn){ &c->write, 1, committed, gone_nodes(c) };
	c->busy = true;
	weft_store_commit(c->subsys->store, &c->txn);
}

static void commit_owners(struct tgt_cluster *c, const struct owners *o)
{
	strcpy(c->next.key, key);
	c->next.version = c->version;
	c->next.len = OWNERS_RECORD;
	owners_encode(o, (uint8_t *)c->next.bytes);
	commit(c);
}

/* --- serving ---------------------------------------------------------------------------------- */

static void tell_change(struct tgt_cluster *c, const bool *was, const bool *is)
{
	bool used[WEFT_ANA_GROUP_MAX];

	tgt_cluster_find_used(c->subsys, used);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (used[i] && was[i] != is[i])
			weft_info("%s: group %u is %s", c->subsys->nqn, i + 1,
				  is[i] ? "served elsewhere" : "served here");
}

static void own_done(void *arg, int rc, const struct weft_err *err)
{
	struct tgt_cluster *c = arg;

	(void)err;
	if (rc < 0) {
		c->busy = false;
		again_in(c, FAILED_MS);
	} else {
		go_on(c);
	}
}

/* True: it is served as the table says. */
static bool serve(struct tgt_cluster *c)
{
	const bool *was = c->subsys->ana.rules->elsewhere;
	bool elsewhere[WEFT_ANA_GROUP_MAX];

	owners_elsewhere(&c->owners, c->view.self, elsewhere);
	if (!memcmp(was, elsewhere, sizeof(elsewhere)))
		return true;
	tell_change(c, was, elsewhere);
	c->busy = true;
	if (tgt_ana_own(c->subsys, elsewhere, own_done, c) < 0)
		own_done(c, -ENOMEM, NULL);
	return false;
}

/* --- acting ----------------------------------------------------------------------------------- */

static uint64_t heir_has_ms(const struct tgt_cluster *c)
{
	uint64_t now = weft_reactor_now_ns(c->subsys->target->home);
	uint64_t had = c->heir_since_ns ? (now - c->heir_since_ns) / 1000000 : 0;

	return had < HEIR_MS ? HEIR_MS - had : 0;
}

/* True: the table moves on. */
static bool move_on(struct tgt_cluster *c, struct owners *next, unsigned *waits)
{
	struct tgt_cluster_storage storage;

	tgt_cluster_look_at_storage(&storage, c->subsys, next);
	c->view.late = !heir_has_ms(c);
	if (owners_step(next, &c->view, tgt_cluster_left_with, &storage, waits))
		return true;
	if (!(*waits & OWNERS_HEIR))
		c->heir_since_ns = 0;
	else if (!c->heir_since_ns)
		c->heir_since_ns = weft_reactor_now_ns(c->subsys->target->home);
	return false;
}

static void look_again(struct tgt_cluster *c, unsigned waits)
{
	if (!(waits & OWNERS_LEFT))
		tgt_cluster_await_no_storage(c);
	if (waits & OWNERS_LEFT)
		again_in(c, tgt_cluster_await_storage(c));
	else if (waits & OWNERS_HEIR && heir_has_ms(c))
		again_in(c, heir_has_ms(c));
}

/* What is to be let go of shows in the table before it is handed over: it is served here until
 * then. */
static void step(struct tgt_cluster *c)
{
	struct owners next = c->owners;
	unsigned waits = 0;

	tgt_cluster_grant_moves(c);
	tell_draining(c, &next);
	tgt_cluster_wish_for(c, &next);
	if (memcmp(&next, &c->owners, sizeof(next)) || move_on(c, &next, &waits)) {
		commit_owners(c, &next);
	} else if (tgt_cluster_ports_differ(c, &c->next) ||
		   tgt_cluster_namespaces_differ(c, &c->next)) {
		commit(c);
	} else {
		look_again(c, waits);
		tgt_cluster_look_at_wishes(c);
	}
}

/* Somebody took us for gone. */
static bool is_taken(struct tgt_cluster *c)
{
	uint32_t group = owners_taken(&c->owners, c->view.self, c->subsys->ana.rules->elsewhere);
	char why[96];

	if (!group)
		return false;
	snprintf(why, sizeof(why), "node %u has taken group %u, which was served here",
		 c->owners.owner[group - 1], group);
	weft_store_lose(c->subsys->store, why);
	return true;
}

static bool may_act(const struct tgt_cluster *c)
{
	return !c->busy && !c->subsys->removing && !c->subsys->target->held &&
	       !weft_store_is_lost(c->subsys->store);
}

static void act(struct tgt_cluster *c)
{
	if (!may_act(c))
		return;
	if (load(c) < 0) {
		weft_error("%s: the table of who serves which group cannot be read",
			   c->subsys->nqn);
		return;
	}
	if (is_taken(c) || (c->started && !serve(c)))
		return;
	tgt_follows(c->subsys, TGT_FOLLOWS_CLUSTER, c->revision);
	if (!c->started)
		return;
	tgt_cluster_look_at_namespaces(c);
	step(c);
}

static void timed(struct weft_timer *timer)
{
	act(container_of(timer, struct tgt_cluster, timer));
}

void tgt_cluster_act(struct weft_subsys *s)
{
	if (s->cluster)
		act(s->cluster);
}

void tgt_cluster_lost(struct weft_subsys *s)
{
	if (!s->cluster)
		return;
	weft_timer_stop(s->target->home, &s->cluster->timer);
	tgt_cluster_drop_wishes(s->cluster, "it is not a member of the cluster any more");
}

void tgt_cluster_let_go(struct weft_subsys *s)
{
	if (!s->cluster)
		return;
	act(s->cluster);
	tgt_cluster_look_at_resets(s);
}

void tgt_cluster_moved(struct weft_subsys *s)
{
	if (!s->cluster)
		return;
	tgt_cluster_look_at_ports(s->cluster);
	tgt_cluster_look_at_resets(s);
	act(s->cluster);
}

void weft_subsys_start(struct weft_subsys *s)
{
	tgt_resv_sweep(s);
	if (!s->cluster)
		return;
	s->cluster->started = true;
	act(s->cluster);
}

bool tgt_cluster_is_idle(const struct weft_subsys *s)
{
	const struct tgt_cluster *c = s->cluster;

	return !c || (!c->busy && weft_list_empty(&c->wishes) && !c->reset_writing &&
		      weft_list_empty(&c->resets));
}

/* --- looking ---------------------------------------------------------------------------------- */

unsigned weft_subsys_node(const struct weft_subsys *s)
{
	return s->cluster ? s->cluster->view.self : 0;
}

unsigned tgt_cluster_nodes(const struct weft_subsys *s)
{
	return s->cluster->view.nodes;
}

void tgt_cluster_member(struct weft_subsys *s, unsigned node, struct weft_member_info *info)
{
	const struct owners *o = &s->cluster->owners;
	bool used[WEFT_ANA_GROUP_MAX];

	tgt_cluster_find_used(s, used);
	*info = (struct weft_member_info){
		.node = node,
		.alive = weft_store_alive(s->store, node),
		.draining = o->draining >> (node - 1) & 1,
	};
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		info->serves[i] = used[i] && o->owner[i] == node;
	memcpy(info->lacks, s->cluster->lacks[node].has, sizeof(info->lacks));
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

	if (options->nodes <= 1) {
		s->follows[TGT_FOLLOWS_CLUSTER] = UINT64_MAX;
		return 0;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->subsys = s;
	c->view.self = options->node;
	c->view.nodes = options->nodes;
	c->timer.fn = timed;
	weft_list_init(&c->wishes);
	tgt_cluster_resets_init(c);
	memset(s->ana.rules->elsewhere, true, sizeof(s->ana.rules->elsewhere));
	s->cluster = c;
	return 0;
}
static_assert(WEFT_NODES_MAX == WEFT_STORE_NODES_MAX, "a node is a member of the store");

void tgt_cluster_free(struct weft_subsys *s)
{
	struct tgt_cluster *c = s->cluster;

	if (!c)
		return;
	weft_timer_stop(s->target->home, &c->timer);
	weft_timer_stop(s->target->home, &c->reset_timer);
	tgt_cluster_drop_wishes(c, "the subsystem is being removed");
	free(c);
	s->cluster = NULL;
}
