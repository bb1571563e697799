/* wish.c - groups that somebody wants elsewhere: a drain, a move.
 *
 *   wish ─▶ into the table, as "next" ─▶ the owner lets go ─▶ as wished ─▶ all act by it ─▶ answered */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/cluster/cluster.h"

/* Who asked for groups to be elsewhere, and waits. */
struct wish {
	struct weft_list link;
	struct tgt_cluster *cluster;
	struct weft_store_wait wait; /* granted; until all act by it */
	bool granted, drain;
	uint8_t node; /* where they are to go; a drain: from */
	bool groups[WEFT_ANA_GROUP_MAX];
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
};

static bool is_as_wished(const struct tgt_cluster *c, const struct wish *wish)
{
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++) {
		bool there = c->owners.owner[i] == wish->node &&
			     !(wish->drain && c->owners.next[i]);

		if (wish->groups[i] && there == wish->drain)
			return false;
	}
	return true;
}

static bool takes_none(const struct tgt_cluster *c, unsigned node)
{
	return !weft_store_alive(c->subsys->store, node) || c->owners.draining >> (node - 1) & 1;
}

/* Nobody is there to take them, or to bring them to. */
static bool is_hopeless(const struct tgt_cluster *c, const struct wish *wish)
{
	if (!wish->drain)
		return takes_none(c, wish->node);
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (wish->groups[i] && c->owners.owner[i] == wish->node && !c->owners.next[i] &&
		    !owners_heir(&c->owners, &c->view, i + 1))
			return true;
	return false;
}

static void end_wish(struct wish *wish, int rc, const char *why)
{
	struct weft_err err = { "" };

	weft_list_remove(&wish->link);
	if (wish->granted)
		weft_store_forget(&wish->wait);
	if (rc < 0)
		weft_fail(&err, rc, "%s", why);
	wish->done(wish->arg, rc, &err);
	free(wish);
}

static void settled(struct weft_store_wait *wait, int rc)
{
	end_wish(container_of(wait, struct wish, wait), rc, "the subsystem is being removed");
}

static void grant_wish(struct wish *wish)
{
	wish->granted = true;
	wish->wait = (struct weft_store_wait){ .revision = wish->cluster->version,
					       .done = settled };
	weft_store_settle(wish->cluster->subsys->store, &wish->wait);
}

static bool others_live(const struct tgt_cluster *c)
{
	for (unsigned node = 1; node <= c->view.nodes; node++)
		if (node != c->view.self && weft_store_alive(c->subsys->store, node))
			return true;
	return false;
}

static void end_move(struct tgt_cluster *c, struct wish *wish)
{
	char why[128];

	if (weft_store_alive(c->subsys->store, wish->node))
		snprintf(why, sizeof(why),
			 "node %u is drained, and takes none; undrain, called there, ends that",
			 wish->node);
	else
		snprintf(why, sizeof(why), "node %u is not there: no target runs as that member",
			 wish->node);
	end_wish(wish, -EHOSTDOWN, why);
}

/* What could not be done is not left half done. */
static void give_up(struct tgt_cluster *c, struct wish *wish)
{
	if (wish->drain) {
		c->draining = false;
		weft_timer_set(c->subsys->target->home, &c->timer, 0);
		end_wish(wish, -EHOSTDOWN,
			 others_live(c) ? "all other members that are there are drained, and take "
					  "none; undrain one of them first" :
					  "no other member is there to take over");
	} else {
		end_move(c, wish);
	}
}

void tgt_cluster_grant_moves(struct tgt_cluster *c)
{
	struct wish *wish;

	weft_list_for_each(wish, &c->wishes, link)
		if (!wish->drain && !wish->granted && is_as_wished(c, wish))
			grant_wish(wish);
}

void tgt_cluster_look_at_wishes(struct tgt_cluster *c)
{
	struct wish *wish, *tmp;

	weft_list_for_each_safe(wish, tmp, &c->wishes, link) {
		if (wish->granted)
			continue;
		if (is_as_wished(c, wish))
			grant_wish(wish);
		else if (is_hopeless(c, wish))
			give_up(c, wish);
	}
}

/* A group that nobody has goes to its heir, which "next" chooses. */
void tgt_cluster_wish_for(struct tgt_cluster *c, struct owners *o)
{
	struct wish *wish;

	weft_list_for_each(wish, &c->wishes, link) {
		if (wish->drain || wish->granted || is_hopeless(c, wish))
			continue;
		for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
			if (wish->groups[i] && o->owner[i] != wish->node)
				o->next[i] = wish->node;
	}
}

static struct wish *wish_new(struct tgt_cluster *c, uint32_t group,
			     void (*done)(void *arg, int rc, const struct weft_err *err), void *arg)
{
	struct wish *wish = calloc(1, sizeof(*wish));

	if (!wish)
		return NULL;
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		wish->groups[i] = !group || i + 1 == group;
	wish->cluster = c;
	wish->done = done;
	wish->arg = arg;
	weft_list_push(&c->wishes, &wish->link);
	return wish;
}

/* What has not begun to go never will. */
static void drop_drains(struct tgt_cluster *c)
{
	struct wish *wish, *tmp;

	weft_list_for_each_safe(wish, tmp, &c->wishes, link)
		if (wish->drain && !wish->granted)
			end_wish(wish, -ECANCELED, "an undrain came before it was over");
}

static int need_cluster(struct weft_subsys *s, struct weft_err *err)
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
	struct wish *wish;
	int rc = need_cluster(s, err);

	if (rc < 0)
		return rc;
	if (!drain)
		drop_drains(s->cluster);
	wish = wish_new(s->cluster, 0, done, arg);
	if (!wish)
		return weft_fail(err, -ENOMEM, "out of memory");
	wish->drain = true;
	wish->node = (uint8_t)s->cluster->view.self;
	if (!drain) /* nothing is asked of any group */
		memset(wish->groups, 0, sizeof(wish->groups));
	s->cluster->draining = drain;
	tgt_cluster_act(s);
	return 0;
}

int weft_cluster_move(struct weft_subsys *s, uint32_t group, unsigned node,
		      void (*done)(void *arg, int rc, const struct weft_err *err), void *arg,
		      struct weft_err *err)
{
	struct wish *wish;
	int rc = need_cluster(s, err);

	if (rc < 0)
		return rc;
	if (!node || node > s->cluster->view.nodes)
		return weft_fail(err, -EINVAL, "node %u: the cluster of %s has %u nodes", node,
				 s->nqn, s->cluster->view.nodes);
	wish = wish_new(s->cluster, group, done, arg);
	if (!wish)
		return weft_fail(err, -ENOMEM, "out of memory");
	wish->node = (uint8_t)node;
	tgt_cluster_act(s);
	return 0;
}

void tgt_cluster_drop_wishes(struct tgt_cluster *c, const char *why)
{
	while (!weft_list_empty(&c->wishes))
		end_wish(container_of(c->wishes.next, struct wish, link), -ECANCELED, why);
}
