/* listen.c - listening sockets. The control reactor accepts; the reactor that was chosen gets the
 * socket.
 *
 * A listener that is paused leaves connections in the kernel's backlog, where the successor finds
 * them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/tcp.h"

enum {
	RETRY_MS = 100,
	ACCEPTS_MAX = 64, /* in one turn of the control reactor, which has other things to do */
};

struct tcp_listener {
	struct weft_listener l; /* first */
	struct weft_sock sock;
	struct weft_op op;
	struct weft_timer retry; /* out of descriptors, or ACCEPTS_MAX in this turn: try again */
	bool polling, paused, closing;
};

struct accepted_socket {
	struct weft_msg msg;
	struct weft_poll_group *group;
	const struct weft_qpair_ops *ops;
	int fd;
};

static void accept_on_reactor(struct weft_msg *msg)
{
	struct accepted_socket *accepted_socket = container_of(msg, struct accepted_socket, msg);
	int rc = tcp_accept(accepted_socket->group, accepted_socket->fd, accepted_socket->ops);

	if (rc < 0)
		weft_warn("cannot take a connection: %s", strerror(-rc));
	free(accepted_socket);
}

/* A connection that is one too many is just closed. */
static void send_to_reactor(struct tcp_listener *tl, int fd)
{
	struct accepted_socket *accepted_socket = calloc(1, sizeof(*accepted_socket));
	struct weft_poll_group *group = accepted_socket ? tl->l.ops->choose_group(&tl->l) : NULL;

	if (!group) {
		free(accepted_socket);
		close(fd);
		return;
	}
	accepted_socket->group = group;
	accepted_socket->ops = tl->l.ops->qpair;
	accepted_socket->fd = fd;
	accepted_socket->msg.fn = accept_on_reactor;
	weft_reactor_post(group->reactor, &accepted_socket->msg);
}

static void listener_free(struct tcp_listener *tl)
{
	weft_timer_stop(tl->l.control, &tl->retry);
	weft_sock_close(&tl->sock);
	tl->l.ops->closed(&tl->l);
	free(tl);
}

static void poll_listener(struct tcp_listener *tl)
{
	tl->polling = true;
	weft_sock_poll(&tl->sock, &tl->op);
}

/* 0: the kernel's backlog is empty; -EAGAIN: it may not be. */
static int accept_some(struct tcp_listener *tl)
{
	for (unsigned n = 0; n < ACCEPTS_MAX; n++) {
		int fd = accept4(tl->sock.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR ? 0 :
											    -errno;
		send_to_reactor(tl, fd);
	}
	return -EAGAIN;
}

static void accept_connections(struct tcp_listener *tl)
{
	int rc = accept_some(tl);

	if (!rc) {
		poll_listener(tl);
		return;
	}
	if (rc != -EAGAIN)
		weft_peer_log(WEFT_LOG_ERROR, "accept: %s; trying again in %d ms", strerror(-rc),
			      RETRY_MS);
	weft_timer_set(tl->l.control, &tl->retry, rc == -EAGAIN ? 0 : RETRY_MS);
}

/* A listener that was paused meanwhile accepts again when it is resumed. */
static void accept_retry(struct weft_timer *timer)
{
	struct tcp_listener *tl = container_of(timer, struct tcp_listener, retry);

	if (!tl->paused)
		accept_connections(tl);
}

static void listener_readable(struct weft_op *op, int res)
{
	struct tcp_listener *tl = container_of(op, struct tcp_listener, op);

	(void)res;
	tl->polling = false;
	if (tl->closing) {
		listener_free(tl);
		return;
	}
	if (!tl->paused)
		accept_connections(tl);
}

static struct tcp_listener *tcp_listener_of(const struct weft_listener *l)
{
	return container_of(l, struct tcp_listener, l);
}

static int open_socket(struct tcp_listener *tl, int fd)
{
	socklen_t len = sizeof(tl->l.addr);

	if (getsockname(fd, (struct sockaddr *)&tl->l.addr, &len) < 0)
		return -errno;
	return weft_sock_open(tl->l.control, &tl->sock, fd);
}

int tcp_listener_import(struct weft_listener **l, struct weft_reactor *control, int fd,
			const struct weft_listener_ops *ops, void *user, struct weft_err *err)
{
	struct tcp_listener *tl = calloc(1, sizeof(*tl));
	int rc = -ENOMEM;

	if (tl) {
		tl->l = (struct weft_listener){
			.transport = &weft_tcp, .ops = ops, .control = control, .user = user
		};
		rc = open_socket(tl, fd);
	}
	if (rc < 0) {
		close(fd);
		free(tl);
		return weft_fail(err, rc, "%s", strerror(-rc));
	}
	tl->op.done = listener_readable;
	tl->retry.fn = accept_retry;
	tl->paused = true;
	*l = &tl->l;
	return 0;
}

int tcp_listen(struct weft_listener **l, struct weft_reactor *control,
	       const struct sockaddr_storage *addr, const struct weft_listener_ops *ops, void *user,
	       struct weft_err *err)
{
	int fd = tcp_listen_socket(addr), rc;

	if (fd < 0)
		return weft_fail(err, fd, "%s", strerror(-fd));
	rc = tcp_listener_import(l, control, fd, ops, user, err);
	if (rc == 0)
		tcp_listener_resume(*l);
	return rc;
}

void tcp_listener_pause(struct weft_listener *l)
{
	tcp_listener_of(l)->paused = true;
}

void tcp_listener_resume(struct weft_listener *l)
{
	struct tcp_listener *tl = tcp_listener_of(l);

	tl->paused = false;
	if (!tl->polling && !weft_heap_has(&tl->retry.node))
		weft_timer_set(l->control, &tl->retry, 0);
}

int tcp_listener_fd(const struct weft_listener *l)
{
	return tcp_listener_of(l)->sock.fd;
}

/* Ends in ready(), or at once where nothing is polled. */
void tcp_unlisten(struct weft_listener *l)
{
	struct tcp_listener *tl = tcp_listener_of(l);

	tl->closing = true;
	if (tl->polling)
		shutdown(tl->sock.fd, SHUT_RDWR);
	else
		listener_free(tl);
}
