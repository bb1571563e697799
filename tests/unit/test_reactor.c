/* test_reactor.c - messages, timers, deferred work and their turn, on both engines. */
#include "reactor_case.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "reactor/mailbox.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define MS           UINT64_C(1000000)

/* --- messages ----------------------------------------------------------------------------- */

#define SENDERS  4
#define MESSAGES 25000
#define BURST    100
#define ROUNDS   10000

struct sender;

struct numbered {
	struct weft_msg msg;
	struct sender *sender;
	unsigned number;
};

struct sender {
	pthread_t thread;
	struct numbered msgs[MESSAGES];
	unsigned next; /* the reactor's */
	atomic_uint received;
};

static unsigned disorder;

static void receive(struct weft_msg *msg)
{
	struct numbered *n = container_of(msg, struct numbered, msg);

	if (n->number != n->sender->next++)
		disorder++;
	atomic_fetch_add(&n->sender->received, 1);
}

/* Waits for each burst to arrive, so that the reactor falls asleep in between. */
static void *send_all(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 0; i < MESSAGES; i++) {
		s->msgs[i] = (struct numbered){ { .fn = receive }, s, i };
		weft_reactor_post(r, &s->msgs[i].msg);
		while (i % BURST == BURST - 1 && atomic_load(&s->received) <= i)
			sched_yield();
	}
	return NULL;
}

static void *run(void *arg)
{
	weft_reactor_run(arg);
	return NULL;
}

static void stop(struct weft_msg *msg)
{
	weft_reactor_stop(weft_reactor_self());
}

static void messages_keep_their_order(void **state)
{
	struct weft_msg last_msg = { .fn = stop };
	struct sender *senders;
	pthread_t runner;

	need_reactor();
	senders = calloc(SENDERS, sizeof(*senders));
	assert_non_null(senders);
	disorder = 0;
	pthread_create(&runner, NULL, run, r);
	for (int i = 0; i < SENDERS; i++)
		pthread_create(&senders[i].thread, NULL, send_all, &senders[i]);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(senders[i].thread, NULL);
	weft_reactor_post(r, &last_msg);
	pthread_join(runner, NULL);
	for (int i = 0; i < SENDERS; i++)
		assert_int_equal(senders[i].next, MESSAGES);
	assert_int_equal(disorder, 0);
	free(senders);
}

static bool rang(struct weft_mailbox *box)
{
	eventfd_t value;

	return !eventfd_read(box->bell, &value);
}

static void mailbox_rings_only_for_a_sleeper(void **state)
{
	struct weft_msg msgs[4];
	struct weft_mailbox box;

	assert_int_equal(weft_mailbox_open(&box), 0);
	weft_mailbox_put(&box, &msgs[0]);
	assert_false(rang(&box));
	assert_false(weft_mailbox_sleep(&box)); /* it came before: do not block */
	weft_mailbox_put(&box, &msgs[1]);
	assert_true(rang(&box));
	weft_mailbox_put(&box, &msgs[2]); /* once is enough */
	assert_false(rang(&box));
	weft_mailbox_wake(&box);
	weft_mailbox_put(&box, &msgs[3]);
	assert_false(rang(&box));
	weft_mailbox_close(&box);
}

/* One sender, one message at a time, each to a reactor that is just falling asleep: nobody else's
 * message would wake it. */
static void no_wake_up_is_lost(void **state)
{
	struct weft_msg last_msg = { .fn = stop };
	struct sender *sender;
	struct numbered *n;
	pthread_t runner;

	need_reactor();
	sender = calloc(1, sizeof(*sender));
	assert_non_null(sender);
	pthread_create(&runner, NULL, run, r);
	for (unsigned i = 0; i < ROUNDS; i++) {
		n = &sender->msgs[i];
		*n = (struct numbered){ { .fn = receive }, sender, i };
		weft_reactor_post(r, &n->msg);
		while (atomic_load(&sender->received) <= i)
			sched_yield();
	}
	weft_reactor_post(r, &last_msg);
	pthread_join(runner, NULL);
	assert_int_equal(sender->next, ROUNDS);
	free(sender);
}

struct repeated {
	struct weft_msg msg;
	unsigned calls;
	struct weft_reactor *ran_on;
};

static void post_again(struct weft_msg *msg)
{
	struct repeated *m = container_of(msg, struct repeated, msg);

	m->ran_on = weft_reactor_self();
	if (++m->calls < 3)
		weft_reactor_post(r, msg);
	else
		weft_reactor_stop(r);
}

static void messages_may_post_themselves(void **state)
{
	struct repeated m = { .msg.fn = post_again };

	need_reactor();
	assert_null(weft_reactor_self());
	weft_reactor_post(r, &m.msg);
	weft_reactor_turn(r, -1);
	assert_int_equal(m.calls, 1); /* the second is for the next turn */
	weft_reactor_run(r);
	assert_int_equal(m.calls, 3);
	assert_ptr_equal(m.ran_on, r);
	assert_null(weft_reactor_self());
}

