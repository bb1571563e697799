/* change_queue.c - the change queue: changes of a namespace's reservation are queued, run through
 * the rules and committed in batches.
 *
 *   change ─▶ its namespace's queue ─▶ batch: the rules, one change after the other ─▶ commit
 *                 ▲                                                                      │
 *                 └── run the batch again: another member was faster ◀───────────────────┤
 *                         replies ◀── settled: all members act by it ◀── committed ◀─────┘
 *
 * A batch starts from the state that the one before it committed, so our own changes never make
 * each other stale: n changes run the rules n times. Hosts take turns within a queue, by their
 * NQNs, and queues within a turn of the control reactor.
 *
 * A change is answered when it is settled, and so is a command that changed nothing, since what it
 * relies on may not be settled yet. A refusal is answered when the changes before it are committed.
 *
 * Invariant: of each queue, at most one batch is not committed. */
#include "target/resv/change_queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "base/log.h"
#include "base/uuid.h"
#include "target/resv/resv.h"

enum {
	BATCH_MAX = 64,       /* changes in a batch */
	QUEUES_PER_TURN = 16, /* run in one turn of the control reactor */
	/* To read, run and commit a batch is as much work as so many commands more. */
	BATCH_COST = 7,
};

struct resv_change {
	struct weft_list link;       /* in its queue, or in its batch */
	struct weft_list behind;     /* of a host's first change: the host's other changes */
	struct weft_list queue_link; /* queue->resv_changes */
	struct weft_subsys *subsys;
	const struct tgt_flow *flow; /* of its host; NULL: its queue is gone */
	struct weft_req *req;        /* NULL: its queue is gone, nobody waits for the answer */
	struct resv_batch *batch;
	struct resv_request rq;
	bool first;      /* it is the first queued change of its host */
	uint16_t status; /* what the rules said */
};

struct resv_change_queue {
	struct weft_list link; /* target->resv_change_queues, while it can run */
	struct weft_subsys *subsys;
	uint32_t nsid;
	struct weft_list requeued; /* changes whose batch another member overtook; they run first */
	struct weft_list hosts;    /* the first change of each host, in turn */
	struct resv_batch *committing;
	struct weft_store_wait
		room; /* until there is room for more notices: resv_has_notice_room() */
	bool full;
};

struct resv_batch {
	struct resv_change_queue *chq; /* until it is committed */
	struct weft_subsys *subsys;
	struct weft_list changes;
	char key[TGT_RESV_KEY];
	void *value;
	struct weft_store_write write;
	struct weft_store_txn txn;
	struct weft_store_wait wait;
};

/* --- changes in a queue ----------------------------------------------------------------------- */

static struct resv_change *first_change_of_host(const struct resv_change_queue *chq,
						const struct tgt_flow *flow)
{
	struct resv_change *change;

	weft_list_for_each(change, &chq->hosts, link)
		if (change->flow == flow)
			return change;
	return NULL;
}

static void change_enqueue(struct resv_change_queue *chq, struct resv_change *change)
{
	struct resv_change *first = first_change_of_host(chq, change->flow);

	assert(change->req && !change->batch);
	change->first = !first;
	weft_list_push(first ? &first->behind : &chq->hosts, &change->link);
}

/* The next change of the same host goes behind those of other hosts. */
static void change_dequeue(struct resv_change_queue *chq, struct resv_change *change)
{
	struct weft_list *link = change->first ? weft_list_pop(&change->behind) : NULL;
	struct resv_change *next;

	assert(!change->batch);
	weft_list_remove(&change->link);
	change->first = false;
	if (!link)
		return;
	next = container_of(link, struct resv_change, link);
	next->first = true;
	weft_list_splice(&next->behind, &change->behind);
	weft_list_push(&chq->hosts, &next->link);
}

static struct resv_change *change_queue_next(const struct resv_change_queue *chq)
{
	const struct weft_list *from = weft_list_empty(&chq->requeued) ? &chq->hosts :
									 &chq->requeued;

	return weft_list_empty(from) ? NULL : container_of(from->next, struct resv_change, link);
}

/* --- queues ----------------------------------------------------------------------------------- */

static struct resv_change_queue *change_queue_get(struct weft_subsys *s, uint32_t nsid)
{
	struct resv_change_queue **chq = &s->resv_change_queues[nsid - 1];

