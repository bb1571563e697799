/* test_reactor.c - messages, the loop itself and its options, on both engines. */
#include "reactor_case.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
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

#include "base/log.h"
#include "reactor/mailbox.h"
#include "running.h"

/* --- messages --------------------------------------------------------------------------------- */

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

	return !eventfd_read(box->wake_fd, &value);
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

/* The ring that this process has; -1: none. */
static int find_ring(void)
{
	char name[32], leads_to[64];
	ssize_t len;

	for (int fd = 3; fd < 256; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		len = readlink(name, leads_to, sizeof(leads_to) - 1);
		leads_to[len > 0 ? len : 0] = '\0';
		if (!strcmp(leads_to, "anon_inode:[io_uring]"))
			return fd;
	}
	return -1;
}

static void *send_one_by_one(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 0; i < BURST; i++) {
		s->msgs[i] = (struct numbered){ { .fn = receive }, s, i };
		weft_reactor_post(r, &s->msgs[i].msg);
		while (atomic_load(&s->received) <= i)
			sched_yield();
	}
	return NULL;
}

/* The kernel may end the watch of the mailbox, as when it has no room to report: it is set up
 * again. */
static void watch_that_ended(void **state)
{
	struct io_uring_sync_cancel_reg all = {
		.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
		.timeout = { -1, -1 },
	};
	struct sender *sender;

	need_reactor();
	settle();
	if (syscall(SYS_io_uring_register, find_ring(), IORING_REGISTER_SYNC_CANCEL, &all, 1) < 0)
		skip(); /* Linux before 6.0 */
	settle();
	sender = calloc(1, sizeof(*sender));
	assert_non_null(sender);
	pthread_create(&sender->thread, NULL, send_one_by_one, sender);
	while (atomic_load(&sender->received) < BURST)
		weft_reactor_turn(r, -1);
	pthread_join(sender->thread, NULL);
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

/* --- where io_uring is forbidden -------------------------------------------------------------- */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mailbox_rings_only_for_a_sleeper),
		on_both(messages_keep_their_order),
		on_both(no_wake_up_is_lost),
		on(uring, watch_that_ended),
		on_both(messages_may_post_themselves),
		on_both(run_stops_and_runs_again),
		on_both(polling_reactor_runs),
		on_both(posting_the_end_is_safe),
		cmocka_unit_test(auto_falls_back),
		cmocka_unit_test(options_are_optional),
	};

	alarm(50);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
