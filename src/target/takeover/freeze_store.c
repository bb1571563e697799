/* freeze_store.c - store freeze: the state that a subsystem shares with other processes stands
 * still during a takeover.
 *
 *   no change is under way ─▶ freeze: the store is neither read nor written, no reconcile
 *     ─▶ what was read last is applied ─▶ idle
 *
 * Other members go on; what they commit is not acknowledged here, so it does not bind yet: they
 * wait some milliseconds for us or our successor.
 *
 * Invariant: once idle, every reservation in our copy of the store binds here and hosts were
 * notified. The owner table may be newer than what is served. */
#include "target/takeover/freeze_store.h"

#include "target/cluster/cluster.h"
#include "target/resv/resv.h"

static const char *subsys_busy_reason(const struct weft_subsys *s)
{
	if (weft_store_is_lost(s->store))
		return "it is not a member of its cluster any more, and serves nothing of a "
		       "subsystem: stop it, and start it again";
	if (s->resv_changes)
		return "a reservation is being changed, and not all members of the cluster have "
		       "taken that in";
	if (!tgt_cluster_is_idle(s))
		return "a group of namespaces is on its way from one member to another, or a "
		       "controller of another member is being reset";
	if (!tgt_ana_is_idle(s))
		return "the state of a group of namespaces is being changed";
	if (!tgt_store_is_frozen(s->target))
		return NULL;
	if (!tgt_resv_is_idle(s))
		return "a reservation cannot be read, or ends commands that storage has";
	return weft_store_is_quiesced(s->store) ? NULL : "its state file does not answer";
}

const char *tgt_store_busy_reason(struct weft_target *t)
{
	struct weft_subsys *s;
	const char *what = NULL;

	assert_on_control(t);
	weft_list_for_each(s, &t->subsystems, link)
		if (!what)
			what = subsys_busy_reason(s);
	return what;
}

void tgt_freeze_store(struct weft_target *t)
{
	struct weft_subsys *s;

	assert_on_control(t);
	assert(t->freeze_state == TGT_FREEZING_STORE);
	weft_list_for_each(s, &t->subsystems, link)
		weft_store_freeze(s->store);
}

void tgt_thaw_store(struct weft_target *t)
{
	struct weft_subsys *s;

	assert_on_control(t);
	assert(t->freeze_state == TGT_SERVING);
	weft_list_for_each(s, &t->subsystems, link) {
		weft_store_thaw(s->store);
		tgt_cluster_store_moved(s);
	}
}
