/* line.c - changes of a namespace's reservation wait in line, and are committed by the batch.
 *
 *   change ─▶ the line of its namespace ─▶ batch: the rules, one change after the other ─▶ commit
 *                 ▲                                                                         │
 *                 └── the batch again: another member was faster ◀──────────────────────────┤
 *                              replies ◀── settled: it binds everywhere ◀── committed ◀─────┘
 *
 * The next batch runs on what the one before it has committed, so no change of ours is run again
 * because of another one of ours: n changes cost n runs of the rules, whoever sends them at once.
 * Hosts take turns in a line, by their names, and lines in a turn of home.
 *
 * A change is answered when it binds everywhere, and so is a command that found nothing to change:
 * what it relies on may be on its way to others. One that the rules refuse is answered when what
 * was run before it is committed.
 *
 * Invariant: of each line, one batch at most is not committed. */
#include "target/resv/line.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/uuid.h"
#include "target/resv/resv.h"

enum {
	BATCH_MAX = 64,   /* changes */
	LINES_MAX = 16,   /* that run in one turn of home */
	RUN_COMMANDS = 7, /* to read, run and commit one is as much work as so many commands more */
};

struct resv_change {
	struct weft_list link;     /* where it waits, or its batch */
	struct weft_list behind;   /* of the first of its host in line: the others */
	struct weft_list of_queue; /* queue->changes */
	struct weft_subsys *subsys;
	const struct tgt_flow *flow; /* of its host; NULL: its queue is gone */
	struct weft_req *req;        /* NULL: its queue is gone, nobody waits for the answer */
	struct resv_batch *batch;
	struct resv_request rq;
	bool first;      /* of its host in line */
	uint16_t status; /* what the rules said */
};

struct resv_line {
	struct weft_list link; /* target->resv_lines, while it can run */
	struct weft_subsys *subsys;
	uint32_t nsid;
	struct weft_list again; /* changes whose batch found others faster; before all others */
	struct weft_list hosts; /* the first change of each host, in turn */
	struct resv_batch *committing;
	struct weft_store_wait room; /* for more notices, see resv_has_room() */
	bool full;
};

struct resv_batch {
	struct resv_line *line; /* until it is committed */
	struct weft_subsys *subsys;
	struct weft_list changes;
	char key[TGT_RESV_KEY];
	void *value;
	struct weft_store_write write;
	struct weft_txn txn;
	struct weft_store_wait wait;
};

/* --- in line ---------------------------------------------------------------------------------- */

static struct resv_change *first_of_host(const struct resv_line *line, const struct tgt_flow *flow)
{
	struct resv_change *change;

	weft_list_for_each(change, &line->hosts, link)
		if (change->flow == flow)
			return change;
	return NULL;
}

static void enter(struct resv_line *line, struct resv_change *change)
{
	struct resv_change *first = first_of_host(line, change->flow);

	change->first = !first;
	weft_list_push(first ? &first->behind : &line->hosts, &change->link);
}

/* The next of its host comes after those of other hosts. */
static void leave(struct resv_line *line, struct resv_change *change)
{
	struct weft_list *link = change->first ? weft_list_pop(&change->behind) : NULL;
	struct resv_change *next;

	weft_list_remove(&change->link);
	change->first = false;
	if (!link)
		return;
	next = container_of(link, struct resv_change, link);
	next->first = true;
	weft_list_splice(&next->behind, &change->behind);
	weft_list_push(&line->hosts, &next->link);
}

static struct resv_change *next_of(const struct resv_line *line)
{
	const struct weft_list *from = weft_list_empty(&line->again) ? &line->hosts : &line->again;

	return weft_list_empty(from) ? NULL : container_of(from->next, struct resv_change, link);
}

/* --- lines ------------------------------------------------------------------------------------ */

static struct resv_line *line_of(struct weft_subsys *s, uint32_t nsid)
{
	struct resv_line **line = &s->resv_lines[nsid - 1];

	if (*line)
		return *line;
	*line = calloc(1, sizeof(**line));
	if (!*line)
		return NULL;
	(*line)->subsys = s;
	(*line)->nsid = nsid;
	weft_list_init(&(*line)->link);
	weft_list_init(&(*line)->again);
	weft_list_init(&(*line)->hosts);
	return *line;
}

/* It can run, or is not needed any more. */
static void look_at_line(struct resv_line *line)
{
	struct weft_target *t = line->subsys->target;

	if (line->committing || line->full)
		return;
	weft_list_remove(&line->link);
	if (next_of(line)) {
		weft_list_push(&t->resv_lines, &line->link);
		weft_reactor_defer(t->home, &t->resv_task);
	} else {
		line->subsys->resv_lines[line->nsid - 1] = NULL;
		free(line);
	}
}

/* --- the end of a change ---------------------------------------------------------------------- */

static void free_change(struct resv_change *change)
{
	change->subsys->changes--;
	weft_list_remove(&change->of_queue);
	weft_list_remove(&change->link);
	free(change);
}

