/* target.c - create a target, stop it in order, describe it. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/uuid.h"
#include "target/cluster/cluster.h"
#include "target/resv/change_queue.h"
#include "target/resv/resv.h"

/* --- create ----------------------------------------------------------------------------------- */

static void poll_groups_destroy(struct weft_target *t)
{
	for (unsigned i = 0; i < t->npoll_groups; i++)
		if (t->poll_groups[i])
			weft_poll_group_destroy(t->poll_groups[i]);
	free(t->poll_groups);
}

/* How many connections before Connect each reactor may have. */
static uint32_t unknown_max(unsigned nreactors)
{
	uint32_t share = WEFT_PRECONNECT_MAX / nreactors;

	return share > WEFT_PRECONNECT_MAX_EACH ? share : WEFT_PRECONNECT_MAX_EACH;
}

static int poll_groups_create(struct weft_target *t, const struct weft_target_options *options)
{
	t->npoll_groups = options->nreactors;
	t->poll_groups = calloc(t->npoll_groups, sizeof(t->poll_groups[0]));
	if (!t->poll_groups)
		return -ENOMEM;
	for (unsigned i = 0; i < t->npoll_groups; i++) {
		int rc = weft_poll_group_create(&t->poll_groups[i], options->reactors[i], i,
						t->depth_max, t->connections_max,
						unknown_max(t->npoll_groups));

		if (rc < 0)
			return rc;
		t->poll_groups[i]->control = t->control;
		t->poll_groups[i]->user = t;
	}
	return 0;
}

static int discovery_create(struct weft_target *t)
{
	struct weft_subsys_options options = {
		.nqn = NVME_NQN_DISCOVERY,
		.model = WEFT_MODEL_DEFAULT,
		.allow_any_host = true,
	};

	t->discovery = tgt_subsys_new(t, &options);
	if (!t->discovery)
		return -ENOMEM;
	t->discovery->discovery = true;
	weft_list_init(&t->discovery->link);
	return 0;
}

static int barriers_create(struct weft_target *t)
{
	t->thaw_barrier = tgt_barrier_new(t);
	t->stop_barrier = tgt_barrier_new(t);
	return t->thaw_barrier && t->stop_barrier ? 0 : -ENOMEM;
}

static void target_free(struct weft_target *t)
{
	free(t->thaw_barrier);
	free(t->stop_barrier);
	poll_groups_destroy(t);
	tgt_control_queue_destroy(t);
	tgt_stale_destroy(t);
	tgt_tenants_destroy(t);
	free(t);
}

int weft_target_create(struct weft_target **out, const struct weft_target_options *options,
		       struct weft_err *err)
{
	struct weft_target *t = calloc(1, sizeof(*t));
	int rc = -ENOMEM;

	assert(options->nreactors && options->depth_max >= 2 && options->depth_max <= 65535);
	if (t) {
		t->control = options->control;
		t->depth_max = options->depth_max;
		t->io_queues_max = options->io_queues_max;
		t->queues_max = options->queues_max;
		t->connections_max = options->queues_max +
				     unknown_max(options->nreactors) * options->nreactors;
		t->hash_key = weft_hash_key();
		weft_addr_counts_init(&t->anonymous);
		weft_list_init(&t->subsystems);
		weft_list_init(&t->listeners);
		weft_list_init(&t->drain_waits);
		weft_list_init(&t->resv_change_queues);
		weft_task_init(&t->resv_queue_task, tgt_resv_run_change_queues);
		rc = poll_groups_create(t, options);
		if (rc == 0)
			rc = barriers_create(t);
		if (rc == 0)
			rc = tgt_tenants_create(t);
		if (rc == 0)
			rc = tgt_stale_create(t);
		if (rc == 0)
			rc = tgt_control_queue_create(t);
		if (rc == 0)
			rc = discovery_create(t);
		if (rc < 0)
			target_free(t);
	}
	if (rc < 0)
		return weft_fail(err, rc, "target: %s", strerror(-rc));
	*out = t;
	return 0;
}

/* --- stop: no new connections, then subsystems, then whatever is still connecting ------------- */

static void close_all_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	weft_poll_group_close_all(group, "the target stops");
	tgt_barrier_arrive(barrier, group);
}

static void stop_when_empty(struct weft_timer *timer)
{
	struct weft_target *t = container_of(timer, struct weft_target, stop_timer);
	void (*stopped)(void *arg) = t->stopped;
	void *arg = t->stopped_arg;

	for (unsigned i = 0; i < t->npoll_groups; i++) {
		if (!atomic_load(&t->poll_groups[i]->nqpairs))
			continue;
		weft_timer_set(t->control, &t->stop_timer, 1);
		return;
	}
	assert(!t->teardowns && !t->nqueues && !t->nevicting && !t->nunlisted);
	assert(weft_list_empty(&t->subsystems) && weft_list_empty(&t->listeners));
	assert(weft_list_empty(&t->drain_waits) && weft_list_empty(&t->resv_change_queues));
	weft_task_cancel(&t->resv_queue_task);
	target_free(t);
	stopped(arg);
}