	assert(nsid - 1 < WEFT_NSID_MAX);
	if (*chq)
		return *chq;
	*chq = calloc(1, sizeof(**chq));
	if (!*chq)
		return NULL;
	(*chq)->subsys = s;
	(*chq)->nsid = nsid;
	weft_list_init(&(*chq)->link);
	weft_list_init(&(*chq)->requeued);
	weft_list_init(&(*chq)->hosts);
	return *chq;
}

/* Schedules the queue if it can run, frees it if it is empty. */
static void change_queue_schedule(struct resv_change_queue *chq)
{
	struct weft_target *t = chq->subsys->target;

	if (chq->committing || chq->full) {
		assert(weft_list_empty(&chq->link));
		return;
	}
	weft_list_remove(&chq->link);
	if (change_queue_next(chq)) {
		weft_list_push(&t->resv_change_queues, &chq->link);
		weft_reactor_defer(t->control, &t->resv_queue_task);
	} else {
		chq->subsys->resv_change_queues[chq->nsid - 1] = NULL;
		free(chq);
	}
}

/* --- the end of a change ---------------------------------------------------------------------- */

static void change_free(struct resv_change *change)
{
	assert(weft_list_empty(&change->behind));
	weft_count_down(change->subsys->resv_changes);
	weft_list_remove(&change->queue_link);
	weft_list_remove(&change->link);
	free(change);
}

static void change_finish(struct resv_change *change, uint16_t sc)
{
	if (change->req)
		tgt_control_reply(change->req, sc);
	change_free(change);
}

static void changes_finish(struct weft_list *changes, uint16_t sc)
{
	while (!weft_list_empty(changes))
		change_finish(container_of(changes->next, struct resv_change, link), sc);
}

static void batch_free(struct resv_batch *batch)
{
	assert(weft_list_empty(&batch->changes));
	free(batch->value);
	free(batch);
}

/* --- settled ---------------------------------------------------------------------------------- */

/* The store will not settle the change: we are no member any more, or we stop. */
static uint16_t unsettled_status(int rc)
{
	return rc == -EOWNERDEAD ? SC_PATH(ANA_PERSISTENT_LOSS) : SC_GENERIC(ABORT_QUEUE);
}

static void batch_settled(struct weft_store_wait *wait, int rc)
{
	struct resv_batch *batch = container_of(wait, struct resv_batch, wait);

	assert(!batch->chq);
	changes_finish(&batch->changes, rc < 0 ? unsettled_status(rc) : 0);
	batch_free(batch);
}

static void changes_finish_refused(struct resv_batch *batch)
{
	struct resv_change *change, *tmp;

	weft_list_for_each_safe(change, tmp, &batch->changes, link)
		if (change->status || !change->req)
			change_finish(change, change->status);
}

static void batch_wait_settled(struct resv_batch *batch, uint64_t revision)
{
	assert(!batch->chq->committing);
	batch->chq = NULL;
	changes_finish_refused(batch);
	batch->wait = (struct weft_store_wait){ .revision = revision, .done = batch_settled };
	weft_store_wait_settled(batch->subsys->store, &batch->wait);
}

/* --- committed -------------------------------------------------------------------------------- */

/* A change whose queue is gone is freed: nobody waits for its answer. */
static void batch_requeue(struct resv_change_queue *chq, struct resv_batch *batch)
{
	struct resv_change *change, *tmp;

	weft_list_for_each_safe(change, tmp, &batch->changes, link) {
		change->batch = NULL;
		if (!change->req)
			change_finish(change, 0);
	}
	weft_list_splice(&batch->changes, &chq->requeued);
	weft_list_splice(&chq->requeued, &batch->changes);
	batch_free(batch);
}

static void batch_committed(struct weft_store_txn *txn, int rc)
{
	struct resv_batch *batch = container_of(txn, struct resv_batch, txn);
	struct resv_change_queue *chq = batch->chq;

	assert_on_control(batch->subsys->target);
	assert(chq->committing == batch);
	chq->committing = NULL;
	if (rc == -ESTALE) {
		batch_requeue(chq, batch);
	} else if (rc == -EOWNERDEAD) {
		changes_finish(&batch->changes, unsettled_status(rc));
		batch_free(batch);
	} else if (rc < 0) {
		if (rc != -ECANCELED)
			weft_error("%s: %s: %s", chq->subsys->nqn,
				   txn->in_doubt ? "a reservation may have been changed, or not" :
						   "a reservation cannot be changed",
				   strerror(-rc));
		changes_finish(&batch->changes, SC_GENERIC(INTERNAL));
		batch_free(batch);
	} else {
		batch_wait_settled(batch, txn->revision);
	}
	change_queue_schedule(chq);
}

