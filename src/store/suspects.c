/* suspects.c - suspects, before joining: is a member whose lock is not visible here dead, or are
 * locks not shared?
 *
 *   we: write "joining" into our record
 *     ─▶ find a record that says "member" while its lock is free: a suspect
 *     ─▶ write "joining" again, and poll the suspect's record
 *   the suspect, if it lives, notices a joining process within a second and updates its record
 *     ─▶ record changed: locks are not shared, the join fails (-EXDEV)
 *     ─▶ unchanged for 5 s: the suspect is dead, and its record is marked "left"
 *
 * A suspect with our lock domain (same kernel, same mounted file system) is dead if its lock is
 * free: no poll is needed.
 *
 * A stopped process (SIGSTOP) does not answer and is marked "left". When it continues it finds that
 * in its record, and stops being a member (cycle.c).
 *
 * Invariant: a lock is tested before its record is read. So a record that changes without a new
 * incarnation was written by a process that lived while its lock looked free. */
#include "store/suspects.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/member_locks.h"

enum {
	PROBE_POLLS = 500, /* five times as long as a member takes to poll the file */
};

static bool is_same_record(const struct store_member_record *a, const struct store_member_record *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Its writer is a member or joins, and has a lock domain. */
static bool claims_alive(const struct store_member_record *record)
{
	return (record->stage == STORE_MEMBER || record->stage == STORE_JOINING) &&
	       record->lock_domain;
}

/* --- find suspects ---------------------------------------------------------------------------- */

/* Before our first record is written: the last process with our node number may live, too. */
static int announce_joining(struct store_suspects *suspects, struct store_cycle *cycle)
{
	struct store_member_records member_records;
	const struct store_member_record *before = &member_records.at[cycle->node];
	int rc;

	if (cycle->own.incarnation)
		return 0;
	store_drop_page_cache(cycle->fd);
	rc = store_member_records_read(cycle->fd, &member_records);
	if (rc < 0)
		return rc;
	suspects->own = claims_alive(before) && before->lock_domain != cycle->lock_domain;
	cycle->own = (struct store_member_record){
		.stage = STORE_JOINING,
		.incarnation = store_next_incarnation(before),
		.acked = UINT64_MAX, /* no commit waits for us */
		.lock_domain = cycle->nodes > 1 ? cycle->lock_domain : 0,
		.joiners_seen = store_joiners_sum(&member_records, cycle->node),
	};
	rc = store_member_record_write(cycle->fd, cycle->node, &cycle->own);
	return !rc && fdatasync(cycle->fd) < 0 ? -errno : rc;
}

/* Its lock is free. 1: it is a suspect. */
static int note_suspect(struct store_suspects *suspects, unsigned node,
			const struct store_member_record *record, uint64_t here)
{
	if (!claims_alive(record) || is_same_record(record, &suspects->dead[node]))
		return 0;
	if (record->lock_domain == here) {
		suspects->dead[node] = *record;
		return 0;
	}
	suspects->of[node] = *record;
	return 1;
}

int store_suspects_find(struct store_suspects *suspects, struct store_cycle *cycle)
{
	int held[WEFT_STORE_NODES_MAX + 1];
	struct store_member_records member_records;
	int rc = announce_joining(suspects, cycle), any;

	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX && !rc; node++) {
		held[node] = node == cycle->node ? 1 : store_member_is_locked(cycle->fd, node);
		rc = held[node] < 0 ? held[node] : 0;
	}
	store_drop_page_cache(cycle->fd);
	if (!rc)
		rc = store_member_records_read(cycle->fd, &member_records);
	if (rc < 0)
		return rc;
	memset(suspects->of, 0, sizeof(suspects->of));
	any = suspects->own;
	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX; node++)
		if (!held[node])
			any |= note_suspect(suspects, node, &member_records.at[node],
					    cycle->lock_domain);
	return any;
}

/* --- probe suspects --------------------------------------------------------------------------- */

static int suspect_is_alive(struct store_suspects *suspects, unsigned node)
{
	assert(!suspects->alive_node);
	suspects->alive_node = node;
	return -EXDEV;
}

/* Two processes that join at once answer each other. -EXDEV: another process writes our record. */
static int answer_joiners(struct store_suspects *suspects, struct store_cycle *cycle,
			  const struct store_member_records *member_records)
{
	const struct store_member_record *there = &member_records->at[cycle->node];
	uint64_t asked = store_joiners_sum(member_records, cycle->node);

	if (there->incarnation && there->incarnation != cycle->own.incarnation)
		return suspect_is_alive(suspects, cycle->node);
	if (asked == cycle->own.joiners_seen)
		return 0;
	cycle->own.joiners_seen = asked;
	return store_member_record_write(cycle->fd, cycle->node, &cycle->own);
}

/* A node with a new incarnation is not this suspect any more; the next round finds it. */
static int check_suspect(struct store_suspects *suspects, unsigned node,
			 const struct store_member_record *record)
{
	const struct store_member_record *was = &suspects->of[node];

	if (!was->incarnation || record->incarnation != was->incarnation ||
	    is_same_record(record, was) || record->stage == STORE_LEFT)
		return 0;
	return suspect_is_alive(suspects, node);
}

static int poll_suspects(struct store_suspects *suspects, struct store_cycle *cycle)
{
	struct store_member_records member_records;
	int rc;

	store_drop_page_cache(cycle->fd);
	rc = store_member_records_read(cycle->fd, &member_records);
	if (!rc)
		rc = answer_joiners(suspects, cycle, &member_records);
	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX && !rc; node++)
		rc = check_suspect(suspects, node, &member_records.at[node]);
	return rc;
}

/* With a new incarnation: a suspect that answered before we read its record answers again. */
static int announce_again(struct store_cycle *cycle)
{
	int rc;

	assert(cycle->own.incarnation && cycle->own.stage != STORE_LEFT);
	cycle->own.incarnation++;
	rc = store_member_record_write(cycle->fd, cycle->node, &cycle->own);
	return !rc && fdatasync(cycle->fd) < 0 ? -errno : rc;
}

int store_suspects_probe(struct store_suspects *suspects, struct store_cycle *cycle)
{
	int rc = announce_again(cycle);

	for (unsigned i = 0; i < PROBE_POLLS && !rc; i++) {
		rc = store_cycle_sleep(cycle);
		if (!rc)
			rc = poll_suspects(suspects, cycle);
	}
	if (rc < 0)
		return rc;
	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX; node++)
		if (suspects->of[node].incarnation)
			suspects->dead[node] = suspects->of[node];
	suspects->own = false;
	return 0;
}

/* A node that is back has another record. */
int store_suspects_mark_left(const struct store_suspects *suspects, const struct store_cycle *cycle)
{
	struct store_member_records member_records;
	int rc = store_member_records_read(cycle->fd, &member_records);

	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX && !rc; node++) {
		struct store_member_record *record = &member_records.at[node];

		if (!record->incarnation || !is_same_record(record, &suspects->dead[node]))
			continue;
		assert(node != cycle->node);
		record->stage = STORE_LEFT;
		rc = store_member_record_write(cycle->fd, node, record);
	}
	return rc;
}
