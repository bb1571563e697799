/* export.c - takeover, old process: export a frozen target: its listeners, subsystems, controllers
 * and queues.
 *
 * Everything is read on the control reactor: a frozen reactor does not touch its connections, and
 * its answer to the last check came after its last change. */
#include "target/takeover/takeover.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "target/admin/admin.h"
#include "target/takeover/parts.h"

/* --- arrays ----------------------------------------------------------------------------------- */

static int alloc_items(struct weft_items *items, size_t count, size_t size)
{
	items->at = calloc(count ? count : 1, size);
	return items->at ? 0 : -ENOMEM;
}

static int export_numbers(struct weft_items *items, const uint32_t *from, unsigned count)
{
	if (alloc_items(items, count, sizeof(*from)) < 0)
		return -ENOMEM;
	memcpy(items->at, from, count * sizeof(*from));
	items->count = count;
	return 0;
}

/* --- controllers ------------------------------------------------------------------------------ */

static int export_events(struct weft_items *items, uint32_t events)
{
	uint32_t pages[TGT_EVENTS];
	unsigned count = 0;

	for (int i = 0; i < TGT_EVENTS; i++)
		if (events & 1u << i)
			pages[count++] = tgt_event_log_page((enum tgt_event)i);
	return export_numbers(items, pages, count);
}

static int export_features(struct weft_items *items, const struct tgt_ctrl *ctrl)
{
	struct weft_feature_state changed[256];
	unsigned count = 0;

	for (unsigned i = 0; i < 256; i++)
		if (ctrl->features[i] != tgt_feature_initial(ctrl, (uint8_t)i))
			changed[count++] = (struct weft_feature_state){ i, ctrl->features[i] };
	if (alloc_items(items, count, sizeof(changed[0])) < 0)
		return -ENOMEM;
	memcpy(items->at, changed, count * sizeof(changed[0]));
	items->count = count;
	return 0;
}

static int export_error_log(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl)
{
	uint64_t n = ctrl->nerrors < TGT_ERRORS_MAX ? ctrl->nerrors : TGT_ERRORS_MAX;
	struct nvme_error_log_page *to;

	if (alloc_items(&state->errors, n, sizeof(*to)) < 0)
		return -ENOMEM;
	to = state->errors.at;
	for (uint64_t i = 0; i < n; i++)
		to[i] = ctrl->errors[(ctrl->nerrors - n + i) % TGT_ERRORS_MAX];
	state->nerrors = ctrl->nerrors;
	state->errors.count = (unsigned)(n * sizeof(*to));
	return 0;
}

static int export_host_behavior(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl)
{
	if (alloc_items(&state->behavior, sizeof(ctrl->host_behavior), 1) < 0)
		return -ENOMEM;
	memcpy(state->behavior.at, ctrl->host_behavior, sizeof(ctrl->host_behavior));
	state->behavior.count = sizeof(ctrl->host_behavior);
	return 0;
}

static void export_timestamp(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl)
{
	uint64_t now_ms = weft_reactor_now_ns(ctrl->subsys->target->control) / 1000000;

	state->timestamp_ms = ctrl->timestamp_ms;
	state->timestamp_age_ms = now_ms - ctrl->timestamp_at_ms;
	state->timestamp_by_host = ctrl->timestamp_by_host;
}

static int export_ctrl(struct weft_ctrl_state *state, struct tgt_ctrl *ctrl)
{
	assert(!ctrl->dying && !ctrl->resetting && !weft_heap_has(&ctrl->ka_timer.node));
	strcpy(state->nqn, ctrl->subsys->nqn);
	strcpy(state->hostnqn, ctrl->hostnqn);
	weft_uuid_format(ctrl->hostid, state->hostid);
	state->cntlid = ctrl->cntlid;
	state->cc = ctrl->cc;
	state->csts = ctrl->csts;
	state->io_queues = ctrl->io_queues;
	state->kato_ms = ctrl->kato_ms;
	state->kato_left_ms = ctrl->ka_left_ms;
	state->traffic = atomic_load(&ctrl->traffic);
	export_timestamp(state, ctrl);
	if (export_features(&state->features, ctrl) < 0 ||
	    export_events(&state->pending, ctrl->events_pending) < 0 ||
	    export_events(&state->masked, ctrl->events_masked) < 0 ||
	    export_numbers(&state->changed, ctrl->changed_ns, ctrl->nchanged) < 0 ||
	    export_error_log(state, ctrl) < 0 || tgt_paths_export_ctrl(state, ctrl) < 0 ||
	    tgt_resv_export_ctrl(state, ctrl) < 0)
		return -ENOMEM;
	return export_host_behavior(state, ctrl);
}

