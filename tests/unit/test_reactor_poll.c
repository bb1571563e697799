/* test_reactor_poll.c - descriptors that become ready, and two reactors that talk, on both
 * engines. */
#include "reactor_case.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- poll ------------------------------------------------------------------------------------- */

static void open_eventfd(struct weft_sock *sock)
{
	assert_int_equal(weft_sock_open(r, sock, eventfd(0, EFD_NONBLOCK)), 0);
}

static void poll_reports_readable(void **state)
{
	struct waited poll = { .op.done = ended };
	struct weft_sock sock;
	eventfd_t value;

	need_reactor();
	open_eventfd(&sock);
	for (int i = 0; i < 3; i++) {
		weft_sock_poll(&sock, &poll.op);
		settle();
		assert_int_equal(poll.calls, 0);
		eventfd_write(sock.fd, 7);
		assert_true(await(&poll) & POLLIN);
		assert_int_equal(eventfd_read(sock.fd, &value), 0);
		assert_int_equal(value, 7);
	}
	eventfd_write(sock.fd, 1);
	weft_sock_poll(&sock, &poll.op);
	assert_int_equal(poll.calls, 0);
	assert_true(await(&poll) & POLLIN);
	weft_sock_close(&sock);
}

static void close_cancels_a_poll(void **state)
{
	struct waited poll = { .op.done = ended };
	struct weft_sock *sock;

	need_reactor();
	for (int turns = 0; turns < 3; turns++) {
		sock = malloc(sizeof(*sock));
		open_eventfd(sock);
		weft_sock_poll(sock, &poll.op);
		for (int i = 0; i < turns; i++)
			weft_reactor_turn(r, 0);
		weft_sock_close(sock);
		free(sock);
		assert_int_equal(poll.calls, 0);
		assert_int_equal(await(&poll), -ECANCELED);
	}
}

static void destroy_forgets_a_poll(void **state)
{
	struct weft_sock *sock;
	struct waited *poll;

	need_reactor();
	sock = malloc(sizeof(*sock));
	poll = calloc(1, sizeof(*poll));
	poll->op.done = ended;
	open_eventfd(sock);
	weft_sock_poll(sock, &poll->op);
	weft_reactor_turn(r, 0);
	weft_reactor_destroy(r);
	r = NULL;
	eventfd_write(sock->fd, 1);
	assert_int_equal(poll->calls, 0);
	close(sock->fd);
	free(sock);
	free(poll);
}

/* Two sockets become ready together; the first to be told closes and frees the other. */
struct twin {
	struct waited poll;
	struct weft_sock *sock;
	struct twin *other;
};

static void twin_ready(struct weft_op *op, int res)
{
	struct twin *t = container_of(op, struct twin, poll.op);

	ended(op, res);
	if (!t->other->sock)
		return;
	weft_sock_close(t->other->sock);
	free(t->other->sock);
	t->other->sock = NULL;
}

static void close_in_the_same_batch(void **state)
{
	struct twin twins[2] = { 0 };

	need_reactor();
	for (int i = 0; i < 2; i++) {
		twins[i].poll.op.done = twin_ready;
		twins[i].other = &twins[!i];
		twins[i].sock = malloc(sizeof(*twins[i].sock));
		open_eventfd(twins[i].sock);
		weft_sock_poll(twins[i].sock, &twins[i].poll.op);
	}
	weft_reactor_turn(r, 0);
	for (int i = 0; i < 2; i++)
		eventfd_write(twins[i].sock->fd, 1);
	while (!twins[0].poll.calls || !twins[1].poll.calls)
		weft_reactor_turn(r, -1);
	settle();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(twins[i].poll.calls, 1);
		if (twins[i].sock)
			weft_sock_close(twins[i].sock);
		free(twins[i].sock);
	}
}

/* The same, where nobody waits on the other: only a stale event could touch it. A duplicate keeps
 * its descriptor alive for more events to come. */
static void close_of_an_idle_socket_in_the_same_batch(void **state)
{
	struct twin twins[2] = { 0 };
	int peer, copy;

	need_reactor();
	twins[0].poll.op.done = twin_ready;
	twins[0].other = &twins[1];
	for (int i = 0; i < 2; i++)
		twins[i].sock = malloc(sizeof(*twins[i].sock));
	open_eventfd(twins[0].sock);
	peer = open_pair(twins[1].sock);
	copy = dup(twins[1].sock->fd);
	weft_reactor_turn(r, 0);
	weft_sock_poll(twins[0].sock, &twins[0].poll.op);
	eventfd_write(twins[0].sock->fd, 1);
	assert_int_equal(write(peer, "x", 1), 1);
	assert_true(await(&twins[0].poll) & POLLIN);
	assert_null(twins[1].sock);
	assert_int_equal(write(peer, "x", 1), 1);
	settle();
	close(copy);
	close_pair(twins[0].sock, peer);
	free(twins[0].sock);
}

/* --- two threads ------------------------------------------------------------------------------ */

struct ponger {
	struct weft_reactor *reactor;
	struct weft_sock sock;
	struct weft_op rx, tx;
	struct iovec rx_iov, tx_iov;
	char in[8], out[8];
	unsigned got, faults;
	pthread_t thread;
};

#define PONGS 2000

static void pong(struct weft_op *op, int res)
{
	struct ponger *p = container_of(op, struct ponger, rx);

	if (res <= 0) {
		weft_reactor_stop(p->reactor);
		return;
	}
	weft_sock_recv(&p->sock, &p->rx, &p->rx_iov, 1);
	if (++p->got == PONGS)
		shutdown(p->sock.fd, SHUT_RDWR);
	else
		weft_sock_send(&p->sock, &p->tx, &p->tx_iov, 1);
}

static void pong_sent(struct weft_op *op, int res)
{
	struct ponger *p = container_of(op, struct ponger, tx);

	if (res != 1 && res != -EPIPE)
		p->faults++;
}

static void pong_open(struct ponger *p, struct weft_reactor *reactor, int fd)
{
	*p = (struct ponger){ .reactor = reactor, .rx.done = pong, .tx.done = pong_sent };
	p->rx_iov = (struct iovec){ p->in, sizeof(p->in) };
	p->tx_iov = (struct iovec){ p->out, 1 };
	assert_int_equal(weft_sock_open(reactor, &p->sock, fd), 0);
	weft_sock_recv(&p->sock, &p->rx, &p->rx_iov, 1);
}

static void *run(void *arg)
{
	weft_reactor_run(arg);
	return NULL;
}

static void two_reactors_play(void **state)
{
	struct weft_reactor *both[2];
	struct ponger p[2];
	int fds[2];

	need_reactor();
	both[0] = r;
	assert_int_equal(open_engine(this_engine()), 0);
	both[1] = r;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		pong_open(&p[i], both[i], fds[i]);
	weft_sock_send(&p[0].sock, &p[0].tx, &p[0].tx_iov, 1);
	for (int i = 0; i < 2; i++)
		pthread_create(&p[i].thread, NULL, run, both[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(p[i].thread, NULL);
	assert_true(p[0].got == PONGS || p[1].got == PONGS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p[i].faults, 0);
		weft_sock_close(&p[i].sock);
	}
	weft_reactor_destroy(both[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_both(poll_reports_readable),
		on_both(close_cancels_a_poll),
		on_both(destroy_forgets_a_poll),
		on_both(close_in_the_same_batch),
		on_both(close_of_an_idle_socket_in_the_same_batch),
		on_both(two_reactors_play),
	};

	alarm(50);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