static void batch_commit(struct resv_batch *batch, const struct resv_state *st, uint64_t version)
{
	struct weft_store *store = batch->subsys->store;
	size_t size = resv_record_size(st);

	batch->value = malloc(size);
	if (!batch->value) {
		changes_finish(&batch->changes, SC_GENERIC(INTERNAL));
		batch_free(batch);
		return;
	}
	resv_record_encode(st, weft_store_session(store), batch->value);
	batch->write = (struct weft_store_write){
		.key = batch->key,
		.version = version,
		.value = batch->value,
		.len = (uint32_t)size,
	};
	batch->txn = (struct weft_store_txn){ &batch->write, 1, batch_committed };
	batch->chq->committing = batch;
	weft_store_commit(store, &batch->txn);
}

/* --- run -------------------------------------------------------------------------------------- */

/* Drops notices that every member has seen. A removed record may have had notices that somebody has
 * counted: a revision has at most so many of them, so the count starts above all of those. */
static int load_resv_state(const struct tgt_ns *ns, struct resv_state *st, uint64_t *version)
{
	const struct weft_store *store = ns->subsys->store;
	const struct weft_store_record *record;
	int rc = tgt_resv_state(ns, st, &record);

	*version = record ? record->version : 0;
	if (record && record->version <= weft_store_settled_revision(store))
		st->nnotices = 0;
	if (!record)
		st->noticed = weft_store_revision(store) * RESV_NOTICES_MAX;
	return rc;
}

static struct resv_batch *batch_new(struct resv_change_queue *chq, const struct tgt_ns *ns)
{
	struct resv_batch *batch = calloc(1, sizeof(*batch));

	if (!batch)
		return NULL;
	batch->chq = chq;
	batch->subsys = chq->subsys;
	weft_list_init(&batch->changes);
	tgt_resv_key(ns, batch->key);
	return batch;
}

/* The namespace of the first change that still has one; answers the changes before it. NULL: there
 * is none. */
static struct tgt_ns *change_queue_ns(struct resv_change_queue *chq)
{
	struct resv_change *change;
	struct tgt_ns *ns;
	uint16_t sc;

	while ((change = change_queue_next(chq))) {
		assert(change->req && !change->batch);
		sc = tgt_ns_lookup(change->req, &ns);
		if (!sc)
			return ns;
		change_dequeue(chq, change);
		change_finish(change, sc);
	}
	return NULL;
}

/* True: the state has changed. */
static bool batch_run_rules(struct resv_change_queue *chq, struct resv_batch *batch,
			    const struct tgt_ns *ns, struct resv_state *st)
{
	struct resv_change *change;
	bool changed, any = false;

	for (unsigned n = 0;
	     n < BATCH_MAX && resv_has_notice_room(st) && change_queue_ns(chq) == ns; n++) {
		change = change_queue_next(chq);
		change_dequeue(chq, change);
		change->batch = batch;
		weft_list_push(&batch->changes, &change->link);
		change->status = resv_execute(st, &change->rq, &changed);
		any |= !change->status && changed;
	}
	return any;
}

static void notice_room_freed(struct weft_store_wait *wait, int rc)
{
	struct resv_change_queue *chq = container_of(wait, struct resv_change_queue, room);
	struct resv_change *change;

	assert(chq->full && !chq->committing);
	chq->full = false;
	while (rc < 0 && (change = change_queue_next(chq))) {
		change_dequeue(chq, change);
		change_finish(change, unsettled_status(rc));
	}
	change_queue_schedule(chq);
}

static void wait_for_notice_room(struct resv_change_queue *chq, uint64_t version)
{
	chq->full = true;
	chq->room = (struct weft_store_wait){ .revision = version, .done = notice_room_freed };
	weft_store_wait_settled(chq->subsys->store, &chq->room);
}