/* --- subsystems ------------------------------------------------------------------------------- */

static struct weft_totals_state sum_totals(struct tgt_stats *stats, unsigned count)
{
	struct tgt_totals sum = { 0 };

	for (unsigned i = 0; i < count; i++)
		tgt_stats_add(&stats[i], &sum);
	return (struct weft_totals_state){ sum.reads, sum.writes, sum.read_bytes, sum.write_bytes,
					   sum.media_errors };
}

static int export_ns_errors(struct weft_items *items, struct weft_subsys *s)
{
	struct weft_ns_errors_state *to;

	if (alloc_items(items, WEFT_NSID_MAX, sizeof(*to)) < 0)
		return -ENOMEM;
	to = items->at;
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		const struct tgt_ns *ns = tgt_ns_find(s, nsid);
		struct ns_errors errors = { 0 };

		if (ns)
			errors = tgt_ns_errors(ns);
		if (errors.reads || errors.writes)
			to[items->count++] = (struct weft_ns_errors_state){ nsid, errors.reads,
									    errors.writes };
	}
	return 0;
}

static int export_subsys(struct weft_target_state *state, struct weft_subsys *s)
{
	struct weft_subsys_state *to = state->subsystems.at;
	int rc;

	to += state->subsystems.count++;
	strcpy(to->nqn, s->nqn);
	to->cntlid = s->cntlid_next;
	to->totals = sum_totals(s->stats, s->target->npoll_groups);
	rc = export_ns_errors(&to->ns_errors, s);
	if (!rc)
		rc = tgt_paths_export_subsys(to, s);
	return rc < 0 ? rc : tgt_store_export(to, s);
}

static int export_ctrls(struct weft_target_state *state, struct weft_subsys *s)
{
	struct weft_ctrl_state *to = state->ctrls.at;
	struct tgt_ctrl *ctrl;
	int rc = 0;

	weft_list_for_each(ctrl, &s->ctrls, link) {
		if (!rc)
			rc = export_ctrl(&to[state->ctrls.count++], ctrl);
	}
	return rc;
}

/* --- queues and listeners --------------------------------------------------------------------- */

static uint32_t ctrl_number(const struct weft_target_state *state, const struct tgt_ctrl *ctrl)
{
	const struct weft_ctrl_state *ctrls = state->ctrls.at;

	for (uint32_t i = 0; i < state->ctrls.count; i++)
		if (ctrls[i].cntlid == ctrl->cntlid && !strcmp(ctrls[i].nqn, ctrl->subsys->nqn))
			return i + 1;
	assert(!"a queue has a controller");
	return 0;
}

static int export_queue(struct weft_target_state *state, struct weft_qpair *qp)
{
	struct weft_queue_state *to = state->queues.at;
	struct tgt_queue *queue = qp->owner;

	assert(!qp->closing && (!queue || !tgt_queue_lost_connection(queue)));
	to += state->queues.count++;
	if (queue) {
		to->ctrl = ctrl_number(state, queue->ctrl);
		to->totals = sum_totals(&queue->stats, 1);
	}
	return weft_qpair_export(qp, &to->qpair);
}

static int export_queues(struct weft_target_state *state, struct weft_target *t)
{
	struct weft_qpair *qp;
	int rc = 0;

	for (unsigned i = 0; i < t->npoll_groups; i++) {
		weft_list_for_each(qp, &t->poll_groups[i]->qpairs, link) {
			if (!rc)
				rc = export_queue(state, qp);
		}
	}
	return rc;
}

