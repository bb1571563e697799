/* file.c - a store in a state file, for targets on one machine or on a shared file system.
 *
 *   commit, ack, inotify ─▶ schedule ─▶ cycle, on a worker ─▶ changed() ─▶ members ─▶ txn->done()
 *                             ▲                                  │
 *                             └──────────── more to do ──────────┘
 *
 * A cycle starts at the end of a reactor turn, with all that the turn acknowledged and committed.
 *
 * inotify shows changes by processes of this kernel; a poll every second those of other machines.
 * The close of a descriptor shows a member's death, and its lock is freed a moment later: the cycle
 * is repeated a few times.
 *
 *              ┌─────────────── done ──────────────┐
 *              ▼                                    │
 *            IDLE ─▶ CYCLE ─ a change meanwhile ─▶ RERUN
 *              │       └──── closed ──┬─────────────┘
 *            closed                   ▼
 *              └──▶ CLOSED ◀─ done ─ CLOSING
 *                     └─ the watch has ended ─▶ freed
 *
 * Invariant: one cycle at a time; while it runs, store->records stay. */
#include "store/file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "store/member_locks.h"

enum {
	BUSY_MS = 2,           /* another process has the lock */
	BUSY_LOG_AFTER = 1000, /* so many times that it is not a member's cycle */
	POLL_MS = 1000,
	CLOSED_POLLS = 50, /* after a close was seen … */
	CLOSED_MS = 1,     /* … this far apart: hosts wait for the groups of the dead member */
	FAILED_MS = 1000,  /* after an error of the file */
};

static void schedule_cycle(struct file_store *f);
static void end_file_watch(struct file_store *f);

static struct file_store *file_of(struct weft_store *store)
{
	return container_of(store, struct file_store, store);
}

#define FROM(state) (1u << STORE_FILE_##state)

/* States that may come before. */
static const unsigned file_edges[] = {
	[STORE_FILE_IDLE] = FROM(CYCLE) | FROM(RERUN),
	[STORE_FILE_CYCLE] = FROM(IDLE),
	[STORE_FILE_RERUN] = FROM(CYCLE),
	[STORE_FILE_CLOSING] = FROM(CYCLE) | FROM(RERUN),
	[STORE_FILE_CLOSED] = FROM(IDLE) | FROM(CLOSING),
};

static void file_enter(struct file_store *f, enum store_file_state state)
{
	assert_on(f->store.control_reactor);
	assert(file_edges[state] & 1u << f->state);
	f->state = state;
}

/* --- a cycle ---------------------------------------------------------------------------------- */

static int cycle_on_worker(struct weft_op *op)
{
	return store_cycle_run(&container_of(op, struct file_store, op)->cycle);
}

static struct weft_store_txn *pop_txn(struct weft_list *txns)
{
	struct weft_list *link = weft_list_pop(txns);

	return link ? container_of(link, struct weft_store_txn, link) : NULL;
}

static void complete_txns(struct weft_list *txns)
{
	struct weft_store_txn *txn;

	while ((txn = pop_txn(txns)))
		txn->done(txn, txn->rc);
}

static void fail_txns(struct weft_list *txns, int rc)
{
	struct weft_store_txn *txn;

	while ((txn = pop_txn(txns)))
		txn->done(txn, rc);
}

static void handle_file_events(struct file_store *f, const struct store_file_events *file_events)
{
	if (file_events->closed)
		f->fast_polls = CLOSED_POLLS;
	if (file_events->let_go)
		store_file_closed(&f->store);
}

static void apply_cycle_result(struct file_store *f)
{
	assert(f->cycle.records == f->store.records);
	if (f->cycle.repaired)
		weft_warn("%s: it was damaged, and is written anew", f->path);
	if (f->cycle.displaced)
		weft_error("%s: it was removed, or another file is in its place: nothing can be "
			   "changed until it is back",
			   f->path);
	if (f->cycle.fresh)
		store_records_changed(&f->store, take_ptr(&f->cycle.fresh));
	store_members_update(&f->store, f->cycle.members);
	handle_file_events(f, &f->cycle.file_events);
	complete_txns(&f->cycle.txns);
}

