/* tenant.c - whose queues are counted together, and whose commands take turns with those of
 * others.
 *
 *   a tenant is ─┬─ a listed host: its NQN, through all its controllers
 *                ├─ an address: all unlisted hosts that connect from there
 *                └─ everybody who is not connected, and all hosts of the discovery service
 *
 * A host chooses its identifier, and where any host may connect its NQN as well: neither gets it
 * a second tenant. It does not choose its address (base/addr_counts.h). Hosts of one address are
 * flows of one tenant and take turns by their NQNs.
 *
 * On every reactor a flow has a bulk queue, buffer queues and a queue of walks, inside those of its
 * address if it has one. They are empty when the flow's last controller is freed, because its commands are
 * back by then.
 *
 * Invariant: a controller has one flow, and a flow one tenant, for life. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/keyed_hash.h"
#include "target/io/io.h"

struct tgt_tenants {
	/* Flows of hosts, by a keyed hash of their names: 1 << @bits chains, as many as there may
	 * be flows. */
	struct tgt_flow **chains;
	unsigned bits;
	uint32_t nflows;
	struct tgt_flow unknown;
	struct tgt_tenant addresses[WEFT_ADDR_COUNTERS];
	struct tgt_flow_local locals[]; /* by poll group, of addresses */
};

static void tenant_init(struct tgt_tenant *tenant)
{
	tenant->queues = 0;
	weft_list_init(&tenant->flows);
	weft_list_init(&tenant->ready);
}

/* @tenant NULL: the flow is a tenant of its own. */
static void flow_init(struct tgt_flow *flow, struct tgt_tenant *tenant, const char *hostnqn)
{
	tenant_init(&flow->own);
	flow->tenant = tenant ? tenant : &flow->own;
	flow->ctrls = 0;
	flow->per_reactor = NULL;
	strcpy(flow->hostnqn, hostnqn);
	flow->next = NULL;
	weft_list_init(&flow->ready);
	weft_list_init(&flow->reqs);
}

/* NULL: the host is listed. */
static struct tgt_tenant *tenant_of_address(const struct weft_subsys *s, const char *hostnqn,
					    const struct sockaddr_storage *peer)
{
	struct weft_target *t = s->target;

	assert_on_control(t);
	if (tgt_host_listed(s, hostnqn))
		return NULL;
	return &t->tenants->addresses[weft_addr_counts_index(&t->anonymous, peer)];
}

/* @within NULL: it takes turns with all others. */
static void flow_local_init(struct tgt_flow_local *local, struct tgt_flow_local *within)
{
	weft_bulk_flow_init(&local->bulk, within ? &within->bulk : NULL);
	weft_bufs_flows_init(&local->bufs, within ? &within->bufs : NULL);
	tgt_limit_init(&local->lists, TGT_RANGE_LISTS_MAX);
	tgt_limit_init(&local->pairs, TGT_PAIRS_MAX);
	weft_rx_quota_init(&local->rx_quota);
	weft_fair_flow_init(&local->walks, within ? &within->walks : NULL);
}

/* By poll group, where the flows of @tenant take turns; NULL: it has one flow. */
static struct tgt_flow_local *address_local(const struct weft_target *t,
					    const struct tgt_tenant *tenant)
{
	return tenant ? &t->tenants->locals[(tenant - t->tenants->addresses) * t->npoll_groups] :
			NULL;
}

static struct tgt_flow *flow_new(const struct weft_target *t, struct tgt_tenant *tenant,
				 const char *hostnqn)
{
	struct tgt_flow *flow = malloc(sizeof(*flow) +
				       t->npoll_groups * sizeof(flow->per_reactor[0]));
	struct tgt_flow_local *within = address_local(t, tenant);

	if (!flow)
		return NULL;
	flow_init(flow, tenant, hostnqn);
	flow->per_reactor = (void *)(flow + 1);
	for (unsigned i = 0; i < t->npoll_groups; i++)
		flow_local_init(&flow->per_reactor[i], within ? &within[i] : NULL);
	return flow;
}

/* --- find a flow: a Connect pays for its own name, not for all that others have made up ------- */

