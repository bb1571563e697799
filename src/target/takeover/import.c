/* import.c - takeover, successor: build a target from what another process exported; it stays
 * frozen.
 *
 *   subsystems ─▶ controllers ─▶ listeners ─▶ queues: each on its reactor ─▶ all are here: done
 *
 * The exporter may be another version, so everything is checked like input from outside. If
 * something is wrong the caller ends the process; it has served nobody yet. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "base/uuid.h"
#include "target/admin/admin.h"
#include "target/takeover/parts.h"

struct import {
	struct weft_target *target;
	struct weft_target_state *state;
	struct tgt_ctrl **ctrls; /* by their numbers in @state */
	void (*done)(void *arg, int rc, const struct weft_err *err);
	void *arg;
	unsigned pending; /* queues on their way to a reactor, and the walk itself */
	int rc;
	struct weft_err err;
};

/* --- subsystems ------------------------------------------------------------------------------- */

static void set_totals(struct tgt_stats *stats, const struct weft_totals_state *totals)
{
	atomic_store(&stats->reads, totals->reads);
	atomic_store(&stats->writes, totals->writes);
	atomic_store(&stats->read_bytes, totals->read_bytes);
	atomic_store(&stats->write_bytes, totals->write_bytes);
	atomic_store(&stats->media_errors, totals->media_errors);
}

static void import_ns_errors(struct weft_subsys *s, const struct weft_items *items)
{
	const struct weft_ns_errors_state *from = items->at;

	for (unsigned i = 0; i < items->count; i++) {
		struct tgt_ns *ns = tgt_ns_find(s, from[i].nsid);

		if (ns)
			tgt_ns_import_errors(ns,
					     &(struct ns_errors){ from[i].reads, from[i].writes });
	}
}

/* The old process does not say which writes it had flushed. */
static void import_unflushed(struct weft_subsys *s)
{
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);

		if (ns)
			tgt_ns_import_unflushed(ns);
	}
}

static int import_subsystems(struct import *in)
{
	struct weft_subsys_state *from = in->state->subsystems.at;
	struct weft_subsys *s;
	int rc = 0;

	for (unsigned i = 0; i < in->state->subsystems.count && !rc; i++) {
		s = tgt_subsys_find_any(in->target, from[i].nqn);
		if (!s)
			return weft_fail(&in->err, -EINVAL, "there is no subsystem %s here",
					 from[i].nqn);
		s->cntlid_next = (uint16_t)from[i].cntlid;
		set_totals(&s->stats[0], &from[i].totals);
		import_ns_errors(s, &from[i].ns_errors);
		import_unflushed(s);
		rc = tgt_paths_import_subsys(&from[i], s, &in->err);
		if (!rc)
			rc = tgt_store_import(&from[i], s, &in->err);
	}
	return rc;
}

/* --- controllers ------------------------------------------------------------------------------ */

/* An event that this version does not know cannot be reported; the host finds out by reading. */
static uint32_t events_of(const struct weft_items *items)
{
	const uint32_t *pages = items->at;
	uint32_t events = 0;

	for (unsigned i = 0; i < items->count; i++)
		for (int e = 0; e < TGT_EVENTS; e++)
			if (tgt_event_log_page((enum tgt_event)e) == pages[i])
				events |= 1u << e;
	return events;
}

static void import_features(struct tgt_ctrl *ctrl, const struct weft_ctrl_state *from)
{
	const struct weft_feature_state *features = from->features.at;

	for (unsigned i = 0; i < from->features.count; i++)
		ctrl->features[features[i].fid & 0xff] = features[i].value;
	atomic_store(&ctrl->write_cache, ctrl->features[NVME_FEAT_FID_VOLATILE_WC] & 1);
	if (from->behavior.count == sizeof(ctrl->host_behavior))
		memcpy(ctrl->host_behavior, from->behavior.at, sizeof(ctrl->host_behavior));
	ctrl->timestamp_ms = from->timestamp_ms;
	ctrl->timestamp_at_ms = weft_reactor_now_ns(ctrl->subsys->target->control) / 1000000 -
				from->timestamp_age_ms;
	ctrl->timestamp_by_host = from->timestamp_by_host;
}

