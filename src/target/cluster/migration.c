/* migration.c - migration requests: drain (all groups away from here) and move (some groups to a
 * node).
 *
 *   request ─▶ "next" in the table ─▶ the owner releases the group ─▶ the new owner is in the table
 *       ─▶ settled: all members act by it ─▶ answered */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/cluster/cluster.h"

/* A request to move groups, and who waits for it. */
struct migration {
	struct weft_list link;
	struct tgt_cluster *cluster;
	struct weft_store_wait wait; /* when granted: until all members act by it */
	bool complete, drain;
	uint8_t node; /* where the groups are to go; a drain: from where */
	bool groups[WEFT_ANA_GROUP_MAX];
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
};

static bool migration_is_complete(const struct tgt_cluster *c, const struct migration *migration)
{
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++) {
		bool there = c->owners.owner[i] == migration->node &&
			     !(migration->drain && c->owners.next[i]);

		if (migration->groups[i] && there == migration->drain)
			return false;
	}
	return true;
}

static bool node_takes_none(const struct tgt_cluster *c, unsigned node)
{
	assert(node && node <= c->view.nodes);
	return !weft_store_alive(c->subsys->store, node) || c->owners.draining >> (node - 1) & 1;
}

/* No member is there to take the groups. */
static bool migration_is_impossible(const struct tgt_cluster *c, const struct migration *migration)
{
	if (!migration->drain)
		return node_takes_none(c, migration->node);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (migration->groups[i] && c->owners.owner[i] == migration->node &&
		    !c->owners.next[i] && !owners_successor(&c->owners, &c->view, i + 1))
			return true;
	return false;
}

static void migration_end(struct migration *migration, int rc, const char *why)
{
	struct weft_err err = { "" };

	assert_on_control(migration->cluster->subsys->target);
	weft_list_remove(&migration->link);
	if (migration->complete)
		weft_store_wait_cancel(&migration->wait);
	if (rc < 0)
		weft_fail(&err, rc, "%s", why);
	migration->done(migration->arg, rc, &err);
	free(migration);
}

static void migration_settled(struct weft_store_wait *wait, int rc)
{
	struct migration *migration = container_of(wait, struct migration, wait);

	assert(migration->complete);
	migration_end(migration, rc, "the subsystem is being removed");
}

static void migration_wait_settled(struct migration *migration)
{
	assert(!migration->complete);
	migration->complete = true;
	migration->wait = (struct weft_store_wait){ .revision = migration->cluster->version,
						    .done = migration_settled };
	weft_store_wait_settled(migration->cluster->subsys->store, &migration->wait);
}

static bool others_live(const struct tgt_cluster *c)
{
	for (unsigned node = 1; node <= c->view.nodes; node++)
		if (node != c->view.self && weft_store_alive(c->subsys->store, node))
			return true;
	return false;
}

static void migration_fail_move(struct tgt_cluster *c, struct migration *migration)
{
	char why[128];

	if (weft_store_alive(c->subsys->store, migration->node))
		snprintf(why, sizeof(why),
			 "node %u is drained, and takes none; undrain, called there, ends that",
			 migration->node);
	else
		snprintf(why, sizeof(why), "node %u is not there: no target runs as that member",
			 migration->node);
	migration_end(migration, -EHOSTDOWN, why);
}

/* Takes a request that cannot be fulfilled out of the table again. */
static void migration_give_up(struct tgt_cluster *c, struct migration *migration)
{
	assert(!migration->complete);
	if (migration->drain) {
		c->draining = false;
		weft_timer_set(c->subsys->target->control, &c->timer, 0);
		migration_end(migration, -EHOSTDOWN,
			      others_live(c) ?
				      "all other members that are there are drained, and take "
				      "none; undrain one of them first" :
				      "no other member is there to take over");
	} else {
		migration_fail_move(c, migration);
	}
}

void tgt_cluster_complete_moves(struct tgt_cluster *c)
{
	struct migration *migration;

	assert_on_control(c->subsys->target);
	weft_list_for_each(migration, &c->migrations, link)
		if (!migration->drain && !migration->complete &&
		    migration_is_complete(c, migration))
			migration_wait_settled(migration);
}