/* @tenant NULL: the flow is a tenant of its own. Every address may say the same name. */
static struct tgt_flow **chain_of(const struct weft_target *t, const struct tgt_tenant *tenant,
				  const char *hostnqn)
{
	const struct tgt_tenants *tenants = t->tenants;
	uint64_t name[] = {
		weft_keyed_hash(&t->hash_key, hostnqn, strlen(hostnqn)),
		tenant ? (uint64_t)(tenant - tenants->addresses) : WEFT_ADDR_COUNTERS,
	};
	uint64_t hash = weft_keyed_hash(&t->hash_key, name, sizeof(name));

	return &tenants->chains[hash & ((UINT64_C(1) << tenants->bits) - 1)];
}

static struct tgt_flow *flow_find(const struct weft_target *t, const struct tgt_tenant *tenant,
				  const char *hostnqn)
{
	struct tgt_flow *flow = *chain_of(t, tenant, hostnqn);

	while (flow && (flow->tenant != (tenant ? tenant : &flow->own) ||
			strcmp(flow->hostnqn, hostnqn) != 0))
		flow = flow->next;
	return flow;
}

static void flow_insert(struct weft_target *t, struct tgt_flow *flow,
			const struct tgt_tenant *tenant)
{
	struct tgt_flow **chain = chain_of(t, tenant, flow->hostnqn);

	flow->next = *chain;
	*chain = flow;
	t->tenants->nflows++;
}

static void flow_remove(struct weft_target *t, struct tgt_flow *flow)
{
	const struct tgt_tenant *tenant = flow->tenant == &flow->own ? NULL : flow->tenant;
	struct tgt_flow **at = chain_of(t, tenant, flow->hostnqn);

	while (*at != flow)
		at = &(*at)->next;
	*at = flow->next;
	weft_count_down(t->tenants->nflows);
}

const struct tgt_tenant *tgt_tenant_find(const struct weft_subsys *s, const char *hostnqn,
					 const struct sockaddr_storage *peer)
{
	const struct tgt_tenant *tenant = tenant_of_address(s, hostnqn, peer);
	const struct tgt_flow *flow = tenant ? NULL : flow_find(s->target, NULL, hostnqn);

	return flow ? flow->tenant : tenant;
}

/* --- controllers come and go ------------------------------------------------------------------ */

struct tgt_flow *tgt_flow_unknown(struct weft_target *t)
{
	return &t->tenants->unknown;
}

int tgt_flow_join(struct tgt_ctrl *ctrl)
{
	struct weft_target *t = ctrl->subsys->target;
	struct tgt_tenant *tenant = tenant_of_address(ctrl->subsys, ctrl->hostnqn, &ctrl->peer);
	struct tgt_flow *flow;

	assert_on_control(ctrl->subsys->target);
	assert(!ctrl->flow);
	if (ctrl->subsys->discovery) {
		ctrl->flow = &t->tenants->unknown;
		return 0;
	}
	flow = flow_find(t, tenant, ctrl->hostnqn);
	if (!flow) {
		flow = flow_new(t, tenant, ctrl->hostnqn);
		if (!flow)
			return -ENOMEM;
		flow_insert(t, flow, tenant);
	}
	flow->ctrls++;
	ctrl->flow = flow;
	return 0;
}

static bool bufs_flows_are_idle(const struct weft_bufs_flows *bufs)
{
	for (unsigned i = 0; i < WEFT_BUFS_CLASSES; i++)
		if (!weft_fair_flow_is_idle(&bufs->in[i]) || !weft_fair_flow_is_idle(&bufs->out[i]))
			return false;
	return true;
}

static bool rx_quota_is_idle(const struct weft_rx_quota *rx_quota)
{
	for (unsigned i = 0; i < WEFT_TRANSPORTS_MAX; i++) {
		const struct weft_rx_part *part = &rx_quota->parts[i];

		if (part->pinned || !weft_list_empty(&part->waiting) ||
		    !weft_list_empty(&part->link))
			return false;
	}
	return true;
}