/* In front of transactions that came meanwhile. */
static void put_back_txns(struct file_store *f)
{
	weft_list_splice(&f->cycle.txns, &f->txns);
	weft_list_splice(&f->txns, &f->cycle.txns);
}

static void drop_fresh_records(struct file_store *f)
{
	if (f->cycle.fresh)
		store_records_free(take_ptr(&f->cycle.fresh));
}

/* Transactions fail, and their owners may commit again; the cycle itself is repeated in a while. */
static void fail_cycle(struct file_store *f, int rc)
{
	if (!f->failing)
		weft_error("%s: cannot use it: %s; trying again", f->path, strerror(-rc));
	f->failing = true;
	drop_fresh_records(f);
	fail_txns(&f->cycle.txns, store_cycle_error(rc));
}

/* Other members go on without us; we do not use what they wrote. */
static void fail_lost_member(struct file_store *f)
{
	drop_fresh_records(f);
	fail_txns(&f->cycle.txns, -EOWNERDEAD);
	weft_store_set_lost(&f->store, f->cycle.lost);
}

static void arm_cycle_timer(struct file_store *f, int rc)
{
	if (f->store.lost)
		return;
	if (rc == -EAGAIN)
		weft_timer_set(f->store.control_reactor, &f->timer, BUSY_MS);
	else if (rc < 0)
		weft_timer_set(f->store.control_reactor, &f->timer, FAILED_MS);
	else if (f->fast_polls)
		weft_timer_set(f->store.control_reactor, &f->timer, CLOSED_MS);
	else if (store_watch_is_open(&f->watch))
		weft_timer_set(f->store.control_reactor, &f->timer, POLL_MS);
}

static void count_lock_waits(struct file_store *f, int rc)
{
	f->lock_waits = rc == -EAGAIN ? f->lock_waits + 1 : 0;
	if (f->lock_waits == BUSY_LOG_AFTER)
		weft_error("%s: another process has locked it and does not go on: nothing can be "
			   "changed until it does; see whether a member is stopped, or who else "
			   "has the file open",
			   f->path);
}

/* The watch goes on; a cycle may follow at once. */
static void await_next_cycle(struct file_store *f, int rc)
{
	bool rerun = f->state == STORE_FILE_RERUN;

	file_enter(f, STORE_FILE_IDLE);
	if (f->cycle.watch)
		store_watch_resume(f->cycle.watch);
	if (f->state != STORE_FILE_IDLE) /* closed by what the watch reported */
		return;
	if (f->cycle.in_doubt && rc != -EAGAIN)
		arm_cycle_timer(f, -EIO);
	else if ((!rc && f->cycle.damaged) ||
		 (rc != -EAGAIN && (rerun || !weft_list_empty(&f->txns))))
		schedule_cycle(f);
	else
		arm_cycle_timer(f, rc);
}

static void cycle_done(struct weft_op *op, int rc)
{
	struct file_store *f = container_of(op, struct file_store, op);

	count_lock_waits(f, rc);
	if (!rc) {
		f->failing = false;
		apply_cycle_result(f);
	} else if (rc == -EAGAIN) {
		drop_fresh_records(f);
		put_back_txns(f);
	} else if (rc == -EOWNERDEAD) {
		fail_lost_member(f);
	} else {
		fail_cycle(f, rc);
	}
	assert(weft_list_empty(&f->cycle.txns) && !f->cycle.fresh);
	if (f->state != STORE_FILE_CLOSING) {
		await_next_cycle(f, rc);
		return;
	}
	if (f->cycle.watch)
		store_watch_resume(f->cycle.watch);
	end_file_watch(f);
}

static void start_cycle(struct weft_task *task)
{
	struct file_store *f = container_of(task, struct file_store, start_cycle);
	struct store_cycle *cycle = &f->cycle;

	if (f->store.lost) {
		fail_txns(&f->txns, -EOWNERDEAD);
		return;
	}
	if (f->store.frozen)
		return;
	file_enter(f, STORE_FILE_CYCLE);
	cycle->records = f->store.records;
	weft_list_splice(&cycle->txns, &f->txns);
	cycle->own.acked = f->store.acked;
	cycle->watch = store_watch_is_open(&f->watch) ? &f->watch : NULL;
	if (cycle->watch)
		store_watch_pause(cycle->watch);
	cycle->file_events = (struct store_file_events){ false };
	f->op.done = cycle_done;
	weft_workers_call(&f->workers, f->store.control_reactor, &f->op, cycle_on_worker);
}

