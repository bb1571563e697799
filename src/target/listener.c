/* listener.c - listening sockets: home accepts, the reactor with the fewest queues adopts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "target/internal.h"

enum { RETRY_MS = 100 };

struct arrival {
	struct weft_msg msg;
	struct weft_group *group;
	int fd;
};

static void adopt_here(struct weft_msg *msg)
{
	struct arrival *arrival = container_of(msg, struct arrival, msg);
	int rc = weft_tcp_adopt(arrival->group, arrival->fd, &tgt_qpair_ops);

	if (rc < 0)
		weft_warn("cannot take a connection: %s", strerror(-rc));
	free(arrival);
}

static struct weft_group *least_busy(struct weft_target *t)
{
	struct weft_group *best = t->groups[0];

	for (unsigned i = 1; i < t->ngroups; i++)
		if (atomic_load(&t->groups[i]->nqpairs) < atomic_load(&best->nqpairs))
			best = t->groups[i];
	return best;
}

static void place(struct weft_target *t, int fd)
{
	struct arrival *arrival = calloc(1, sizeof(*arrival));

	if (!arrival) {
		close(fd);
		return;
	}
	arrival->group = least_busy(t);
	arrival->fd = fd;
	arrival->msg.fn = adopt_here;
	atomic_fetch_add(&arrival->group->nqpairs, 1);
	weft_reactor_post(arrival->group->reactor, &arrival->msg);
}

static unsigned connections(const struct weft_target *t)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < t->ngroups; i++)
		sum += atomic_load(&t->groups[i]->nqpairs);
	return sum;
}

static void listener_free(struct tgt_listener *l)
{
	struct weft_target *t = l->target;

	weft_timer_stop(t->home, &l->retry);
	weft_sock_close(&l->sock);
	free(l);
	tgt_target_part_ended(t);
}

static void wait_again(struct weft_timer *timer)
{
	struct tgt_listener *l = container_of(timer, struct tgt_listener, retry);

	weft_sock_poll(&l->sock, &l->op);
}

static void ready(struct weft_op *op, int res)
{
	struct tgt_listener *l = container_of(op, struct tgt_listener, op);
	int fd;

	(void)res;
	if (l->closing) {
		listener_free(l);
		return;
	}
	while ((fd = accept4(l->sock.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		/* A connection may be one more than there can be queues: it is told so. */
		if (connections(l->target) >= l->target->connections_max)
			close(fd);
		else
			place(l->target, fd);
	}
	if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) {
		weft_sock_poll(&l->sock, &l->op);
		return;
	}
	weft_peer_log(WEFT_LOG_ERROR, "accept: %s; trying again in %d ms", strerror(errno),
		      RETRY_MS);
	weft_timer_set(l->target->home, &l->retry, RETRY_MS);
}

static struct tgt_listener *find(struct weft_target *t, const struct sockaddr_storage *addr)
{
	struct tgt_listener *l;

	weft_list_for_each(l, &t->listeners, link)
		if (weft_addr_equal(&l->addr, addr))
			return l;
	return NULL;
}

static int listen_fail(int rc, const struct weft_uri *uri, struct weft_err *err)
{
	char text[WEFT_URI_MAX];

	weft_uri_format(&uri->addr, text, sizeof(text));
	if (rc == -EADDRINUSE)
		return weft_fail(err, rc, "listen on %s: the port is taken; choose another one",
				 text);
	if (rc == -EADDRNOTAVAIL)
		return weft_fail(err, rc, "listen on %s: no interface has this address", text);
	return weft_fail(err, rc, "listen on %s: %s", text, strerror(-rc));
}

int weft_listener_add(struct weft_target *t, const struct weft_uri *uri, struct weft_err *err)
{
	struct tgt_listener *l = calloc(1, sizeof(*l));
	socklen_t len = sizeof(l->addr);
	int fd, rc;

	if (!l)
		return weft_fail(err, -ENOMEM, "out of memory");
	fd = weft_tcp_listen(&uri->addr);
	if (fd < 0) {
		free(l);
		return listen_fail(fd, uri, err);
	}
	getsockname(fd, (struct sockaddr *)&l->addr, &len);
	rc = weft_sock_open(t->home, &l->sock, fd);
	if (rc < 0) {
		close(fd);
		free(l);
		return listen_fail(rc, uri, err);
	}
	l->target = t;
	l->op.done = ready;
	l->retry.fn = wait_again;
	weft_list_push(&t->listeners, &l->link);
	weft_sock_poll(&l->sock, &l->op);
	tgt_discovery_changed(t);
	return 0;
}

/* Ends in ready(), or at once where nothing is polled while the retry timer runs. */
void tgt_listener_close(struct tgt_listener *l)
{
	weft_list_remove(&l->link);
	l->target->parts++;
	l->closing = true;
	if (weft_heap_has(&l->retry.node))
		listener_free(l);
	else
		shutdown(l->sock.fd, SHUT_RDWR);
}

int weft_listener_remove(struct weft_target *t, const struct weft_uri *uri, struct weft_err *err)
{
	struct tgt_listener *l = find(t, &uri->addr);
	char text[WEFT_URI_MAX];

	weft_uri_format(&uri->addr, text, sizeof(text));
	if (!l)
		return weft_fail(err, -ENOENT, "no listener on %s", text);
	tgt_listener_close(l);
	tgt_discovery_changed(t);
	return 0;
}
