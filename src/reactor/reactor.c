/* reactor.c - the turn: wait, then everything that has become due, once each.
 *
 *   ┌─▶ submit, wait ─▶ clock ─▶ messages ─▶ timers ─▶ done() ─▶ pollers ─▶ bulk ─▶ deferred ─┐
 *   └──────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * What a callback adds is for the next turn, except deferred work, which comes last for that
 * reason. Waiting is wait.c's. Invariant: a turn is finite, whatever its callbacks add. */
#include "reactor/reactor.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "reactor/internal.h"

#define NS_PER_MS UINT64_C(1000000)

static _Thread_local struct weft_reactor *self;

/* --- birth and death -------------------------------------------------------------------------- */

/* Every reactor of a process meets the same refusal; one line tells it. */
static void log_fallback(const struct weft_err *why)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&told))
		weft_info("%s; using epoll", why->text);
}

static int open_engine(struct weft_reactor *r, struct weft_err *err)
{
	struct weft_err why = { 0 };

	switch (r->options.engine) {
	case WEFT_ENGINE_URING:
		return weft_uring_open(r, &r->engine, err);
	case WEFT_ENGINE_EPOLL:
		return weft_epoll_open(r, &r->engine, err);
	default:
		if (!weft_uring_open(r, &r->engine, &why))
			return 0;
		log_fallback(&why);
		return weft_epoll_open(r, &r->engine, err);
	}
}

static struct weft_reactor *alloc_reactor(const struct weft_reactor_options *options)
{
	struct weft_reactor *r = aligned_alloc(alignof(struct weft_reactor), sizeof(*r));

	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->options = options ? *options : (struct weft_reactor_options){ .cpu = -1 };
	weft_list_init(&r->queued);
	weft_list_init(&r->completed);
	weft_list_init(&r->tasks);
	weft_list_init(&r->bulk);
	weft_list_init(&r->bulk_full);
	weft_list_init(&r->bulk_retries);
	weft_list_init(&r->pollers);
	weft_list_init(&r->ready_pollers);
	weft_spin_init(&r->spin);
	return r;
}

int weft_reactor_create(struct weft_reactor **out, const struct weft_reactor_options *options,
			struct weft_err *err)
{
	struct weft_reactor *r = alloc_reactor(options);
	int rc;

	if (!r)
		return weft_fail(err, -ENOMEM, "no memory for a reactor");
	rc = weft_mailbox_open(&r->mailbox);
	if (rc < 0) {
		weft_fail(err, rc, "eventfd: %s", strerror(-rc));
		goto fail_free;
	}
	rc = open_engine(r, err);
	if (rc < 0)
		goto fail_mailbox;
	*out = r;
	return 0;

fail_mailbox:
	weft_mailbox_close(&r->mailbox);
fail_free:
	free(r);
	return rc;
}

void weft_reactor_destroy(struct weft_reactor *r)
{
	assert(!r->driven);
	assert(weft_list_empty(&r->pollers) && weft_list_empty(&r->ready_pollers));
	assert(!weft_bulk_waits(r) && weft_list_empty(&r->bulk_full) && !r->pieces);
	r->engine->ops->close(r->engine);
	weft_mailbox_close(&r->mailbox);
	free(r);
}

/* --- the turn --------------------------------------------------------------------------------- */

static void fire_timers(struct weft_reactor *r)
{
	struct weft_heap_node *node;
	struct weft_timer *timer;

	r->firing = true;
	while ((node = r->timers.top) && node->key <= r->now_ns) {
		timer = container_of(node, struct weft_timer, node);
		weft_heap_remove(&r->timers, node);
		timer->fn(timer);
	}
	r->firing = false;
}

static void run_tasks(struct weft_reactor *r)
{
	struct weft_list now, *link;
	struct weft_task *task;

	weft_list_init(&now);
	weft_list_splice(&now, &r->tasks);
	while ((link = weft_list_pop(&now))) {
		task = container_of(link, struct weft_task, link);
		task->fn(task);
	}
}

static void run_turn(struct weft_reactor *r, int64_t limit_ns)
{
	r->thread = &self;
	weft_reactor_wait(r, limit_ns);
	r->now_ns = weft_clock_ns(r);
	r->turning = true;
	r->got_message |= weft_mailbox_deliver(&r->mailbox);
	fire_timers(r);
	weft_op_finish_all(r);
	r->pollers_ran = weft_pollers_process(r);
	weft_bulk_run(r);
	run_tasks(r);
	r->turning = false;
}

