/* residual_io.c - residual I/O: what a dead member still has under way with shared storage. Nobody
 * claims its groups before that is over. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "target/cluster/cluster.h"

void tgt_cluster_used_groups(struct weft_subsys *s, bool used[WEFT_ANA_GROUP_MAX])
{
	assert_on_control(s->target);
	memset(used, false, WEFT_ANA_GROUP_MAX);
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++)
		if (tgt_ns_find(s, nsid))
			used[tgt_ns_find(s, nsid)->ana_group - 1] = true;
}

/* The end of residual I/O shows as the close of a file, which is watched. */
static bool backend_has_residual_io(struct weft_subsys *s, struct weft_backend *be, unsigned node)
{
	assert(node && node <= s->cluster->view.nodes);
	if (!be->ops->node_active(be, node))
		return false;
	if (!be->ops->descriptor)
		return true;
	weft_store_watch_file(s->store, be->ops->descriptor(be));
	return be->ops->node_active(be, node);
}

bool tgt_cluster_has_residual_io(struct weft_subsys *s, uint32_t group, unsigned node)
{
	assert_on_control(s->target);
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);

		if (ns && (!group || ns->ana_group == group) &&
		    backend_has_residual_io(s, ns->be, node))
			return true;
	}
	return false;
}

static bool dead_node_has_residual_io(struct weft_subsys *s, struct weft_backend *be)
{
	for (unsigned node = 1; node <= s->cluster->view.nodes; node++)
		if (!weft_store_alive(s->store, node) && backend_has_residual_io(s, be, node))
			return true;
	return false;
}

/* Groups without namespaces are claimed together with those that hosts wait for: to claim them
 * first would delay these by a commit. */
bool tgt_cluster_group_has_residual_io(void *arg, uint32_t group, unsigned node)
{
	const struct tgt_cluster_storage *storage = arg;
	struct weft_subsys *s = storage->subsys;

	if (!storage->used[group - 1])
		return storage->awaited;
	if (node)
		return tgt_cluster_has_residual_io(s, group, node);
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);

		if (ns && ns->ana_group == group && dead_node_has_residual_io(s, ns->be))
			return true;
	}
	return false;
}

/* --- storage that stays held ------------------------------------------------------------------ */

/* I/O of a killed process ends within milliseconds. Storage that is held for longer is held by a
 * living process, or by an operation that hangs. */
enum {
	RESIDUAL_POLL_MS = 1,
	HELD_POLL_MS = 20,
	HELD_WARN_MS = 3000,
};

static unsigned residual_holder(struct weft_subsys *s, struct tgt_ns *ns)
{
	for (unsigned node = 1; node <= s->cluster->view.nodes; node++)
		if (!weft_store_alive(s->store, node) && ns->be->ops->node_active(ns->be, node))
			return node;
	return 0;
}

static void warn_of_holder(struct weft_subsys *s, struct tgt_ns *ns, unsigned node)
{
	weft_warn("%s: namespace %u is not served: another process has %s open as node %u, and no "
		  "such node is a member here. If it is a target that runs, its \"state\" leads to "
		  "another file than %s: give all members the same. If it was killed, its last I/O "
		  "has not ended",
		  s->nqn, ns->nsid, ns->be->spec, node, weft_store_spec(s->store));
}

static void find_held_namespaces(struct tgt_cluster *c)
{
	struct weft_subsys *s = c->subsys;

	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);
		bool served = ns && weft_store_alive(s->store, c->owners.owner[ns->ana_group - 1]);
		unsigned node = ns && !served ? residual_holder(s, ns) : 0;

		if (node && !c->held_by[nsid - 1])
			warn_of_holder(s, ns, node);
		c->held_by[nsid - 1] = (uint8_t)node;
	}
}

unsigned tgt_cluster_residual_wait_ms(struct tgt_cluster *c)
{
	uint64_t now_ns = weft_reactor_now_ns(c->subsys->target->control);

	assert_on_control(c->subsys->target);
	if (!c->held_since_ns)
		c->held_since_ns = now_ns;
	if (now_ns - c->held_since_ns < HELD_WARN_MS * 1000000ull)
		return RESIDUAL_POLL_MS;
	find_held_namespaces(c);
	return HELD_POLL_MS;
}

void tgt_cluster_residual_wait_end(struct tgt_cluster *c)
{
	assert_on_control(c->subsys->target);
	if (!c->held_since_ns)
		return;
	c->held_since_ns = 0;
	memset(c->held_by, 0, sizeof(c->held_by));
}

/* --- for decisions about groups --------------------------------------------------------------- */

static bool any_group_has_residual_io(struct tgt_cluster_storage *storage, const struct owners *o)
{
	for (unsigned i = 0; i < WEFT_ANA_GROUP_MAX; i++)
		if (storage->used[i] && !weft_store_alive(storage->subsys->store, o->owner[i]) &&
		    tgt_cluster_group_has_residual_io(storage, i + 1, o->owner[i]))
			return true;
	return false;
}

void tgt_cluster_scan_storage(struct tgt_cluster_storage *storage, struct weft_subsys *s,
			      const struct owners *o)
{
	*storage = (struct tgt_cluster_storage){ .subsys = s };
	tgt_cluster_used_groups(s, storage->used);
	storage->awaited = any_group_has_residual_io(storage, o);
}

int tgt_cluster_check_storage(struct weft_subsys *s, struct weft_backend *be, struct weft_err *err)
{
	assert_on_control(s->target);
	if (!s->cluster)
		return 0;
	if (!be->ops->node_active)
		return weft_fail(err, -EOPNOTSUPP,
				 "%s: it is not storage that several targets share", be->spec);
	if (be->ops->locks_are_local && weft_store_on_shared_fs(s->store))
		return weft_fail(err, -EOPNOTSUPP,
				 "%s: its locks are this machine's, and members may be on others "
				 "(%s); put a file on the file system that they share",
				 be->spec, weft_store_spec(s->store));
	if (s->cluster->started && dead_node_has_residual_io(s, be))
		return weft_fail(err, -EBUSY,
				 "%s: a member is gone, and its last I/O is not over yet",
				 be->spec);
	return 0;
}
