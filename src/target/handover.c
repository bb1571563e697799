/* handover.c - what a target that stands still tells the process that goes on with it.
 *
 * All is read on home: a reactor whose connections are still touches nothing of them, and its
 * answer to the last look came after what it did before. */
#include "target/handover.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "target/admin/admin.h"
#include "target/handover_parts.h"

/* --- arrays ----------------------------------------------------------------------------------- */

static int reserve(struct weft_items *items, size_t count, size_t size)
{
	items->at = calloc(count ? count : 1, size);
	return items->at ? 0 : -ENOMEM;
}

static int copy_numbers(struct weft_items *items, const uint32_t *from, unsigned count)
{
	if (reserve(items, count, sizeof(*from)) < 0)
		return -ENOMEM;
	memcpy(items->at, from, count * sizeof(*from));
	items->count = count;
	return 0;
}

/* --- controllers ------------------------------------------------------------------------------ */

static int list_events(struct weft_items *items, uint32_t events)
{
	uint32_t pages[TGT_EVENTS];
	unsigned count = 0;

	for (int i = 0; i < TGT_EVENTS; i++)
		if (events & 1u << i)
			pages[count++] = tgt_event_log_page((enum tgt_event)i);
	return copy_numbers(items, pages, count);
}

static int list_features(struct weft_items *items, const struct tgt_ctrl *ctrl)
{
	struct weft_feature_state changed[256];
	unsigned count = 0;

	for (unsigned i = 0; i < 256; i++)
		if (ctrl->features[i] != tgt_feature_initial(ctrl, (uint8_t)i))
			changed[count++] = (struct weft_feature_state){ i, ctrl->features[i] };
	if (reserve(items, count, sizeof(changed[0])) < 0)
		return -ENOMEM;
	memcpy(items->at, changed, count * sizeof(changed[0]));
	items->count = count;
	return 0;
}

static int copy_errors(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl)
{
	uint64_t n = ctrl->nerrors < TGT_ERRORS_MAX ? ctrl->nerrors : TGT_ERRORS_MAX;
	struct nvme_error_log_page *to;

	if (reserve(&state->errors, n, sizeof(*to)) < 0)
		return -ENOMEM;
	to = state->errors.at;
	for (uint64_t i = 0; i < n; i++)
		to[i] = ctrl->errors[(ctrl->nerrors - n + i) % TGT_ERRORS_MAX];
	state->nerrors = ctrl->nerrors;
	state->errors.count = (unsigned)(n * sizeof(*to));
	return 0;
}

static int copy_behavior(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl)
{
	if (reserve(&state->behavior, sizeof(ctrl->host_behavior), 1) < 0)
		return -ENOMEM;
	memcpy(state->behavior.at, ctrl->host_behavior, sizeof(ctrl->host_behavior));
	state->behavior.count = sizeof(ctrl->host_behavior);
	return 0;
}

static void tell_time(struct weft_ctrl_state *state, const struct tgt_ctrl *ctrl)
{
	uint64_t now_ms = weft_reactor_now_ns(ctrl->subsys->target->home) / 1000000;

	state->timestamp_ms = ctrl->timestamp_ms;
	state->timestamp_age_ms = now_ms - ctrl->timestamp_at_ms;
	state->timestamp_by_host = ctrl->timestamp_by_host;
}

static int tell_ctrl(struct weft_ctrl_state *state, struct tgt_ctrl *ctrl)
{
	assert(!ctrl->dying && !ctrl->resetting);
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
	tell_time(state, ctrl);
	if (list_features(&state->features, ctrl) < 0 ||
	    list_events(&state->pending, ctrl->events_pending) < 0 ||
	    list_events(&state->masked, ctrl->events_masked) < 0 ||
	    copy_numbers(&state->changed, ctrl->changed_ns, ctrl->nchanged) < 0 ||
	    copy_errors(state, ctrl) < 0 || tgt_paths_tell_ctrl(state, ctrl) < 0 ||
	    tgt_resv_tell_ctrl(state, ctrl) < 0)
		return -ENOMEM;
	return copy_behavior(state, ctrl);
}

/* --- subsystems ------------------------------------------------------------------------------- */

static struct weft_totals_state totals(struct tgt_stats *stats, unsigned count)
{
	struct tgt_totals sum = { 0 };

	for (unsigned i = 0; i < count; i++)
		tgt_stats_add(&stats[i], &sum);
	return (struct weft_totals_state){ sum.reads, sum.writes, sum.read_bytes, sum.write_bytes,
					   sum.media_errors };
}

