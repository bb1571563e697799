/* cycle.c - one cycle on the state file, on a thread that may block: read newer records, commit,
 * scan members.
 *
 *   check our lock and our member record ─▶ write our acknowledged revision ─▶ lock
 *     ─▶ read newer records ─▶ repair a damaged file ─▶ commit all transactions as one revision
 *     ─▶ drain inotify events of our own writes ─▶ unlock ─▶ scan members
 *
 * A user may truncate the file, overwrite it, or put another in its place. A member writes back the
 * records that it knows, but commits nothing to a file that is not at its path any more.
 *
 * Members are scanned after the commit: a member that has read the file before the commit holds its
 * lock by then. Joining takes the exclusive lock, so "this node is absent" stays true until the
 * commit is readable.
 *
 * Locks are verified, not trusted. While we live, no other process may take our lock, write our
 * record, mark us as left or begin a session. If one did, locks are not shared, or ours was lost,
 * and we stop being a member. A joining process probes first (suspects.c).
 *
 * inotify events that came before the unlock describe changes which this cycle has read; they do
 * not start another cycle. */
#include "store/cycle.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "store/suspects.h"
#include "store/member_locks.h"
#include "store/copies.h"

enum {
	JOIN_PAUSE_NS = 10000000,
	JOIN_TRIES_GONE = 100,    /* until the kernel has released the lock of a killed process */
	JOIN_TRIES_WRITING = 500, /* until a member has written to a busy disk */
	LOCK_YIELDS = 50,         /* the first tries: the holder may need this CPU */
	LOCK_TRIES = 70,
	LOCK_PAUSE_NS = 50000,
	PROBE_ROUNDS = 4, /* other members may come and go while we probe some */
};

static const struct store_records *newest_records(const struct store_cycle *cycle)
{
	return cycle->fresh ? cycle->fresh : cycle->records;
}

int store_cycle_error(int rc)
{
	return rc == -ESTALE || rc == -EOWNERDEAD || rc == -EIDRM || rc == -ECANCELED ? -EIO : rc;
}

static int save_records(struct store_cycle *cycle, struct store_records *next)
{
	int rc;

	assert(next->revision == newest_records(cycle)->revision + 1);
	rc = store_cycle_error(store_copies_save(cycle->fd, next, &cycle->in_doubt));
	if (rc < 0) {
		store_records_free(next);
		return rc;
	}
	if (cycle->fresh)
		store_records_free(cycle->fresh);
	cycle->fresh = next;
	return 0;
}

/* -ESTALE: a node lives that must be absent. */
static int check_absent(const struct store_cycle *cycle, const struct weft_store_txn *txn)
{
	struct store_member members[WEFT_STORE_NODES_MAX + 1];
	int rc = 0;

	if (txn->absent)
		rc = store_members_scan(cycle->fd, cycle->node, cycle->nodes, members);
	for (unsigned node = 1; node <= cycle->nodes && !rc; node++)
		if (txn->absent >> (node - 1) & 1 && members[node].alive)
			rc = -ESTALE;
	return rc;
}

/* Into *@next, which earlier transactions may have made. */
static int apply_txn(struct store_records **next, const struct store_cycle *cycle,
		     const struct weft_store_txn *txn)
{
	const struct store_records *from = *next ? *next : newest_records(cycle);
	struct store_records *made;
	int rc = check_absent(cycle, txn);

	if (rc < 0)
		return rc;
	made = store_records_apply(from, newest_records(cycle)->revision + 1, txn, &rc);
	if (made && !store_copies_fit(made)) {
		store_records_free(made);
		return -ENOSPC;
	}
	if (made && *next)
		store_records_free(*next);
	*next = made ? made : *next;
	return rc;
}

/* One write for all transactions; each succeeds or fails by the versions that it expects. */
static void commit_all_txns(struct store_cycle *cycle)
{
	struct store_records *next = NULL;
	uint64_t revision = newest_records(cycle)->revision + 1;
	struct weft_store_txn *txn;
	int rc;

	weft_list_for_each(txn, &cycle->txns, link)
		txn->rc = apply_txn(&next, cycle, txn);
	rc = next ? save_records(cycle, next) : 0;
	weft_list_for_each(txn, &cycle->txns, link) {
		if (txn->rc)
			continue;
		txn->rc = rc;
		txn->revision = revision;
		txn->in_doubt = cycle->in_doubt;
	}
}

static void fail_all_txns(struct store_cycle *cycle, int why)
{
	struct weft_store_txn *txn;

	assert(why < 0);
	weft_list_for_each(txn, &cycle->txns, link)
		txn->rc = why;
}

