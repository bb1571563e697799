/* ns_remove.c - remove a namespace, or all of them with their subsystem.
 *
 *   publish a table without it ─▶ notify hosts ─▶ quiesces end ─▶ drain commands ─▶ close
 *
 * Replies that leave from its memory end when hosts have read them. Hosts that take too long lose
 * their connection (transport/poll_group.c). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/count.h"
#include "target/admin/admin.h"
#include "target/cluster/cluster.h"
#include "target/resv/resv.h"

/* --- removing --------------------------------------------------------------------------------- */

static int ns_close_storage(struct weft_offload *offload)
{
	struct tgt_ns *ns = container_of(offload, struct tgt_ns, closing);

	weft_backend_close(ns->be);
	return 0;
}

static void ns_storage_closed(struct weft_offload *offload, int rc)
{
	struct tgt_ns *ns = container_of(offload, struct tgt_ns, closing);
	struct weft_target *t = ns->barrier->target;
	void (*removed)(void *arg) = ns->removed;
	void *arg = ns->removed_arg;

	(void)rc;
	assert_on_control(t);
	tgt_ns_free(ns);
	removed(arg);
	tgt_target_teardown_done(t);
}

static bool ns_is_unused(const struct tgt_ns *ns)
{
	for (unsigned i = 0; i < ns->barrier->target->npoll_groups; i++)
		if (tgt_ns_busy(&ns->local[i], NS_QUIESCE_MEMORY) || ns->local[i].barrier ||
		    !weft_list_empty(&ns->local[i].waiting))
			return false;
	return true;
}

/* Closing may take long: the file system writes back a file, the kernel frees large memory. So it
 * is offloaded. */
static void ns_drained(struct tgt_barrier *barrier)
{
	assert(ns_is_unused(barrier->ns) && tgt_ns_quiesce_idle(barrier->ns));
	weft_offload_start(&barrier->ns->closing, barrier->target->control, ns_close_storage,
			   ns_storage_closed);
}

static void ns_drain_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct ns_local *local = &barrier->ns->local[group->index];

	if (!tgt_ns_busy(local, NS_QUIESCE_MEMORY)) {
		tgt_barrier_arrive(barrier, group);
		return;
	}
	assert(!local->barrier);
	local->barrier = barrier;
	local->barrier_awaits = NS_QUIESCE_MEMORY;
	weft_poll_group_start_reclaim(group);
}

void tgt_ns_drain_if_removed(struct tgt_ns *ns)
{
	assert(tgt_ns_quiesce_idle(ns));
	if (!ns->removing)
		return;
	ns->barrier->on_reactor = ns_drain_on_reactor;
	ns->barrier->done = ns_drained;
	tgt_barrier_start(ns->barrier);
}

static void ns_removal_begin(struct tgt_ns *ns, void (*done)(void *arg), void *arg)
{
	bool idle = tgt_ns_quiesce_idle(ns);

	assert(!ns->removing);
	ns->barrier->target->teardowns++; /* the target's end waits for it */
	ns->removing_since_ns = weft_reactor_now_ns(ns->barrier->target->control);
	ns->removing = true;
	ns->removed = done;
	ns->removed_arg = arg;
	tgt_ns_quiesces_refuse(ns);
	if (idle)
		tgt_ns_drain_if_removed(ns);
}

int weft_ns_remove(struct weft_subsys *s, uint32_t nsid, void (*done)(void *arg), void *arg,
		   struct weft_err *err)
{
	struct tgt_ns *ns = tgt_ns_find(s, nsid);

	assert_on_control(s->target);
	if (!ns)
		return weft_fail(err, -ENOENT, "%s has no namespace %u", s->nqn, nsid);
	if (tgt_ns_publish(s, nsid, NULL) < 0)
		return weft_fail(err, -ENOMEM, "out of memory");
	tgt_ana_ns_changed(s, ns->ana_group);
	tgt_ns_notify_changed(s, nsid);
	tgt_resv_sweep(s);
	tgt_cluster_unlock_identity(ns);
	tgt_cluster_ns_changed(s);
	ns_removal_begin(ns, done, arg);
	return 0;
}

/* --- closing all, with their subsystem -------------------------------------------------------- */

static void ns_closed(void *arg)
{
	struct weft_subsys *s = arg;

	assert_on_control(s->target);
	if (!weft_count_down(s->ns_closing))
		tgt_subsys_namespaces_closed(s);
}

void tgt_ns_close_all(struct weft_subsys *s)
{
	struct ns_table *table = atomic_load_explicit(&s->table, memory_order_relaxed);

	assert_on_control(s->target);
	assert(s->removing && weft_list_empty(&s->ctrls) && !s->ns_closing);
	s->ns_closing = 1;
	for (uint32_t i = 0; table && i < table->nsid_max; i++) {
		if (!table->ns[i])
			continue;
		s->ns_closing++;
		ns_removal_begin(table->ns[i], ns_closed, s);
	}
	ns_closed(s);
}
