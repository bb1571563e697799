/* apply.c - reservations, a newer revision in the store: publish the new views, notify hosts, abort
 * commands that are forbidden now, then acknowledge the revision.
 *
 *   changed ─▶ for every namespace whose record is newer: publish its view, notify its hosts
 *           ─▶ a barrier: every reactor uses the new views, and aborts ─▶ acknowledge
 *                 └──────── storage still has a command to abort ◀┘
 *
 * A turn of the control reactor does a slice of the first part: many namespaces may have changed,
 * and many hosts with many controllers may need a notice (notice_dispatch.c). Revisions that come
 * meanwhile are applied next. If very many hosts lose commands, there is a barrier for some of them
 * before the next namespace is read.
 *
 * Invariant: a revision is acknowledged when no command that it forbids can begin here, and none
 * that it aborts goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/uuid.h"
#include "target/resv/resv.h"

enum {
	ABORT_MS = 1, /* until storage is asked again for commands to abort; then twice as long … */
	ABORT_MS_MAX = 64,
	RETRY_MS = 100,
	VICTIMS = 1024, /* so many are aborted before more are collected */
	/* Records, registrants and notices read, controllers visited, notices dispatched. */
	SLICE = 512,
};

struct tgt_resv {
	struct weft_subsys *subsys;
	struct tgt_barrier *barrier;
	struct weft_timer timer;
	struct weft_task task; /* the next slice */
	bool running, failed;
	uint64_t revision; /* that is being applied */
	uint32_t nsid;     /* the next namespace */
	struct resv_dispatch dispatch;
	struct resv_view *old;
	struct resv_victim *victims;
	unsigned nvictims;
	atomic_bool ended; /* every command to abort has ended */
	unsigned abort_ms;
	void (*stopped)(struct weft_subsys *s);
	struct resv_abort aborts[]; /* by poll group, which owns it during a barrier */
};

static void resv_apply_revision(struct tgt_resv *resv);

/* --- records ---------------------------------------------------------------------------------- */

void tgt_resv_key(const struct tgt_ns *ns, char key[TGT_RESV_KEY])
{
	char uuid[37];

	weft_uuid_format(ns->uuid, uuid);
	snprintf(key, TGT_RESV_KEY, "resv/%s", uuid);
}

static const struct weft_store_record *find_resv_record(const struct tgt_ns *ns)
{
	char key[TGT_RESV_KEY];

	tgt_resv_key(ns, key);
	return weft_store_get(ns->subsys->store, key);
}

int tgt_resv_state(const struct tgt_ns *ns, struct resv_state *st,
		   const struct weft_store_record **record)
{
	struct weft_store *store = ns->subsys->store;

	*record = find_resv_record(ns);
	return resv_record_decode(st, weft_store_session(store), *record ? (*record)->value : NULL,
				  *record ? (*record)->len : 0);
}

int tgt_resv_load(struct tgt_ns *ns)
{
	const struct weft_store_record *record;
	struct resv_state st;
	struct resv_view *view;
	int rc = tgt_resv_state(ns, &st, &record);

	assert_on_control(ns->subsys->target);
	assert(!atomic_load(&ns->resv));
	if (!rc)
		rc = tgt_resv_view_new(&st, &view);
	if (rc < 0)
		return rc;
	atomic_init(&ns->resv, view);
	ns->resv_version = record ? record->version : 0;
	ns->resv_noticed = st.noticed;
	return 0;
}

/* --- one namespace ---------------------------------------------------------------------------- */

/* The first notice that came since the last time. */
static unsigned first_new_notice(const struct tgt_ns *ns, const struct resv_state *st)
{
	uint64_t fresh = st->noticed - ns->resv_noticed;

	return fresh < st->nnotices ? st->nnotices - (unsigned)fresh : 0;
}

static int add_victims(struct tgt_resv *resv, struct tgt_ns *ns, const struct resv_state *st)
{
	struct resv_victim *victims;

	victims = reallocarray(resv->victims, resv->nvictims + st->nnotices + 1, sizeof(*victims));
	if (!victims)
		return -ENOMEM;
	resv->victims = victims;
	for (unsigned i = first_new_notice(ns, st); i < st->nnotices; i++) {
		if (!st->notices[i].abort)
			continue;
		victims[resv->nvictims].ns_serial = ns->serial;
		memcpy(victims[resv->nvictims++].host, st->notices[i].host, RESV_HOST_BYTES);
	}
	return 0;
}

static void publish_view(struct tgt_resv *resv, struct tgt_ns *ns, struct resv_view *view)
{
	struct resv_view *old = atomic_load_explicit(&ns->resv, memory_order_relaxed);

	assert(!old || !old->next_old);
	atomic_store_explicit(&ns->resv, view, memory_order_release);
	if (!old)
		return;
	old->next_old = resv->old;
	resv->old = old;
}

