/* cycle.c - one visit to the file, on a thread that may block.
 *
 *   write what we have acknowledged ─▶ lock ─▶ read what is newer ─▶ mend what was lost
 *     ─▶ commit all that is to be committed, as one revision ─▶ take the news of our own writes away
 *     ─▶ unlock ─▶ see who lives and what they have
 *
 * Somebody may cut the file, write over it or put another in its place. While one member lives,
 * what it knows is written again; but nothing is committed to a file that nobody will find.
 *
 * Members are looked at after the commit: one that read the file before it held its lock by then.
 * Who joins does so under the lock, too: that one is absent stays true until the commit is there to
 * be read.
 *
 * News of the file that came before the lock was let go of is of what this visit has seen: of the
 * records, as who writes them has the lock, or of members, who are looked at behind. So what we
 * write ourselves does not make us come again. */
#include "store/cycle.h"

#include <errno.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "store/members.h"
#include "store/slots.h"

enum {
	JOIN_PAUSE_NS = 10000000,
	JOIN_TRIES_GONE = 100,    /* for one that was killed to have let go */
	JOIN_TRIES_WRITING = 500, /* for one that writes, to a busy disk */
	LOCK_YIELDS = 50,         /* the first tries: who is there may need this CPU */
	LOCK_TRIES = 70,
	LOCK_PAUSE_NS = 50000,
};

static const struct store_records *newest(const struct store_cycle *cycle)
{
	return cycle->fresh ? cycle->fresh : cycle->records;
}

static int save(struct store_cycle *cycle, struct store_records *next)
{
	int rc = store_slots_save(cycle->fd, next);

	if (rc < 0) {
		store_records_free(next);
		return rc;
	}
	if (cycle->fresh)
		store_records_free(cycle->fresh);
	cycle->fresh = next;
	return 0;
}

/* -ESTALE: somebody is there who must not be. */
static int check_absent(const struct store_cycle *cycle, const struct weft_txn *txn)
{
	struct store_member members[WEFT_STORE_NODES_MAX + 1];
	int rc = 0;

	if (txn->absent)
		rc = store_members_look(cycle->fd, cycle->node, cycle->nodes, members);
	for (unsigned node = 1; node <= cycle->nodes && !rc; node++)
		if (txn->absent >> (node - 1) & 1 && members[node].alive)
			rc = -ESTALE;
	return rc;
}

/* Into *@next, which those before it may have made. */
static int add_to(struct store_records **next, const struct store_cycle *cycle,
		  const struct weft_txn *txn)
{
	const struct store_records *from = *next ? *next : newest(cycle);
	struct store_records *made;
	int rc = check_absent(cycle, txn);

	if (rc < 0)
		return rc;
	made = store_records_with(from, newest(cycle)->revision + 1, txn, &rc);
	if (made && !store_slots_fit(made)) {
		store_records_free(made);
		return -ENOSPC;
	}
	if (made && *next)
		store_records_free(*next);
	*next = made ? made : *next;
	return rc;
}

/* One write for all of them; each is done or not by what it asks for. */
static void commit_all(struct store_cycle *cycle)
{
	struct store_records *next = NULL;
	uint64_t revision = newest(cycle)->revision + 1;
	struct weft_txn *txn;
	int rc;

	weft_list_for_each(txn, &cycle->txns, link)
		txn->rc = add_to(&next, cycle, txn);
	rc = next ? save(cycle, next) : 0;
	weft_list_for_each(txn, &cycle->txns, link) {
		if (txn->rc)
			continue;
		txn->rc = rc;
		txn->revision = revision;
	}
}