void tgt_cluster_check_migrations(struct tgt_cluster *c)
{
	struct migration *migration, *tmp;

	assert_on_control(c->subsys->target);
	weft_list_for_each_safe(migration, tmp, &c->migrations, link) {
		if (migration->complete)
			continue;
		if (migration_is_complete(c, migration))
			migration_wait_settled(migration);
		else if (migration_is_impossible(c, migration))
			migration_give_up(c, migration);
	}
}

/* A group without an owner goes to its successor, which "next" chooses. */
void tgt_cluster_apply_migrations(struct tgt_cluster *c, struct owners *o)
{
	struct migration *migration;

	assert_on_control(c->subsys->target);
	weft_list_for_each(migration, &c->migrations, link) {
		if (migration->drain || migration->complete ||
		    migration_is_impossible(c, migration))
			continue;
		for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
			if (migration->groups[i] && o->owner[i] != migration->node)
				o->next[i] = migration->node;
	}
}

static struct migration *migration_new(struct tgt_cluster *c, uint32_t group,
				       void (*done)(void *arg, int rc, const struct weft_err *err),
				       void *arg)
{
	struct migration *migration = calloc(1, sizeof(*migration));

	if (!migration)
		return NULL;
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		migration->groups[i] = !group || i + 1 == group;
	migration->cluster = c;
	migration->done = done;
	migration->arg = arg;
	weft_list_push(&c->migrations, &migration->link);
	return migration;
}

/* Groups whose move has not begun stay. */
static void cancel_drains(struct tgt_cluster *c)
{
	struct migration *migration, *tmp;

	weft_list_for_each_safe(migration, tmp, &c->migrations, link)
		if (migration->drain && !migration->complete)
			migration_end(migration, -ECANCELED, "an undrain came before it was over");
}

static int require_cluster(struct weft_subsys *s, struct weft_err *err)
{
	if (s->cluster && weft_store_is_lost(s->store))
		return weft_fail(err, -EOWNERDEAD,
				 "%s: this target is not a member of its cluster any more; start it "
				 "again",
				 s->nqn);
	if (s->cluster)
		return 0;
	return weft_fail(err, -EOPNOTSUPP,
			 "%s is served by this target alone; see \"cluster\" in "
			 "weft.yaml(5)",
			 s->nqn);
}

int weft_cluster_drain(struct weft_subsys *s, bool drain,
		       void (*done)(void *arg, int rc, const struct weft_err *err), void *arg,
		       struct weft_err *err)
{
	struct migration *migration;
	int rc = require_cluster(s, err);

	assert_on_control(s->target);
	if (rc < 0)
		return rc;
	if (!drain)
		cancel_drains(s->cluster);
	migration = migration_new(s->cluster, 0, done, arg);
	if (!migration)
		return weft_fail(err, -ENOMEM, "out of memory");
	migration->drain = true;
	migration->node = (uint8_t)s->cluster->view.self;
	if (!drain) /* it asks nothing of any group */
		memset(migration->groups, 0, sizeof(migration->groups));
	s->cluster->draining = drain;
	tgt_cluster_reconcile(s);
	return 0;
}

int weft_cluster_move(struct weft_subsys *s, uint32_t group, unsigned node,
		      void (*done)(void *arg, int rc, const struct weft_err *err), void *arg,
		      struct weft_err *err)
{
	struct migration *migration;
	int rc = require_cluster(s, err);

	assert_on_control(s->target);
	if (rc < 0)
		return rc;
	if (!node || node > s->cluster->view.nodes)
		return weft_fail(err, -EINVAL, "node %u: the cluster of %s has %u nodes", node,
				 s->nqn, s->cluster->view.nodes);
	migration = migration_new(s->cluster, group, done, arg);
	if (!migration)
		return weft_fail(err, -ENOMEM, "out of memory");
	migration->node = (uint8_t)node;
	tgt_cluster_reconcile(s);
	return 0;
}

void tgt_cluster_cancel_migrations(struct tgt_cluster *c, const char *why)
{
	assert_on_control(c->subsys->target);
	while (!weft_list_empty(&c->migrations))
		migration_end(container_of(c->migrations.next, struct migration, link), -ECANCELED,
			      why);
}
