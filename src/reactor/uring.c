/* uring.c - the io_uring engine: one system call per turn.
 *
 *   queued ─▶ submission ring ─┐                         ┌─▶ completion ring ─▶ completed
 *                              └─▶ io_uring_enter: both ─┘
 *
 * The kernel ties a ring to the one thread that submits (SINGLE_ISSUER), and finishes work only
 * when that thread enters (DEFER_TASKRUN): no interrupt, and a flag in shared memory that a
 * spinning reactor reads for nothing. A reactor is created on one thread and runs on another, so
 * the ring is born disabled, and the first wait() enables it.
 *
 * The ring pays when it carries several operations at once. While only one socket talks (the lone
 * socket) its calls are made directly: the send at once, the receive whenever the reactor polls;
 * before the reactor sleeps, the ring gets the receive.
 *
 * Invariant: only wait() enters the kernel with the ring; nothing is held while it sleeps. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>

#include "base/log.h"
#include "reactor/internal.h"
#include "reactor/uring_setup.h"

#define COMPLETED_MAX 256 /* per wait, so that messages and timers get their turn */

/* user_data is the operation's address, or one of these. */
enum { FOR_NOBODY, FOR_MAILBOX };

struct uring {
	struct engine engine;
	struct io_uring ring;
	struct weft_list cancels; /* receives and polls to end */
	struct weft_lone_sock lone;
	struct weft_list held; /* the lone socket's receive, not given to the kernel yet */
	bool enabled;
	bool wake_fd_armed;
};

static struct uring *to_uring(struct engine *engine)
{
	return container_of(engine, struct uring, engine);
}

/* The kernel gave up waiting for the socket; that is no answer. */
static bool must_retry(const struct weft_op *op, int res)
{
	return op->sock && (weft_op_would_block(op, res) || res == -EINTR);
}

/* It is on no list, or among the cancels or the held. */
static void finish_uring_op(struct uring *u, struct weft_op *op, int res)
{
	weft_list_remove(&op->link);
	if (must_retry(op, res)) {
		weft_list_push(&u->engine.reactor->queued, &op->link);
		return;
	}
	if (op->kind == WEFT_OP_RECV)
		weft_lone_sock_note(&u->lone, op->sock);
	weft_op_complete(u->engine.reactor, op, res);
}

/* --- the lone socket -------------------------------------------------------------------------- */

static bool is_lone_sock_op(const struct uring *u, const struct weft_op *op)
{
	return u->lone.alone && op->sock == u->lone.sock && op->kind != WEFT_OP_POLL &&
	       op->kind != WEFT_OP_POLL_OUT;
}

/* false: the socket is full, and the ring has to wait for it. */
static bool send_directly(struct uring *u, struct weft_op *op)
{
	int res = weft_op_try(op);

	if (must_retry(op, res))
		return false;
	weft_op_complete(u->engine.reactor, op, res);
	return true;
}

static bool call_directly(struct uring *u, struct weft_op *op)
{
	if (weft_op_is_send(op))
		return send_directly(u, op);
	assert(weft_list_empty(&u->held)); /* the lone socket has one receive */
	weft_list_push(&u->held, &op->link);
	return true;
}

static void try_held_receive(struct uring *u)
{
	struct weft_op *op = container_of(u->held.next, struct weft_op, link);
	int res;

	if (weft_list_empty(&u->held))
		return;
	res = weft_op_try(op);
	if (!must_retry(op, res))
		finish_uring_op(u, op, res);
}

/* --- submission ------------------------------------------------------------------------------- */

static void prep_recv(struct io_uring_sqe *sqe, struct weft_op *op)
{
	const struct iovec *iov = op->msg.msg_iov;

	if (op->msg.msg_iovlen == 1)
		io_uring_prep_recv(sqe, op->fd, iov->iov_base, iov->iov_len, 0);
	else
		io_uring_prep_recvmsg(sqe, op->fd, &op->msg, 0);
}

static void prep_send(struct io_uring_sqe *sqe, struct weft_op *op)
{
	const struct iovec *iov = op->msg.msg_iov;
	int flags = MSG_NOSIGNAL | (op->kind == WEFT_OP_SEND_NOWAIT ? MSG_DONTWAIT : 0);

	if (op->msg.msg_iovlen == 1)
		io_uring_prep_send(sqe, op->fd, iov->iov_base, iov->iov_len, flags);
	else
		io_uring_prep_sendmsg(sqe, op->fd, &op->msg, (unsigned)flags);
}

