/* wait.c - between two turns: submit, then spin or sleep until there is something to do.
 *
 *   pollers busy ────▶ the next turn; the engine only when it is due
 *   something waits ─▶ submit, poll once
 *   nothing ─────────▶ spin ─▶ arm, sleep
 *
 * Reading memory is free, calling the engine may be a system call, sleeping and waking is the
 * dearest. So pollers are polled first and most often; while they have work, the engine is called
 * for operations that are queued, and every ENGINE_EVERY turns for the sockets.
 *
 * Invariant: the reactor blocks only when nothing is left to do and every event will wake it. */
#include <assert.h>
#include <sched.h>

#include "base/clock.h"
#include "reactor/internal.h"

/* While the reactor spins, it yields the CPU this often. A yield takes less than AWAY_NS when
 * nobody wants the CPU, and about as long as a few polls. */
#define YIELD_EVERY_NS UINT64_C(2000)
#define AWAY_NS        UINT64_C(10000)

/* While pollers have work: turns per call of the engine, which may be a system call. */
#define ENGINE_EVERY 16

/* While they have none: polls of the pollers per call of the engine. */
#define POLLS_PER_ENGINE_CALL 8

uint64_t weft_clock_ns(const struct weft_reactor *r)
{
	return r->options.clock ? r->options.clock(r->options.clock_arg) : weft_monotonic_ns();
}

static bool reactor_has_work(struct weft_reactor *r)
{
	return !weft_list_empty(&r->completed) || !weft_list_empty(&r->tasks) ||
	       weft_bulk_waits(r) || !weft_mailbox_empty(&r->mailbox) ||
	       !weft_list_empty(&r->ready_pollers);
}

static void call_engine(struct weft_reactor *r, int64_t limit_ns)
{
	r->turns_since_engine = 0;
	r->engine->ops->wait(r->engine, limit_ns);
}

static void submit_and_reap(struct weft_reactor *r)
{
	call_engine(r, 0);
}

/* Operations are queued, or sockets have waited long enough: with bulk work, for one turn. */
static bool engine_is_due(struct weft_reactor *r)
{
	return r->turns_since_engine >= ENGINE_EVERY || !weft_list_empty(&r->queued) ||
	       weft_bulk_waits(r) || !weft_mailbox_empty(&r->mailbox);
}

static bool pollers_are_busy(const struct weft_reactor *r)
{
	return r->pollers_ran || !weft_list_empty(&r->ready_pollers);
}

/* Polling pollers costs less than calling the engine, so it comes first and more often. */
static bool poll_everything(struct weft_reactor *r)
{
	bool any = !weft_list_empty(&r->pollers);

	for (int i = 0; any && i < POLLS_PER_ENGINE_CALL && !engine_is_due(r); i++)
		if (weft_pollers_poll(r))
			return true;
	submit_and_reap(r);
	return reactor_has_work(r);
}

/* How long until the next timer, and at most @limit_ns; -1: nothing bounds it. */
static int64_t ns_until_timer(const struct weft_reactor *r, int64_t limit_ns)
{
	const struct weft_heap_node *top = r->timers.top;
	uint64_t now;
	int64_t left;

	if (!top || !limit_ns)
		return limit_ns;
	now = weft_clock_ns(r);
	left = top->key > now ? (int64_t)(top->key - now) : 0;
	return limit_ns < 0 || left < limit_ns ? left : limit_ns;
}

/* true: another thread got the CPU. */
static bool yield_cpu(uint64_t *now)
{
	uint64_t before = *now;

	sched_yield();
	*now = weft_monotonic_ns();
	return *now - before > AWAY_NS;
}

/* Polls again and again, and yields the CPU now and then. If another thread took it, spinning ends,
 * even if it has found something. */
static bool spin_for(struct weft_reactor *r, uint64_t budget_ns)
{
	uint64_t start = weft_monotonic_ns(), now = start, yielded = start;
	bool late = false, found;

	do {
		if (now - yielded >= YIELD_EVERY_NS) {
			late = yield_cpu(&now);
			yielded = now;
		}
		found = poll_everything(r);
		now = weft_monotonic_ns();
	} while (!found && !late && now - start < budget_ns);

	if (found && !late)
		weft_spin_hit(&r->spin, now - start);
	else
		weft_spin_miss(&r->spin);
	return found;
}

/* true: there is something to do, and sleeping would have cost more than the spin. */
static bool spin_before_sleep(struct weft_reactor *r, int64_t limit_ns)
{
	uint64_t budget_ns = weft_spin_budget_ns(&r->spin);

	if (!budget_ns || (limit_ns > 0 && (uint64_t)limit_ns < budget_ns))
		return false;
	return poll_everything(r) || spin_for(r, budget_ns);
}

static void sleep_in_engine(struct weft_reactor *r, int64_t limit_ns)
{
	bool idle;

	assert(weft_list_empty(&r->tasks) && weft_list_empty(&r->completed));
	idle = weft_mailbox_sleep(&r->mailbox) && weft_pollers_arm(r);

	call_engine(r, idle ? limit_ns : 0);
	weft_mailbox_wake(&r->mailbox);
}

void weft_reactor_wait(struct weft_reactor *r, int64_t limit_ns)
{
	r->turns_since_engine++;
	if (pollers_are_busy(r)) {
		if (engine_is_due(r))
			submit_and_reap(r);
		return;
	}
	limit_ns = ns_until_timer(r, limit_ns);
	if (!limit_ns || reactor_has_work(r))
		submit_and_reap(r);
	else if (r->options.poll)
		poll_everything(r);
	else if (!spin_before_sleep(r, limit_ns))
		sleep_in_engine(r, limit_ns);
}

/* --- for a foreign event loop ----------------------------------------------------------------- */

bool weft_reactor_busy(struct weft_reactor *r)
{
	return reactor_has_work(r) || !weft_list_empty(&r->queued) || weft_pollers_poll(r);
}

void weft_reactor_submit(struct weft_reactor *r)
{
	if (weft_list_empty(&r->queued))
		return;
	if (r->engine->ops->submit)
		r->engine->ops->submit(r->engine);
	else
		call_engine(r, 0);
}

int weft_reactor_fd(struct weft_reactor *r)
{
	return r->engine->ops->fd ? r->engine->ops->fd(r->engine) : -EOPNOTSUPP;
}

/* From here on messages and pollers make the descriptor readable; the next turn calls the engine,
 * which clears that. An alarm that comes too early does no harm, and setting it for every timer
 * that moves to a later time would cost a system call each. */
void weft_reactor_prepare_wait(struct weft_reactor *r)
{
	uint64_t due = r->timers.top ? r->timers.top->key : 0;

	assert_driving(r);
	assert(r->engine->ops->alarm);
	if (due && (!r->alarm_ns || due < r->alarm_ns || r->alarm_ns <= r->now_ns)) {
		r->alarm_ns = due;
		r->engine->ops->alarm(r->engine, ns_until_timer(r, -1));
	}
	r->turns_since_engine = ENGINE_EVERY;
	if (!weft_mailbox_sleep(&r->mailbox) || weft_reactor_busy(r) || !weft_pollers_arm(r)) {
		r->alarm_ns = 0;
		r->engine->ops->alarm(r->engine, 0);
	}
}