bool store_cycle_is_in_place(const struct store_cycle *cycle)
{
	struct stat ours, there;

	if (fstat(cycle->fd, &ours) < 0)
		return true;
	if (stat(cycle->path, &there) < 0)
		return errno != ENOENT;
	return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static int repair_file(struct store_cycle *cycle, bool exclusive)
{
	const struct store_records *records = newest_records(cycle);
	bool have;
	int rc = store_copies_have(cycle->fd, records->revision, &have);

	cycle->damaged = !rc && !have;
	if (!cycle->damaged || !exclusive)
		return rc;
	rc = store_copies_rewrite(cycle->fd, records);
	cycle->damaged = rc < 0;
	cycle->repaired = !rc;
	return rc;
}

/* --- are we a member still? ------------------------------------------------------------------- */

static int lose_membership(struct store_cycle *cycle, const char *how)
{
	cycle->lost = how;
	return -EOWNERDEAD;
}

static int check_own_lock(struct store_cycle *cycle)
{
	int rc = store_member_check_lock(cycle->fd, cycle->lock_probe_fd, cycle->node,
					 cycle->nodes);

	return rc == -ENOLCK ?
		       lose_membership(cycle,
				       "the file system has lost the lock that makes it a member") :
		       rc;
}

/* An older record of another incarnation comes from an old file that somebody has put back. A
 * process that joins as our node finds our record in place of its own, and gives up. */
static int check_own_record(struct store_cycle *cycle, const struct store_member_record *there)
{
	if (there->stage == STORE_LEFT && there->incarnation == cycle->own.incarnation)
		return lose_membership(cycle, "another member has taken it for gone");
	if (there->stage == STORE_MEMBER && there->incarnation > cycle->own.incarnation)
		return lose_membership(cycle, "another process has joined as the same node");
	return 0;
}

static int renew_member_record(struct store_cycle *cycle)
{
	struct store_member_records member_records;
	const struct store_member_record *there = &member_records.at[cycle->node];
	int rc = check_own_lock(cycle);

	if (cycle->remote)
		store_drop_page_cache(cycle->fd);
	if (!rc)
		rc = store_member_records_read(cycle->fd, &member_records);
	if (!rc)
		rc = check_own_record(cycle, there);
	if (rc < 0)
		return rc;
	cycle->own.joiners_seen = store_joiners_sum(&member_records, cycle->node);
	return memcmp(there, &cycle->own, sizeof(*there)) ?
		       store_member_record_write(cycle->fd, cycle->node, &cycle->own) :
		       0;
}

static int check_session(struct store_cycle *cycle)
{
	return cycle->fresh && cycle->fresh->session != cycle->records->session ?
		       lose_membership(
			       cycle,
			       "another process has joined and taken itself for the only member") :
		       0;
}

/* --- the cycle -------------------------------------------------------------------------------- */

/* What was loaded has the commit that is in doubt, or was written over it. If nothing was, it is
 * wiped. */
static int settle_doubt(struct store_cycle *cycle)
{
	int rc = 0;

	if (cycle->in_doubt && !cycle->fresh)
		rc = store_copies_wipe(cycle->fd, cycle->records->revision + 1);
	cycle->in_doubt = rc < 0;
	return rc;
}

static int load_and_commit(struct store_cycle *cycle, bool exclusive)
{
	int rc;

	if (cycle->remote)
		store_drop_page_cache(cycle->fd);
	rc = store_copies_load(cycle->fd, cycle->records->revision, &cycle->fresh);
	if (!rc)
		rc = check_session(cycle);
	if (!rc)
		rc = repair_file(cycle, exclusive);
	if (!rc)
		rc = settle_doubt(cycle);
	if (rc < 0)
		return rc;
	cycle->displaced = !weft_list_empty(&cycle->txns) && !store_cycle_is_in_place(cycle);
	if (cycle->displaced)
		fail_all_txns(cycle, -EIDRM);
	else
		commit_all_txns(cycle);
	if (cycle->watch)
		store_watch_drain(cycle->watch, &cycle->file_events);
	return 0;
}

/* A cycle is short: wait for the lock that another member holds, but not for a stopped process. */
static int wait_for_lock(const struct store_cycle *cycle, bool exclusive)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	int rc = store_file_lock(cycle->fd, exclusive);

	for (unsigned i = 0; rc == -EAGAIN && i < LOCK_TRIES; i++) {
		if (i < LOCK_YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
		rc = store_file_lock(cycle->fd, exclusive);
	}
	return rc;
}

/* The cycle fails after its commit: the next one loads what this one has written. */
static void doubt_committed_txns(struct store_cycle *cycle)
{
	struct weft_store_txn *txn;

	weft_list_for_each(txn, &cycle->txns, link)
		txn->in_doubt |= !txn->rc;
}

int store_cycle_run(struct store_cycle *cycle)
{
	bool exclusive = !weft_list_empty(&cycle->txns) || cycle->damaged || cycle->in_doubt;
	int rc;

	assert(cycle->own.stage == STORE_MEMBER);
	assert(cycle->own.acked <= cycle->records->revision);
	assert(!cycle->fresh);
	rc = renew_member_record(cycle);
	if (!rc)
		rc = wait_for_lock(cycle, exclusive);
	if (rc < 0)
		return rc;
	cycle->repaired = false;
	rc = load_and_commit(cycle, exclusive);
	store_file_unlock(cycle->fd);
	if (rc < 0)
		return rc;
	rc = store_members_scan(cycle->fd, cycle->node, cycle->nodes, cycle->members);
	if (rc < 0)
		doubt_committed_txns(cycle);
	return rc;
}

/* --- join and leave --------------------------------------------------------------------------- */

static bool is_only_member(const struct store_cycle *cycle)
{
	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX; node++)
		if (cycle->members[node].alive)
			return false;
	return true;
}