static void fail_first_change(struct resv_change_queue *chq)
{
	struct resv_change *change = change_queue_next(chq);

	change_dequeue(chq, change);
	change_finish(change, SC_GENERIC(INTERNAL));
}

static void batch_run(struct resv_change_queue *chq, struct tgt_ns *ns)
{
	struct resv_batch *batch;
	struct resv_state st;
	uint64_t version;
	int rc = load_resv_state(ns, &st, &version);

	assert(!chq->committing && !chq->full);
	if (!rc && !resv_has_notice_room(&st)) {
		wait_for_notice_room(chq, version);
		return;
	}
	batch = rc ? NULL : batch_new(chq, ns);
	if (!batch)
		fail_first_change(chq);
	else if (batch_run_rules(chq, batch, ns, &st))
		batch_commit(batch, &st, version);
	else
		batch_wait_settled(batch, version);
}

static void change_queue_run(struct resv_change_queue *chq)
{
	struct tgt_ns *ns = change_queue_ns(chq);

	if (ns)
		batch_run(chq, ns);
	change_queue_schedule(chq);
}

void tgt_resv_run_change_queues(struct weft_task *task)
{
	struct weft_target *t = container_of(task, struct weft_target, resv_queue_task);
	struct weft_list *link;

	for (unsigned n = 0; n < QUEUES_PER_TURN && (link = weft_list_pop(&t->resv_change_queues));
	     n++)
		change_queue_run(container_of(link, struct resv_change_queue, link));
	if (!weft_list_empty(&t->resv_change_queues))
		weft_reactor_defer(t->control, &t->resv_queue_task);
}

/* --- submit, and the end of a queue ----------------------------------------------------------- */

/* The same in every member. No name has the hash 0. */
static void hash_hostnqn(uint8_t name[RESV_NAME_BYTES], const char *hostnqn)
{
	uint8_t hash[32];

	weft_stable_hash("registrant", hostnqn, true, hash);
	memcpy(name, hash, RESV_NAME_BYTES);
	name[0] |= 1;
}

void tgt_resv_submit_change(struct weft_req *req, const struct resv_request *rq)
{
	struct tgt_queue *queue = tgt_queue(req);
	struct tgt_ctrl *ctrl = queue->ctrl;
	struct resv_change *change = calloc(1, sizeof(*change));
	struct resv_change_queue *chq = NULL;
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_lookup(req, &ns);

	assert_on_control(ctrl->subsys->target);
	if (!sc && change)
		chq = change_queue_get(ctrl->subsys, tgt_nsid(req));
	if (!chq) {
		free(change);
		tgt_control_reply(req, sc ? sc : SC_GENERIC(INTERNAL));
		return;
	}
	change->req = req;
	change->subsys = ctrl->subsys;
	change->flow = ctrl->flow;
	change->rq = *rq;
	memcpy(change->rq.host, ctrl->hostid, RESV_HOST_BYTES);
	hash_hostnqn(change->rq.name, ctrl->hostnqn);
	change->rq.can_persist = weft_store_persistent(ctrl->subsys->store);
	weft_list_init(&change->behind);
	weft_list_push(&queue->resv_changes, &change->queue_link);
	ctrl->subsys->resv_changes++;
	change_enqueue(chq, change);
	if (!chq->committing && !chq->full && weft_list_empty(&chq->link)) {
		tgt_control_charge(ctrl->subsys->target, BATCH_COST);
		change_queue_run(chq);
	}
}

/* A change that is being committed is freed when the store is done with it. */
static void change_detach(struct resv_change *change)
{
	struct resv_change_queue *chq =
		change->subsys->resv_change_queues[tgt_nsid(change->req) - 1];

	assert(chq || change->batch); /* where it is queued, if it is in no batch */
	tgt_control_reply(take_ptr(&change->req), SC_GENERIC(ABORT_QUEUE));
	change->flow = NULL;
	if (change->batch && change->batch->chq) {
		weft_list_remove(&change->queue_link);
		return;
	}
	if (!change->batch) {
		change_dequeue(chq, change);
		change_queue_schedule(chq);
	}
	change_free(change);
}

void tgt_resv_queue_closing(struct tgt_queue *queue)
{
	struct resv_change *change, *tmp;

	assert_on_control(queue->ctrl->subsys->target);
	weft_list_for_each_safe(change, tmp, &queue->resv_changes, queue_link)
		change_detach(change);
}