static void export_listeners(struct weft_target_state *state, struct weft_target *t)
{
	struct weft_listener_state *to = state->listeners.at;
	struct tgt_listener *l;

	weft_list_for_each(l, &t->listeners, link) {
		if (!l->l->transport->listener_fd)
			continue;
		weft_uri_format(l->l->transport->trtype, &l->l->addr, to->uri, sizeof(to->uri));
		to->portid = l->portid;
		to->fd = l->l->transport->listener_fd(l->l);
		to++;
		state->listeners.count++;
	}
}

/* --- the target ------------------------------------------------------------------------------- */

struct object_counts {
	size_t listeners, subsystems, ctrls, queues;
};

static size_t list_length(const struct weft_list *list)
{
	size_t n = 0;

	for (const struct weft_list *link = list->next; link != list; link = link->next)
		n++;
	return n;
}

static struct object_counts count_objects(struct weft_target *t)
{
	struct object_counts n = {
		.listeners = list_length(&t->listeners),
		.subsystems = list_length(&t->subsystems) + 1,
		.ctrls = list_length(&t->discovery->ctrls),
	};
	struct weft_subsys *s;

	weft_list_for_each(s, &t->subsystems, link)
		n.ctrls += list_length(&s->ctrls);
	for (unsigned i = 0; i < t->npoll_groups; i++)
		n.queues += list_length(&t->poll_groups[i]->qpairs);
	return n;
}

static int alloc_all_items(struct weft_target_state *state, struct weft_target *t)
{
	struct object_counts n = count_objects(t);

	if (alloc_items(&state->listeners, n.listeners, sizeof(struct weft_listener_state)) < 0 ||
	    alloc_items(&state->subsystems, n.subsystems, sizeof(struct weft_subsys_state)) < 0 ||
	    alloc_items(&state->ctrls, n.ctrls, sizeof(struct weft_ctrl_state)) < 0)
		return -ENOMEM;
	return alloc_items(&state->queues, n.queues, sizeof(struct weft_queue_state));
}

int weft_target_export(struct weft_target *t, struct weft_target_state *state)
{
	struct weft_subsys *s;
	int rc;

	assert_on_control(t);
	assert(t->freeze_state == TGT_FROZEN);
	*state = (struct weft_target_state){ .genctr = t->genctr };
	rc = alloc_all_items(state, t);
	if (rc < 0)
		return rc;
	export_listeners(state, t);
	rc = export_subsys(state, t->discovery);
	if (!rc)
		rc = export_ctrls(state, t->discovery);
	weft_list_for_each(s, &t->subsystems, link) {
		if (!rc)
			rc = export_subsys(state, s);
		if (!rc)
			rc = export_ctrls(state, s);
	}
	return rc < 0 ? rc : export_queues(state, t);
}

static void free_ctrl_state(struct weft_ctrl_state *ctrl)
{
	free(ctrl->features.at);
	free(ctrl->pending.at);
	free(ctrl->masked.at);
	free(ctrl->changed.at);
	free(ctrl->errors.at);
	free(ctrl->behavior.at);
	tgt_paths_free_ctrl_state(ctrl);
	tgt_resv_free_ctrl_state(ctrl);
}

void weft_target_state_free(struct weft_target_state *state)
{
	struct weft_ctrl_state *ctrls = state->ctrls.at;
	struct weft_queue_state *queues = state->queues.at;
	struct weft_subsys_state *subsystems = state->subsystems.at;

	for (unsigned i = 0; i < state->subsystems.count; i++) {
		free(subsystems[i].ns_errors.at);
		tgt_paths_free_subsys_state(&subsystems[i]);
		tgt_store_free_state(&subsystems[i]);
	}
	for (unsigned i = 0; i < state->ctrls.count; i++)
		free_ctrl_state(&ctrls[i]);
	for (unsigned i = 0; i < state->queues.count; i++)
		free(queues[i].qpair.bytes);
	free(state->listeners.at);
	free(subsystems);
	free(ctrls);
	free(queues);
	*state = (struct weft_target_state){ 0 };
}
