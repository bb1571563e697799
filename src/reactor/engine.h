/* engine.h - what a reactor's engine (io_uring or epoll) must do.
 *
 *   queued ──wait()──▶ under way ──wait()──▶ completed ──the turn──▶ done()
 *
 * An engine moves operations from left to right and never calls done() itself. So no callback runs
 * while the engine reads the kernel's reports, and a report cannot name an operation that a
 * callback of the same batch has just closed or freed.
 *
 * Invariant: an operation is on reactor->queued, or with the engine, or on reactor->completed. */
#ifndef WEFT_REACTOR_ENGINE_H
#define WEFT_REACTOR_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct engine;
struct weft_reactor;
struct weft_sock;

struct engine_ops {
	const char *name;

	void (*close)(struct engine *engine);

	/* On -errno the caller still owns the descriptor. */
	int (*sock_open)(struct engine *engine, struct weft_sock *sock);
	/* Ends a receive or poll under way: it becomes completed, with what it got or with
	 * -ECANCELED, now or in a later wait(). */
	void (*sock_cancel)(struct engine *engine, struct weft_sock *sock);
	/* Forgets @sock, whose memory and descriptor go next; a poll was canceled before. */
	void (*sock_close)(struct engine *engine, struct weft_sock *sock);

	/* Starts what is queued, sleeps at most @timeout_ns for the first completion (0: not at
	 * all, -1: as long as it takes) and moves what has completed, a bounded number. Returns
	 * early when a message or a signal comes. With 0 it is cheap when nothing is new: a
	 * reactor that spins calls it over and over. */
	void (*wait)(struct engine *engine, int64_t timeout_ns);

	/* Starts what is queued, without reaping; NULL: that is no cheaper than wait(). */
	void (*submit)(struct engine *engine);

	/* A descriptor that is readable when wait() has something to do; NULL: there is none. */
	int (*fd)(struct engine *engine);
	/* Makes it readable after @timeout_ns as well. */
	void (*alarm)(struct engine *engine, int64_t timeout_ns);
};

struct engine {
	const struct engine_ops *ops;
	struct weft_reactor *reactor;
};

/* Both work from any thread; the first wait() binds the engine to its thread. */
int weft_uring_open(struct weft_reactor *r, struct engine **engine, struct weft_err *err);
int weft_epoll_open(struct weft_reactor *r, struct engine **engine, struct weft_err *err);

#endif
