/* epoll.c - the engine for where io_uring is forbidden.
 *
 *   socket op ─▶ flag set? ─yes─▶ try the call ─▶ completed
 *                   │ no                │ EAGAIN: clear the flag
 *                   ▼                   ▼
 *                parked in sock->rx or sock->tx ◀── an event sets the flag and tries again
 *
 *   file op ─▶ try without waiting ─▶ completed, or EAGAIN ─▶ workers
 *
 * A socket is registered once, edge triggered, for everything; the flags remember the edges, so
 * an operation costs no epoll_ctl.
 *
 * While only one socket talks (the lone socket), epoll_wait() is a wasted system call: the engine
 * tries that socket's receive itself, and calls epoll every POLL_ALL_EVERY polls for the others.
 *
 * Invariant: a parked operation's flag is clear, and the next edge will come. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "reactor/internal.h"
#include "reactor/workers.h"

#define EVENTS_MAX     256
#define POLL_ALL_EVERY 8 /* polls, while one socket talks */

#define ENDED    (EPOLLRDHUP | EPOLLHUP | EPOLLERR)
#define READABLE (EPOLLIN | ENDED)
#define WRITABLE (EPOLLOUT | EPOLLHUP | EPOLLERR)

struct epoll {
	struct engine engine;
	int fd;
	int alarm; /* timerfd, -1: nobody asked for one; never read, every expiry is an edge */
	struct weft_workers workers;
	struct weft_lone_sock lone;
	unsigned polls_skipped; /* polls since epoll was called */
	struct epoll_event events[EVENTS_MAX];
};

static struct epoll *to_epoll(struct engine *engine)
{
	return container_of(engine, struct epoll, engine);
}

/* --- socket operations ------------------------------------------------------------------------ */

static bool *ready_flag_of(struct weft_op *op)
{
	return weft_op_is_send(op) ? &op->sock->writable : &op->sock->readable;
}

/* Less than there was room for: the next byte makes an edge, so there is no need to ask for EAGAIN.
 * An end or an error that has been reported will not be again. */
static bool is_drained(const struct weft_op *op, int res)
{
	size_t room = 0;

	if (op->kind != WEFT_OP_RECV || op->sock->ended || res <= 0)
		return false;
	for (size_t i = 0; i < op->msg.msg_iovlen; i++)
		room += op->msg.msg_iov[i].iov_len;
	return (size_t)res < room;
}

static int try_uninterrupted(struct weft_op *op)
{
	int res;

	do {
		res = weft_op_try(op);
	} while (res == -EINTR);
	return res;
}

static void try_sock_op(struct epoll *e, struct weft_op *op)
{
	bool *flag = ready_flag_of(op);
	int res;

	res = *flag ? try_uninterrupted(op) : -EAGAIN;
	if (res == -EAGAIN || is_drained(op, res))
		*flag = false;
	if (weft_op_would_block(op, res))
		return;
	if (op->kind == WEFT_OP_RECV)
		weft_lone_sock_note(&e->lone, op->sock);
	weft_op_complete(e->engine.reactor, op, res);
}

/* --- file operations -------------------------------------------------------------------------- */

/* RWF_NOWAIT is about the page cache: a direct or synchronous transfer would wait all the same. */
static bool file_op_may_wait(const struct weft_op *op)
{
	int flags = fcntl(op->fd, F_GETFL);

	return flags < 0 || flags & (O_DIRECT | O_DSYNC) || op->flags & (RWF_DSYNC | RWF_SYNC);
}

static int try_file_nowait(const struct weft_op *op)
{
	const struct iovec *iov = op->msg.msg_iov;
	int iovcnt = (int)op->msg.msg_iovlen;
	ssize_t n;

	if ((op->kind != WEFT_OP_READ && op->kind != WEFT_OP_WRITE) || file_op_may_wait(op))
		return -EAGAIN;
	if (op->kind == WEFT_OP_READ)
		n = preadv2(op->fd, iov, iovcnt, op->offset, RWF_NOWAIT);
	else
		n = pwritev2(op->fd, iov, iovcnt, op->offset, op->flags | RWF_NOWAIT);
	return n < 0 ? -errno : (int)n;
}

static void start_file_op(struct epoll *e, struct weft_op *op)
{
	int res = try_file_nowait(op);

	if (res == -EAGAIN || res == -EOPNOTSUPP || res == -EINTR)
		weft_workers_submit(&e->workers, op);
	else
		weft_op_complete(e->engine.reactor, op, res);
}

/* --- the engine ------------------------------------------------------------------------------- */

static void start_queued_ops(struct epoll *e)
{
	struct weft_list *link;
	struct weft_op *op;

	while ((link = weft_list_pop(&e->engine.reactor->queued))) {
		op = container_of(link, struct weft_op, link);
		if (op->sock)
			try_sock_op(e, op);
		else
			start_file_op(e, op);
	}
}

static void on_epoll_event(struct epoll *e, const struct epoll_event *event)
{
	struct weft_sock *sock = event->data.ptr;

	if (!sock)
		return; /* the wake fd: waking was its whole purpose */
	if (event->events & READABLE)
		sock->readable = true;
	if (event->events & ENDED)
		sock->ended = true;
	if (event->events & WRITABLE)
		sock->writable = true;
	if (weft_op_under_way(sock->rx))
		try_sock_op(e, sock->rx);
	if (weft_op_under_way(sock->tx))
		try_sock_op(e, sock->tx);
}