static void prep_sqe(struct io_uring_sqe *sqe, struct weft_op *op)
{
	const struct iovec *iov = op->msg.msg_iov;
	unsigned iovcnt = (unsigned)op->msg.msg_iovlen;

	switch (op->kind) {
	case WEFT_OP_POLL:
		io_uring_prep_poll_add(sqe, op->fd, POLLIN);
		break;
	case WEFT_OP_RECV:
		prep_recv(sqe, op);
		break;
	case WEFT_OP_SEND:
	case WEFT_OP_SEND_NOWAIT:
		prep_send(sqe, op);
		break;
	case WEFT_OP_POLL_OUT:
		io_uring_prep_poll_add(sqe, op->fd, POLLOUT);
		break;
	case WEFT_OP_READ:
		io_uring_prep_readv(sqe, op->fd, iov, iovcnt, op->offset);
		break;
	case WEFT_OP_WRITE:
		io_uring_prep_writev2(sqe, op->fd, iov, iovcnt, op->offset, op->flags);
		break;
	case WEFT_OP_SYNC:
		io_uring_prep_fsync(sqe, op->fd, IORING_FSYNC_DATASYNC);
		break;
	case WEFT_OP_ALLOCATE:
		io_uring_prep_fallocate(sqe, op->fd, op->flags, op->offset, op->length);
		break;
	case WEFT_OP_CALL:
		assert(!"only workers run calls");
		break;
	}
	io_uring_sqe_set_data(sqe, op);
}

static struct io_uring_sqe *next_sqe(struct uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (sqe)
		return sqe;
	io_uring_submit(&u->ring);
	return io_uring_get_sqe(&u->ring);
}

static bool arm_wake_fd(struct uring *u)
{
	struct io_uring_sqe *sqe = next_sqe(u);

	if (!sqe)
		return false;
	io_uring_prep_poll_multishot(sqe, u->engine.reactor->mailbox.wake_fd, POLLIN);
	sqe->user_data = FOR_MAILBOX;
	return true;
}

static bool submit_cancels(struct uring *u)
{
	struct io_uring_sqe *sqe;
	struct weft_list *link;

	while (!weft_list_empty(&u->cancels)) {
		sqe = next_sqe(u);
		if (!sqe)
			return false;
		link = weft_list_pop(&u->cancels);
		io_uring_prep_cancel(sqe, container_of(link, struct weft_op, link), 0);
		sqe->user_data = FOR_NOBODY;
	}
	return true;
}

static bool submit_op(struct uring *u, struct weft_op *op)
{
	struct io_uring_sqe *sqe = next_sqe(u);

	if (sqe)
		prep_sqe(sqe, op);
	else
		weft_list_push_first(&u->engine.reactor->queued, &op->link);
	return sqe;
}

static bool submit_queued(struct uring *u, bool polling)
{
	struct weft_list *queued = &u->engine.reactor->queued;
	struct weft_op *op;

	while (!weft_list_empty(queued)) {
		op = container_of(weft_list_pop(queued), struct weft_op, link);
		if (polling && is_lone_sock_op(u, op) && call_directly(u, op))
			continue;
		if (!submit_op(u, op))
			return false;
	}
	return true;
}

/* False: the kernel takes no more for now, the rest goes with the next turn. */
static bool fill_sq(struct uring *u, bool polling)
{
	if (!polling || !u->lone.alone)
		weft_list_splice(&u->engine.reactor->queued, &u->held);
	if (!u->wake_fd_armed)
		u->wake_fd_armed = arm_wake_fd(u);
	return u->wake_fd_armed && submit_cancels(u) && submit_queued(u, polling);
}

/* --- completion ------------------------------------------------------------------------------- */