static int apply_record(struct tgt_resv *resv, struct tgt_ns *ns, const struct resv_state *st,
			uint64_t version)
{
	unsigned first = first_new_notice(ns, st);
	struct resv_view *view;
	int rc = tgt_resv_view_new(st, &view);

	if (rc < 0)
		return rc;
	rc = tgt_resv_dispatch_begin(&resv->dispatch, ns, st->notices + first,
				     st->nnotices - first);
	if (!rc)
		rc = add_victims(resv, ns, st);
	if (rc < 0) { /* a view that is not published notifies nobody, and ends no command */
		tgt_resv_dispatch_end(&resv->dispatch);
		free(view);
		return rc;
	}
	publish_view(resv, ns, view);
	ns->resv_version = version;
	ns->resv_noticed = st->noticed;
	return 0;
}

/* Returns the cost. A record that cannot be decoded was not written by a target like this one: its
 * state is unknown, and the revision is not acknowledged. */
static int apply_ns(struct tgt_resv *resv, struct tgt_ns *ns)
{
	const struct weft_store_record *record = find_resv_record(ns);
	uint64_t version = record ? record->version : 0;
	struct resv_state st;
	int rc;

	if (version == ns->resv_version)
		return 1;
	rc = tgt_resv_state(ns, &st, &record);
	if (rc < 0) {
		weft_error("%s: the reservation of namespace %u cannot be read: %s",
			   ns->subsys->nqn, ns->nsid, strerror(-rc));
		return rc;
	}
	rc = apply_record(resv, ns, &st, version);
	return rc < 0 ? rc : (int)(st.nregs + st.nnotices + 1);
}

/* --- all namespaces: barrier and acknowledgement ---------------------------------------------- */

static void free_old_views(struct tgt_resv *resv)
{
	while (resv->old) {
		struct resv_view *view = resv->old;

		resv->old = view->next_old;
		free(view);
	}
}

static void resv_abort_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct tgt_resv *resv = barrier->arg;
	struct resv_abort *abort = &resv->aborts[group->index];

	if (abort->n && !tgt_resv_abort(group, abort)) {
		tgt_barrier_requeue(barrier, group);
		return;
	}
	if (abort->n && !abort->ended)
		atomic_store(&resv->ended, false);
	tgt_barrier_arrive(barrier, group);
}

static void start_abort_barrier(struct tgt_resv *resv, bool again)
{
	assert(!resv->barrier->pending && !resv->dispatch.n);
	atomic_store(&resv->ended, true);
	for (unsigned i = 0; i < resv->subsys->target->npoll_groups; i++)
		resv->aborts[i] = (struct resv_abort){ .victims = resv->victims,
						       .n = resv->nvictims,
						       .again = again };
	tgt_barrier_start(resv->barrier);
}

static void resv_timer_fired(struct weft_timer *timer)
{
	struct tgt_resv *resv = container_of(timer, struct tgt_resv, timer);

	assert(resv->running && !resv->stopped);
	if (resv->nvictims)
		start_abort_barrier(resv, true);
	else
		resv_apply_revision(resv);
}

static void resv_free(struct tgt_resv *resv)
{
	free_old_views(resv);
	tgt_resv_dispatch_end(&resv->dispatch);
	free(resv->victims);
	free(resv->barrier);
	free(resv);
}

static void resv_finish_stop(struct tgt_resv *resv)
{
	struct weft_subsys *s = resv->subsys;
	void (*stopped)(struct weft_subsys * s) = resv->stopped;

	assert(!resv->barrier->pending);
	weft_timer_stop(s->target->control, &resv->timer);
	weft_task_cancel(&resv->task);
	s->resv = NULL;
	resv_free(resv);
	stopped(s);
}

static void revision_applied(struct tgt_resv *resv)
{
	struct weft_store *store = resv->subsys->store;

	assert(resv->running);
	resv->nvictims = 0;
	if (resv->nsid <= WEFT_NSID_MAX) {
		weft_reactor_defer(resv->subsys->target->control, &resv->task);
		return;
	}
	if (resv->failed) {
		weft_timer_set(resv->subsys->target->control, &resv->timer, RETRY_MS);
		return;
	}
	resv->running = false;
	tgt_store_consumed(resv->subsys, TGT_CONSUMER_RESV, resv->revision);
	if (weft_store_revision(store) > resv->revision)
		resv_apply_revision(resv);
}

/* Storage may take long over the commands to abort. */
static void recheck_aborts_later(struct tgt_resv *resv)
{
	weft_timer_set(resv->subsys->target->control, &resv->timer, resv->abort_ms);
	resv->abort_ms *= 2;
	if (resv->abort_ms > ABORT_MS_MAX)
		resv->abort_ms = ABORT_MS_MAX;
}

