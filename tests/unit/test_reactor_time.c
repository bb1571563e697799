/* test_reactor_time.c - timers, deferred work and their turn, on both engines. */
#include "reactor_case.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "run_log.h"
#include "running.h"

#define MS UINT64_C(1000000)

/* --- timers ----------------------------------------------------------------------------------- */

static uint64_t fake_ns;

static uint64_t fake_clock(void *arg)
{
	return *(uint64_t *)arg;
}

static void use_fake_clock(void)
{
	fake_ns = 1000 * MS;
	replace(fake_clock, &fake_ns, false);
}

static void advance(uint64_t ms)
{
	fake_ns += ms * MS;
	weft_reactor_turn(r, 0);
}

struct noted_timer {
	struct weft_timer timer;
	char name;
	unsigned again; /* times to set itself again, for at once */
};

static void timer_notes(struct weft_timer *timer)
{
	struct noted_timer *t = container_of(timer, struct noted_timer, timer);

	note(t->name);
	if (t->again) {
		t->again--;
		weft_timer_set(r, timer, 0);
	}
}

static struct noted_timer noted_timer(char name)
{
	return (struct noted_timer){ .timer.fn = timer_notes, .name = name };
}

static void timers_fire_in_order(void **state)
{
	struct noted_timer a = noted_timer('a'), b = noted_timer('b'), c = noted_timer('c');

	need_reactor();
	use_fake_clock();
	weft_timer_set(r, &c.timer, 30);
	weft_timer_set(r, &a.timer, 10);
	weft_timer_set(r, &b.timer, 20);
	advance(0);
	advance(9);
	expect_ran("");
	advance(1);
	expect_ran("a");
	advance(100);
	expect_ran("bc");
	advance(100);
	expect_ran("");
}

static void timers_move_and_stop(void **state)
{
	struct noted_timer a = noted_timer('a'), b = noted_timer('b');

	need_reactor();
	use_fake_clock();
	weft_timer_set(r, &a.timer, 10);
	weft_timer_set(r, &b.timer, 10);
	weft_timer_set(r, &a.timer, 20);
	weft_timer_stop(r, &b.timer);
	weft_timer_stop(r, &b.timer);
	assert_int_equal(weft_timer_left_ms(r, &b.timer), 0);
	advance(10);
	expect_ran("");
	assert_int_equal(weft_timer_left_ms(r, &a.timer), 10);
	advance(10);
	expect_ran("a");
	assert_int_equal(weft_timer_left_ms(r, &a.timer), 0);
	weft_timer_set(r, &a.timer, 0);
	advance(0);
	expect_ran("a");
}

/* One that is set is not reported as due. */
static void what_is_left_is_rounded_up(void **state)
{
	static const struct {
		uint64_t ns, left_ms;
	} table[] = {
		{ 0, 10 }, { 1, 10 },         { MS - 1, 10 },
		{ MS, 9 }, { 9 * MS + 1, 1 }, { 10 * MS - 1, 1 },
	};
	struct noted_timer a = noted_timer('a');

	need_reactor();
	for_each_row(i, table) {
		use_fake_clock();
		advance(0);
		weft_timer_set(r, &a.timer, 10);
		fake_ns += table[i].ns;
		advance(0);
		assert_int_equal(weft_timer_left_ms(r, &a.timer), table[i].left_ms);
		weft_timer_stop(r, &a.timer);
	}
	expect_ran("");
}

static void timers_do_not_hold_up_the_turn(void **state)
{
	struct noted_timer a = noted_timer('a');

	need_reactor();
	use_fake_clock();
	a.again = 2;
	weft_timer_set(r, &a.timer, 5);
	advance(5);
	expect_ran("a");
	advance(1);
	expect_ran("a");
	advance(1);
	expect_ran("a");
	advance(1);
	expect_ran("");
}

