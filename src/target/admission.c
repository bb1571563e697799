/* admission.c - who gets a queue where there are not enough for everybody.
 *
 *   max_queues ├──────────── hosts ─────────────┼─ a quarter: for hosts that have fewer than the rest ─┤
 *              ├── discovery: at most half, and only what hosts leave ──┤
 *
 * Nobody has more than three quarters: no host that is named, and no address of hosts that are not
 * (tenant.c). A host that one subsystem names may come to another, which any host may use, by a
 * name that it makes up. So where hosts are named, the last quarter is for them; and beyond an
 * eighth, the queues of all that nobody named count as those of each host that is named.
 *
 * Everybody may use the discovery service: its controllers are anonymous. When a host that was let
 * in finds no queue, one of them yields, and among themselves they share by address: a newcomer
 * takes the place of a controller of the address that has most, if that is more than its own. The
 * newest one goes: who floods loses what it has just got. The control reactor answers a command of
 * a discovery controller in one piece: of one that yields, commands may wait for their turn, and
 * none is half done.
 *
 * Invariant: nevicting counts the queues that are closed to make room and not gone yet. */
#include "base/log.h"
#include "target/internal.h"

static uint32_t *address_counter(struct weft_target *t, const struct sockaddr_storage *peer)
{
	return weft_addr_counter(&t->anonymous, peer);
}

static struct tgt_ctrl *newest_ctrl_of_address(struct weft_target *t, uint32_t count)
{
	struct weft_list *at;

	for (at = t->discovery->ctrls.prev; at != &t->discovery->ctrls; at = at->prev) {
		struct tgt_ctrl *ctrl = container_of(at, struct tgt_ctrl, link);

		if (!ctrl->dying && *address_counter(t, &ctrl->peer) == count)
			return ctrl;
	}
	return NULL;
}

/* Of an address that has more than @more_than; false: there is none. */
static bool evict_discovery_ctrl(struct weft_target *t, uint32_t more_than)
{
	uint32_t most = weft_addr_counts_most(&t->anonymous);
	struct tgt_ctrl *ctrl = most > more_than ? newest_ctrl_of_address(t, most) : NULL;

	if (!ctrl)
		return false;
	ctrl->evicted = true;
	t->nevicting++;
	--*address_counter(t, &ctrl->peer);
	tgt_ctrl_kill(ctrl, "another host needs its queue");
	return true;
}

static bool no_queue_free(const struct weft_target *t)
{
	return t->nqueues - t->nevicting >= t->queues_max;
}

static uint16_t admit_discovery(struct weft_target *t, const struct sockaddr_storage *peer)
{
	bool room = !no_queue_free(t) && t->ndiscovery - t->nevicting < (t->queues_max + 1) / 2;

	return room || evict_discovery_ctrl(t, *address_counter(t, peer)) ?
		       0 :
		       SC_COMMAND(CONNECT_CTRL_BUSY);
}

static uint32_t three_quarters(const struct weft_target *t)
{
	return t->queues_max - t->queues_max / 4;
}

/* With all that nobody named, which may be the same host. */
static bool listed_host_at_limit(const struct weft_target *t, uint32_t queues)
{
	return queues >= (t->queues_max + 7) / 8 && queues + t->nunlisted >= three_quarters(t);
}

static bool unlisted_hosts_at_limit(const struct weft_target *t, uint32_t queues)
{
	return queues >= three_quarters(t) ||
	       (tgt_any_host_listed(t) && t->nqueues - t->ndiscovery >= three_quarters(t));
}

static bool tenant_at_limit(const struct weft_subsys *s, const struct tgt_tenant *share,
			    const char *hostnqn)
{
	uint32_t queues = share ? share->queues : 0;

	return tgt_host_listed(s, hostnqn) ? listed_host_at_limit(s->target, queues) :
					     unlisted_hosts_at_limit(s->target, queues);
}

static const char *limit_scope_text(const struct weft_subsys *s, const struct tgt_tenant *share,
				    const char *hostnqn)
{
	bool alone = share && share->queues >= three_quarters(s->target);

	if (tgt_host_listed(s, hostnqn))
		return alone ? "" : ", with all that no subsystem names,";
	return alone ? ", with others at its address," : ", with all other hosts,";
}

uint16_t tgt_admit(const struct weft_subsys *s, const struct tgt_tenant *share, const char *hostnqn,
		   const struct sockaddr_storage *peer)
{
	struct weft_target *t = s->target;

	if (s->discovery)
		return admit_discovery(t, peer);
	if (tenant_at_limit(s, share, hostnqn)) {
		weft_peer_log(WEFT_LOG_WARN,
			      "%s: host %s%s has three quarters of max_queues (%u) and gets no more",
			      s->nqn, tgt_host_name(hostnqn), limit_scope_text(s, share, hostnqn),
			      t->queues_max);
		return SC_COMMAND(CONNECT_CTRL_BUSY);
	}
	if (!no_queue_free(t) || evict_discovery_ctrl(t, 0))
		return 0;
	weft_peer_log(WEFT_LOG_WARN, "%s: no queue for host %s: max_queues is %u", s->nqn,
		      tgt_host_name(hostnqn), t->queues_max);
	return SC_COMMAND(CONNECT_CTRL_BUSY);
}

/* Its share is that of its address. */
static bool is_unlisted(const struct tgt_queue *queue)
{
	return queue->ctrl->flow->tenant != &queue->ctrl->flow->own;
}

void tgt_admission_add_queue(const struct tgt_queue *queue)
{
	const struct weft_subsys *s = queue->ctrl->subsys;
	struct weft_target *t = s->target;

	t->nqueues++;
	t->nunlisted += is_unlisted(queue);
	queue->ctrl->flow->tenant->queues++;
	if (!s->discovery)
		return;
	t->ndiscovery++;
	++*address_counter(t, &queue->ctrl->peer);
}

void tgt_admission_remove_queue(const struct tgt_queue *queue)
{
	const struct weft_subsys *s = queue->ctrl->subsys;
	struct weft_target *t = s->target;

	t->nqueues--;
	t->nunlisted -= is_unlisted(queue);
	queue->ctrl->flow->tenant->queues--;
	if (!s->discovery)
		return;
	t->ndiscovery--;
	if (queue->ctrl->evicted)
		t->nevicting--;
	else
		--*address_counter(t, &queue->ctrl->peer);
}
