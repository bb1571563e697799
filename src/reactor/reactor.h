/* reactor.h - the event loop: one per thread, everything in it runs on that thread.
 *
 *     ┌──────────── one turn ────────────────────────────────────────────────────┐
 *     │ messages ─▶ timers due ─▶ operations done ─▶ pollers ─▶ bulk ─▶ deferred │─▶ submit, spin
 *     └──────────────────────────────────────────────────────────────────────────┘    or sleep
 *
 * Operations are asynchronous and complete through op->done(), never from inside the call that
 * starts them. There are two engines, io_uring and epoll, chosen at start, which behave the same.
 * weft_reactor_post() is the only call that another thread may make. */
#ifndef WEFT_REACTOR_REACTOR_H
#define WEFT_REACTOR_REACTOR_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/fair_queue.h"
#include "base/heap.h"
#include "base/list.h"

struct weft_reactor;

enum weft_engine { WEFT_ENGINE_AUTO, WEFT_ENGINE_URING, WEFT_ENGINE_EPOLL };

struct weft_reactor_options {
	enum weft_engine engine;   /* AUTO: io_uring where the kernel allows it */
	int cpu;                   /* pin the running thread here; -1: do not */
	bool poll;                 /* never sleep */
	uint64_t (*clock)(void *); /* nanoseconds, monotonic; NULL: CLOCK_MONOTONIC */
	void *clock_arg;
};

int weft_reactor_create(struct weft_reactor **r, const struct weft_reactor_options *options,
			struct weft_err *err);
/* No operation may be in flight, except a poll: it is forgotten, done() does not run. No poller may
 * be left. Nobody may post any more; waits for a call that has posted and not yet returned. */
void weft_reactor_destroy(struct weft_reactor *r);

/* Runs turns until weft_reactor_stop(), which a message or another callback calls. All turns of a
 * reactor run on one thread, which need not be the one that created it; with the epoll engine, on
 * one thread at a time. */
void weft_reactor_run(struct weft_reactor *r);
void weft_reactor_stop(struct weft_reactor *r);
/* One turn; blocks at most @wait_ms (0: not at all, -1: as long as it takes). */
void weft_reactor_turn(struct weft_reactor *r, int wait_ms);
/* Runs work that was deferred between turns, now: what it sends goes out with the next turn. */
void weft_reactor_run_deferred(struct weft_reactor *r);
/* Also starts operations that were queued between turns: they are under way when this returns. */
void weft_reactor_submit(struct weft_reactor *r);
/* The next turn has something to do, without waiting. */
bool weft_reactor_busy(struct weft_reactor *r);

/* For a foreign event loop: a descriptor that is readable when a turn is due. Engine epoll only.
 * -errno: there is none. After the last turn, before waiting for it:
 * weft_reactor_prepare_wait(). */
int weft_reactor_fd(struct weft_reactor *r);
void weft_reactor_prepare_wait(struct weft_reactor *r);

struct weft_reactor *weft_reactor_self(void); /* the one running on this thread */
/* This thread runs its turns, or nobody has run one yet. */
bool weft_reactor_is_here(const struct weft_reactor *r);
/* What belongs to a reactor is touched by its thread alone. */
#define assert_on(reactor) assert(weft_reactor_is_here(reactor))
/* Another thread runs its turns at this moment. */
bool weft_reactor_is_driven_elsewhere(const struct weft_reactor *r);
/* The same for one that several threads may drive, one at a time: a host's queue. */
#define assert_driving(reactor) assert(!weft_reactor_is_driven_elsewhere(reactor))
const char *weft_reactor_engine_name(const struct weft_reactor *r);
int weft_reactor_cpu(const struct weft_reactor *r);
uint64_t weft_reactor_now_ns(const struct weft_reactor *r); /* read once per turn */

/* --- messages: from any thread, delivered in order per sender --------------------------------- */

struct weft_msg {
	struct weft_msg *next;
	void (*fn)(struct weft_msg *msg); /* runs on the reactor; @msg is the caller's again */
};

void weft_reactor_post(struct weft_reactor *r, struct weft_msg *msg);