static void timers_wake_the_reactor(void **state)
{
	struct noted_timer a = noted_timer('a'), b = noted_timer('b');

	need_reactor();
	weft_timer_set(r, &b.timer, 2);
	weft_timer_set(r, &a.timer, 1);
	while (strlen(ran) < 2)
		weft_reactor_turn(r, -1);
	expect_ran("ab");
}

static void clock_stands_still_within_a_turn(struct weft_timer *timer)
{
	uint64_t now = weft_reactor_now_ns(r);

	fake_ns += 5 * MS;
	assert_int_equal(weft_reactor_now_ns(r), now);
	note('t');
}

static void clock_is_read_once_per_turn(void **state)
{
	struct weft_timer timer = { .fn = clock_stands_still_within_a_turn };

	need_reactor();
	use_fake_clock();
	weft_timer_set(r, &timer, 0);
	advance(0);
	expect_ran("t");
	assert_int_equal(weft_reactor_now_ns(r), fake_ns);
}

/* --- deferred work ---------------------------------------------------------------------------- */

struct noted_task {
	struct weft_task task;
	char name;
	unsigned again;
};

static void task_notes(struct weft_task *task)
{
	struct noted_task *t = container_of(task, struct noted_task, task);

	note(t->name);
	if (t->again) {
		t->again--;
		weft_reactor_defer(r, task);
	}
}

static struct noted_task noted_task(char name)
{
	return (struct noted_task){ .name = name };
}

static void deferred_work_runs_once(void **state)
{
	struct noted_task a = noted_task('a'), b = noted_task('b'), c = noted_task('c');

	need_reactor();
	weft_task_init(&a.task, task_notes);
	weft_task_init(&b.task, task_notes);
	weft_task_init(&c.task, task_notes);
	weft_reactor_defer(r, &a.task);
	weft_reactor_defer(r, &b.task);
	weft_reactor_defer(r, &c.task);
	weft_reactor_defer(r, &a.task);
	weft_task_cancel(&b.task);
	weft_task_cancel(&b.task);
	weft_reactor_turn(r, -1);
	expect_ran("ac");
	weft_reactor_turn(r, 0);
	expect_ran("");

	a.again = 1;
	weft_reactor_defer(r, &a.task);
	weft_reactor_turn(r, -1);
	expect_ran("a");
	weft_reactor_turn(r, -1); /* does not block: the second run is due */
	expect_ran("a");
}

static struct noted_task victim;

static void cancels_victim(struct weft_task *task)
{
	weft_task_cancel(&victim.task);
	note('x');
}

static void deferred_work_cancels_other_work(void **state)
{
	struct weft_task task;

	need_reactor();
	weft_task_init(&task, cancels_victim);
	weft_task_init(&victim.task, task_notes);
	weft_reactor_defer(r, &task);
	weft_reactor_defer(r, &victim.task);
	weft_reactor_turn(r, -1);
	expect_ran("x");
}

/* --- work that is kept out -------------------------------------------------------------------- */

static struct weft_retry retry;
static unsigned tries, let_in_at; /* 0: never */

static void try_to_get_in(struct weft_task *task)
{
	assert_ptr_equal(task, &retry.task);
	if (++tries == let_in_at)
		weft_retry_reset(&retry);
	else
		weft_retry_later(r, &retry);
}

static unsigned tries_until_it_rests(void)
{
	tries = 0;
	for (unsigned turns = 0; weft_reactor_busy(r); turns++) {
		assert_true(turns < 1000);
		weft_reactor_turn(r, 0);
	}
	return tries;
}