static void import_events(struct tgt_ctrl *ctrl, const struct weft_ctrl_state *from)
{
	ctrl->events_pending = events_of(&from->pending);
	ctrl->events_masked = events_of(&from->masked);
	ctrl->nchanged = from->changed.count;
	memcpy(ctrl->changed_ns, from->changed.at, ctrl->nchanged * sizeof(ctrl->changed_ns[0]));
}

static void import_error_log(struct tgt_ctrl *ctrl, const struct weft_ctrl_state *from)
{
	uint64_t n = from->errors.count / sizeof(ctrl->errors[0]);

	for (uint64_t i = 0; i < n; i++)
		memcpy(&ctrl->errors[(from->nerrors - n + i) % TGT_ERRORS_MAX],
		       (const char *)from->errors.at + i * sizeof(ctrl->errors[0]),
		       sizeof(ctrl->errors[0]));
	ctrl->nerrors = from->nerrors;
}

static void import_keepalive(struct tgt_ctrl *ctrl, const struct weft_ctrl_state *from)
{
	tgt_ctrl_set_kato(ctrl, from->kato_ms);
	weft_timer_stop(ctrl->subsys->target->control, &ctrl->ka_timer); /* thawing starts it */
	ctrl->ka_left_ms = from->kato_left_ms;
	atomic_store(&ctrl->traffic, from->traffic);
}

/* Ascending, as events.c keeps them: so all that may come have room. */
static bool changed_list_is_valid(const struct weft_items *changed)
{
	const uint32_t *nsids = changed->at;
	uint32_t last = 0;

	for (unsigned i = 0; i < changed->count; i++) {
		if (nsids[i] <= last || nsids[i] > WEFT_NSID_MAX)
			return false;
		last = nsids[i];
	}
	return true;
}

static bool ctrl_state_is_valid(const struct weft_target *t, const struct weft_ctrl_state *from)
{
	return from->cntlid && from->cntlid <= NVME_CNTLID_MAX && from->io_queues &&
	       from->io_queues <= t->io_queues_max && changed_list_is_valid(&from->changed) &&
	       from->errors.count <= TGT_ERRORS_MAX * sizeof(struct nvme_error_log_page) &&
	       from->errors.count / sizeof(struct nvme_error_log_page) <= from->nerrors;
}

static int import_ctrl(struct import *in, unsigned i)
{
	const struct weft_ctrl_state *from = (struct weft_ctrl_state *)in->state->ctrls.at + i;
	struct weft_subsys *s = tgt_subsys_find_any(in->target, from->nqn);
	struct tgt_ctrl *ctrl;
	uint8_t hostid[16];

	if (!s || !ctrl_state_is_valid(in->target, from))
		return weft_fail(&in->err, -EINVAL,
				 "%s: controller %u cannot be one of this target", from->nqn,
				 from->cntlid);
	ctrl = tgt_ctrl_adopt(s, (uint16_t)from->cntlid);
	if (!ctrl)
		return weft_fail(&in->err, -EINVAL, "%s: controller %u is there twice", from->nqn,
				 from->cntlid);
	if (weft_uuid_parse(from->hostid, hostid) < 0)
		return weft_fail(&in->err, -EINVAL, "%s: controller %u: hostid", from->nqn,
				 from->cntlid);
	tgt_ctrl_set_host(ctrl, from->hostnqn, hostid);
	ctrl->cc = from->cc;
	ctrl->csts = from->csts;
	ctrl->io_queues = from->io_queues;
	import_features(ctrl, from);
	import_events(ctrl, from);
	import_error_log(ctrl, from);
	import_keepalive(ctrl, from);
	in->ctrls[i] = ctrl;
	if (tgt_paths_import_ctrl(from, ctrl) < 0)
		return weft_fail(&in->err, -EINVAL, "%s: controller %u: its paths", from->nqn,
				 from->cntlid);
	if (tgt_resv_import_ctrl(from, ctrl) < 0)
		return weft_fail(&in->err, -EINVAL, "%s: controller %u: its notifications",
				 from->nqn, from->cntlid);
	return 0;
}

