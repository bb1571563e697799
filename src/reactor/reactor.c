/* reactor.c - the turn: wait, then everything that has become due, once each.
 *
 *   ┌─▶ submit, spin or sleep ─▶ clock ─▶ messages ─▶ timers ─▶ done() ─▶ deferred ─┐
 *   └────────────────────────────────────────────────────────────────────────────────┘
 *
 * What a callback adds is for the next turn, except deferred work, which comes last for that
 * reason. Invariant: the reactor blocks only when nothing is left to do. */
#include "reactor/reactor.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "reactor/internal.h"

#define NS_PER_MS UINT64_C(1000000)

/* Yielding takes less than this when nobody else wants the CPU. */
#define AWAY_NS UINT64_C(10000)

static _Thread_local struct weft_reactor *self;

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t read_clock(const struct weft_reactor *r)
{
	return r->options.clock ? r->options.clock(r->options.clock_arg) : monotonic_ns();
}

/* --- birth and death ---------------------------------------------------------------------- */

/* Every reactor of a process meets the same refusal; one line tells it. */
static void tell_fallback(const struct weft_err *why)
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
		tell_fallback(&why);
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
	weft_idle_init(&r->idle);
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
	assert(!r->turning);
	r->engine->ops->close(r->engine);
	weft_mailbox_close(&r->mailbox);
	free(r);
}

/* --- waiting ------------------------------------------------------------------------------ */

static bool work_waits(struct weft_reactor *r)
{
	return !weft_list_empty(&r->completed) || !weft_list_empty(&r->tasks) ||
	       !weft_mailbox_empty(&r->mailbox);
}

static void submit_and_look(struct weft_reactor *r)
{
	r->engine->ops->wait(r->engine, 0);
}

/* How long until the next timer, and at most @limit_ns; -1: nothing bounds it. */
static int64_t until_timer(const struct weft_reactor *r, int64_t limit_ns)
{
	const struct weft_heap_node *top = r->timers.top;
	uint64_t now;
	int64_t left;

	if (!top || !limit_ns)
		return limit_ns;
	now = read_clock(r);
	left = top->key > now ? (int64_t)(top->key - now) : 0;
	return limit_ns < 0 || left < limit_ns ? left : limit_ns;
}

/* Looks again and again, and lets others have the CPU between two looks. When it comes back late
 * somebody needed the CPU more than we did, and spinning is over even if it found something. */
static bool spin_for(struct weft_reactor *r, uint64_t budget_ns)
{
	uint64_t start = monotonic_ns(), before = start, now;
	bool late, found;

	do {
		sched_yield();
		now = monotonic_ns();
		late = now - before > AWAY_NS;
		submit_and_look(r);
		found = work_waits(r);
		before = monotonic_ns();
	} while (!found && !late && now - start < budget_ns);

	if (found && !late)
		weft_idle_hit(&r->idle, now - start);
	else
		weft_idle_miss(&r->idle);
	return found;
}

/* True: there is something to do, and sleeping would have been dearer than finding it. */
static bool spin(struct weft_reactor *r, int64_t limit_ns)
{
	uint64_t budget_ns = weft_idle_budget_ns(&r->idle);

	if (!budget_ns || (limit_ns > 0 && (uint64_t)limit_ns < budget_ns))
		return false;
	submit_and_look(r);
	return work_waits(r) || spin_for(r, budget_ns);
}

static void block(struct weft_reactor *r, int64_t limit_ns)
{
	bool empty = weft_mailbox_sleep(&r->mailbox);

	r->engine->ops->wait(r->engine, empty ? limit_ns : 0);
	weft_mailbox_wake(&r->mailbox);
}

static void wait_for_work(struct weft_reactor *r, int64_t limit_ns)
{
	limit_ns = until_timer(r, limit_ns);
	if (!limit_ns || r->options.poll || work_waits(r))
		submit_and_look(r);
	else if (!spin(r, limit_ns))
		block(r, limit_ns);
}

