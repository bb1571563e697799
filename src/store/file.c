/* file.c - a store in a file, for targets on one machine or on a shared file system.
 *
 *   commit, ack, a change seen ─▶ kick ─▶ cycle, on a worker ─▶ moved ─▶ txn done ─▶ waits looked at
 *                                  ▲                              │
 *                                  └──────── more to do ──────────┘
 *
 * Others' changes show by inotify, which every member on this kernel sees at once; what members on
 * other machines write shows by looking once a second. The death of a member shows as the close of
 * its descriptor; the kernel lets go of its lock a moment later, so the look is repeated a few times.
 *
 * Invariant: one cycle at a time; while it runs, store->records stay. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sync.h"
#include "reactor/workers.h"
#include "store/cycle.h"
#include "store/watch.h"

enum {
	BUSY_MS = 2, /* somebody else is at the file */
	LOOK_MS = 1000,
	CLOSED_LOOKS = 5, /* after a close was seen … */
	CLOSED_MS = 10,   /* … this far apart */
	FAILED_MS = 1000, /* the file could not be used */
};

struct file_store {
	struct weft_store store;
	int fd;
	char *path;
	struct weft_workers workers;
	struct weft_op op;
	struct store_cycle cycle;
	struct weft_list txns;
	bool busy, again, failing, closing;
	unsigned looks; /* that follow soon */
	struct weft_timer timer;

	struct store_watch watch; /* where others can change it */
};

static void kick(struct file_store *f);
static void end(struct file_store *f);

static struct file_store *file_of(struct weft_store *store)
{
	return container_of(store, struct file_store, store);
}

/* --- a cycle ------------------------------------------------------------------------------------------ */

static int on_worker(struct weft_op *op)
{
	return store_cycle_run(&container_of(op, struct file_store, op)->cycle);
}

static struct weft_txn *first_txn(struct file_store *f)
{
	return weft_list_empty(&f->txns) ? NULL : container_of(f->txns.next, struct weft_txn, link);
}

static void end_txn(struct weft_txn *txn, int rc)
{
	weft_list_remove(&txn->link);
	txn->done(txn, rc);
}

static void take_result(struct file_store *f)
{
	struct weft_txn *txn = f->cycle.txn;

	if (f->cycle.fresh)
		store_moved(&f->store, take_ptr(&f->cycle.fresh));
	if (txn)
		end_txn(txn, f->cycle.committed);
	store_members_seen(&f->store, f->cycle.members);
}

/* What cannot be done is tried again when its owner comes again; what must be seen, in a while. */
static void fail(struct file_store *f, int rc)
{
	if (!f->failing)
		weft_error("%s: cannot use it: %s; trying again", f->path, strerror(-rc));
	f->failing = true;
	if (f->cycle.fresh)
		store_records_free(take_ptr(&f->cycle.fresh));
	if (f->cycle.txn)
		end_txn(f->cycle.txn, rc);
}

static void rest(struct file_store *f, int rc)
{
	if (rc == -EAGAIN)
		weft_timer_set(f->store.home, &f->timer, BUSY_MS);
	else if (rc < 0)
		weft_timer_set(f->store.home, &f->timer, FAILED_MS);
	else if (f->looks)
		weft_timer_set(f->store.home, &f->timer, CLOSED_MS);
	else if (f->watch.open)
		weft_timer_set(f->store.home, &f->timer, LOOK_MS);
}

static void cycle_done(struct weft_op *op, int rc)
{
	struct file_store *f = container_of(op, struct file_store, op);

	if (!rc) {
		f->failing = false;
		take_result(f);
	} else if (rc != -EAGAIN) {
		fail(f, rc);
	}
	f->busy = false;
	if (f->closing)
		end(f);
	else if (rc != -EAGAIN && (f->again || first_txn(f)))
		kick(f);
	else
		rest(f, rc);
}

static void kick(struct file_store *f)
{
	struct store_cycle *cycle = &f->cycle;

	if (f->busy || f->closing) {
		f->again = true;
		return;
	}
	f->busy = true;
	f->again = false;
	cycle->records = f->store.records;
	cycle->txn = first_txn(f);
	cycle->acked = f->store.acked;
	f->op.done = cycle_done;
	weft_workers_call(&f->workers, f->store.home, &f->op, on_worker);
}

static void timed(struct weft_timer *timer)
{
	struct file_store *f = container_of(timer, struct file_store, timer);

	if (f->looks)
		f->looks--;
	kick(f);
}