static void remaining_closed(struct tgt_barrier *barrier)
{
	struct weft_target *t = barrier->target;

	t->stop_timer.fn = stop_when_empty;
	weft_timer_set(t->control, &t->stop_timer, 0);
}

static void close_remaining_connections(struct weft_target *t)
{
	t->stop_barrier->on_reactor = close_all_on_reactor;
	t->stop_barrier->done = remaining_closed;
	tgt_barrier_start(t->stop_barrier);
}

void tgt_target_teardown_done(struct weft_target *t)
{
	assert_on_control(t);
	if (!weft_count_down(t->teardowns) && t->stopped)
		close_remaining_connections(t);
}

static void ignore_subsys_removed(void *arg)
{
	(void)arg;
}

void weft_target_prepare_stop(struct weft_target *t)
{
	struct weft_subsys *s;

	assert_on_control(t);
	weft_list_for_each(s, &t->subsystems, link)
		if (s->cluster)
			tgt_cluster_cancel_migrations(s->cluster, "the target stops");
}

void weft_target_stop(struct weft_target *t, void (*done)(void *arg), void *arg)
{
	struct tgt_listener *l, *next;
	struct weft_subsys *s, *tmp;

	assert_on_control(t);
	assert(!t->stopped);
	t->stopped = done;
	t->stopped_arg = arg;
	t->teardowns++; /* ours, until all were told to close */
	weft_list_for_each_safe(l, next, &t->listeners, link)
		tgt_listener_close(l);
	weft_list_for_each_safe(s, tmp, &t->subsystems, link)
		if (!s->removing)
			weft_subsys_remove(s, ignore_subsys_removed, NULL);
	weft_subsys_remove(t->discovery, ignore_subsys_removed, NULL);
	tgt_target_teardown_done(t);
}

/* --- describe --------------------------------------------------------------------------------- */

static void visit_ns(struct tgt_ns *ns, const struct weft_target_visitor *v, void *arg)
{
	const struct ns_errors errors = tgt_ns_errors(ns);
	struct weft_target_ns_info info = {
		.nsid = ns->nsid,
		.block = 1u << ns->lba_shift,
		.size = atomic_load(&ns->blocks) << ns->lba_shift,
		.read_only = ns->be->read_only,
		.ana_group = ns->ana_group,
		.backend = ns->be->spec,
		.descriptor = weft_backend_descriptor(ns->be),
		.held_by = tgt_cluster_held_by(ns),
		.sync_failed = atomic_load(&weft_backend_storage(ns->be)->sync_failed),
		.read_errors = errors.reads,
		.write_errors = errors.writes,
	};
	const struct weft_store_record *record;
	struct resv_state st;

	info.used = ns->be->ops->used ? ns->be->ops->used(ns->be) : info.size;
	weft_uuid_format(ns->uuid, info.uuid);
	for (int i = 0; i < 16; i++)
		snprintf(info.nguid + 2 * i, 3, "%02x", ns->nguid[i]);
	if (!tgt_resv_state(ns, &st, &record)) {
		info.reservation = st.rtype;
		info.registrants = st.nregs;
	}
	v->ns(arg, &info);
}

static void visit_queue(const struct tgt_queue *queue, const struct weft_target_visitor *v,
			void *arg)
{
	const struct weft_qpair_stats *stats = &queue->qp->stats;

	v->queue(arg, &(struct weft_queue_info){
			      .qid = queue->qid,
			      .depth = queue->depth,
			      .state = tgt_queue_state_text(queue),
			      .transport = weft_uri_transport(queue->qp->transport->trtype),
			      .posted = stats->posted,
			      .completed = stats->completed,
			      .flushed = stats->flushed,
			      .retried = stats->retried,
			      .rnr = stats->rnr,
			      .key_hits = stats->key_hits,
			      .registrations = stats->registrations,
			      .copied_bytes = stats->copied_bytes,
		      });
}

static void visit_ana(const struct tgt_ctrl *ctrl, const struct weft_target_visitor *v, void *arg)
{
	bool used[WEFT_ANA_GROUP_MAX];

	tgt_cluster_used_groups(ctrl->subsys, used);
	for (uint32_t group = 1; group <= WEFT_ANA_GROUP_MAX; group++)
		if (used[group - 1])
			v->ana(arg, group, ctrl->ana[group - 1]);
}

