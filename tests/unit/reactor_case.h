/* reactor_case.h - a reactor for each case, one case per engine.
 *
 * A case that waits for something turns the reactor until it has come; what never comes is a hang,
 * which the alarm ends. No case looks at the real time. */
#ifndef WEFT_TESTS_REACTOR_CASE_H
#define WEFT_TESTS_REACTOR_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reactor/reactor.h"

static struct weft_reactor *r;

static inline int open_engine(enum weft_engine engine)
{
	struct weft_reactor_options options = { .engine = engine, .cpu = -1 };
	struct weft_err err = { 0 };
	int rc = weft_reactor_create(&r, &options, &err);

	if (rc < 0 && engine == WEFT_ENGINE_URING) {
		print_message("# skipped: %s\n", err.text);
		r = NULL;
		return 0;
	}
	return rc;
}

static inline int open_uring(void **state)
{
	return open_engine(WEFT_ENGINE_URING);
}

static inline int open_epoll(void **state)
{
	return open_engine(WEFT_ENGINE_EPOLL);
}

static inline int close_engine(void **state)
{
	if (r)
		weft_reactor_destroy(r);
	r = NULL;
	return 0;
}

static inline enum weft_engine this_engine(void)
{
	bool epoll = !strcmp(weft_reactor_engine_name(r), "epoll");

	return epoll ? WEFT_ENGINE_EPOLL : WEFT_ENGINE_URING;
}

/* By another one of the same kind. */
static inline void replace(uint64_t (*clock)(void *), void *arg, bool poll)
{
	struct weft_reactor_options options = {
		.engine = this_engine(), .cpu = -1, .poll = poll, .clock = clock, .clock_arg = arg
	};

	weft_reactor_destroy(r);
	assert_int_equal(weft_reactor_create(&r, &options, NULL), 0);
}

#define on(engine_, test)                                                                    \
	(struct CMUnitTest)                                                                  \
	{                                                                                    \
		.name = #test "/" #engine_, .test_func = test, .setup_func = open_##engine_, \
		.teardown_func = close_engine,                                               \
	}
#define on_both(test) on(uring, test), on(epoll, test)

#define need_reactor()          \
	do {                    \
		if (!r)         \
			skip(); \
	} while (0)

/* An operation that remembers how it ended. */
struct waited {
	struct weft_op op;
	int res;
	unsigned calls;
};

static inline void ended(struct weft_op *op, int res)
{
	struct waited *w = container_of(op, struct waited, op);

	w->res = res;
	w->calls++;
}

static inline int await(struct waited *w)
{
	while (!w->calls)
		weft_reactor_turn(r, -1);
	assert_int_equal(w->calls, 1);
	w->calls = 0;
	return w->res;
}

/* Enough turns for anything that is going to happen without more input. */
static inline void settle(void)
{
	for (int i = 0; i < 10; i++)
		weft_reactor_turn(r, 1);
}

/* Both ends non-blocking; the first is the reactor's. */
static inline int open_pair(struct weft_sock *sock)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(weft_sock_open(r, sock, fds[0]), 0);
	return fds[1];
}

static inline void close_pair(struct weft_sock *sock, int peer)
{
	weft_sock_close(sock);
	close(peer);
}

#endif