static void file_commit(struct weft_store *store, struct weft_txn *txn)
{
	weft_list_push(&file_of(store)->txns, &txn->link);
	kick(file_of(store));
}

/* Nobody reads it where there is nobody else. */
static void file_acked(struct weft_store *store)
{
	if (store->nodes > 1)
		kick(file_of(store));
}

/* --- others' changes ----------------------------------------------------------------------------------- */

static void changed(struct store_watch *watch, bool closed)
{
	struct file_store *f = container_of(watch, struct file_store, watch);

	if (closed)
		f->looks = CLOSED_LOOKS;
	kick(f);
}

static void watch_ended(struct store_watch *watch)
{
	end(container_of(watch, struct file_store, watch));
}

static int watch_changes(struct file_store *f, struct weft_reactor *home)
{
	int rc;

	f->watch.changed = changed;
	f->watch.ended = watch_ended;
	rc = store_watch_open(&f->watch, home, f->path);
	if (!rc)
		weft_timer_set(home, &f->timer, LOOK_MS);
	return rc;
}

/* --- the end --------------------------------------------------------------------------------------------- */

static void file_free(struct file_store *f)
{
	weft_workers_destroy(&f->workers);
	weft_closep(&f->fd);
	free(f->path);
}

static void end(struct file_store *f)
{
	if (f->busy || f->watch.open)
		return;
	while (first_txn(f))
		end_txn(first_txn(f), -ECANCELED);
	file_free(f);
	store_closed(&f->store);
}

static void file_close(struct weft_store *store)
{
	struct file_store *f = file_of(store);

	f->closing = true;
	weft_timer_stop(store->home, &f->timer);
	if (f->watch.open)
		store_watch_close(&f->watch);
	else
		end(f);
}

/* --- opening --------------------------------------------------------------------------------------------- */

static int open_file(struct file_store *f, const char *path)
{
	struct stat st;

	f->path = strdup(path);
	if (!f->path)
		return -ENOMEM;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return -EINVAL;
	f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	return f->fd < 0 ? -errno : weft_sync_name(path);
}

static int explain(const char *path, unsigned node, int rc, struct weft_err *err)
{
	switch (rc) {
	case -EBUSY:
		return weft_fail(err, rc, "%s: another process has it open as node %u", path, node);
	case -EPROTO:
		return weft_fail(
			err, rc,
			"%s: its members do not agree on how many they are; \"of\" must be the "
			"same for all",
			path);
	case -EINVAL:
		return weft_fail(err, rc, "%s: it is not a state file of Weft", path);
	case -EUCLEAN:
		return weft_fail(err, rc,
				 "%s: both copies of the state in it are damaged; restore it, or "
				 "remove it to begin without any",
				 path);
	default:
		return weft_fail(err, rc, "%s: cannot open it: %s", path, strerror(-rc));
	}
}

static int join(struct file_store *f, const struct weft_store_options *options)
{
	struct store_records *nothing = store_records_new(0, 0, 0);
	int rc;

	if (!nothing)
		return -ENOMEM;
	f->cycle = (struct store_cycle){
		.fd = f->fd,
		.node = options->node,
		.nodes = options->nodes,
		.records = nothing,
	};
	rc = store_cycle_join(&f->cycle);
	store_records_free(nothing);
	if (rc < 0)
		return rc;
	f->store.records = take_ptr(&f->cycle.fresh);
	memcpy(f->store.members, f->cycle.members, sizeof(f->store.members));
	return 0;
}

static int file_open(struct weft_store **store, const struct weft_store_options *options,
		     const char *path, struct weft_err *err)
{
	struct file_store *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return weft_fail(err, -ENOMEM, "out of memory");
	f->store.ops = &store_file_ops;
	f->fd = -1;
	f->timer.fn = timed;
	weft_list_init(&f->txns);
	weft_workers_init(&f->workers);
	rc = open_file(f, path);
	if (!rc)
		rc = join(f, options);
	if (!rc && options->nodes > 1)
		rc = watch_changes(f, options->home);
	if (rc < 0) {
		explain(path, options->node, rc, err);
		if (f->store.records)
			store_records_free(f->store.records);
		file_free(f);
		free(f);
		return rc;
	}
	*store = &f->store;
	return 0;
}

const struct weft_store_ops store_file_ops = {
	.type = "file",
	.persistent = true,
	.open = file_open,
	.commit = file_commit,
	.acked = file_acked,
	.close = file_close,
};