static int import_ctrls(struct import *in)
{
	int rc = 0;

	in->ctrls = calloc(in->state->ctrls.count + 1, sizeof(in->ctrls[0]));
	if (!in->ctrls)
		return -ENOMEM;
	for (unsigned i = 0; i < in->state->ctrls.count && !rc; i++)
		rc = import_ctrl(in, i);
	return rc;
}

/* --- listeners -------------------------------------------------------------------------------- */

static int import_listeners(struct import *in)
{
	struct weft_listener_state *from = in->state->listeners.at;
	struct weft_uri uri;
	int rc = 0;

	for (unsigned i = 0; i < in->state->listeners.count && !rc; i++) {
		rc = weft_uri_parse(from[i].uri, &uri, &in->err);
		uri.portid = (uint16_t)from[i].portid;
		if (!rc)
			rc = tgt_listener_adopt(in->target, &uri, take_fd(&from[i].fd), &in->err);
	}
	return rc;
}

/* --- queues ----------------------------------------------------------------------------------- */

struct adoption {
	struct weft_msg msg;
	struct import *in;
	struct weft_poll_group *group;
	struct tgt_queue *queue; /* NULL: before Connect */
	struct weft_qpair_state *state;
	struct weft_qpair *qp;
	int rc;
};

static void import_part_done(struct import *in, int rc);

/* The admin queue tells the controller its address. */
static void adopt_done_on_control(struct weft_msg *msg)
{
	struct adoption *adoption = container_of(msg, struct adoption, msg);
	struct tgt_queue *queue = adoption->queue;
	struct import *in = adoption->in;
	int rc = adoption->rc;

	assert_on_control(in->target);
	if (!rc && queue) {
		queue->qp = adoption->qp;
		if (!queue->qid) {
			queue->ctrl->trtype = queue->qp->transport->trtype;
			queue->ctrl->peer = queue->qp->peer;
			queue->ctrl->local = queue->qp->local;
		}
	}
	free(adoption);
	import_part_done(in, rc);
}

static void adopt_on_reactor(struct weft_msg *msg)
{
	struct adoption *adoption = container_of(msg, struct adoption, msg);

	assert_on(adoption->group->reactor);
	assert(adoption->group->frozen);
	adoption->rc = weft_qpair_import(&adoption->qp, adoption->group, adoption->state,
					 &tgt_qpair_ops, adoption->queue);
	adoption->msg.fn = adopt_done_on_control;
	weft_reactor_post(adoption->group->control, &adoption->msg);
}

static bool qid_is_imported(const struct tgt_ctrl *ctrl, uint32_t qid)
{
	struct tgt_queue *queue;

	weft_list_for_each(queue, &ctrl->queues, link)
		if (queue->qid == qid)
			return true;
	return false;
}

/* A connection before Connect has no queue, and no controller. */
static bool queue_state_is_valid(const struct import *in, const struct weft_queue_state *from)
{
	const struct weft_qpair_state *qp = &from->qpair;
	const struct tgt_ctrl *ctrl;

	if (from->ctrl > in->state->ctrls.count)
		return false;
	if (!from->ctrl)
		return !qp->sqsize;
	ctrl = in->ctrls[from->ctrl - 1];
	return qp->sqsize >= 2 && qp->sqsize <= in->target->depth_max && qp->sqhd <= UINT16_MAX &&
	       qp->sqid <= ctrl->io_queues && !qid_is_imported(ctrl, qp->sqid);
}

static struct tgt_queue *import_queue_new(struct import *in, const struct weft_queue_state *from)
{
	struct tgt_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->ctrl = in->ctrls[from->ctrl - 1];
	queue->qid = (uint16_t)from->qpair.sqid;
	queue->depth = from->qpair.sqsize;
	set_totals(&queue->stats, &from->totals);
	weft_list_init(&queue->resv_changes);
	weft_list_init(&queue->ending_link);
	weft_list_init(&queue->drain_waits);
	weft_list_push(&queue->ctrl->queues, &queue->link);
	if (!queue->qid)
		queue->ctrl->admin = queue;
	return queue;
}