static int list_ns_errors(struct weft_items *items, struct weft_subsys *s)
{
	struct weft_ns_errors_state *to;

	if (reserve(items, WEFT_NSID_MAX, sizeof(*to)) < 0)
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

static int tell_subsys(struct weft_target_state *state, struct weft_subsys *s)
{
	struct weft_subsys_state *to = state->subsystems.at;
	int rc;

	to += state->subsystems.count++;
	strcpy(to->nqn, s->nqn);
	to->cntlid = s->cntlid_next;
	to->totals = totals(s->stats, s->target->ngroups);
	rc = list_ns_errors(&to->ns_errors, s);
	if (!rc)
		rc = tgt_paths_tell_subsys(to, s);
	return rc < 0 ? rc : tgt_store_tell(to, s);
}

static int tell_ctrls(struct weft_target_state *state, struct weft_subsys *s)
{
	struct weft_ctrl_state *to = state->ctrls.at;
	struct tgt_ctrl *ctrl;
	int rc = 0;

	weft_list_for_each(ctrl, &s->ctrls, link) {
		if (!rc)
			rc = tell_ctrl(&to[state->ctrls.count++], ctrl);
	}
	return rc;
}

/* --- queues and listeners --------------------------------------------------------------------- */

static uint32_t number_of(const struct weft_target_state *state, const struct tgt_ctrl *ctrl)
{
	const struct weft_ctrl_state *ctrls = state->ctrls.at;

	for (uint32_t i = 0; i < state->ctrls.count; i++)
		if (ctrls[i].cntlid == ctrl->cntlid && !strcmp(ctrls[i].nqn, ctrl->subsys->nqn))
			return i + 1;
	assert(!"a queue has a controller");
	return 0;
}

static int tell_queue(struct weft_target_state *state, struct weft_qpair *qp)
{
	struct weft_queue_state *to = state->queues.at;
	struct tgt_queue *queue = qp->owner;

	to += state->queues.count++;
	if (queue) {
		to->ctrl = number_of(state, queue->ctrl);
		to->totals = totals(&queue->stats, 1);
	}
	return qp->transport->export(qp, &to->qpair);
}

static int tell_queues(struct weft_target_state *state, struct weft_target *t)
{
	struct weft_qpair *qp;
	int rc = 0;

	for (unsigned i = 0; i < t->ngroups; i++) {
		weft_list_for_each(qp, &t->groups[i]->qpairs, link) {
			if (!rc)
				rc = tell_queue(state, qp);
		}
	}
	return rc;
}

static void tell_listeners(struct weft_target_state *state, struct weft_target *t)
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

/* --- the whole -------------------------------------------------------------------------------- */

struct counts {
	size_t listeners, subsystems, ctrls, queues;
};

static size_t length(const struct weft_list *list)
{
	size_t n = 0;

	for (const struct weft_list *link = list->next; link != list; link = link->next)
		n++;
	return n;
}

static struct counts count(struct weft_target *t)
{
	struct counts n = {
		.listeners = length(&t->listeners),
		.subsystems = length(&t->subsystems) + 1,
		.ctrls = length(&t->discovery->ctrls),
	};
	struct weft_subsys *s;

	weft_list_for_each(s, &t->subsystems, link)
		n.ctrls += length(&s->ctrls);
	for (unsigned i = 0; i < t->ngroups; i++)
		n.queues += length(&t->groups[i]->qpairs);
	return n;
}

static int reserve_all(struct weft_target_state *state, struct weft_target *t)
{
	struct counts n = count(t);

	if (reserve(&state->listeners, n.listeners, sizeof(struct weft_listener_state)) < 0 ||
	    reserve(&state->subsystems, n.subsystems, sizeof(struct weft_subsys_state)) < 0 ||
	    reserve(&state->ctrls, n.ctrls, sizeof(struct weft_ctrl_state)) < 0)
		return -ENOMEM;
	return reserve(&state->queues, n.queues, sizeof(struct weft_queue_state));
}

int weft_target_hand_over(struct weft_target *t, struct weft_target_state *state)
{
	struct weft_subsys *s;
	int rc;

	assert(t->frozen);
	*state = (struct weft_target_state){ .genctr = t->genctr };
	rc = reserve_all(state, t);
	if (rc < 0)
		return rc;
	tell_listeners(state, t);
	rc = tell_subsys(state, t->discovery);
	if (!rc)
		rc = tell_ctrls(state, t->discovery);
	weft_list_for_each(s, &t->subsystems, link) {
		if (!rc)
			rc = tell_subsys(state, s);
		if (!rc)
			rc = tell_ctrls(state, s);
	}
	return rc < 0 ? rc : tell_queues(state, t);
}

static void free_ctrl(struct weft_ctrl_state *ctrl)
{
	free(ctrl->features.at);
	free(ctrl->pending.at);
	free(ctrl->masked.at);
	free(ctrl->changed.at);
	free(ctrl->errors.at);
	free(ctrl->behavior.at);
	tgt_paths_free_ctrl(ctrl);
	tgt_resv_free_ctrl(ctrl);
}

void weft_target_state_free(struct weft_target_state *state)
{
	struct weft_ctrl_state *ctrls = state->ctrls.at;
	struct weft_queue_state *queues = state->queues.at;
	struct weft_subsys_state *subsystems = state->subsystems.at;

	for (unsigned i = 0; i < state->subsystems.count; i++) {
		free(subsystems[i].ns_errors.at);
		tgt_paths_free_subsys(&subsystems[i]);
		tgt_store_free(&subsystems[i]);
	}
	for (unsigned i = 0; i < state->ctrls.count; i++)
		free_ctrl(&ctrls[i]);
	for (unsigned i = 0; i < state->queues.count; i++)
		free(queues[i].qpair.bytes);
	free(state->listeners.at);
	free(subsystems);
	free(ctrls);
	free(queues);
	*state = (struct weft_target_state){ 0 };
}
