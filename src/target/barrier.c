/* barrier.c - reactor barrier: run a function on every reactor, and then one on the control
 * reactor.
 *
 * A reactor may answer at once, in a later turn, or when its last command is back. When all have
 * answered, no reactor reads an old namespace table any more (each has returned to its loop), or
 * no command uses the namespace: whatever the function waited for. */
#include <assert.h>
#include <stdlib.h>

#include "base/count.h"
#include "target/internal.h"

struct tgt_barrier *tgt_barrier_new(struct weft_target *t)
{
	struct tgt_barrier *barrier =
		calloc(1, sizeof(*barrier) + t->npoll_groups * sizeof(barrier->reactor_msgs[0]));

	if (!barrier)
		return NULL;
	barrier->target = t;
	for (unsigned i = 0; i < t->npoll_groups; i++) {
		barrier->reactor_msgs[i].barrier = barrier;
		barrier->reactor_msgs[i].group = t->poll_groups[i];
	}
	return barrier;
}

static void barrier_run_on_reactor(struct weft_msg *msg)
{
	struct tgt_barrier_msg *bmsg = container_of(msg, struct tgt_barrier_msg, msg);

	assert_on(bmsg->group->reactor);
	bmsg->barrier->on_reactor(bmsg->barrier, bmsg->group);
}

static void barrier_arrived(struct weft_msg *msg)
{
	struct tgt_barrier *barrier = container_of(msg, struct tgt_barrier_msg, msg)->barrier;

	assert_on_control(barrier->target);
	if (!weft_count_down(barrier->pending))
		barrier->done(barrier);
}

void tgt_barrier_requeue(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	assert_on(group->reactor);
	weft_reactor_post(group->reactor, &barrier->reactor_msgs[group->index].msg);
}

void tgt_barrier_start(struct tgt_barrier *barrier)
{
	assert_on_control(barrier->target);
	assert(!barrier->pending);
	barrier->pending = barrier->target->npoll_groups;
	for (unsigned i = 0; i < barrier->target->npoll_groups; i++) {
		barrier->reactor_msgs[i].msg.fn = barrier_run_on_reactor;
		weft_reactor_post(barrier->target->poll_groups[i]->reactor,
				  &barrier->reactor_msgs[i].msg);
	}
}

void tgt_barrier_arrive(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct weft_msg *msg = &barrier->reactor_msgs[group->index].msg;

	assert_on(group->reactor);
	msg->fn = barrier_arrived;
	weft_reactor_post(barrier->target->control, msg);
}

static void free_after_barrier_done(struct tgt_barrier *barrier)
{
	free(barrier->arg);
	free(barrier);
}

void tgt_free_after_barrier(struct weft_target *t, struct tgt_barrier *barrier, void *old)
{
	assert(barrier->target == t);
	barrier->arg = old;
	barrier->on_reactor = tgt_barrier_arrive;
	barrier->done = free_after_barrier_done;
	tgt_barrier_start(barrier);
}