void weft_reactor_turn(struct weft_reactor *r, int wait_ms)
{
	struct weft_reactor *before = self;

	assert(!r->driven);
	self = r;
	r->driven = true;
	weft_mailbox_wake(&r->mailbox);
	run_turn(r, wait_ms < 0 ? -1 : wait_ms * (int64_t)NS_PER_MS);
	r->driven = false;
	self = before;
}

void weft_reactor_run_deferred(struct weft_reactor *r)
{
	struct weft_reactor *before = self;

	assert(!r->driven);
	self = r;
	run_tasks(r);
	self = before;
}

static void pin_to_cpu(int cpu)
{
	cpu_set_t set;
	int rc;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	rc = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (rc)
		weft_warn("reactor: not pinned to CPU %d: %s", cpu, strerror(rc));
}

void weft_reactor_run(struct weft_reactor *r)
{
	struct weft_reactor *before = self;

	assert(!r->driven);
	if (r->options.cpu >= 0)
		pin_to_cpu(r->options.cpu);
	self = r;
	r->driven = true;
	while (!r->stopping)
		run_turn(r, -1);
	r->stopping = false;
	r->driven = false;
	self = before;
}

void weft_reactor_stop(struct weft_reactor *r)
{
	assert_driving(r);
	r->stopping = true;
}

/* --- for callbacks: clock, deferred work, timers ---------------------------------------------- */

struct weft_reactor *weft_reactor_self(void)
{
	return self;
}

bool weft_reactor_is_here(const struct weft_reactor *r)
{
	return !r->thread || r->thread == &self;
}

static bool is_driven_elsewhere(const struct weft_reactor *r)
{
	return r->driven && r->thread != &self;
}

bool weft_reactor_is_driven_elsewhere(const struct weft_reactor *r)
{
	return is_driven_elsewhere(r);
}

const char *weft_reactor_engine_name(const struct weft_reactor *r)
{
	return r->engine->ops->name;
}

int weft_reactor_cpu(const struct weft_reactor *r)
{
	return r->options.cpu;
}

/* Between turns, and before the first, the time of the last turn is not valid. */
uint64_t weft_reactor_now_ns(const struct weft_reactor *r)
{
	return r->turning ? r->now_ns : weft_clock_ns(r);
}

void weft_reactor_post(struct weft_reactor *r, struct weft_msg *msg)
{
	weft_mailbox_put(&r->mailbox, msg);
}

void weft_task_init(struct weft_task *task, void (*fn)(struct weft_task *task))
{
	weft_list_init(&task->link);
	task->fn = fn;
}

void weft_reactor_defer(struct weft_reactor *r, struct weft_task *task)
{
	if (!weft_list_empty(&task->link))
		return;
	assert(!is_driven_elsewhere(r));
	weft_list_push(&r->tasks, &task->link);
}

void weft_task_cancel(struct weft_task *task)
{
	weft_list_remove(&task->link);
}

/* A timer that sets itself for now, from its own callback, must not hold up the turn. */
static uint64_t timer_due_ns(const struct weft_reactor *r, uint64_t delay_ms)
{
	uint64_t due = weft_reactor_now_ns(r) + delay_ms * NS_PER_MS;

	return r->firing && !delay_ms ? due + 1 : due;
}

void weft_timer_set(struct weft_reactor *r, struct weft_timer *timer, uint64_t delay_ms)
{
	assert(timer->fn);
	weft_timer_stop(r, timer);
	weft_heap_push(&r->timers, &timer->node, timer_due_ns(r, delay_ms));
}

void weft_timer_stop(struct weft_reactor *r, struct weft_timer *timer)
{
	assert(!is_driven_elsewhere(r));
	if (weft_heap_has(&timer->node))
		weft_heap_remove(&r->timers, &timer->node);
}

uint64_t weft_timer_left_ms(const struct weft_reactor *r, const struct weft_timer *timer)
{
	uint64_t now = weft_reactor_now_ns(r);

	if (!weft_heap_has(&timer->node) || timer->node.key <= now)
		return 0;
	return (timer->node.key - now + NS_PER_MS - 1) / NS_PER_MS;
}