/* The kernel wants to be entered: completions are deferred, or did not fit the ring. */
static bool must_enter(const struct uring *u)
{
	return IO_URING_READ_ONCE(*u->ring.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static int enter_kernel(struct uring *u, int64_t timeout_ns)
{
	struct __kernel_timespec ts = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
	struct io_uring_cqe *cqe;

	if (timeout_ns && !io_uring_cq_ready(&u->ring))
		return io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1,
							timeout_ns < 0 ? NULL : &ts, NULL);
	if (io_uring_sq_ready(&u->ring) || must_enter(u))
		return io_uring_submit_and_get_events(&u->ring);
	return 0;
}

/* Time is up, a signal came, or the kernel is short of something: the next turn tries again. */
static bool is_transient_error(int rc)
{
	return rc == -ETIME || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY;
}

static void take_cqe(struct uring *u, const struct io_uring_cqe *cqe)
{
	switch (cqe->user_data) {
	case FOR_NOBODY:
		break;
	case FOR_MAILBOX:
		u->wake_fd_armed = cqe->flags & IORING_CQE_F_MORE;
		break;
	default:
		finish_uring_op(u, io_uring_cqe_get_data(cqe), cqe->res);
	}
}

static void reap_cqes(struct uring *u)
{
	struct io_uring_cqe *cqes[COMPLETED_MAX];
	unsigned n = io_uring_peek_batch_cqe(&u->ring, cqes, COMPLETED_MAX);

	for (unsigned i = 0; i < n; i++)
		take_cqe(u, cqes[i]);
	io_uring_cq_advance(&u->ring, n);
}

/* --- the engine ------------------------------------------------------------------------------- */

/* Nothing can be received or completed any more, and nobody could be told. */
static void die_of_kernel(const char *what, int rc)
{
	weft_fatal("io_uring: %s: %s", what, strerror(-rc));
	abort();
}

/* io_uring_enable_rings() is in liburing 2.3's header, but not in its library. */
static void enable_ring(struct uring *u)
{
	int rc;

	assert(!u->enabled);
	rc = io_uring_register(u->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);

	if (rc < 0)
		die_of_kernel("enabling the ring", rc);
	u->enabled = true;
}

static void uring_engine_wait(struct engine *engine, int64_t timeout_ns)
{
	struct uring *u = to_uring(engine);
	bool polling = !timeout_ns;
	int rc;

	if (!u->enabled)
		enable_ring(u);
	rc = enter_kernel(u, fill_sq(u, polling) ? timeout_ns : 0);
	if (rc < 0 && !is_transient_error(rc))
		die_of_kernel("io_uring_enter", rc);
	reap_cqes(u);
	if (polling)
		try_held_receive(u);
}

static int uring_engine_sock_open(struct engine *engine, struct weft_sock *sock)
{
	return 0; /* the ring takes any descriptor */
}

static void uring_engine_sock_cancel(struct engine *engine, struct weft_sock *sock)
{
	struct weft_op *op = sock->rx;

	if (!weft_op_under_way(op))
		return;
	if (weft_list_empty(&op->link)) {
		weft_list_push(&to_uring(engine)->cancels, &op->link);
		return;
	}
	weft_list_remove(&op->link);
	weft_op_complete(engine->reactor, op, -ECANCELED);
}

static void uring_engine_sock_close(struct engine *engine, struct weft_sock *sock)
{
	weft_lone_sock_forget(&to_uring(engine)->lone, sock);
}

static void uring_engine_close(struct engine *engine)
{
	struct uring *u = to_uring(engine);

	assert(weft_list_empty(&u->held));
	io_uring_queue_exit(&u->ring);
	free(u);
}

static const struct engine_ops uring_ops = {
	.name = "uring",
	.close = uring_engine_close,
	.sock_open = uring_engine_sock_open,
	.sock_cancel = uring_engine_sock_cancel,
	.sock_close = uring_engine_sock_close,
	.wait = uring_engine_wait,
};

int weft_uring_open(struct weft_reactor *r, struct engine **engine, struct weft_err *err)
{
	struct uring *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return weft_fail(err, -ENOMEM, "no memory for an engine");
	rc = weft_uring_setup(&u->ring, err);
	if (rc < 0) {
		free(u);
		return rc;
	}
	u->engine = (struct engine){ .ops = &uring_ops, .reactor = r };
	weft_list_init(&u->cancels);
	weft_list_init(&u->held);
	*engine = &u->engine;
	return 0;
}
