/* apply.c - the store moved: make it so, here, and say when it is.
 *
 *   moved ─▶ for every namespace whose record is newer: publish its view, tell hosts
 *         ─▶ a round: every reactor goes by the new views, and aborts ─▶ ack
 *               └──────── storage still has something to abort ◀┘
 *
 * What moves meanwhile is next. Invariant: a revision is acknowledged when no command that it
 * forbids can begin here, and none that it aborts goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/uuid.h"
#include "target/resv/resv.h"

enum { ABORT_MS = 1, RETRY_MS = 100 };

struct tgt_resv {
	struct weft_subsys *subsys;
	struct tgt_round *round;
	struct weft_timer timer;
	bool running, failed;
	uint64_t revision; /* that is made so */
	struct resv_view *old;
	struct resv_victim *victims;
	unsigned nvictims;
	atomic_bool ended; /* all that is to be aborted */
	void (*stopped)(struct weft_subsys *s);
};

static void apply(struct tgt_resv *resv);

/* --- records ---------------------------------------------------------------------------------- */

void tgt_resv_key(const struct tgt_ns *ns, char key[TGT_RESV_KEY])
{
	char uuid[37];

	weft_uuid_format(ns->uuid, uuid);
	snprintf(key, 48, "resv/%s", uuid);
}

static const struct weft_record *find_record(const struct tgt_ns *ns)
{
	char key[TGT_RESV_KEY];

	tgt_resv_key(ns, key);
	return weft_store_get(ns->subsys->store, key);
}

int tgt_resv_state(const struct tgt_ns *ns, struct resv_state *st,
		   const struct weft_record **record)
{
	struct weft_store *store = ns->subsys->store;

	*record = find_record(ns);
	return resv_record_decode(st, weft_store_session(store), *record ? (*record)->value : NULL,
				  *record ? (*record)->len : 0);
}

int tgt_resv_load(struct tgt_ns *ns)
{
	const struct weft_record *record;
	struct resv_state st;
	struct resv_view *view;
	int rc = tgt_resv_state(ns, &st, &record);

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

/* Those of its notices that came since the last time. */
static unsigned first_new(const struct tgt_ns *ns, const struct resv_state *st)
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
	for (unsigned i = first_new(ns, st); i < st->nnotices; i++) {
		if (!st->notices[i].abort)
			continue;
		victims[resv->nvictims].ns_serial = ns->serial;
		memcpy(victims[resv->nvictims++].host, st->notices[i].host, RESV_HOST_BYTES);
	}
	return 0;
}

static void publish(struct tgt_resv *resv, struct tgt_ns *ns, struct resv_view *view)
{
	struct resv_view *old = atomic_load_explicit(&ns->resv, memory_order_relaxed);

	atomic_store_explicit(&ns->resv, view, memory_order_release);
	if (!old)
		return;
	old->next_old = resv->old;
	resv->old = old;
}

static int apply_record(struct tgt_resv *resv, struct tgt_ns *ns, const struct resv_state *st,
			uint64_t version)
{
	struct resv_view *view;
	int rc = tgt_resv_view_new(st, &view);

	if (rc < 0)
		return rc;
	rc = add_victims(resv, ns, st);
	if (rc < 0) {
		free(view);
		return rc;
	}
	publish(resv, ns, view);
	for (unsigned i = first_new(ns, st); i < st->nnotices; i++)
		tgt_resv_notify(ns->subsys, ns->nsid, &st->notices[i]);
	ns->resv_version = version;
	ns->resv_noticed = st->noticed;
	return 0;
}

/* A record that is not ours to read was not written by a target like this one: nothing is known,
 * and nothing is acknowledged. */
static int apply_ns(struct tgt_resv *resv, struct tgt_ns *ns)
{
	const struct weft_record *record = find_record(ns);
	uint64_t version = record ? record->version : 0;
	struct resv_state st;
	int rc;

	if (version == ns->resv_version)
		return 0;
	rc = tgt_resv_state(ns, &st, &record);
	if (rc < 0) {
		weft_error("%s: the reservation of namespace %u cannot be read: %s",
			   ns->subsys->nqn, ns->nsid, strerror(-rc));
		return rc;
	}
	return apply_record(resv, ns, &st, version);
}

