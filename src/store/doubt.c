/* doubt.c - one whose lock does not show here: is it gone, or are locks not shared?
 *
 *   we: "joining" into our line ─▶ a line says "member", and its lock is free
 *     ─▶ "joining" again, and watch that line
 *   it, if it lives: sees who joins within a second ─▶ its line says what it heard
 *     ─▶ the line has changed: locks are not shared, and we do not join
 *     ─▶ it has not: its writer is gone, and the line shall say so
 *
 * A lock that one kernel keeps for both of us, on one mounted file system, is free when its holder
 * is gone: then nobody is watched, and nothing is waited for. Nor is anybody later: who has joined
 * has seen the lock of each member that lives.
 *
 * Who is stopped cannot answer, and is taken for gone. When it goes on it finds that its line says
 * so (cycle.c).
 *
 * Invariant: a lock is looked at before the line that it belongs to, so a line that changes under
 * its own incarnation was written by one that lived while its lock was free. */
#include "store/doubt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "store/members.h"

enum {
	LOOKS = 500, /* five times as long as a member takes to look at the file by itself */
};

static bool is_same(const struct store_line *a, const struct store_line *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Its writer says that it is there, and where its locks show. */
static bool tells(const struct store_line *line)
{
	return (line->stage == STORE_MEMBER || line->stage == STORE_JOINING) && line->locks;
}

/* --- joining ---------------------------------------------------------------------------------- */

/* The first time: whose number we take may live, too. */
static int say_joining(struct store_doubts *doubts, struct store_cycle *cycle)
{
	struct store_lines lines;
	const struct store_line *before = &lines.at[cycle->node];
	int rc;

	if (cycle->own.incarnation)
		return 0;
	store_forget_cached(cycle->fd);
	rc = store_lines_read(cycle->fd, &lines);
	if (rc < 0)
		return rc;
	doubts->own = tells(before) && before->locks != cycle->here;
	cycle->own = (struct store_line){
		.stage = STORE_JOINING,
		.incarnation = store_line_next(before),
		.acked = UINT64_MAX, /* nobody waits for us */
		.locks = cycle->nodes > 1 ? cycle->here : 0,
		.heard = store_lines_asked(&lines, cycle->node),
	};
	rc = store_line_write(cycle->fd, cycle->node, &cycle->own);
	return !rc && fdatasync(cycle->fd) < 0 ? -errno : rc;
}

/* Its lock is free. 1: it is in doubt. */
static int raise_one(struct store_doubts *doubts, unsigned node, const struct store_line *line,
		     uint64_t here)
{
	if (!tells(line) || is_same(line, &doubts->dead[node]))
		return 0;
	if (line->locks == here) {
		doubts->dead[node] = *line;
		return 0;
	}
	doubts->of[node] = *line;
	return 1;
}

int store_doubts_raise(struct store_doubts *doubts, struct store_cycle *cycle)
{
	int held[WEFT_STORE_NODES_MAX + 1];
	struct store_lines lines;
	int rc = say_joining(doubts, cycle), any;

	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX && !rc; node++) {
		held[node] = node == cycle->node ? 1 : store_member_is_held(cycle->fd, node);
		rc = held[node] < 0 ? held[node] : 0;
	}
	store_forget_cached(cycle->fd);
	if (!rc)
		rc = store_lines_read(cycle->fd, &lines);
	if (rc < 0)
		return rc;
	memset(doubts->of, 0, sizeof(doubts->of));
	any = doubts->own;
	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX; node++)
		if (!held[node])
			any |= raise_one(doubts, node, &lines.at[node], cycle->here);
	return any;
}

/* --- watching --------------------------------------------------------------------------------- */

static int prove(struct store_doubts *doubts, unsigned node)
{
	doubts->proof = node;
	return -EXDEV;
}

/* Two that join at once answer each other. -EXDEV: somebody else writes to our line. */
static int answer(struct store_doubts *doubts, struct store_cycle *cycle,
		  const struct store_lines *lines)
{
	const struct store_line *there = &lines->at[cycle->node];
	uint64_t asked = store_lines_asked(lines, cycle->node);

	if (there->incarnation && there->incarnation != cycle->own.incarnation)
		return prove(doubts, cycle->node);
	if (asked == cycle->own.heard)
		return 0;
	cycle->own.heard = asked;
	return store_line_write(cycle->fd, cycle->node, &cycle->own);
}

/* One that came anew is for the next time that doubts are raised. */
static int look_at(struct store_doubts *doubts, unsigned node, const struct store_line *line)
{
	const struct store_line *was = &doubts->of[node];

	if (!was->incarnation || line->incarnation != was->incarnation || is_same(line, was) ||
	    line->stage == STORE_LEFT)
		return 0;
	return prove(doubts, node);
}

static int look(struct store_doubts *doubts, struct store_cycle *cycle)
{
	struct store_lines lines;
	int rc;

	store_forget_cached(cycle->fd);
	rc = store_lines_read(cycle->fd, &lines);
	if (!rc)
		rc = answer(doubts, cycle, &lines);
	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX && !rc; node++)
		rc = look_at(doubts, node, &lines.at[node]);
	return rc;
}

/* Again, and as somebody else: who has answered before its line was looked at has nothing to add. */
static int ask_again(struct store_cycle *cycle)
{
	int rc;

	cycle->own.incarnation++;
	rc = store_line_write(cycle->fd, cycle->node, &cycle->own);
	return !rc && fdatasync(cycle->fd) < 0 ? -errno : rc;
}

int store_doubts_watch(struct store_doubts *doubts, struct store_cycle *cycle)
{
	int rc = ask_again(cycle);

	for (unsigned i = 0; i < LOOKS && !rc; i++) {
		rc = store_cycle_pause(cycle);
		if (!rc)
			rc = look(doubts, cycle);
	}
	if (rc < 0)
		return rc;
	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX; node++)
		if (doubts->of[node].incarnation)
			doubts->dead[node] = doubts->of[node];
	doubts->own = false;
	return 0;
}

/* One that is back has another line. */
int store_doubts_settle(const struct store_doubts *doubts, const struct store_cycle *cycle)
{
	struct store_lines lines;
	int rc = store_lines_read(cycle->fd, &lines);

	for (unsigned node = 1; node <= WEFT_STORE_NODES_MAX && !rc; node++) {
		struct store_line *line = &lines.at[node];

		if (!line->incarnation || !is_same(line, &doubts->dead[node]))
			continue;
		line->stage = STORE_LEFT;
		rc = store_line_write(cycle->fd, node, line);
	}
	return rc;
}