static void commit_none(struct store_cycle *cycle, int why)
{
	struct weft_txn *txn;

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

static int mend(struct store_cycle *cycle, bool exclusive)
{
	const struct store_records *records = newest(cycle);
	bool have;
	int rc = store_slots_have(cycle->fd, records->revision, &have);

	cycle->damaged = !rc && !have;
	if (!cycle->damaged || !exclusive)
		return rc;
	rc = store_slots_rewrite(cycle->fd, records);
	cycle->damaged = rc < 0;
	cycle->mended = !rc;
	return rc;
}

static int visit(struct store_cycle *cycle, bool exclusive)
{
	int rc = store_slots_load(cycle->fd, cycle->records->revision, &cycle->fresh);

	if (!rc)
		rc = mend(cycle, exclusive);
	if (rc < 0)
		return rc;
	cycle->displaced = !weft_list_empty(&cycle->txns) && !store_cycle_is_in_place(cycle);
	if (cycle->displaced)
		commit_none(cycle, -EIDRM);
	else
		commit_all(cycle);
	if (cycle->watch)
		store_watch_take(cycle->watch, &cycle->news);
	return 0;
}

/* A visit is short: who meets another one waits for it, but not for one that has been stopped
 * there. */
static int wait_for_lock(const struct store_cycle *cycle, bool exclusive)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	int rc = store_lock(cycle->fd, exclusive);

	for (unsigned i = 0; rc == -EAGAIN && i < LOCK_TRIES; i++) {
		if (i < LOCK_YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
		rc = store_lock(cycle->fd, exclusive);
	}
	return rc;
}

int store_cycle_run(struct store_cycle *cycle)
{
	bool exclusive = !weft_list_empty(&cycle->txns) || cycle->damaged;
	int rc = store_member_ack(cycle->fd, cycle->node, cycle->incarnation, cycle->acked);

	if (!rc)
		rc = wait_for_lock(cycle, exclusive);
	if (rc < 0)
		return rc;
	cycle->mended = false;
	rc = visit(cycle, exclusive);
	store_unlock(cycle->fd);
	return rc < 0 ? rc :
			store_members_look(cycle->fd, cycle->node, cycle->nodes, cycle->members);
}

/* --- the first -------------------------------------------------------------------------------- */

static bool is_alone(const struct store_cycle *cycle)
{
	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX; node++)
		if (cycle->members[node].alive)
			return false;
	return true;
}

static int begin_session(struct store_cycle *cycle)
{
	const struct weft_txn nothing = { 0 };
	struct store_records *next;
	int rc;

	next = store_records_with(newest(cycle), newest(cycle)->revision + 1, &nothing, &rc);
	if (!next)
		return rc;
	next->session++;
	next->nodes = cycle->nodes;
	return save(cycle, next);
}

static int join(struct store_cycle *cycle)
{
	int rc = store_slots_init(cycle->fd);

	if (!rc)
		rc = store_member_join(cycle->fd, cycle->node, cycle->nodes, &cycle->incarnation);
	if (!rc)
		rc = store_slots_load(cycle->fd, cycle->records->revision, &cycle->fresh);
	if (!rc)
		rc = store_members_look(cycle->fd, cycle->node, WEFT_STORE_NODES_MAX,
					cycle->members);
	if (rc < 0)
		return rc;
	if (is_alone(cycle))
		return begin_session(cycle);
	/* Who counts on fewer would not wait for all. */
	return newest(cycle)->nodes == cycle->nodes ? 0 : -EPROTO;
}

static int try_join(struct store_cycle *cycle)
{
	int rc = store_lock(cycle->fd, true);

	if (rc < 0)
		return rc;
	rc = join(cycle);
	store_unlock(cycle->fd);
	if (rc < 0 && cycle->fresh)
		store_records_free(take_ptr(&cycle->fresh));
	return rc;
}

static unsigned tries_after(int rc)
{
	switch (rc) {
	case -EBUSY:
		return JOIN_TRIES_GONE;
	case -EAGAIN:
		return JOIN_TRIES_WRITING;
	default:
		return 0;
	}
}

int store_cycle_join(struct store_cycle *cycle)
{
	const struct timespec pause = { .tv_nsec = JOIN_PAUSE_NS };
	int rc = try_join(cycle);

	for (unsigned i = 0; i < tries_after(rc); i++) {
		nanosleep(&pause, NULL);
		rc = try_join(cycle);
	}
	return rc;
}