static void run_stops_and_runs_again(void **state)
{
	struct weft_msg msg = { .fn = stop };

	need_reactor();
	for (int i = 0; i < 3; i++) {
		weft_reactor_post(r, &msg);
		weft_reactor_run(r);
	}
}

static void polling_reactor_runs(void **state)
{
	struct repeated m = { .msg.fn = post_again };
	pthread_t runner;

	need_reactor();
	replace(NULL, NULL, true);
	pthread_create(&runner, NULL, run, r);
	weft_reactor_post(r, &m.msg);
	pthread_join(runner, NULL);
	assert_int_equal(m.calls, 3);
}

/* The reactor may be gone before the call that ended it returns. */
static void *run_and_destroy(void *arg)
{
	weft_reactor_run(arg);
	weft_reactor_destroy(arg);
	return NULL;
}

static void posting_the_end_is_safe(void **state)
{
	enum weft_engine engine;
	pthread_t runner;

	need_reactor();
	engine = this_engine();
	for (int i = 0; i < 200; i++) {
		struct weft_msg msg = { .fn = stop };

		pthread_create(&runner, NULL, run_and_destroy, r);
		if (i % 2)
			sched_yield();
		weft_reactor_post(r, &msg);
		pthread_join(runner, NULL);
		assert_int_equal(open_engine(engine), 0);
	}
}

/* --- a log of what ran -------------------------------------------------------------------- */

static char ran[64];

static void note(char what)
{
	size_t n = strlen(ran);

	assert_true(n + 1 < sizeof(ran));
	ran[n] = what;
	ran[n + 1] = '\0';
}

static void expect_ran(const char *what)
{
	assert_string_equal(ran, what);
	ran[0] = '\0';
}

/* --- timers ------------------------------------------------------------------------------- */

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
	advance(10);
	expect_ran("");
	advance(10);
	expect_ran("a");
	weft_timer_set(r, &a.timer, 0);
	advance(0);
	expect_ran("a");
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

/* --- deferred work ------------------------------------------------------------------------ */

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

/* --- where io_uring is forbidden ---------------------------------------------------------- */

static int forbid_uring(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { COUNT(filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

static const char *try_without_uring(void)
{
	struct weft_err err = { 0 };

	weft_log_set_level(WEFT_LOG_ERROR);
	if (forbid_uring())
		return "seccomp";
	if (open_engine(WEFT_ENGINE_AUTO))
		return "AUTO failed";
	if (strcmp(weft_reactor_engine_name(r), "epoll"))
		return "AUTO did not choose epoll";
	if (weft_reactor_create(&r, &(struct weft_reactor_options){ WEFT_ENGINE_URING, -1 },
				&err) != -EPERM)
		return "io_uring was not refused";
	return strstr(err.text, "forbidden") ? NULL : "no reason given";
}

static void auto_falls_back(void **state)
{
	const char *fault;
	pid_t pid = fork();
	int status;

	if (!pid) {
		fault = try_without_uring();
		if (fault)
			fprintf(stderr, "%s\n", fault);
		_exit(fault != NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void options_are_optional(void **state)
{
	assert_int_equal(weft_reactor_create(&r, NULL, NULL), 0);
	assert_int_equal(weft_reactor_cpu(r), -1);
	weft_reactor_turn(r, 0);
	close_engine(state);
}

/* --- a loop of somebody else's ------------------------------------------------------------ */

enum { STALL_MS = 10000 }; /* a limit: what never comes is a stall */

/* Only when the descriptor is readable there is something to do. */
static void turn_when_readable(void)
{
	struct pollfd pollfd = { .fd = weft_reactor_fd(r), .events = POLLIN };

	assert_int_equal(poll(&pollfd, 1, STALL_MS), 1);
	weft_reactor_turn(r, 0);
	weft_reactor_doze(r);
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
	weft_reactor_doze(r);
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
	weft_reactor_doze(r);
	turn_when_readable();
	expect_ran("a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mailbox_rings_only_for_a_sleeper),
		on_both(messages_keep_their_order),
		on_both(no_wake_up_is_lost),
		on_both(messages_may_post_themselves),
		on_both(run_stops_and_runs_again),
		on_both(polling_reactor_runs),
		on_both(posting_the_end_is_safe),
		on_both(timers_fire_in_order),
		on_both(timers_move_and_stop),
		on_both(timers_do_not_hold_up_the_turn),
		on_both(timers_wake_the_reactor),
		on_both(clock_is_read_once_per_turn),
		on_both(deferred_work_runs_once),
		on_both(deferred_work_cancels_other_work),
		on_both(turn_has_its_order),
		on(epoll, doze_keeps_the_alarm),
		on(epoll, doze_knows_of_deferred_work),
		cmocka_unit_test(auto_falls_back),
		cmocka_unit_test(options_are_optional),
	};

	alarm(50);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
