/* test_reactor_poller.c - pollers: looked at while awake, armed before sleep, on both engines.
 *
 * The adapter is a counter and an eventfd. It rings once after it was armed, as a completion
 * channel does, and everything it reports while nobody has armed it is found by looking only. */
#include "reactor/internal.h"

#include "reactor_case.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>

enum { STALL_MS = 10000 }; /* a limit: what never comes is a stall */

/* --- the adapter ------------------------------------------------------------------------------ */

struct adapter {
	struct weft_poller poller;
	struct weft_sock channel;
	struct weft_op ring;
	atomic_uint reported;
	atomic_bool armed;
	atomic_uint ran; /* reports that process() has seen */
	unsigned taken;  /* by poll(), for process() */
	unsigned looks, runs, arms, rings;
	unsigned report_on_look;    /* the how manieth; 0: none */
	bool always;                /* there is something at every look */
	bool early_report;          /* just before arm() looks for the last time */
	bool late_report;           /* just after that */
	struct weft_poller *victim; /* process() removes it */
	struct weft_task *to_defer; /* by process() */
};

static struct adapter adapter;

static struct adapter *to_adapter(struct weft_poller *poller)
{
	return container_of(poller, struct adapter, poller);
}

/* From any thread. */
static void report(struct adapter *a)
{
	atomic_fetch_add(&a->reported, 1);
	if (atomic_exchange(&a->armed, false))
		eventfd_write(a->channel.fd, 1);
}

static bool adapter_look(struct weft_poller *poller)
{
	struct adapter *a = to_adapter(poller);

	assert_int_equal(a->taken, 0);
	if (++a->looks == a->report_on_look || a->always)
		report(a);
	a->taken = atomic_exchange(&a->reported, 0);
	return a->taken;
}

static void adapter_run(struct weft_poller *poller)
{
	struct adapter *a = to_adapter(poller);

	assert_ptr_equal(weft_reactor_self(), r);
	assert_true(a->taken);
	a->runs++;
	atomic_fetch_add(&a->ran, a->taken);
	a->taken = 0;
	if (a->to_defer)
		weft_reactor_defer(r, a->to_defer);
	if (a->victim)
		weft_poller_remove(a->victim);
}

static bool adapter_arm(struct weft_poller *poller)
{
	struct adapter *a = to_adapter(poller);
	bool early = a->early_report, late = a->late_report, idle;

	a->arms++;
	a->early_report = a->late_report = false;
	if (early)
		report(a);
	atomic_store(&a->armed, true);
	idle = !atomic_load(&a->reported);
	if (late)
		report(a);
	return idle;
}

static void adapter_rang(struct weft_op *op, int res)
{
	struct adapter *a = container_of(op, struct adapter, ring);
	eventfd_t value;

	if (res == -ECANCELED)
		return;
	a->rings++;
	eventfd_read(a->channel.fd, &value);
	weft_sock_poll(&a->channel, op);
}

static void adapter_plug(struct adapter *a)
{
	*a = (struct adapter){
		.poller = { .poll = adapter_look, .process = adapter_run, .arm = adapter_arm },
		.ring.done = adapter_rang,
	};
	assert_int_equal(weft_sock_open(r, &a->channel, eventfd(0, EFD_NONBLOCK)), 0);
	weft_sock_poll(&a->channel, &a->ring);
	weft_poller_add(r, &a->poller);
}

static void adapter_unplug(struct adapter *a)
{
	weft_poller_remove(&a->poller);
	weft_sock_close(&a->channel);
	weft_reactor_turn(r, 0);
}

static void turn_until_it_ran(struct adapter *a)
{
	unsigned before = a->runs;

	while (a->runs == before)
		weft_reactor_turn(r, -1);
}

/* --- how often the engine is called ----------------------------------------------------------- */

static const struct engine_ops *real_ops;
static struct engine_ops counting_ops;
static unsigned engine_calls;

static void count_and_wait(struct engine *engine, int64_t timeout_ns)
{
	engine_calls++;
	real_ops->wait(engine, timeout_ns);
}

static void count_engine_calls(void)
{
	real_ops = r->engine->ops;
	counting_ops = *real_ops;
	counting_ops.wait = count_and_wait;
	r->engine->ops = &counting_ops;
	engine_calls = 0;
}