/* By turns, while that is likely to help; then each millisecond, and the reactor may sleep. */
static void work_that_is_kept_out_comes_to_rest(void **state)
{
	unsigned turns;

	need_reactor();
	use_fake_clock();
	let_in_at = 0;
	weft_retry_init(&retry, try_to_get_in);
	weft_reactor_defer(r, &retry.task);
	turns = tries_until_it_rests();
	assert_in_range(turns, 100, 1000);
	for (unsigned ms = 1; ms <= 20; ms++) {
		advance(1);
		assert_false(weft_reactor_busy(r));
		assert_int_equal(tries, turns + ms);
	}
	weft_reactor_turn(r, 0);
	assert_int_equal(tries, turns + 20);
	/* It may be asked to look before its time; once it is in, it begins anew. */
	let_in_at = tries + 1;
	weft_reactor_defer(r, &retry.task);
	weft_reactor_turn(r, 0);
	assert_int_equal(tries, let_in_at);
	let_in_at = 0;
	weft_reactor_defer(r, &retry.task);
	assert_int_equal(tries_until_it_rests(), turns);
	weft_retry_cancel(&retry);
	advance(10);
	assert_int_equal(tries, turns);
}

/* Everything at once: each kind of work defers and notes itself. */
static struct noted_task last;

static void msg_notes(struct weft_msg *msg)
{
	weft_reactor_defer(r, &last.task);
	note('m');
}

static void op_notes(struct weft_op *op, int res)
{
	weft_reactor_defer(r, &last.task);
	note('o');
}

static void turn_has_its_order(void **state)
{
	struct noted_timer timer = noted_timer('t');
	struct weft_msg msg = { .fn = msg_notes };
	struct weft_op op = { .done = op_notes };
	struct weft_sock sock;

	need_reactor();
	use_fake_clock();
	assert_int_equal(weft_sock_open(r, &sock, eventfd(1, EFD_NONBLOCK)), 0);
	last = noted_task('d');
	weft_task_init(&last.task, task_notes);
	weft_sock_poll(&sock, &op);
	weft_timer_set(r, &timer.timer, 0);
	weft_reactor_post(r, &msg);
	weft_reactor_turn(r, 0);
	expect_ran("mtod");
	weft_sock_close(&sock);
}

/* --- a loop of somebody else's ---------------------------------------------------------------- */

enum { STALL_MS = 10000 }; /* a limit: what never comes is a stall */

/* Only when the descriptor is readable there is something to do. */
static void turn_when_readable(void)
{
	struct pollfd pollfd = { .fd = weft_reactor_fd(r), .events = POLLIN };

	assert_int_equal(poll(&pollfd, 1, STALL_MS), 1);
	weft_reactor_turn(r, 0);
	weft_reactor_prepare_wait(r);
}

static void says_m(struct weft_msg *msg)
{
	note('m');
}

/* Waking for the message must not cost the timer its alarm. */
static void doze_keeps_the_alarm(void **state)
{
	struct noted_timer timer = noted_timer('t');
	struct weft_msg msg = { .fn = says_m };

	use_fake_clock();
	assert_true(weft_reactor_fd(r) >= 0);
	weft_timer_set(r, &timer.timer, 50);
	weft_reactor_turn(r, 0);
	weft_reactor_post(r, &msg); /* between the last turn and the sleep */
	weft_reactor_prepare_wait(r);
	turn_when_readable();
	expect_ran("m");
	turn_when_readable();
	advance(50);
	expect_ran("t");
}

static void doze_knows_of_deferred_work(void **state)
{
	struct noted_task task = noted_task('a');

	assert_true(weft_reactor_fd(r) >= 0);
	weft_task_init(&task.task, task_notes);
	weft_reactor_turn(r, 0);
	weft_reactor_defer(r, &task.task);
	weft_reactor_prepare_wait(r);
	turn_when_readable();
	expect_ran("a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_both(timers_fire_in_order),
		on_both(timers_move_and_stop),
		on_both(what_is_left_is_rounded_up),
		on_both(timers_do_not_hold_up_the_turn),
		on_both(timers_wake_the_reactor),
		on_both(clock_is_read_once_per_turn),
		on_both(deferred_work_runs_once),
		on_both(deferred_work_cancels_other_work),
		on_both(work_that_is_kept_out_comes_to_rest),
		on_both(turn_has_its_order),
		on(epoll, doze_keeps_the_alarm),
		on(epoll, doze_knows_of_deferred_work),
	};

	alarm(50);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