static int round_up_ms(int64_t timeout_ns)
{
	int64_t ms = timeout_ns / 1000000 + (timeout_ns % 1000000 > 0);

	if (timeout_ns < 0)
		return -1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static void wait_epoll_events(struct epoll *e, int64_t timeout_ns)
{
	int n = epoll_wait(e->fd, e->events, EVENTS_MAX, round_up_ms(timeout_ns));

	e->polls_skipped = 0;
	e->engine.reactor->got_message = false;
	for (int i = 0; i < n; i++)
		on_epoll_event(e, &e->events[i]);
}

/* Only epoll reports that a socket is writable. A foreign event loop waits for epoll's descriptor,
 * which stays readable until epoll is called. A message may want the state of all sockets (see
 * target/stale.c). And turns with bulk work are long: other sockets have something by then. */
static bool must_poll_all(struct epoll *e)
{
	return !e->lone.alone || weft_op_under_way(e->lone.sock->tx) || e->alarm >= 0 ||
	       e->engine.reactor->got_message || weft_bulk_waits(e->engine.reactor) ||
	       ++e->polls_skipped >= POLL_ALL_EVERY;
}

static void poll_sockets(struct epoll *e)
{
	if (must_poll_all(e)) {
		wait_epoll_events(e, 0);
	} else if (weft_op_under_way(e->lone.sock->rx)) {
		e->lone.sock->readable = true; /* perhaps: the call finds out */
		try_sock_op(e, e->lone.sock->rx);
	}
}

static void epoll_engine_wait(struct engine *engine, int64_t timeout_ns)
{
	struct epoll *e = to_epoll(engine);

	start_queued_ops(e);
	if (timeout_ns && weft_list_empty(&engine->reactor->completed))
		wait_epoll_events(e, timeout_ns);
	else
		poll_sockets(e);
}

static void epoll_engine_submit(struct engine *engine)
{
	start_queued_ops(to_epoll(engine));
}

static int epoll_add(struct epoll *e, int fd, uint32_t events, void *ptr)
{
	struct epoll_event event = { .events = events | EPOLLET, .data.ptr = ptr };

	return epoll_ctl(e->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* What is readable or writable now is reported as the first edge. */
static int epoll_engine_sock_open(struct engine *engine, struct weft_sock *sock)
{
	return epoll_add(to_epoll(engine), sock->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, sock);
}

static void epoll_engine_sock_cancel(struct engine *engine, struct weft_sock *sock)
{
	if (!weft_op_under_way(sock->rx))
		return;
	weft_list_remove(&sock->rx->link);
	weft_op_complete(engine->reactor, sock->rx, -ECANCELED);
}

/* A duplicate of the descriptor would keep it registered after close(). */
static void epoll_engine_sock_close(struct engine *engine, struct weft_sock *sock)
{
	struct epoll *e = to_epoll(engine);

	epoll_ctl(e->fd, EPOLL_CTL_DEL, sock->fd, NULL);
	weft_lone_sock_forget(&e->lone, sock);
}

static int epoll_engine_fd(struct engine *engine)
{
	struct epoll *e = to_epoll(engine);
	int rc;

	if (e->alarm >= 0)
		return e->fd;
	e->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (e->alarm < 0)
		return -errno;
	rc = epoll_add(e, e->alarm, EPOLLIN, NULL);
	return rc < 0 ? rc : e->fd;
}

static void epoll_engine_alarm(struct engine *engine, int64_t timeout_ns)
{
	int64_t ns = timeout_ns > 0 ? timeout_ns : 1; /* 0 would disarm it */
	struct itimerspec when = { .it_value = { ns / 1000000000, ns % 1000000000 } };

	if (to_epoll(engine)->alarm >= 0)
		timerfd_settime(to_epoll(engine)->alarm, 0, &when, NULL);
}

static void epoll_engine_close(struct engine *engine)
{
	struct epoll *e = to_epoll(engine);

	weft_workers_destroy(&e->workers);
	if (e->alarm >= 0)
		close(e->alarm);
	close(e->fd);
	free(e);
}

static const struct engine_ops epoll_ops = {
	.name = "epoll",
	.close = epoll_engine_close,
	.sock_open = epoll_engine_sock_open,
	.sock_cancel = epoll_engine_sock_cancel,
	.sock_close = epoll_engine_sock_close,
	.wait = epoll_engine_wait,
	.submit = epoll_engine_submit,
	.fd = epoll_engine_fd,
	.alarm = epoll_engine_alarm,
};

static int epoll_set_up(struct epoll *e, int wake_fd)
{
	int rc;

	e->fd = epoll_create1(EPOLL_CLOEXEC);
	if (e->fd < 0)
		return -errno;
	rc = epoll_add(e, wake_fd, EPOLLIN, NULL);
	if (rc < 0)
		close(e->fd);
	return rc;
}

int weft_epoll_open(struct weft_reactor *r, struct engine **engine, struct weft_err *err)
{
	struct epoll *e = calloc(1, sizeof(*e));
	int rc = e ? epoll_set_up(e, r->mailbox.wake_fd) : -ENOMEM;

	if (rc < 0) {
		free(e);
		return weft_fail(err, rc, "epoll: %s", strerror(-rc));
	}
	e->engine = (struct engine){ .ops = &epoll_ops, .reactor = r };
	e->alarm = -1;
	weft_workers_init(&e->workers, WEFT_WORKERS_MAX);
	*engine = &e->engine;
	return 0;
}
