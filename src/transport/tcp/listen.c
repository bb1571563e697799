/* listen.c - listening sockets: home accepts, the reactor that was chosen adopts.
 *
 * Who connects to a paused one waits in the kernel's line, and is there for the process that the
 * socket is handed to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/tcp.h"

enum {
	RETRY_MS = 100,
	ACCEPTS_MAX = 64, /* in one turn of home, which has other things to do */
};

struct tcp_listener {
	struct weft_listener l; /* first */
	struct weft_sock sock;
	struct weft_op op;
	struct weft_timer retry; /* out of descriptors, or this turn had its share: try again */
	bool polling, paused, closing;
};

struct arrival {
	struct weft_msg msg;
	struct weft_group *group;
	const struct weft_qpair_ops *ops;
	int fd;
};

static void adopt_here(struct weft_msg *msg)
{
	struct arrival *arrival = container_of(msg, struct arrival, msg);
	int rc = weft_tcp_adopt(arrival->group, arrival->fd, arrival->ops);

	if (rc < 0)
		weft_warn("cannot take a connection: %s", strerror(-rc));
	free(arrival);
}

/* A connection that is one too many is told so by its end. */
static void hand_over(struct tcp_listener *tl, int fd)
{
	struct arrival *arrival = calloc(1, sizeof(*arrival));
	struct weft_group *group = arrival ? tl->l.ops->place(&tl->l) : NULL;

	if (!group) {
		free(arrival);
		close(fd);
		return;
	}
	arrival->group = group;
	arrival->ops = tl->l.ops->qpair;
	arrival->fd = fd;
	arrival->msg.fn = adopt_here;
	weft_reactor_post(group->reactor, &arrival->msg);
}

static void finish(struct tcp_listener *tl)
{
	weft_timer_stop(tl->l.home, &tl->retry);
	weft_sock_close(&tl->sock);
	tl->l.ops->closed(&tl->l);
	free(tl);
}

static void wait_for_hosts(struct tcp_listener *tl)
{
	tl->polling = true;
	weft_sock_poll(&tl->sock, &tl->op);
}

/* 0: nobody is left in the kernel's line; -EAGAIN: others may be. */
static int accept_some(struct tcp_listener *tl)
{
	for (unsigned n = 0; n < ACCEPTS_MAX; n++) {
		int fd = accept4(tl->sock.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR ? 0 :
											    -errno;
		hand_over(tl, fd);
	}
	return -EAGAIN;
}

static void take_hosts(struct tcp_listener *tl)
{
	int rc = accept_some(tl);

	if (!rc) {
		wait_for_hosts(tl);
		return;
	}
	if (rc != -EAGAIN)
		weft_peer_log(WEFT_LOG_ERROR, "accept: %s; trying again in %d ms", strerror(-rc),
			      RETRY_MS);
	weft_timer_set(tl->l.home, &tl->retry, rc == -EAGAIN ? 0 : RETRY_MS);
}

/* A listener that was paused meanwhile begins anew when it is resumed. */
static void take_again(struct weft_timer *timer)
{
	struct tcp_listener *tl = container_of(timer, struct tcp_listener, retry);

	if (!tl->paused)
		take_hosts(tl);
}

static void ready(struct weft_op *op, int res)
{
	struct tcp_listener *tl = container_of(op, struct tcp_listener, op);

	(void)res;
	tl->polling = false;
	if (tl->closing) {
		finish(tl);
		return;
	}
	if (!tl->paused)
		take_hosts(tl);
}

static struct tcp_listener *of(const struct weft_listener *l)
{
	return container_of(l, struct tcp_listener, l);
}

static int open_socket(struct tcp_listener *tl, int fd)
{
	socklen_t len = sizeof(tl->l.addr);

	if (getsockname(fd, (struct sockaddr *)&tl->l.addr, &len) < 0)
		return -errno;
	return weft_sock_open(tl->l.home, &tl->sock, fd);
}

int tcp_inherit_listener(struct weft_listener **l, struct weft_reactor *home, int fd,
			 const struct weft_listener_ops *ops, void *user, struct weft_err *err)
{
	struct tcp_listener *tl = calloc(1, sizeof(*tl));
	int rc = -ENOMEM;

	if (tl) {
		tl->l = (struct weft_listener){
			.transport = &weft_tcp, .ops = ops, .home = home, .user = user
		};
		rc = open_socket(tl, fd);
	}
	if (rc < 0) {
		close(fd);
		free(tl);
		return weft_fail(err, rc, "%s", strerror(-rc));
	}
	tl->op.done = ready;
	tl->retry.fn = take_again;
	tl->paused = true;
	*l = &tl->l;
	return 0;
}

int tcp_listen(struct weft_listener **l, struct weft_reactor *home,
	       const struct sockaddr_storage *addr, const struct weft_listener_ops *ops, void *user,
	       struct weft_err *err)
{
	int fd = tcp_listen_socket(addr), rc;

	if (fd < 0)
		return weft_fail(err, fd, "%s", strerror(-fd));
	rc = tcp_inherit_listener(l, home, fd, ops, user, err);
	if (rc == 0)
		tcp_resume(*l);
	return rc;
}

void tcp_pause(struct weft_listener *l)
{
	of(l)->paused = true;
}

void tcp_resume(struct weft_listener *l)
{
	struct tcp_listener *tl = of(l);

	tl->paused = false;
	if (!tl->polling && !weft_heap_has(&tl->retry.node))
		weft_timer_set(l->home, &tl->retry, 0);
}

int tcp_descriptor(const struct weft_listener *l)
{
	return of(l)->sock.fd;
}

/* Ends in ready(), or at once where nothing is polled. */
void tcp_unlisten(struct weft_listener *l)
{
	struct tcp_listener *tl = of(l);

	tl->closing = true;
	if (tl->polling)
		shutdown(tl->sock.fd, SHUT_RDWR);
	else
		finish(tl);
}