static unsigned engine_calls_of(unsigned turns, int wait_ms)
{
	engine_calls = 0;
	while (turns--)
		weft_reactor_turn(r, wait_ms);
	return engine_calls;
}

/* --- awake ------------------------------------------------------------------------------------ */

static void every_turn_looks(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	report(&adapter);
	report(&adapter);
	weft_reactor_turn(r, 0);
	assert_int_equal(adapter.runs, 1);
	assert_int_equal(adapter.ran, 2);
	weft_reactor_turn(r, 0);
	assert_int_equal(adapter.runs, 1);
	assert_int_equal(adapter.arms, 0); /* nobody wanted to sleep */
	adapter_unplug(&adapter);
}

/* The first turns tell the engine of the channel and take in what it has to say about that. */
static void spinning_finds_it_without_the_engine(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	weft_reactor_turn(r, 0);
	weft_reactor_turn(r, 0);
	count_engine_calls();
	adapter.report_on_look = adapter.looks + 5;
	weft_reactor_turn(r, -1);
	assert_int_equal(adapter.runs, 1);
	assert_int_equal(adapter.arms, 0);
	assert_int_equal(engine_calls, 0);
	adapter_unplug(&adapter);
}

static void long_spin_finds_it(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	adapter.report_on_look = 30;
	while (!adapter.runs)
		weft_reactor_turn(r, 1);
	adapter_unplug(&adapter);
}

static void busy_poller_spares_the_engine(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	count_engine_calls();
	adapter.always = true;
	weft_reactor_turn(r, -1);
	assert_int_equal(engine_calls_of(160, 0), 10);
	assert_int_equal(engine_calls_of(160, -1), 10);
	assert_int_equal(adapter.runs, 321);
	adapter_unplug(&adapter);
}

/* Not at every look, so that the reactor spins in between. */
static bool look_now_and_then(struct weft_poller *poller)
{
	struct adapter *a = to_adapter(poller);

	a->always = a->looks % 3 == 0;
	return adapter_look(poller);
}

static void spinning_does_not_forget_the_engine(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	adapter.poller.poll = look_now_and_then;
	count_engine_calls();
	assert_true(engine_calls_of(320, 1) >= 320 / 16);
	assert_true(adapter.runs > 0);
	adapter_unplug(&adapter);
}

static void ignore(struct weft_msg *msg)
{
}

static void work_for_the_engine_goes_at_once(void **state)
{
	struct waited w = { .op.done = ended };
	struct weft_msg msg = { .fn = ignore };
	struct weft_sock sock;

	need_reactor();
	adapter_plug(&adapter);
	count_engine_calls();
	adapter.always = true;
	weft_reactor_turn(r, 0);
	assert_int_equal(engine_calls_of(1, 0), 0);
	assert_int_equal(weft_sock_open(r, &sock, eventfd(0, EFD_NONBLOCK)), 0);
	weft_sock_poll(&sock, &w.op);
	assert_int_equal(engine_calls_of(1, 0), 1);
	weft_reactor_post(r, &msg);
	assert_int_equal(engine_calls_of(1, 0), 1);
	assert_int_equal(engine_calls_of(1, 0), 0);
	eventfd_write(sock.fd, 1);
	assert_int_equal(await(&w), POLLIN); /* the poller is busy all the time */
	weft_sock_close(&sock);
	adapter_unplug(&adapter);
}

static struct weft_bulk_flow line;

static void line_up(struct weft_task *task)
{
	weft_reactor_bulk_push(r, &line, task);
}

/* Turns with bulk work are long: sockets do not wait for several of them. */
static void bulk_work_calls_the_engine(void **state)
{
	struct weft_task task;

	need_reactor();
	adapter_plug(&adapter);
	count_engine_calls();
	adapter.always = true;
	weft_reactor_turn(r, 0);
	weft_bulk_flow_init(&line, NULL);
	weft_task_init(&task, line_up);
	weft_reactor_bulk_push(r, &line, &task);
	assert_int_equal(engine_calls_of(20, 0), 20);
	weft_reactor_bulk_cancel(&line, &task);
	assert_int_equal(engine_calls_of(1, 0), 0);
	adapter_unplug(&adapter);
}

static void without_pollers_every_turn_calls_the_engine(void **state)
{
	need_reactor();
	count_engine_calls();
	assert_int_equal(engine_calls_of(20, 0), 20);
	adapter_plug(&adapter);
	assert_int_equal(engine_calls_of(20, 0), 20); /* nor does an idle one change it */
	adapter_unplug(&adapter);
}