/* That of a frozen store follows when it thaws. One that was lost only fails what is committed. */
static void schedule_cycle(struct file_store *f)
{
	if (f->state == STORE_FILE_CYCLE)
		file_enter(f, STORE_FILE_RERUN);
	if (f->store.lost ? f->state < STORE_FILE_CLOSING :
			    f->state == STORE_FILE_IDLE && !f->store.frozen)
		weft_reactor_defer(f->store.control_reactor, &f->start_cycle);
}

static void cycle_timer_expired(struct weft_timer *timer)
{
	struct file_store *f = container_of(timer, struct file_store, timer);

	assert(f->state < STORE_FILE_CLOSING);
	if (f->fast_polls)
		f->fast_polls--;
	schedule_cycle(f);
}

static void file_commit(struct weft_store *store, struct weft_store_txn *txn)
{
	weft_list_push(&file_of(store)->txns, &txn->link);
	schedule_cycle(file_of(store));
}

/* Other members read it in our record; with one node there are none. */
static void file_acked(struct weft_store *store)
{
	assert(store->acked <= store->records->revision);
	if (store->nodes > 1)
		schedule_cycle(file_of(store));
}

static void file_leave(struct weft_store *store)
{
	struct file_store *f = file_of(store);

	assert(store->lost);
	weft_timer_stop(store->control_reactor, &f->timer);
	store_member_unlock(f->fd);
	schedule_cycle(f);
}

/* --- values that members must agree on -------------------------------------------------------- */

static int file_agree(struct weft_store *store, unsigned topic, uint64_t as)
{
	return store_member_agree(file_of(store)->fd, topic, as);
}

static void file_agree_end(struct weft_store *store, unsigned topic)
{
	store_member_agree_end(file_of(store)->fd, topic);
}

/* --- changes by others ------------------------------------------------------------------------ */

static void on_file_events(struct store_watch *watch, const struct store_file_events *file_events)
{
	struct file_store *f = container_of(watch, struct file_store, watch);

	handle_file_events(f, file_events);
	if (file_events->written || file_events->closed)
		schedule_cycle(f);
}

static void file_watch_file(struct weft_store *store, int fd)
{
	struct file_store *f = file_of(store);

	if (f->state < STORE_FILE_CLOSING && store_watch_is_open(&f->watch))
		store_watch_next_close(&f->watch, fd);
}

static void file_watch_ended(struct store_watch *watch);

static int fail_watch(const char *path, int rc, struct weft_err *err)
{
	return weft_fail(err, rc,
			 "%s: cannot watch it: %s; see sysctl fs.inotify for how many may be "
			 "watched",
			 path, strerror(-rc));
}

static int watch_changes(struct file_store *f, struct weft_err *err)
{
	int rc;

	f->watch.on_file_events = on_file_events;
	f->watch.ended = file_watch_ended;
	rc = store_watch_open(&f->watch, f->store.control_reactor, f->fd);
	if (rc < 0)
		return fail_watch(f->path, rc, err);
	weft_timer_set(f->store.control_reactor, &f->timer, POLL_MS);
	return 0;
}

/* --- takeover --------------------------------------------------------------------------------- */

static bool file_is_quiesced(const struct weft_store *store)
{
	const struct file_store *f = container_of(store, struct file_store, store);

	return f->state == STORE_FILE_IDLE && weft_list_empty(&f->txns);
}

/* Reads what others did meanwhile, and writes what we acknowledged. */
static void file_thawed(struct weft_store *store)
{
	schedule_cycle(file_of(store));
}

static void file_export(const struct weft_store *store, struct weft_store_state *state)
{
	const struct file_store *f = container_of(store, struct file_store, store);

	assert(f->cycle.own.stage == STORE_MEMBER && f->fd >= 0);
	state->incarnation = f->cycle.own.incarnation;
	state->has_fd = true;
	state->fd = f->fd;
}

