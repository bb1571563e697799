/* op.c - how an operation starts and ends, whatever the engine.
 *
 * Starting one only fills it in and queues it: the engine picks it up at the end of the turn, so
 * done() cannot run inside the call, and many operations cost one system call where the engine can.
 * Invariant: sock->rx and sock->tx point to the operation until its done() is about to run. */
#include <assert.h>
#include <poll.h>
#include <unistd.h>

#include "reactor/internal.h"

static void queue_op(struct weft_reactor *r, struct weft_op *op, enum weft_op_kind kind, int fd)
{
	op->reactor = r;
	op->kind = kind;
	op->fd = fd;
	op->res = WEFT_OP_UNDER_WAY;
	weft_list_push(&r->queued, &op->link);
}

static void queue_sock_op(struct weft_sock *sock, struct weft_op **current_op, struct weft_op *op,
			  enum weft_op_kind kind)
{
	assert(!*current_op);
	*current_op = op;
	op->sock = sock;
	op->flags = 0;
	queue_op(sock->reactor, op, kind, sock->fd);
}

static void queue_file_op(struct weft_reactor *r, struct weft_op *op, enum weft_op_kind kind,
			  int fd)
{
	op->sock = NULL;
	queue_op(r, op, kind, fd);
}

static void set_iov(struct weft_op *op, struct iovec *iov, int iovcnt)
{
	op->msg = (struct msghdr){ .msg_iov = iov, .msg_iovlen = (size_t)iovcnt };
}

/* --- sockets ---------------------------------------------------------------------------------- */

int weft_sock_open(struct weft_reactor *r, struct weft_sock *sock, int fd)
{
	assert_driving(r);
	assert(fd >= 0);
	*sock = (struct weft_sock){ .fd = fd, .reactor = r };
	return r->engine->ops->sock_open(r->engine, sock);
}

void weft_sock_close(struct weft_sock *sock)
{
	struct engine *engine = sock->reactor->engine;

	assert_driving(sock->reactor);
	assert(sock->fd >= 0 && !sock->tx);
	assert(!sock->rx || sock->rx->kind == WEFT_OP_POLL);
	engine->ops->sock_cancel(engine, sock);
	engine->ops->sock_close(engine, sock);
	if (sock->rx)
		sock->rx->sock = NULL;
	close(sock->fd);
	sock->fd = -1;
}

void weft_sock_cancel(struct weft_sock *sock)
{
	struct engine *engine = sock->reactor->engine;

	assert_driving(sock->reactor);
	assert(sock->fd >= 0);
	engine->ops->sock_cancel(engine, sock);
}

void weft_sock_poll(struct weft_sock *sock, struct weft_op *op)
{
	queue_sock_op(sock, &sock->rx, op, WEFT_OP_POLL);
}

void weft_sock_recv(struct weft_sock *sock, struct weft_op *op, struct iovec *iov, int iovcnt)
{
	set_iov(op, iov, iovcnt);
	queue_sock_op(sock, &sock->rx, op, WEFT_OP_RECV);
}

void weft_sock_send(struct weft_sock *sock, struct weft_op *op, struct iovec *iov, int iovcnt)
{
	set_iov(op, iov, iovcnt);
	queue_sock_op(sock, &sock->tx, op, WEFT_OP_SEND);
}

void weft_sock_send_nowait(struct weft_sock *sock, struct weft_op *op, struct iovec *iov,
			   int iovcnt)
{
	set_iov(op, iov, iovcnt);
	queue_sock_op(sock, &sock->tx, op, WEFT_OP_SEND_NOWAIT);
}

void weft_sock_poll_out(struct weft_sock *sock, struct weft_op *op)
{
	queue_sock_op(sock, &sock->tx, op, WEFT_OP_POLL_OUT);
}

bool weft_sock_has_ended(const struct weft_sock *sock)
{
	struct pollfd pollfd = { .fd = sock->fd, .events = POLLRDHUP };

	return poll(&pollfd, 1, 0) > 0;
}

static int try_poll(const struct weft_op *op)
{
	struct pollfd pollfd = { .fd = op->fd,
				 .events = op->kind == WEFT_OP_POLL ? POLLIN : POLLOUT };
	int n = poll(&pollfd, 1, 0);

	if (n > 0)
		return pollfd.revents;
	return n ? -errno : -EAGAIN;
}

/* One part needs no struct msghdr, which the kernel would have to copy first. */
static ssize_t try_recv(struct weft_op *op)
{
	const struct iovec *iov = op->msg.msg_iov;

	if (op->msg.msg_iovlen == 1)
		return recv(op->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT);
	return recvmsg(op->fd, &op->msg, MSG_DONTWAIT);
}

static ssize_t try_send(struct weft_op *op)
{
	const struct iovec *iov = op->msg.msg_iov;

	if (op->msg.msg_iovlen == 1)
		return send(op->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sendmsg(op->fd, &op->msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int weft_op_try(struct weft_op *op)
{
	ssize_t n;

	if (op->kind == WEFT_OP_POLL || op->kind == WEFT_OP_POLL_OUT)
		return try_poll(op);
	n = op->kind == WEFT_OP_RECV ? try_recv(op) : try_send(op);
	return n < 0 ? -errno : (int)n;
}

/* --- files ------------------------------------------------------------------------------------ */

void weft_file_read(struct weft_reactor *r, struct weft_op *op, int fd, struct iovec *iov,
		    int iovcnt, off_t offset)
{
	set_iov(op, iov, iovcnt);
	op->offset = offset;
	op->flags = 0;
	queue_file_op(r, op, WEFT_OP_READ, fd);
}

void weft_file_write(struct weft_reactor *r, struct weft_op *op, int fd, struct iovec *iov,
		     int iovcnt, off_t offset, int rwf_flags)
{
	set_iov(op, iov, iovcnt);
	op->offset = offset;
	op->flags = rwf_flags;
	queue_file_op(r, op, WEFT_OP_WRITE, fd);
}

void weft_file_sync(struct weft_reactor *r, struct weft_op *op, int fd)
{
	queue_file_op(r, op, WEFT_OP_SYNC, fd);
}

void weft_file_allocate(struct weft_reactor *r, struct weft_op *op, int fd, int mode, off_t offset,
			off_t length)
{
	op->flags = mode;
	op->offset = offset;
	op->length = length;
	queue_file_op(r, op, WEFT_OP_ALLOCATE, fd);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void detach_from_sock(struct weft_op *op)
{
	struct weft_sock *sock = op->sock;

	if (!sock)
		return;
	assert((weft_op_is_send(op) ? sock->tx : sock->rx) == op);
	if (weft_op_is_send(op))
		sock->tx = NULL;
	else
		sock->rx = NULL;
}

void weft_op_finish_all(struct weft_reactor *r)
{
	struct weft_list *link;
	struct weft_op *op;

	/* Only the engine adds to the list, and nothing a callback starts gets that far. */
	while ((link = weft_list_pop(&r->completed))) {
		op = container_of(link, struct weft_op, link);
		detach_from_sock(op);
		op->done(op, op->res);
	}
}