/* What would be left in a list of the reactor's, or come back later, if it were freed. */
static bool flow_local_is_idle(const struct tgt_flow_local *local)
{
	return weft_fair_flow_is_idle(&local->bulk.fair) && !local->bulk.pieces &&
	       bufs_flows_are_idle(&local->bufs) && tgt_limit_is_idle(&local->lists) &&
	       weft_fair_flow_is_idle(&local->lists.waits) && tgt_limit_is_idle(&local->pairs) &&
	       weft_fair_flow_is_idle(&local->pairs.waits) && rx_quota_is_idle(&local->rx_quota) &&
	       weft_fair_flow_is_idle(&local->walks);
}

static bool tenant_is_idle(const struct tgt_tenant *tenant)
{
	return !tenant->queues && weft_list_empty(&tenant->flows) &&
	       weft_list_empty(&tenant->ready);
}

static bool flow_is_idle(const struct weft_target *t, const struct tgt_flow *flow)
{
	for (unsigned i = 0; i < t->npoll_groups; i++)
		if (!flow_local_is_idle(&flow->per_reactor[i]))
			return false;
	return weft_list_empty(&flow->reqs) && weft_list_empty(&flow->ready) &&
	       tenant_is_idle(&flow->own);
}

static bool addresses_are_idle(const struct weft_target *t)
{
	for (unsigned i = 0; i < WEFT_ADDR_COUNTERS; i++)
		if (!tenant_is_idle(&t->tenants->addresses[i]))
			return false;
	for (size_t i = 0; i < (size_t)WEFT_ADDR_COUNTERS * t->npoll_groups; i++)
		if (!flow_local_is_idle(&t->tenants->locals[i]))
			return false;
	return true;
}

void tgt_flow_leave(struct tgt_ctrl *ctrl)
{
	struct tgt_flow *flow = ctrl->flow;

	assert_on_control(ctrl->subsys->target);
	ctrl->flow = NULL;
	if (!flow || ctrl->subsys->discovery || weft_count_down(flow->ctrls))
		return;
	assert(flow_is_idle(ctrl->subsys->target, flow));
	flow_remove(ctrl->subsys->target, flow);
	free(flow);
}

struct weft_bufs_flows *tgt_flow_buf_queues(const struct tgt_ctrl *ctrl,
					    const struct weft_poll_group *group)
{
	return ctrl->subsys->discovery ? NULL : &ctrl->flow->per_reactor[group->index].bufs;
}

struct weft_fair_flow *tgt_flow_walks(const struct tgt_ctrl *ctrl,
				      const struct weft_poll_group *group)
{
	return ctrl->subsys->discovery ? NULL : &ctrl->flow->per_reactor[group->index].walks;
}

struct tgt_flow_local *tgt_tenant_local(const struct tgt_ctrl *ctrl,
					const struct weft_poll_group *group)
{
	struct weft_bulk_flow *flow = &ctrl->flow->per_reactor[group->index].bulk;

	return container_of(flow->within ? flow->within : flow, struct tgt_flow_local, bulk);
}

/* --- beginning and end ------------------------------------------------------------------------ */

/* A flow has a controller, and a controller a queue. */
static int chains_create(struct tgt_tenants *tenants, uint32_t queues_max)
{
	while (UINT64_C(1) << tenants->bits < queues_max)
		tenants->bits++;
	tenants->chains = calloc(UINT64_C(1) << tenants->bits, sizeof(struct tgt_flow *));
	return tenants->chains ? 0 : -ENOMEM;
}

int tgt_tenants_create(struct weft_target *t)
{
	size_t nlocals = (size_t)WEFT_ADDR_COUNTERS * t->npoll_groups;
	struct tgt_tenants *tenants = calloc(1, sizeof(*tenants) +
							nlocals * sizeof(tenants->locals[0]));

	if (!tenants || chains_create(tenants, t->queues_max) < 0) {
		free(tenants);
		return -ENOMEM;
	}
	flow_init(&tenants->unknown, NULL, "");
	for (unsigned i = 0; i < WEFT_ADDR_COUNTERS; i++)
		tenant_init(&tenants->addresses[i]);
	for (size_t i = 0; i < nlocals; i++)
		flow_local_init(&tenants->locals[i], NULL);
	t->tenants = tenants;
	return 0;
}

void tgt_tenants_destroy(struct weft_target *t)
{
	if (!t->tenants)
		return;
	assert(!t->tenants->nflows && addresses_are_idle(t));
	free(t->tenants->chains);
	free(t->tenants);
}