static void end(struct resv_change *change, uint16_t sc)
{
	if (change->req)
		tgt_home_reply(change->req, sc);
	free_change(change);
}

static void end_all(struct weft_list *changes, uint16_t sc)
{
	while (!weft_list_empty(changes))
		end(container_of(changes->next, struct resv_change, link), sc);
}

static void free_batch(struct resv_batch *batch)
{
	free(batch->value);
	free(batch);
}

/* --- settled ---------------------------------------------------------------------------------- */

/* The store does not settle it: we are no member any more, or stop. */
static uint16_t unsettled(int rc)
{
	return rc == -EOWNERDEAD ? SC_PATH(ANA_PERSISTENT_LOSS) : SC_GENERIC(ABORT_QUEUE);
}

static void settled(struct weft_store_wait *wait, int rc)
{
	struct resv_batch *batch = container_of(wait, struct resv_batch, wait);

	end_all(&batch->changes, rc < 0 ? unsettled(rc) : 0);
	free_batch(batch);
}

static void end_refused(struct resv_batch *batch)
{
	struct resv_change *change, *tmp;

	weft_list_for_each_safe(change, tmp, &batch->changes, link)
		if (change->status || !change->req)
			end(change, change->status);
}

static void settle(struct resv_batch *batch, uint64_t revision)
{
	batch->line = NULL;
	end_refused(batch);
	batch->wait = (struct weft_store_wait){ .revision = revision, .done = settled };
	weft_store_settle(batch->subsys->store, &batch->wait);
}

/* --- committed -------------------------------------------------------------------------------- */

/* Nobody waits for the answer of those whose queue is gone. */
static void run_again(struct resv_line *line, struct resv_batch *batch)
{
	struct resv_change *change, *tmp;

	weft_list_for_each_safe(change, tmp, &batch->changes, link) {
		change->batch = NULL;
		if (!change->req)
			end(change, 0);
	}
	weft_list_splice(&batch->changes, &line->again);
	weft_list_splice(&line->again, &batch->changes);
	free_batch(batch);
}

static void committed(struct weft_txn *txn, int rc)
{
	struct resv_batch *batch = container_of(txn, struct resv_batch, txn);
	struct resv_line *line = batch->line;

	line->committing = NULL;
	if (rc == -ESTALE) {
		run_again(line, batch);
	} else if (rc == -EOWNERDEAD) {
		end_all(&batch->changes, unsettled(rc));
		free_batch(batch);
	} else if (rc < 0) {
		if (rc != -ECANCELED)
			weft_error("%s: a reservation cannot be changed: %s", line->subsys->nqn,
				   strerror(-rc));
		end_all(&batch->changes, SC_GENERIC(INTERNAL));
		free_batch(batch);
	} else {
		settle(batch, txn->revision);
	}
	look_at_line(line);
}

static void commit(struct resv_batch *batch, const struct resv_state *st, uint64_t version)
{
	struct weft_store *store = batch->subsys->store;
	size_t size = resv_record_size(st);

	batch->value = malloc(size);
	if (!batch->value) {
		end_all(&batch->changes, SC_GENERIC(INTERNAL));
		free_batch(batch);
		return;
	}
	resv_record_encode(st, weft_store_session(store), batch->value);
	batch->write = (struct weft_store_write){
		.key = batch->key,
		.version = version,
		.value = batch->value,
		.len = (uint32_t)size,
	};
	batch->txn = (struct weft_txn){ &batch->write, 1, committed };
	batch->line->committing = batch;
	weft_store_commit(store, &batch->txn);
}

/* --- run -------------------------------------------------------------------------------------- */

/* Notices that every member has seen have done their work. There may have been a record before,
 * whose notices somebody has counted: every revision had its number of them at most, so that none
 * is counted twice. */
static int load(const struct tgt_ns *ns, struct resv_state *st, uint64_t *version)
{
	const struct weft_store *store = ns->subsys->store;
	const struct weft_record *record;
	int rc = tgt_resv_state(ns, st, &record);

	*version = record ? record->version : 0;
	if (record && record->version <= weft_store_settled(store))
		st->nnotices = 0;
	if (!record)
		st->noticed = weft_store_revision(store) * RESV_NOTICES_MAX;
	return rc;
}

static struct resv_batch *batch_new(struct resv_line *line, const struct tgt_ns *ns)
{
	struct resv_batch *batch = calloc(1, sizeof(*batch));

	if (!batch)
		return NULL;
	batch->line = line;
	batch->subsys = line->subsys;
	weft_list_init(&batch->changes);
	tgt_resv_key(ns, batch->key);
	return batch;
}

/* The namespace of the first change that still has one; those before it are answered. NULL: there
 * is none. */
static struct tgt_ns *ns_of_first(struct resv_line *line)
{
	struct resv_change *change;
	struct tgt_ns *ns;
	uint16_t sc;

	while ((change = next_of(line))) {
		sc = tgt_ns_of(change->req, &ns);
		if (!sc)
			return ns;
		leave(line, change);
		end(change, sc);
	}
	return NULL;
}