/* --- deferred work: once, at the end of this turn, before the reactor submits and waits ------- */

struct weft_task {
	struct weft_list link;
	void (*fn)(struct weft_task *task);
};

void weft_task_init(struct weft_task *task, void (*fn)(struct weft_task *task));
void weft_reactor_defer(struct weft_reactor *r, struct weft_task *task); /* twice counts once */
void weft_task_cancel(struct weft_task *task);

/* --- bulk: bytes that no peer sends or waits for, such as a copy inside storage --------------- */

/* A flow: tasks that take turns with other flows', or flows that take turns with each other
 * (base/fair_queue.h). */
struct weft_bulk_flow {
	struct weft_bulk_flow *within; /* NULL: one of the reactor's */
	struct weft_fair_flow fair;
	unsigned pieces; /* under way, of it and all flows within it; if @within is NULL */
};

void weft_bulk_flow_init(struct weft_bulk_flow *flow, struct weft_bulk_flow *within);
/* Queues @task at the end of @flow; twice counts once. When it is first, its fn() does one piece,
 * and pushes the task again for the next one. */
void weft_reactor_bulk_push(struct weft_reactor *r, struct weft_bulk_flow *flow,
			    struct weft_task *task);
/* The same for a task that had its turn, and could not use it: it comes before all flows.
 * weft_task_cancel() ends that. */
void weft_reactor_bulk_retry(struct weft_reactor *r, struct weft_task *task);
/* Takes @task out of @flow. */
void weft_reactor_bulk_cancel(struct weft_bulk_flow *flow, struct weft_task *task);
/* A task of @flow has a piece under way in storage, until weft_reactor_bulk_piece_end(). While
 * there are too many, the other tasks of the flow wait. @flow stays in place meanwhile. */
void weft_reactor_bulk_piece_begin(struct weft_reactor *r, struct weft_bulk_flow *flow);
void weft_reactor_bulk_piece_end(struct weft_reactor *r, struct weft_bulk_flow *flow);
/* A piece has so many bytes. false: this turn has none left; a task's fn() never gets that before
 * it has spent some. */
bool weft_reactor_bulk_spend(struct weft_reactor *r, uint32_t bytes);

/* --- pollers: what has no descriptor while it is busy, such as an adapter's completion queue -- */

struct weft_poller {
	struct weft_list link;
	/* Reaps and runs nothing; true: there is something for process(), and poll() is not called
	 * again before that. Called over and over while the reactor spins: cheap, no system
	 * call. */
	bool (*poll)(struct weft_poller *poller);
	/* Handles what poll() reaped; inside a turn. */
	void (*process)(struct weft_poller *poller);
	/* Before the reactor sleeps: from now on a descriptor of this reactor becomes readable when
	 * something comes. false: something is there already, do not sleep. */
	bool (*arm)(struct weft_poller *poller);
};

void weft_poller_add(struct weft_reactor *r, struct weft_poller *poller);
/* Also from inside process(), of itself or of another one. Twice is harmless, and so is a poller
 * that is all zeros and was never added. */
void weft_poller_remove(struct weft_poller *poller);

/* --- timers ----------------------------------------------------------------------------------- */

struct weft_timer {
	struct weft_heap_node node;
	void (*fn)(struct weft_timer *timer);
};

/* Sets or moves it; fires once. */
void weft_timer_set(struct weft_reactor *r, struct weft_timer *timer, uint64_t delay_ms);
void weft_timer_stop(struct weft_reactor *r, struct weft_timer *timer);
/* Until it fires; 0: now, or it is not set. */
uint64_t weft_timer_left_ms(const struct weft_reactor *r, const struct weft_timer *timer);

/* --- retries: work that is blocked by somebody who does not say when he is done --------------- */

struct weft_retry {
	struct weft_task task; /* may be deferred at any time, too */
	/* Private. */
	struct weft_timer timer;
	struct weft_reactor *reactor;
	unsigned turns;
};

