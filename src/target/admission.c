/* admission.c - admission: which Connect gets a queue when there are not enough for everybody.
 *
 *   max_queues ├──────────── hosts ─────────────┼─ a quarter: hosts that have fewer than others ─┤
 *              ├── discovery: at most half, and only what hosts leave ──┤
 *
 * No tenant (tenant.c) has more than three quarters of the queues, neither a listed host nor an
 * address of unlisted ones. A listed host may also connect to a subsystem that any host may use,
 * with an NQN that it makes up. So where hosts are listed, the last quarter is for them; and a
 * listed host that has an eighth is counted together with the queues of all unlisted hosts.
 *
 * Any host may use the discovery service; its controllers are anonymous. When an admitted host
 * finds no queue free, a discovery controller is evicted. A discovery Connect evicts one, too, but
 * only of an address that has more of them than its own, and the newest one: a flood displaces
 * itself. The control reactor runs a command of a discovery controller without a break, so eviction
 * finds commands that wait for their turn and none that is half done.
 *
 * Invariant: nevicting counts the queues that are closed to make room and not gone yet. */
#include "base/count.h"
#include "base/log.h"
#include "target/internal.h"

static uint32_t *address_counter(struct weft_target *t, const struct sockaddr_storage *peer)
{
	return weft_addr_counts_at(&t->anonymous, peer);
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

/* Evicts one of the address that has most, if that is more than @more_than; false: no address
 * has. */
static bool evict_discovery_ctrl(struct weft_target *t, uint32_t more_than)
{
	uint32_t most = weft_addr_counts_max(&t->anonymous);
	struct tgt_ctrl *ctrl = most > more_than ? newest_ctrl_of_address(t, most) : NULL;

	if (!ctrl)
		return false;
	assert(!ctrl->evicted);
	ctrl->evicted = true;
	t->nevicting++;
	weft_count_down(*address_counter(t, &ctrl->peer));
	tgt_ctrl_kill(ctrl, "another host needs its queue");
	return true;
}

static bool no_queue_free(const struct weft_target *t)
{
	assert(t->nevicting <= t->ndiscovery && t->ndiscovery <= t->nqueues);
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

/* Counts the queues of all unlisted hosts, too: they may be the same host. */
static bool listed_host_at_limit(const struct weft_target *t, uint32_t queues)
{
	return queues >= (t->queues_max + 7) / 8 && queues + t->nunlisted >= three_quarters(t);
}

static bool unlisted_hosts_at_limit(const struct weft_target *t, uint32_t queues)
{
	return queues >= three_quarters(t) ||
	       (tgt_any_host_listed(t) && t->nqueues - t->ndiscovery >= three_quarters(t));
}

static bool tenant_at_limit(const struct weft_subsys *s, const struct tgt_tenant *tenant,
			    const char *hostnqn)
{
	uint32_t queues = tenant ? tenant->queues : 0;

	return tgt_host_listed(s, hostnqn) ? listed_host_at_limit(s->target, queues) :
					     unlisted_hosts_at_limit(s->target, queues);
}

static const char *limit_scope_text(const struct weft_subsys *s, const struct tgt_tenant *tenant,
				    const char *hostnqn)
{
	bool alone = tenant && tenant->queues >= three_quarters(s->target);

	if (tgt_host_listed(s, hostnqn))
		return alone ? "" : ", with all that no subsystem names,";
	return alone ? ", with others at its address," : ", with all other hosts,";
}

uint16_t tgt_admit(const struct weft_subsys *s, const struct tgt_tenant *tenant,
		   const char *hostnqn, const struct sockaddr_storage *peer)
{
	struct weft_target *t = s->target;

	if (s->discovery)
		return admit_discovery(t, peer);
	if (tenant_at_limit(s, tenant, hostnqn)) {
		weft_peer_log(WEFT_LOG_WARN,
			      "%s: host %s%s has three quarters of max_queues (%u) and gets no more",
			      s->nqn, tgt_host_name(hostnqn), limit_scope_text(s, tenant, hostnqn),
			      t->queues_max);
		return SC_COMMAND(CONNECT_CTRL_BUSY);
	}
	if (!no_queue_free(t) || evict_discovery_ctrl(t, 0))
		return 0;
	weft_peer_log(WEFT_LOG_WARN, "%s: no queue for host %s: max_queues is %u", s->nqn,
		      tgt_host_name(hostnqn), t->queues_max);
	return SC_COMMAND(CONNECT_CTRL_BUSY);
}

/* An unlisted host is counted with its address. */
static bool is_unlisted(const struct tgt_queue *queue)
{
	return queue->ctrl->flow->tenant != &queue->ctrl->flow->own;
}

void tgt_admission_add_queue(const struct tgt_queue *queue)
{
	const struct weft_subsys *s = queue->ctrl->subsys;
	struct weft_target *t = s->target;

	assert_on_control(queue->ctrl->subsys->target);
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

	assert_on_control(queue->ctrl->subsys->target);
	weft_count_down(t->nqueues);
	if (is_unlisted(queue))
		weft_count_down(t->nunlisted);
	weft_count_down(queue->ctrl->flow->tenant->queues);
	if (!s->discovery)
		return;
	weft_count_down(t->ndiscovery);
	if (queue->ctrl->evicted)
		weft_count_down(t->nevicting);
	else
		weft_count_down(*address_counter(t, &queue->ctrl->peer));
}
