/* round.c - a visit to every reactor, and back to home when all have answered.
 *
 * This is how home knows that something is over everywhere: that no reactor still reads an old
 * namespace table (each has returned to its loop), that no command holds a namespace. */
#include <assert.h>
#include <stdlib.h>

#include "target/internal.h"

struct tgt_round *tgt_round_new(struct weft_target *t)
{
	struct tgt_round *round = calloc(1, sizeof(*round) + t->ngroups * sizeof(round->legs[0]));

	if (!round)
		return NULL;
	round->target = t;
	for (unsigned i = 0; i < t->ngroups; i++) {
		round->legs[i].round = round;
		round->legs[i].group = t->groups[i];
	}
	return round;
}

static void visit(struct weft_msg *msg)
{
	struct tgt_leg *leg = container_of(msg, struct tgt_leg, msg);

	leg->round->visit(leg->round, leg->group);
}

static void answered(struct weft_msg *msg)
{
	struct tgt_round *round = container_of(msg, struct tgt_leg, msg)->round;

	if (!--round->pending)
		round->done(round);
}

void tgt_round_again(struct tgt_round *round, struct weft_poll_group *group)
{
	weft_reactor_post(group->reactor, &round->legs[group->index].msg);
}

void tgt_round_start(struct tgt_round *round)
{
	assert(!round->pending);
	round->pending = round->target->ngroups;
	for (unsigned i = 0; i < round->target->ngroups; i++) {
		round->legs[i].msg.fn = visit;
		weft_reactor_post(round->target->groups[i]->reactor, &round->legs[i].msg);
	}
}

void tgt_round_answer(struct tgt_round *round, struct weft_poll_group *group)
{
	struct weft_msg *msg = &round->legs[group->index].msg;

	msg->fn = answered;
	weft_reactor_post(round->target->home, msg);
}

static void free_old(struct tgt_round *round)
{
	free(round->arg);
	free(round);
}

void tgt_free_later(struct weft_target *t, struct tgt_round *round, void *old)
{
	assert(round->target == t);
	round->arg = old;
	round->visit = tgt_round_answer;
	round->done = free_old;
	tgt_round_start(round);
}