static void busy_reactor_says_so(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	weft_reactor_turn(r, 0);
	assert_false(weft_reactor_busy(r));
	report(&adapter);
	assert_true(weft_reactor_busy(r));
	assert_true(weft_reactor_busy(r));
	assert_int_equal(adapter.runs, 0);
	weft_reactor_turn(r, -1);
	assert_int_equal(adapter.runs, 1);
	assert_false(weft_reactor_busy(r));
	adapter_unplug(&adapter);
}

static void polling_reactor_never_arms(void **state)
{
	need_reactor();
	replace(NULL, NULL, true);
	adapter_plug(&adapter);
	for (int i = 0; i < 100; i++)
		weft_reactor_turn(r, -1);
	report(&adapter);
	weft_reactor_turn(r, -1);
	assert_int_equal(adapter.runs, 1);
	assert_int_equal(adapter.arms, 0);
	adapter_unplug(&adapter);
}

/* --- the turn --------------------------------------------------------------------------------- */

static unsigned ran_before_task;

static void task_sees_run(struct weft_task *task)
{
	ran_before_task = adapter.runs;
}

static void what_run_defers_goes_with_the_turn(void **state)
{
	struct weft_task task;

	need_reactor();
	weft_task_init(&task, task_sees_run);
	adapter_plug(&adapter);
	adapter.to_defer = &task;
	ran_before_task = 0;
	report(&adapter);
	weft_reactor_turn(r, -1);
	assert_int_equal(ran_before_task, 1);
	adapter_unplug(&adapter);
}

static uint64_t fake_ns;

static uint64_t fake_clock(void *arg)
{
	return fake_ns;
}

static unsigned timer_fired_after;

static void timer_fires(struct weft_timer *timer)
{
	timer_fired_after = adapter.runs;
}

static void busy_poller_leaves_timers_their_turn(void **state)
{
	struct weft_timer timer = { .fn = timer_fires };

	need_reactor();
	fake_ns = 1000000;
	replace(fake_clock, NULL, false);
	adapter_plug(&adapter);
	adapter.always = true;
	timer_fired_after = 0;
	weft_timer_set(r, &timer, 1);
	for (int i = 0; i < 5; i++)
		weft_reactor_turn(r, -1);
	assert_int_equal(timer_fired_after, 0);
	fake_ns += 1000000;
	weft_reactor_turn(r, -1);
	assert_int_equal(timer_fired_after, 5);
	adapter_unplug(&adapter);
}

/* --- removal ---------------------------------------------------------------------------------- */

static void removed_by_itself(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	adapter.victim = &adapter.poller;
	report(&adapter);
	turn_until_it_ran(&adapter);
	report(&adapter);
	settle();
	assert_int_equal(adapter.runs, 1);
	weft_poller_remove(&adapter.poller);
	weft_poller_add(r, &adapter.poller);
	turn_until_it_ran(&adapter);
	adapter_unplug(&adapter);
}

/* Both have something; only who comes first runs. */
static void removed_by_another(void **state)
{
	static struct adapter other;

	need_reactor();
	adapter_plug(&adapter);
	adapter_plug(&other);
	adapter.victim = &other.poller;
	report(&adapter);
	report(&other);
	turn_until_it_ran(&adapter);
	settle();
	assert_int_equal(other.runs, 0);
	adapter_unplug(&adapter);
	adapter_unplug(&other);
}

static bool look_true(struct weft_poller *poller)
{
	return true;
}

static void run_and_free(struct weft_poller *poller)
{
	weft_poller_remove(poller);
	free(poller);
}

static void freed_by_itself(void **state)
{
	struct weft_poller *poller;

	need_reactor();
	poller = calloc(1, sizeof(*poller));
	assert_non_null(poller);
	weft_poller_remove(poller); /* never added */
	*poller = (struct weft_poller){ .poll = look_true, .process = run_and_free };
	weft_poller_add(r, poller);
	weft_reactor_turn(r, -1);
	assert_false(weft_reactor_busy(r));
}

/* --- asleep ----------------------------------------------------------------------------------- */

static void armed_before_sleep(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	while (!adapter.arms)
		weft_reactor_turn(r, 1);
	assert_int_equal(adapter.runs, 0);
	adapter_unplug(&adapter);
}