static void resv_barrier_done(struct tgt_barrier *barrier)
{
	struct tgt_resv *resv = barrier->arg;

	free_old_views(resv);
	if (resv->stopped)
		resv_finish_stop(resv);
	else if (!atomic_load(&resv->ended))
		recheck_aborts_later(resv);
	else
		revision_applied(resv);
}

/* --- slices ----------------------------------------------------------------------------------- */

/* Both return the cost. For a namespace that is gone nothing is dispatched. */
static int dispatch_bucket(struct tgt_resv *resv)
{
	struct resv_dispatch *dispatch = &resv->dispatch;
	const struct tgt_ns *ns = tgt_ns_find(resv->subsys, dispatch->nsid);
	struct tgt_ctrl *ctrl;
	int cost = 0;

	if (!ns || ns->serial != dispatch->ns_serial) {
		tgt_resv_dispatch_end(dispatch);
		return 0;
	}
	assert(dispatch->bucket < TGT_CNTLID_BUCKETS);
	weft_list_for_each(ctrl, &resv->subsys->by_cntlid[dispatch->bucket], by_cntlid)
		cost += 1 + (int)tgt_resv_dispatch_to_ctrl(dispatch, ctrl);
	if (++dispatch->bucket == TGT_CNTLID_BUCKETS)
		tgt_resv_dispatch_end(dispatch);
	return cost;
}

static int apply_next_ns(struct tgt_resv *resv)
{
	struct tgt_ns *ns = tgt_ns_find(resv->subsys, resv->nsid++);
	int cost = ns ? apply_ns(resv, ns) : 0;

	resv->failed |= cost < 0;
	return cost < 0 ? 1 : cost;
}

/* Before the next barrier. */
static bool slice_has_more(const struct tgt_resv *resv)
{
	return resv->dispatch.n || (resv->nsid <= WEFT_NSID_MAX && resv->nvictims < VICTIMS);
}

static void begin_aborts(struct tgt_resv *resv)
{
	tgt_resv_victims_sort(resv->victims, resv->nvictims);
	resv->abort_ms = ABORT_MS;
	start_abort_barrier(resv, false);
}

/* A subsystem that is being removed applies and acknowledges nothing more: its namespaces go, and
 * then its store. */
static void resv_apply_slice(struct weft_task *task)
{
	struct tgt_resv *resv = container_of(task, struct tgt_resv, task);
	int left = SLICE;

	assert(resv->running && !resv->stopped && !resv->barrier->pending);
	if (resv->subsys->removing) {
		resv->running = false;
		return;
	}
	while (left > 0 && slice_has_more(resv))
		left -= resv->dispatch.n ? dispatch_bucket(resv) : apply_next_ns(resv);
	if (slice_has_more(resv))
		weft_reactor_defer(resv->subsys->target->control, &resv->task);
	else
		begin_aborts(resv);
}

static void resv_apply_revision(struct tgt_resv *resv)
{
	resv->running = true;
	resv->failed = false;
	resv->revision = weft_store_revision(resv->subsys->store);
	resv->nsid = 1;
	weft_reactor_defer(resv->subsys->target->control, &resv->task);
}

void tgt_resv_store_moved(struct weft_subsys *s)
{
	assert_on_control(s->target);
	if (!s->resv->running)
		resv_apply_revision(s->resv);
}

bool tgt_resv_is_idle(const struct weft_subsys *s)
{
	assert_on_control(s->target);
	return !s->resv->running && s->resv->revision == weft_store_revision(s->store);
}

/* --- beginning and end ------------------------------------------------------------------------ */

int tgt_resv_start(struct weft_subsys *s)
{
	struct tgt_resv *resv = calloc(1, sizeof(*resv) + s->target->npoll_groups *
								  sizeof(resv->aborts[0]));

	assert_on_control(s->target);
	assert(!s->resv);
	if (resv)
		resv->barrier = tgt_barrier_new(s->target);
	if (!resv || !resv->barrier) {
		free(resv);
		return -ENOMEM;
	}
	resv->subsys = s;
	resv->barrier->arg = resv;
	resv->barrier->on_reactor = resv_abort_on_reactor;
	resv->barrier->done = resv_barrier_done;
	resv->timer.fn = resv_timer_fired;
	weft_task_init(&resv->task, resv_apply_slice);
	s->resv = resv;
	resv_apply_revision(resv);
	return 0;
}

void tgt_resv_stop(struct weft_subsys *s, void (*stopped)(struct weft_subsys *s))
{
	struct tgt_resv *resv = s->resv;

	assert_on_control(s->target);
	assert(s->removing && !resv->stopped);
	resv->stopped = stopped;
	if (!resv->barrier->pending)
		resv_finish_stop(resv);
}