static void visit_ctrl(struct tgt_ctrl *ctrl, const struct weft_target_visitor *v, void *arg)
{
	struct tgt_totals sum = { 0 };
	struct weft_target_ctrl_info info = {
		.cntlid = ctrl->cntlid,
		.portid = ctrl->portid,
		.hostnqn = ctrl->hostnqn,
		.discovery = ctrl->subsys->discovery,
		.kato_ms = ctrl->kato_ms,
	};
	struct tgt_queue *queue;

	weft_list_for_each(queue, &ctrl->queues, link) {
		info.io_queues += !!queue->qid;
		tgt_stats_add(&queue->stats, &sum);
	}
	info.reads = sum.reads;
	info.writes = sum.writes;
	info.read_bytes = sum.read_bytes;
	info.write_bytes = sum.write_bytes;
	weft_uuid_format(ctrl->hostid, info.hostid);
	weft_uri_format(ctrl->trtype, &ctrl->peer, info.peer, sizeof(info.peer));
	v->ctrl(arg, &info);
	weft_list_for_each(queue, &ctrl->queues, link)
		if (v->queue)
			visit_queue(queue, v, arg);
	if (v->ana)
		visit_ana(ctrl, v, arg);
}

static void visit_member(struct weft_subsys *s, unsigned node, const struct weft_target_visitor *v,
			 void *arg)
{
	struct weft_member_info info;

	tgt_cluster_member_info(s, node, &info);
	v->member(arg, &info);
}

static void visit_group(struct weft_subsys *s, uint32_t group, const struct weft_target_visitor *v,
			void *arg)
{
	struct weft_group_info info;

	if (tgt_cluster_group_info(s, group, &info))
		v->group(arg, &info);
}

static void visit_port(struct weft_subsys *s, uint16_t portid, const struct weft_target_visitor *v,
		       void *arg)
{
	uint8_t states[WEFT_ANA_GROUP_MAX];
	bool used[WEFT_ANA_GROUP_MAX];

	tgt_ana_states_now(s, portid, "", states);
	tgt_cluster_used_groups(s, used);
	for (uint32_t group = 1; group <= WEFT_ANA_GROUP_MAX; group++)
		if (used[group - 1])
			v->port_ana(arg, portid, group, states[group - 1]);
}

static void visit_subsys(struct weft_subsys *s, const struct weft_target_visitor *v, void *arg)
{
	struct weft_subsys_info info = {
		.nqn = s->nqn,
		.serial = s->serial,
		.model = s->model,
		.state = s->store && weft_store_persistent(s->store) ? weft_store_spec(s->store) :
								       NULL,
		.node = weft_subsys_node(s),
		.nodes = s->cluster ? tgt_cluster_nodes(s) : 0,
		.lost = s->ana.lost,
		.allow_any_host = s->allow_any_host,
	};
	struct tgt_listener *l;
	struct tgt_host *host;
	struct tgt_ctrl *ctrl;

	if (v->subsys)
		v->subsys(arg, &info);
	for (unsigned node = 1; v->member && node <= info.nodes; node++)
		visit_member(s, node, v, arg);
	for (uint32_t group = 1; v->group && s->cluster && group <= WEFT_ANA_GROUP_MAX; group++)
		visit_group(s, group, v, arg);
	if (v->host)
		weft_list_for_each(host, &s->hosts, link)
			v->host(arg, host->nqn);
	for (unsigned i = 0; v->ana_rule && i < s->ana.rules->count; i++)
		v->ana_rule(arg, &s->ana.rules->at[i]);
	for (uint32_t nsid = 1; v->ns && nsid <= WEFT_NSID_MAX; nsid++)
		if (tgt_ns_find(s, nsid))
			visit_ns(tgt_ns_find(s, nsid), v, arg);
	if (v->port_ana)
		weft_list_for_each(l, &s->target->listeners, link)
			visit_port(s, l->portid, v, arg);
	if (v->ctrl)
		weft_list_for_each(ctrl, &s->ctrls, link)
			visit_ctrl(ctrl, v, arg);
}

static void visit_listeners(struct weft_target *t, const struct weft_target_visitor *v, void *arg)
{
	struct tgt_listener *l;
	char uri[WEFT_URI_MAX];

	weft_list_for_each(l, &t->listeners, link) {
		weft_uri_format(l->l->transport->trtype, &l->l->addr, uri, sizeof(uri));
		v->listener(arg, uri, l->portid);
	}
}

static void visit_reactor(struct weft_poll_group *group, const struct weft_target_visitor *v,
			  void *arg)
{
	v->reactor(arg, &(struct weft_reactor_info){
				.cpu = weft_reactor_cpu(group->reactor),
				.queues = atomic_load(&group->nqpairs),
				.unknown = atomic_load(&group->preconnect.now),
				.unknown_max = group->preconnect.max,
				.displaced = atomic_load(&group->preconnect.displaced),
			});
}

void weft_target_visit(struct weft_target *t, const struct weft_target_visitor *v, void *arg)
{
	struct weft_subsys *s;

	assert_on_control(t);
	if (v->listener)
		visit_listeners(t, v, arg);
	weft_list_for_each(s, &t->subsystems, link)
		if (!s->removing)
			visit_subsys(s, v, arg);
	if (t->discovery)
		visit_subsys(t->discovery, v, arg);
	for (unsigned i = 0; v->reactor && i < t->npoll_groups; i++)
		visit_reactor(t->poll_groups[i], v, arg);
	if (v->admission)
		v->admission(arg, &(struct weft_admission_info){ t->queues_max, t->nqueues,
								 t->ndiscovery });
}