/* True: the state is another one. */
static bool run_changes(struct resv_line *line, struct resv_batch *batch, const struct tgt_ns *ns,
			struct resv_state *st)
{
	struct resv_change *change;
	bool changed, any = false;

	for (unsigned n = 0; n < BATCH_MAX && resv_has_room(st) && ns_of_first(line) == ns; n++) {
		change = next_of(line);
		leave(line, change);
		change->batch = batch;
		weft_list_push(&batch->changes, &change->link);
		change->status = resv_run(st, &change->rq, &changed);
		any |= !change->status && changed;
	}
	return any;
}

static void has_room(struct weft_store_wait *wait, int rc)
{
	struct resv_line *line = container_of(wait, struct resv_line, room);
	struct resv_change *change;

	line->full = false;
	while (rc < 0 && (change = next_of(line))) {
		leave(line, change);
		end(change, unsettled(rc));
	}
	look_at_line(line);
}

static void wait_for_room(struct resv_line *line, uint64_t version)
{
	line->full = true;
	line->room = (struct weft_store_wait){ .revision = version, .done = has_room };
	weft_store_settle(line->subsys->store, &line->room);
}

static void fail_first(struct resv_line *line)
{
	struct resv_change *change = next_of(line);

	leave(line, change);
	end(change, SC_GENERIC(INTERNAL));
}

static void run_batch(struct resv_line *line, struct tgt_ns *ns)
{
	struct resv_batch *batch;
	struct resv_state st;
	uint64_t version;
	int rc = load(ns, &st, &version);

	if (!rc && !resv_has_room(&st)) {
		wait_for_room(line, version);
		return;
	}
	batch = rc ? NULL : batch_new(line, ns);
	if (!batch)
		fail_first(line);
	else if (run_changes(line, batch, ns, &st))
		commit(batch, &st, version);
	else
		settle(batch, version);
}

static void run_line(struct resv_line *line)
{
	struct tgt_ns *ns = ns_of_first(line);

	if (ns)
		run_batch(line, ns);
	look_at_line(line);
}

void tgt_resv_run_lines(struct weft_task *task)
{
	struct weft_target *t = container_of(task, struct weft_target, resv_task);
	struct weft_list *link;

	for (unsigned n = 0; n < LINES_MAX && (link = weft_list_pop(&t->resv_lines)); n++)
		run_line(container_of(link, struct resv_line, link));
	if (!weft_list_empty(&t->resv_lines))
		weft_reactor_defer(t->home, &t->resv_task);
}

/* --- beginning, and a queue's end ------------------------------------------------------------- */

/* The same in every member. No name is 0. */
static void put_name(uint8_t name[RESV_NAME_BYTES], const char *hostnqn)
{
	uint8_t hash[32];

	weft_digest("registrant", hostnqn, true, hash);
	memcpy(name, hash, RESV_NAME_BYTES);
	name[0] |= 1;
}

void tgt_resv_begin(struct weft_req *req, const struct resv_request *rq)
{
	struct tgt_queue *queue = tgt_queue(req);
	struct tgt_ctrl *ctrl = queue->ctrl;
	struct resv_change *change = calloc(1, sizeof(*change));
	struct resv_line *line = NULL;
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_of(req, &ns);

	if (!sc && change)
		line = line_of(ctrl->subsys, tgt_nsid(req));
	if (!line) {
		free(change);
		tgt_home_reply(req, sc ? sc : SC_GENERIC(INTERNAL));
		return;
	}
	change->req = req;
	change->subsys = ctrl->subsys;
	change->flow = ctrl->flow;
	change->rq = *rq;
	memcpy(change->rq.host, ctrl->hostid, RESV_HOST_BYTES);
	put_name(change->rq.name, ctrl->hostnqn);
	change->rq.can_persist = weft_store_persistent(ctrl->subsys->store);
	weft_list_init(&change->behind);
	weft_list_push(&queue->changes, &change->of_queue);
	ctrl->subsys->changes++;
	enter(line, change);
	if (!line->committing && !line->full && weft_list_empty(&line->link)) {
		tgt_home_spend(ctrl->subsys->target, RUN_COMMANDS);
		run_line(line);
	}
}

/* One that the store has ends when the store gives it back. */
static void give_back(struct resv_change *change)
{
	struct resv_line *line = change->subsys->resv_lines[tgt_nsid(change->req) - 1];

	tgt_home_reply(take_ptr(&change->req), SC_GENERIC(ABORT_QUEUE));
	change->flow = NULL;
	if (change->batch && change->batch->line) {
		weft_list_remove(&change->of_queue);
		return;
	}
	if (!change->batch) {
		leave(line, change);
		look_at_line(line);
	}
	free_change(change);
}

void tgt_resv_give_back(struct tgt_queue *queue)
{
	struct resv_change *change, *tmp;

	weft_list_for_each_safe(change, tmp, &queue->changes, of_queue)
		give_back(change);
}