/* --- all of them ------------------------------------------------------------------------------ */

static void free_old(struct tgt_resv *resv)
{
	while (resv->old) {
		struct resv_view *view = resv->old;

		resv->old = view->next_old;
		free(view);
	}
}

static void visit(struct tgt_round *round, struct weft_group *group)
{
	struct tgt_resv *resv = round->arg;

	if (!tgt_resv_abort(group, resv->victims, resv->nvictims))
		atomic_store(&resv->ended, false);
	tgt_round_answer(round, group);
}

static void start_round(struct tgt_resv *resv)
{
	atomic_store(&resv->ended, true);
	tgt_round_start(resv->round);
}

static void timed(struct weft_timer *timer)
{
	struct tgt_resv *resv = container_of(timer, struct tgt_resv, timer);

	if (resv->nvictims)
		start_round(resv);
	else
		apply(resv);
}

static void resv_free(struct tgt_resv *resv)
{
	free_old(resv);
	free(resv->victims);
	free(resv->round);
	free(resv);
}

static void finish_stop(struct tgt_resv *resv)
{
	struct weft_subsys *s = resv->subsys;
	void (*stopped)(struct weft_subsys * s) = resv->stopped;

	weft_timer_stop(s->target->home, &resv->timer);
	s->resv = NULL;
	resv_free(resv);
	stopped(s);
}

static void made_so(struct tgt_resv *resv)
{
	struct weft_store *store = resv->subsys->store;

	resv->nvictims = 0;
	if (resv->failed) {
		weft_timer_set(resv->subsys->target->home, &resv->timer, RETRY_MS);
		return;
	}
	resv->running = false;
	tgt_follows(resv->subsys, TGT_FOLLOWS_RESV, resv->revision);
	if (weft_store_revision(store) > resv->revision)
		apply(resv);
}

static void visited(struct tgt_round *round)
{
	struct tgt_resv *resv = round->arg;

	free_old(resv);
	if (resv->stopped)
		finish_stop(resv);
	else if (!atomic_load(&resv->ended))
		weft_timer_set(round->target->home, &resv->timer, ABORT_MS);
	else
		made_so(resv);
}

/* A subsystem that is being removed follows no more, and so does not acknowledge: its namespaces
 * go, and then its store. */
static void apply(struct tgt_resv *resv)
{
	struct weft_subsys *s = resv->subsys;

	resv->running = !s->removing;
	if (s->removing)
		return;
	resv->failed = false;
	resv->revision = weft_store_revision(s->store);
	for (uint32_t nsid = 1; nsid <= WEFT_NSID_MAX; nsid++) {
		struct tgt_ns *ns = tgt_ns_find(s, nsid);

		if (ns && apply_ns(resv, ns) < 0)
			resv->failed = true;
	}
	start_round(resv);
}

void tgt_resv_moved(struct weft_subsys *s)
{
	if (!s->resv->running)
		apply(s->resv);
}

bool tgt_resv_is_idle(const struct weft_subsys *s)
{
	return !s->resv->running && s->resv->revision == weft_store_revision(s->store);
}

/* --- beginning and end ------------------------------------------------------------------------ */

int tgt_resv_start(struct weft_subsys *s)
{
	struct tgt_resv *resv = calloc(1, sizeof(*resv));

	if (resv)
		resv->round = tgt_round_new(s->target);
	if (!resv || !resv->round) {
		free(resv);
		return -ENOMEM;
	}
	resv->subsys = s;
	resv->round->arg = resv;
	resv->round->visit = visit;
	resv->round->done = visited;
	resv->timer.fn = timed;
	s->resv = resv;
	apply(resv);
	return 0;
}

void tgt_resv_stop(struct weft_subsys *s, void (*stopped)(struct weft_subsys *s))
{
	struct tgt_resv *resv = s->resv;

	resv->stopped = stopped;
	if (!resv->round->pending)
		finish_stop(resv);
}