static void early_news_prevents_sleep(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	adapter.early_report = true; /* does not ring */
	turn_until_it_ran(&adapter);
	assert_int_equal(adapter.arms, 1);
	assert_int_equal(adapter.rings, 0);
	adapter_unplug(&adapter);
}

static void late_news_wakes(void **state)
{
	need_reactor();
	adapter_plug(&adapter);
	adapter.late_report = true;
	turn_until_it_ran(&adapter);
	assert_int_equal(adapter.rings, 1);
	adapter_unplug(&adapter);
}

enum { ROUNDS = 5000 };

static void *report_one_by_one(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		report(&adapter);
		while (atomic_load(&adapter.ran) <= i)
			sched_yield();
	}
	return NULL;
}

/* Each report comes to a reactor that is just falling asleep. */
static void no_news_is_lost(void **state)
{
	pthread_t thread;

	need_reactor();
	adapter_plug(&adapter);
	pthread_create(&thread, NULL, report_one_by_one, NULL);
	while (atomic_load(&adapter.ran) < ROUNDS)
		weft_reactor_turn(r, -1);
	pthread_join(thread, NULL);
	adapter_unplug(&adapter);
}

/* --- a loop of somebody else's ---------------------------------------------------------------- */

static bool readable(int timeout_ms)
{
	struct pollfd pollfd = { .fd = weft_reactor_fd(r), .events = POLLIN };

	return poll(&pollfd, 1, timeout_ms) == 1;
}

static void fall_asleep(void)
{
	assert_true(weft_reactor_fd(r) >= 0);
	settle();
	weft_reactor_prepare_wait(r);
	assert_false(readable(0));
}

static void doze_arms(void **state)
{
	adapter_plug(&adapter);
	fall_asleep();
	report(&adapter);
	assert_true(readable(STALL_MS));
	weft_reactor_turn(r, 0);
	assert_int_equal(adapter.runs, 1);
	fall_asleep();
	adapter_unplug(&adapter);
}

/* Or the descriptor would stay readable. */
static void turn_after_doze_calls_the_engine(void **state)
{
	adapter_plug(&adapter);
	fall_asleep();
	weft_reactor_turn(r, 0);
	atomic_store(&adapter.armed, false);
	report(&adapter);
	weft_reactor_turn(r, 0); /* the last one before the sleep had work */
	weft_reactor_prepare_wait(r);
	assert_false(readable(0));
	report(&adapter);
	assert_true(readable(STALL_MS));
	weft_reactor_turn(r, 0);
	assert_int_equal(adapter.runs, 2);
	assert_int_equal(adapter.rings, 1);
	adapter_unplug(&adapter);
}

static void doze_knows_what_is_there(void **state)
{
	adapter_plug(&adapter);
	fall_asleep();
	weft_reactor_turn(r, 0);
	adapter.early_report = true; /* or it would be looking that finds it */
	atomic_store(&adapter.armed, false);
	weft_reactor_prepare_wait(r);
	assert_true(readable(STALL_MS));
	weft_reactor_turn(r, 0);
	assert_int_equal(adapter.runs, 1);

	atomic_store(&adapter.armed, false);
	report(&adapter);
	weft_reactor_prepare_wait(r);
	assert_true(readable(STALL_MS));
	weft_reactor_turn(r, 0);
	assert_int_equal(adapter.runs, 2);
	adapter_unplug(&adapter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_both(every_turn_looks),
		on_both(spinning_finds_it_without_the_engine),
		on_both(long_spin_finds_it),
		on_both(busy_poller_spares_the_engine),
		on_both(spinning_does_not_forget_the_engine),
		on_both(work_for_the_engine_goes_at_once),
		on_both(bulk_work_calls_the_engine),
		on_both(without_pollers_every_turn_calls_the_engine),
		on_both(busy_reactor_says_so),
		on_both(polling_reactor_never_arms),
		on_both(what_run_defers_goes_with_the_turn),
		on_both(busy_poller_leaves_timers_their_turn),
		on_both(removed_by_itself),
		on_both(removed_by_another),
		on_both(freed_by_itself),
		on_both(armed_before_sleep),
		on_both(early_news_prevents_sleep),
		on_both(late_news_wakes),
		on_both(no_news_is_lost),
		on(epoll, doze_arms),
		on(epoll, turn_after_doze_calls_the_engine),
		on(epoll, doze_knows_what_is_there),
	};

	alarm(50);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