/* --- the turn ----------------------------------------------------------------------------- */

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

static void turn(struct weft_reactor *r, int64_t limit_ns)
{
	assert(!r->turning);
	wait_for_work(r, limit_ns);
	r->now_ns = read_clock(r);
	r->turning = true;
	weft_mailbox_deliver(&r->mailbox);
	fire_timers(r);
	weft_op_finish_all(r);
	run_tasks(r);
	r->turning = false;
}

void weft_reactor_turn(struct weft_reactor *r, int wait_ms)
{
	struct weft_reactor *before = self;

	self = r;
	weft_mailbox_wake(&r->mailbox);
	turn(r, wait_ms < 0 ? -1 : wait_ms * (int64_t)NS_PER_MS);
	self = before;
}

void weft_reactor_run_deferred(struct weft_reactor *r)
{
	struct weft_reactor *before = self;

	assert(!r->turning);
	self = r;
	run_tasks(r);
	self = before;
}

bool weft_reactor_busy(struct weft_reactor *r)
{
	return work_waits(r) || !weft_list_empty(&r->queued);
}

int weft_reactor_fd(struct weft_reactor *r)
{
	return r->engine->ops->fd ? r->engine->ops->fd(r->engine) : -EOPNOTSUPP;
}

/* From here on a message rings. An alarm that comes too early does no harm, and setting it for every
 * timer that moves away would cost a system call each. */
void weft_reactor_doze(struct weft_reactor *r)
{
	uint64_t due = r->timers.top ? r->timers.top->key : 0;

	if (due && (!r->alarm_ns || due < r->alarm_ns || r->alarm_ns <= r->now_ns)) {
		r->alarm_ns = due;
		r->engine->ops->alarm(r->engine, until_timer(r, -1));
	}
	if (!weft_mailbox_sleep(&r->mailbox) || weft_reactor_busy(r)) {
		r->alarm_ns = 0;
		r->engine->ops->alarm(r->engine, 0);
	}
}

static void pin(int cpu)
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

	if (r->options.cpu >= 0)
		pin(r->options.cpu);
	self = r;
	while (!r->stopping)
		turn(r, -1);
	r->stopping = false;
	self = before;
}

void weft_reactor_stop(struct weft_reactor *r)
{
	r->stopping = true;
}

/* --- what callbacks ask and leave --------------------------------------------------------- */

struct weft_reactor *weft_reactor_self(void)
{
	return self;
}

const char *weft_reactor_engine_name(const struct weft_reactor *r)
{
	return r->engine->ops->name;
}

int weft_reactor_cpu(const struct weft_reactor *r)
{
	return r->options.cpu;
}

/* Between turns, and before the first, the time of the last one says nothing. */
uint64_t weft_reactor_now_ns(const struct weft_reactor *r)
{
	return r->turning ? r->now_ns : read_clock(r);
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
	if (weft_list_empty(&task->link))
		weft_list_push(&r->tasks, &task->link);
}

void weft_task_cancel(struct weft_task *task)
{
	weft_list_remove(&task->link);
}

/* A timer that sets itself for now, from its own callback, must not hold up the turn. */
static uint64_t due_ns(const struct weft_reactor *r, uint64_t delay_ms)
{
	uint64_t due = weft_reactor_now_ns(r) + delay_ms * NS_PER_MS;

	return r->firing && !delay_ms ? due + 1 : due;
}

void weft_timer_set(struct weft_reactor *r, struct weft_timer *timer, uint64_t delay_ms)
{
	weft_timer_stop(r, timer);
	weft_heap_push(&r->timers, &timer->node, due_ns(r, delay_ms));
}

void weft_timer_stop(struct weft_reactor *r, struct weft_timer *timer)
{
	if (weft_heap_has(&timer->node))
		weft_heap_remove(&r->timers, &timer->node);
}