static int begin_session(struct store_cycle *cycle)
{
	const struct weft_store_txn nothing = { 0 };
	struct store_records *next;
	int rc;

	next = store_records_apply(newest_records(cycle), newest_records(cycle)->revision + 1,
				   &nothing, &rc);
	if (!next)
		return rc;
	next->session++;
	next->nodes = cycle->nodes;
	return save_records(cycle, next);
}

static int become_member(struct store_cycle *cycle)
{
	int rc;

	assert(cycle->own.incarnation && cycle->own.stage != STORE_LEFT);
	cycle->own.stage = STORE_MEMBER;
	cycle->own.acked = 0;
	rc = store_member_record_write(cycle->fd, cycle->node, &cycle->own);
	if (!rc)
		rc = store_copies_load(cycle->fd, cycle->records->revision, &cycle->fresh);
	if (!rc)
		rc = store_members_scan(cycle->fd, cycle->node, WEFT_STORE_NODES_MAX,
					cycle->members);
	if (rc < 0)
		return rc;
	if (is_only_member(cycle))
		return begin_session(cycle);
	/* A member that expects fewer nodes would not wait for all. */
	return newest_records(cycle)->nodes == cycle->nodes ? 0 : -EPROTO;
}

/* -EINPROGRESS: there are suspects to probe. */
static int join_locked(struct store_cycle *cycle, struct store_suspects *suspects)
{
	int rc = store_copies_init(cycle->fd);

	if (!rc)
		rc = store_member_lock(cycle->fd, cycle->node, cycle->nodes);
	if (!rc)
		rc = store_suspects_find(suspects, cycle);
	if (rc)
		return rc < 0 ? rc : -EINPROGRESS;
	rc = store_suspects_mark_left(suspects, cycle);
	return rc < 0 ? rc : become_member(cycle);
}

static int try_join_once(struct store_cycle *cycle, struct store_suspects *suspects)
{
	int rc = store_file_lock(cycle->fd, true);

	if (rc < 0)
		return rc;
	assert(!cycle->fresh);
	rc = join_locked(cycle, suspects);
	store_file_unlock(cycle->fd);
	if (rc < 0 && cycle->fresh)
		store_records_free(take_ptr(&cycle->fresh));
	return rc;
}

/* What is left of the tries for each cause. */
struct join_tries {
	unsigned gone, writing;
};

static bool may_try_again(struct join_tries *tries, int rc)
{
	unsigned *left = rc == -EBUSY ? &tries->gone : rc == -EAGAIN ? &tries->writing : NULL;

	if (!left || !*left)
		return false;
	--*left;
	return true;
}

int store_cycle_sleep(const struct store_cycle *cycle)
{
	const struct timespec pause = { .tv_nsec = JOIN_PAUSE_NS };

	if (atomic_load(cycle->cancelled))
		return -ECANCELED;
	nanosleep(&pause, NULL);
	return 0;
}

static int join_with_retries(struct store_cycle *cycle, struct store_suspects *suspects)
{
	struct join_tries tries = { .gone = JOIN_TRIES_GONE, .writing = JOIN_TRIES_WRITING };
	int rc = try_join_once(cycle, suspects);

	while (may_try_again(&tries, rc)) {
		rc = store_cycle_sleep(cycle);
		if (!rc)
			rc = try_join_once(cycle, suspects);
	}
	return rc;
}

int store_cycle_join(struct store_cycle *cycle, unsigned *hidden)
{
	struct store_suspects suspects = { 0 };
	int rc;

	assert(cycle->node && cycle->node <= cycle->nodes && cycle->nodes <= WEFT_STORE_NODES_MAX);
	assert(!cycle->own.incarnation && weft_list_empty(&cycle->txns));
	rc = join_with_retries(cycle, &suspects);
	for (unsigned i = 0; i < PROBE_ROUNDS && rc == -EINPROGRESS; i++) {
		rc = store_suspects_probe(&suspects, cycle);
		if (!rc)
			rc = join_with_retries(cycle, &suspects);
	}
	*hidden = suspects.alive_node;
	if (rc < 0)
		store_cycle_leave(cycle);
	assert(rc < 0 || (cycle->fresh && cycle->own.stage == STORE_MEMBER));
	return rc == -EINPROGRESS ? -EAGAIN : rc;
}

/* A record that is not ours any more is left to its owner. */
void store_cycle_leave(struct store_cycle *cycle)
{
	struct store_member_records member_records;

	if (!cycle->own.incarnation || cycle->own.stage == STORE_LEFT ||
	    store_member_records_read(cycle->fd, &member_records) < 0 ||
	    member_records.at[cycle->node].incarnation != cycle->own.incarnation)
		return;
	cycle->own.stage = STORE_LEFT;
	store_member_record_write(cycle->fd, cycle->node, &cycle->own);
}