static int import_queue(struct import *in, struct weft_queue_state *from)
{
	struct adoption *adoption;

	if (!queue_state_is_valid(in, from))
		return weft_fail(&in->err, -EINVAL, "a connection cannot be one of this target");
	adoption = calloc(1, sizeof(*adoption));
	if (!adoption)
		return -ENOMEM;
	adoption->in = in;
	adoption->state = &from->qpair;
	adoption->group = tgt_assign_poll_group(in->target);
	adoption->queue = from->ctrl ? import_queue_new(in, from) : NULL;
	if (!adoption->group || (from->ctrl && !adoption->queue)) {
		free(adoption);
		return weft_fail(&in->err, -ENOSPC, "more connections than max_queues allows");
	}
	in->pending++;
	adoption->msg.fn = adopt_on_reactor;
	weft_reactor_post(adoption->group->reactor, &adoption->msg);
	return 0;
}

static int import_queues(struct import *in)
{
	struct weft_queue_state *from = in->state->queues.at;
	int rc = 0;

	for (unsigned i = 0; i < in->state->queues.count && !rc; i++)
		rc = import_queue(in, &from[i]);
	for (unsigned i = 0; i < in->state->ctrls.count && !rc; i++)
		if (!in->ctrls[i]->admin)
			rc = weft_fail(&in->err, -EINVAL, "%s: controller %u has no admin queue",
				       in->ctrls[i]->subsys->nqn, in->ctrls[i]->cntlid);
	return rc;
}

/* --- the target ------------------------------------------------------------------------------- */

static void admit_queue(struct tgt_queue *queue)
{
	struct weft_qpair *qp = queue->qp;

	if (!queue->ctrl->subsys->discovery)
		weft_qpair_admit(qp, tgt_flow_buf_queues(queue->ctrl, qp->group),
				 tgt_flow_walks(queue->ctrl, qp->group),
				 &tgt_tenant_local(queue->ctrl, qp->group)->rx_quota);
}

/* All controllers are here, and their admin queues tell the addresses of their hosts. Connections
 * are frozen: the control reactor may set what they have on their reactors, because nothing uses it
 * before the thaw. */
static int ctrl_join_tenant(struct tgt_ctrl *ctrl)
{
	struct tgt_queue *queue;
	int rc = tgt_flow_join(ctrl);

	assert(ctrl->admin && ctrl->subsys->target->freeze_state == TGT_FROZEN);
	if (rc < 0)
		return rc;
	weft_list_for_each(queue, &ctrl->queues, link) {
		tgt_admission_add_queue(queue);
		admit_queue(queue);
	}
	return 0;
}

static int ctrls_join_tenants(struct import *in)
{
	int rc = 0;

	for (unsigned i = 0; i < in->state->ctrls.count && !rc; i++)
		rc = ctrl_join_tenant(in->ctrls[i]);
	return rc < 0 ? weft_fail(&in->err, rc, "out of memory") : 0;
}

static void import_part_done(struct import *in, int rc)
{
	if (rc < 0 && !in->rc)
		in->rc = weft_fail(&in->err, rc, "a connection could not be taken: %s",
				   strerror(-rc));
	if (weft_count_down(in->pending))
		return;
	if (!in->rc)
		in->rc = ctrls_join_tenants(in);
	in->done(in->arg, in->rc, &in->err);
	free(in->ctrls);
	free(in);
}

static int import_all(struct import *in)
{
	int rc = import_subsystems(in);

	if (!rc)
		rc = import_ctrls(in);
	if (!rc)
		rc = import_listeners(in);
	return rc < 0 ? rc : import_queues(in);
}

void weft_target_import(struct weft_target *t, struct weft_target_state *state,
			void (*done)(void *arg, int rc, const struct weft_err *err), void *arg)
{
	struct import *in = calloc(1, sizeof(*in));

	assert_on_control(t);
	assert(t->freeze_state == TGT_FROZEN);
	if (!in) {
		done(arg, -ENOMEM, &(struct weft_err){ "out of memory" });
		return;
	}
	*in = (struct import){ .target = t, .state = state, .done = done, .arg = arg, .pending = 1 };
	t->genctr = state->genctr;
	import_part_done(in, import_all(in));
}