/* The lock belongs to the open file description, and so came with it; locking again makes sure. */
static int file_import(struct weft_store *store, struct weft_store_state *state,
		       struct weft_err *err)
{
	struct file_store *f = file_of(store);
	int rc;

	assert(f->fd < 0);
	f->fd = take_fd(&state->fd);
	store_file_init_cycle(f);
	f->cycle.own = (struct store_member_record){
		.stage = STORE_MEMBER,
		.incarnation = state->incarnation,
		.lock_domain = store->nodes > 1 ? f->cycle.lock_domain : 0,
	};
	if (!store_cycle_is_in_place(&f->cycle))
		return -EIDRM;
	rc = store_member_lock(f->fd, store->node, store->nodes);
	return rc < 0 || store->nodes == 1 ? rc : watch_changes(f, err);
}

/* --- close ------------------------------------------------------------------------------------ */

static void file_free(struct file_store *f)
{
	assert(weft_list_empty(&f->start_cycle.link) && !weft_heap_has(&f->timer.node));
	weft_workers_destroy(&f->workers);
	store_watch_free(&f->watch);
	weft_closep(&f->cycle.lock_probe_fd);
	weft_closep(&f->fd);
	free(f->path);
}

static void finish_file_close(struct file_store *f)
{
	assert(f->state == STORE_FILE_CLOSED);
	fail_txns(&f->txns, -ECANCELED);
	if (!f->store.lost && !f->store.frozen) /* frozen: the successor may be this member */
		store_cycle_leave(&f->cycle);
	file_free(f);
	store_closed(&f->store);
}

static void file_watch_ended(struct store_watch *watch)
{
	finish_file_close(container_of(watch, struct file_store, watch));
}

/* No cycle uses the watch any more. */
static void end_file_watch(struct file_store *f)
{
	file_enter(f, STORE_FILE_CLOSED);
	if (store_watch_is_open(&f->watch))
		store_watch_close(&f->watch);
	else
		finish_file_close(f);
}

static void file_close(struct weft_store *store)
{
	struct file_store *f = file_of(store);

	weft_timer_stop(store->control_reactor, &f->timer);
	weft_task_cancel(&f->start_cycle);
	if (f->state == STORE_FILE_IDLE)
		end_file_watch(f);
	else
		file_enter(f, STORE_FILE_CLOSING);
}

/* --- open ------------------------------------------------------------------------------------- */

static int file_create(struct weft_store **store, const char *path)
{
	struct file_store *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->path = strdup(path);
	f->store.records = store_records_new(0, 0, 0);
	if (!f->path || !f->store.records) {
		free(f->path);
		free(f->store.records);
		free(f);
		return -ENOMEM;
	}
	f->store.ops = &store_file_ops;
	f->fd = f->cycle.lock_probe_fd = -1;
	f->timer.fn = cycle_timer_expired;
	weft_list_init(&f->txns);
	weft_task_init(&f->start_cycle, start_cycle);
	weft_workers_init(&f->workers, 1);
	f->watch.fd = -1;
	*store = &f->store;
	return 0;
}

static int file_join(struct weft_store *store, struct weft_err *err)
{
	struct file_store *f = file_of(store);
	int rc = store->nodes > 1 ? store_watch_create(&f->watch) : 0;

	if (rc < 0)
		return fail_watch(f->path, rc, err);
	return store->frozen ? 0 : store_file_join(f, err);
}

static int file_joined(struct weft_store *store, struct weft_err *err)
{
	if (store->nodes == 1 || store->frozen)
		return 0;
	return watch_changes(file_of(store), err);
}

const struct weft_store_ops store_file_ops = {
	.type = "file",
	.persistent = true,
	.create = file_create,
	.join = file_join,
	.joined = file_joined,
	.commit = file_commit,
	.acked = file_acked,
	.on_shared_fs = store_file_on_shared_fs,
	.agree = file_agree,
	.agree_end = file_agree_end,
	.watch_file = file_watch_file,
	.leave = file_leave,
	.is_quiesced = file_is_quiesced,
	.thawed = file_thawed,
	.export = file_export,
	.import = file_import,
	.close = file_close,
};