void weft_retry_init(struct weft_retry *retry, void (*fn)(struct weft_task *task));
/* The task was blocked: it runs in the next turn or, after many such turns, in a millisecond. */
void weft_retry_later(struct weft_reactor *r, struct weft_retry *retry);
/* The task was not blocked: the count of such turns starts again. */
void weft_retry_reset(struct weft_retry *retry);
void weft_retry_cancel(struct weft_retry *retry);

/* --- operations ------------------------------------------------------------------------------- */

enum weft_op_kind {
	WEFT_OP_POLL, /* readable (a socket, an eventfd, a signalfd); drain before polling again */
	WEFT_OP_RECV,
	WEFT_OP_SEND,
	WEFT_OP_SEND_NOWAIT, /* send what fits now */
	WEFT_OP_POLL_OUT,    /* more would fit */
	WEFT_OP_READ,
	WEFT_OP_WRITE,
	WEFT_OP_SYNC,     /* fdatasync */
	WEFT_OP_ALLOCATE, /* fallocate */
	WEFT_OP_CALL,     /* a function on a worker thread, see workers.h */
};

/* One asynchronous operation, embedded in its owner, who keeps it and what it points to in place
 * until done() runs. @res is what the system call would return, or -errno. */
struct weft_op {
	void (*done)(struct weft_op *op, int res);

	/* The engine's, while the operation is under way. */
	union {
		struct weft_list link;
		struct weft_msg mail;
	};
	struct weft_reactor *reactor;
	struct weft_sock *sock;
	enum weft_op_kind kind;
	int fd, flags, res;
	struct msghdr msg;
	off_t offset, length;
	int (*call)(struct weft_op *op);
};

/* A descriptor that becomes readable or writable: socket, eventfd, signalfd. Must be non-blocking.
 * At most one poll or recv, and one send, send_nowait or poll_out at a time. To end an operation
 * under way, shutdown() the socket: it completes with what the call then returns. */
struct weft_sock {
	int fd;
	/* The engine's. */
	struct weft_reactor *reactor;
	struct weft_op *rx, *tx;
	bool readable, writable, ended;
};

/* Hands @fd to the reactor. -errno when the engine cannot watch it; the caller keeps @fd then. */
int weft_sock_open(struct weft_reactor *r, struct weft_sock *sock, int fd);
/* Closes the descriptor. No operation may be under way, except a poll: it completes with
 * -ECANCELED, in this turn or a later one. (A listener's port is free at once only after
 * shutdown().) */
void weft_sock_close(struct weft_sock *sock);

/* Ends a receive or poll under way, if there is one, and leaves the stream as it is: done() runs,
 * with what has come or with -ECANCELED, in this turn or a later one. Once per operation. */
void weft_sock_cancel(struct weft_sock *sock);

/* The peer has ended the connection, whatever there is still to receive. */
bool weft_sock_has_ended(const struct weft_sock *sock);

/* @res: poll(2)'s bits; the end of the stream or an error counts as readable. */
void weft_sock_poll(struct weft_sock *sock, struct weft_op *op);
/* Both move at least one byte (0: end of stream) and at most what @iov holds. */
void weft_sock_recv(struct weft_sock *sock, struct weft_op *op, struct iovec *iov, int iovcnt);
void weft_sock_send(struct weft_sock *sock, struct weft_op *op, struct iovec *iov, int iovcnt);
/* As a send, but it does not wait for the peer: -EAGAIN when the socket is full. */
void weft_sock_send_nowait(struct weft_sock *sock, struct weft_op *op, struct iovec *iov,
			   int iovcnt);
/* Done when the socket may take more, or has ended. */
void weft_sock_poll_out(struct weft_sock *sock, struct weft_op *op);

/* Files and disks; any reactor may use any descriptor. May be short, as the system call. */
void weft_file_read(struct weft_reactor *r, struct weft_op *op, int fd, struct iovec *iov,
		    int iovcnt, off_t offset);
void weft_file_write(struct weft_reactor *r, struct weft_op *op, int fd, struct iovec *iov,
		     int iovcnt, off_t offset, int rwf_flags);
void weft_file_sync(struct weft_reactor *r, struct weft_op *op, int fd);
void weft_file_allocate(struct weft_reactor *r, struct weft_op *op, int fd, int mode, off_t offset,
			off_t length);

#endif
