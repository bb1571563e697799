/* test_reactor_sock.c - operations on sockets, on both engines. */
#include "reactor_case.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void recv_gets_what_is_there(void **state)
{
	struct waited rx = { .op.done = ended };
	char buf[8] = "";
	struct iovec iov = { buf, sizeof(buf) };
	struct weft_sock sock;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	weft_sock_recv(&sock, &rx.op, &iov, 1);
	assert_int_equal(rx.calls, 0);
	settle();
	assert_int_equal(rx.calls, 0);
	assert_int_equal(write(peer, "abc", 3), 3);
	assert_int_equal(await(&rx), 3);
	assert_memory_equal(buf, "abc", 3);

	assert_int_equal(write(peer, "0123456789", 10), 10); /* more than fits */
	weft_sock_recv(&sock, &rx.op, &iov, 1);
	assert_int_equal(rx.calls, 0); /* never from inside the call */
	assert_int_equal(await(&rx), 8);
	assert_memory_equal(buf, "01234567", 8);
	weft_sock_recv(&sock, &rx.op, &iov, 1);
	assert_int_equal(await(&rx), 2);
	assert_memory_equal(buf, "89", 2);
	close_pair(&sock, peer);
}

/* What comes later is for the next receive: also with turns in between, and without any. */
static void canceled_recv_leaves_the_stream(void **state)
{
	struct waited rx = { .op.done = ended };
	char buf[8] = "";
	struct iovec iov = { buf, sizeof(buf) };
	struct weft_sock sock;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	for (int under_way = 0; under_way < 2; under_way++) {
		weft_sock_recv(&sock, &rx.op, &iov, 1);
		if (under_way)
			settle();
		weft_sock_cancel(&sock);
		assert_int_equal(rx.calls, 0);
		assert_int_equal(await(&rx), -ECANCELED);
		weft_sock_cancel(&sock); /* nothing is under way */
		assert_int_equal(write(peer, "abc", 3), 3);
		settle();
		assert_int_equal(rx.calls, 0);
		weft_sock_recv(&sock, &rx.op, &iov, 1);
		assert_int_equal(await(&rx), 3);
		assert_memory_equal(buf, "abc", 3);
	}
	close_pair(&sock, peer);
}

/* Another process goes on with a duplicate: nothing is heard of it here, where the memory of the
 * socket is somebody else's by then. */
static void closed_is_forgotten(void **state)
{
	static const struct weft_sock nobodys;
	struct weft_sock sock;
	int peer, duplicate;

	need_reactor();
	peer = open_pair(&sock);
	duplicate = dup(sock.fd);
	assert_true(duplicate >= 0);
	settle();
	weft_sock_close(&sock);
	memset(&sock, 0, sizeof(sock));
	assert_int_equal(write(peer, "abc", 3), 3);
	settle();
	close(peer);
	settle();
	assert_memory_equal(&sock, &nobodys, sizeof(sock));
	close(duplicate);
}

static void recv_scatters(void **state)
{
	struct waited rx = { .op.done = ended };
	char a[2], b[5];
	struct iovec iov[] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct weft_sock sock;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	assert_int_equal(write(peer, "abcde", 5), 5);
	weft_sock_recv(&sock, &rx.op, iov, 2);
	assert_int_equal(await(&rx), 5);
	assert_memory_equal(a, "ab", 2);
	assert_memory_equal(b, "cde", 3);
	close_pair(&sock, peer);
}

static void recv_sees_the_end(void **state)
{
	struct waited rx = { .op.done = ended };
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct weft_sock sock;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	weft_sock_recv(&sock, &rx.op, &iov, 1);
	weft_reactor_turn(r, 0);
	assert_int_equal(write(peer, "abc", 3), 3); /* the last bytes, and the end, together */
	close(peer);
	assert_int_equal(await(&rx), 3);
	for (int i = 0; i < 2; i++) {
		weft_sock_recv(&sock, &rx.op, &iov, 1);
		assert_int_equal(await(&rx), 0);
	}
	weft_sock_close(&sock);
}

static void shutdown_ends_a_recv(void **state)
{
	struct waited rx = { .op.done = ended };
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct weft_sock sock;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	weft_sock_recv(&sock, &rx.op, &iov, 1);
	settle();
	shutdown(sock.fd, SHUT_RDWR);
	assert_int_equal(await(&rx), 0);
	close_pair(&sock, peer);
}

static size_t read_all(int fd)
{
	static char buf[65536];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		total += (size_t)n;
	return total;
}

static void send_waits_for_room(void **state)
{
	struct waited tx = { .op.done = ended };
	size_t size = 4 << 20, sent = 0, received = 0;
	struct weft_sock sock;
	struct iovec iov;
	int peer, parts = 0;
	char *data;

	need_reactor();
	data = calloc(1, size);
	peer = open_pair(&sock);
	while (sent < size) {
		iov = (struct iovec){ data + sent, size - sent };
		weft_sock_send(&sock, &tx.op, &iov, 1);
		weft_reactor_turn(r, 0);
		settle();
		received += read_all(peer);
		sent += (size_t)await(&tx);
		parts++;
	}
	assert_true(parts > 1);
	received += read_all(peer);
	assert_int_equal(received, size);
	close_pair(&sock, peer);
	free(data);
}

/* An offer moves what fits and ends; room says when there is more. */
static void offer_does_not_wait(void **state)
{
	struct waited tx = { .op.done = ended };
	size_t size = 4 << 20, sent = 0;
	struct weft_sock sock;
	struct iovec iov;
	int peer, res;
	char *data;

	need_reactor();
	data = calloc(1, size);
	peer = open_pair(&sock);
	settle(); /* it is known to be writable */
	for (res = 1; res > 0; sent += res > 0 ? (size_t)res : 0) {
		iov = (struct iovec){ data + sent, size - sent };
		weft_sock_send_nowait(&sock, &tx.op, &iov, 1);
		res = await(&tx);
	}
	assert_int_equal(res, -EAGAIN);
	assert_true(sent && sent < size);
	weft_sock_poll_out(&sock, &tx.op);
	settle();
	assert_int_equal(tx.calls, 0);
	assert_int_equal(read_all(peer), sent);
	assert_true(await(&tx) >= 0);
	weft_sock_send_nowait(&sock, &tx.op, &iov, 1);
	assert_true(await(&tx) > 0);
	close_pair(&sock, peer);
	free(data);
}

static void room_ends_with_the_stream(void **state)
{
	struct waited tx = { .op.done = ended };
	static char data[4 << 20];
	struct iovec iov = { data, sizeof(data) };
	struct weft_sock sock;
	int peer, res;

	need_reactor();
	peer = open_pair(&sock);
	settle();
	do {
		weft_sock_send_nowait(&sock, &tx.op, &iov, 1);
		res = await(&tx);
	} while (res > 0);
	weft_sock_poll_out(&sock, &tx.op);
	settle();
	shutdown(sock.fd, SHUT_RDWR);
	await(&tx);
	weft_sock_send_nowait(&sock, &tx.op, &iov, 1);
	assert_int_equal(await(&tx), -EPIPE);
	close_pair(&sock, peer);
}

static void send_gathers(void **state)
{
	struct waited tx = { .op.done = ended };
	char a[] = "ab", b[] = "cde", buf[8];
	struct iovec iov[] = { { a, 2 }, { b, 3 } };
	struct weft_sock sock;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	weft_sock_send(&sock, &tx.op, iov, 2);
	assert_int_equal(await(&tx), 5);
	assert_int_equal(read(peer, buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "abcde", 5);
	close_pair(&sock, peer);
}

/* What was left between turns is under way; done() waits for a turn all the same. */
static void a_send_can_be_started_between_turns(void **state)
{
	struct waited tx = { .op.done = ended };
	char abc[] = "abc", buf[8];
	struct iovec iov = { abc, 3 };
	struct weft_sock sock;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	settle(); /* it is known to be writable */
	weft_reactor_submit(r);
	weft_sock_send(&sock, &tx.op, &iov, 1);
	assert_int_equal(read(peer, buf, sizeof(buf)), -1);
	weft_reactor_submit(r);
	assert_int_equal(read(peer, buf, sizeof(buf)), 3);
	assert_int_equal(tx.calls, 0);
	assert_int_equal(await(&tx), 3);
	close_pair(&sock, peer);
}

static void send_to_nobody_is_epipe(void **state)
{
	struct waited tx = { .op.done = ended };
	char data[] = "x";
	struct iovec iov = { data, 1 };
	struct weft_sock sock;

	need_reactor();
	close(open_pair(&sock));
	weft_sock_send(&sock, &tx.op, &iov, 1);
	assert_int_equal(await(&tx), -EPIPE);
	weft_sock_close(&sock);
}

static void both_directions_at_once(void **state)
{
	struct waited rx = { .op.done = ended }, tx = { .op.done = ended };
	char in[4], out[] = "out";
	struct iovec rx_iov = { in, sizeof(in) }, tx_iov = { out, 3 };
	struct weft_sock sock;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	weft_sock_recv(&sock, &rx.op, &rx_iov, 1);
	weft_sock_send(&sock, &tx.op, &tx_iov, 1);
	assert_int_equal(await(&tx), 3);
	assert_int_equal(rx.calls, 0);
	assert_int_equal(write(peer, "in", 2), 2);
	assert_int_equal(await(&rx), 2);
	close_pair(&sock, peer);
}

/* A connect under way: the first send waits for it and tells how it went. */
static int start_connect(const struct sockaddr_in *addr, struct weft_sock *sock)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (connect(fd, (const void *)addr, sizeof(*addr)))
		assert_int_equal(errno, EINPROGRESS);
	return weft_sock_open(r, sock, fd);
}

static int listen_on_loopback(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (void *)addr, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (void *)addr, &len), 0);
	return fd;
}

static void send_waits_for_connect(void **state)
{
	struct waited tx = { .op.done = ended };
	char data[] = "x";
	struct iovec iov = { data, 1 };
	struct sockaddr_in addr;
	struct weft_sock sock;
	int listener;

	need_reactor();
	listener = listen_on_loopback(&addr);
	assert_int_equal(start_connect(&addr, &sock), 0);
	weft_sock_send(&sock, &tx.op, &iov, 1);
	assert_int_equal(await(&tx), 1);
	weft_sock_close(&sock);
	close(listener);

	/* Nobody listens there any more. */
	assert_int_equal(start_connect(&addr, &sock), 0);
	weft_sock_send(&sock, &tx.op, &iov, 1);
	assert_int_equal(await(&tx), -ECONNREFUSED);
	weft_sock_close(&sock);
}

static void poll_sees_a_listener(void **state)
{
	struct waited poll = { .op.done = ended };
	struct weft_sock listener, client;
	struct sockaddr_in addr;
	int fd;

	need_reactor();
	fd = listen_on_loopback(&addr);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(weft_sock_open(r, &listener, fd), 0);
	weft_sock_poll(&listener, &poll.op);
	settle();
	assert_int_equal(poll.calls, 0);
	assert_int_equal(start_connect(&addr, &client), 0);
	assert_true(await(&poll) & POLLIN);
	close(accept(fd, NULL, NULL));

	weft_sock_poll(&listener, &poll.op);
	settle();
	assert_int_equal(poll.calls, 0);
	shutdown(fd, SHUT_RDWR);
	assert_true(await(&poll) > 0); /* which bits say so differs */
	weft_sock_close(&listener);
	weft_sock_close(&client);
}

#define ECHOES 200

struct echo {
	struct weft_sock near, far;
	struct weft_op rx, tx;
	struct weft_op far_rx, far_tx;
	struct iovec iov, far_iov;
	char buf[16], far_buf[16];
	unsigned rounds;
};

static unsigned echoes_left;

static void echo_start(struct echo *e)
{
	e->iov = (struct iovec){ e->buf, sizeof(e->buf) };
	weft_sock_send(&e->near, &e->tx, &e->iov, 1);
	weft_sock_recv(&e->near, &e->rx, &e->iov, 1);
}

static void echo_sent(struct weft_op *op, int res)
{
	assert_int_equal(res, 16);
}

static void echo_back(struct weft_op *op, int res)
{
	struct echo *e = container_of(op, struct echo, rx);

	assert_int_equal(res, 16);
	if (--e->rounds)
		echo_start(e);
	else
		echoes_left--;
}

static void echo_far(struct weft_op *op, int res)
{
	struct echo *e = container_of(op, struct echo, far_rx);

	assert_int_equal(res, 16);
	e->far_iov = (struct iovec){ e->far_buf, sizeof(e->far_buf) };
	weft_sock_send(&e->far, &e->far_tx, &e->far_iov, 1);
	if (e->rounds > 1)
		weft_sock_recv(&e->far, &e->far_rx, &e->far_iov, 1);
}

static void echo_open(struct echo *e)
{
	*e = (struct echo){ .rx.done = echo_back,
			    .tx.done = echo_sent,
			    .far_rx.done = echo_far,
			    .far_tx.done = echo_sent,
			    .rounds = 20 };
	assert_int_equal(weft_sock_open(r, &e->far, open_pair(&e->near)), 0);
	e->far_iov = (struct iovec){ e->far_buf, sizeof(e->far_buf) };
	weft_sock_recv(&e->far, &e->far_rx, &e->far_iov, 1);
	echo_start(e);
}

static void many_sockets(void **state)
{
	struct echo *echoes;

	need_reactor();
	echoes = calloc(ECHOES, sizeof(*echoes));
	echoes_left = ECHOES;
	for (int i = 0; i < ECHOES; i++)
		echo_open(&echoes[i]);
	while (echoes_left)
		weft_reactor_turn(r, -1);
	settle();
	for (int i = 0; i < ECHOES; i++) {
		weft_sock_close(&echoes[i].near);
		weft_sock_close(&echoes[i].far);
	}
	free(echoes);
}

/* Receives one byte at a time of many that are there. */
struct talker {
	struct weft_sock sock;
	struct weft_op rx;
	struct iovec iov;
	char byte;
	bool quiet;
};

static void talk(struct weft_op *op, int res)
{
	struct talker *t = container_of(op, struct talker, rx);

	assert_int_equal(res, 1);
	if (!t->quiet)
		weft_sock_recv(&t->sock, &t->rx, &t->iov, 1);
}

/* Its end of a pair has more to read than any case has turns. */
static int open_talker(struct talker *t)
{
	static const char words[4096];
	int peer;

	*t = (struct talker){ .rx.done = talk, .iov = { &t->byte, 1 } };
	peer = open_pair(&t->sock);
	assert_int_equal(write(peer, words, sizeof(words)), sizeof(words));
	weft_sock_recv(&t->sock, &t->rx, &t->iov, 1);
	return peer;
}

/* A socket that always has something must not keep the reactor from the others. */
static void one_that_talks_leaves_others_a_turn(void **state)
{
	struct talker t;
	struct waited rx = { .op.done = ended };
	struct iovec iov = { &t.byte, 1 };
	struct weft_sock other;
	int peer, far;

	need_reactor();
	peer = open_talker(&t);
	far = open_pair(&other);
	weft_sock_recv(&other, &rx.op, &iov, 1);
	for (int i = 0; i < 20; i++)
		weft_reactor_turn(r, 0);
	assert_int_equal(rx.calls, 0);
	assert_int_equal(write(far, "x", 1), 1);
	for (int i = 0; i < 100 && !rx.calls; i++)
		weft_reactor_turn(r, 0);
	assert_int_equal(rx.calls, 1);
	t.quiet = true;
	settle();
	close_pair(&t.sock, peer);
	close_pair(&other, far);
}

static void nothing(struct weft_msg *msg)
{
}

/* Who comes back from a reactor wants to know what its sockets had before. */
static void a_message_is_followed_by_a_look_at_all(void **state)
{
	struct talker t;
	struct waited rx = { .op.done = ended };
	struct iovec iov = { &t.byte, 1 };
	struct weft_msg msg = { .fn = nothing };
	struct weft_sock other;
	int peer, far;

	need_reactor();
	peer = open_talker(&t);
	far = open_pair(&other);
	weft_sock_recv(&other, &rx.op, &iov, 1);
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < i; j++)
			weft_reactor_turn(r, 0);
		assert_int_equal(write(far, "x", 1), 1);
		weft_reactor_post(r, &msg);
		weft_reactor_turn(r, 0);
		weft_reactor_turn(r, 0);
		assert_int_equal(rx.calls, i + 1);
		weft_sock_recv(&other, &rx.op, &iov, 1);
	}
	t.quiet = true;
	assert_int_equal(write(far, "x", 1), 1);
	settle();
	close_pair(&t.sock, peer);
	close_pair(&other, far);
}

/* After that the engine takes the socket for the only one that talks, and the next receive is not
 * given to the kernel while the reactor only looks. */
static void receive_as_only_talker(struct weft_sock *sock, int peer, struct waited *rx,
				   struct iovec *iov)
{
	for (int i = 0; i < 3; i++) {
		weft_sock_recv(sock, &rx->op, iov, 1);
		assert_int_equal(write(peer, "abc", 3), 3);
		assert_int_equal(await(rx), 3);
	}
	weft_sock_recv(sock, &rx->op, iov, 1);
	weft_reactor_turn(r, 0);
	weft_reactor_turn(r, 0);
	assert_int_equal(rx->calls, 0);
}

static void only_looks(struct weft_sock *sock, int peer)
{
	assert_int_equal(write(peer, "xy", 2), 2);
	weft_reactor_turn(r, 0);
}

static void sleeps(struct weft_sock *sock, int peer)
{
	settle();
	assert_int_equal(write(peer, "xy", 2), 2);
}

static void is_canceled(struct weft_sock *sock, int peer)
{
	weft_sock_cancel(sock);
}

static void is_canceled_asleep(struct weft_sock *sock, int peer)
{
	settle();
	weft_sock_cancel(sock);
}

static void loses_its_peer(struct weft_sock *sock, int peer)
{
	shutdown(peer, SHUT_WR);
}

static void is_shut_down(struct weft_sock *sock, int peer)
{
	shutdown(sock->fd, SHUT_RDWR);
}

static void is_not_alone_any_more(struct weft_sock *sock, int peer)
{
	struct waited rx = { .op.done = ended };
	struct weft_sock other;
	char byte;
	struct iovec iov = { &byte, 1 };
	int far = open_pair(&other);

	weft_sock_recv(&other, &rx.op, &iov, 1);
	assert_int_equal(write(far, "x", 1), 1);
	assert_int_equal(await(&rx), 1);
	close_pair(&other, far);
	assert_int_equal(write(peer, "xy", 2), 2);
}

static void only_talker(void **state)
{
	static const struct {
		void (*meets)(struct weft_sock *sock, int peer);
		int res;
	} cases[] = {
		{ only_looks, 2 },
		{ sleeps, 2 },
		{ is_canceled, -ECANCELED },
		{ is_canceled_asleep, -ECANCELED },
		{ loses_its_peer, 0 },
		{ is_shut_down, 0 },
		{ is_not_alone_any_more, 2 },
	};
	struct waited rx = { .op.done = ended };
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct weft_sock sock;
	int peer;

	need_reactor();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		peer = open_pair(&sock);
		receive_as_only_talker(&sock, peer, &rx, &iov);
		cases[i].meets(&sock, peer);
		assert_int_equal(await(&rx), cases[i].res);
		close_pair(&sock, peer);
	}
}

/* More than the socket holds. */
static void only_talker_sends_much(void **state)
{
	struct waited rx = { .op.done = ended }, tx = { .op.done = ended };
	static char much[4 << 20], sunk[4 << 20];
	struct iovec in = { sunk, 8 }, out = { much, sizeof(much) };
	struct weft_sock sock;
	size_t sent = 0;
	int peer;

	need_reactor();
	peer = open_pair(&sock);
	receive_as_only_talker(&sock, peer, &rx, &in);
	while (sent < sizeof(much)) {
		out = (struct iovec){ much + sent, sizeof(much) - sent };
		weft_sock_send(&sock, &tx.op, &out, 1);
		weft_reactor_turn(r, 0);
		weft_reactor_turn(r, 0);
		while (read(peer, sunk, sizeof(sunk)) > 0)
			;
		sent += (size_t)await(&tx);
	}
	weft_sock_cancel(&sock);
	assert_int_equal(await(&rx), -ECANCELED);
	close_pair(&sock, peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_both(recv_gets_what_is_there),
		on_both(canceled_recv_leaves_the_stream),
		on_both(closed_is_forgotten),
		on_both(recv_scatters),
		on_both(recv_sees_the_end),
		on_both(shutdown_ends_a_recv),
		on_both(send_waits_for_room),
		on_both(offer_does_not_wait),
		on_both(room_ends_with_the_stream),
		on_both(send_gathers),
		on_both(a_send_can_be_started_between_turns),
		on_both(send_to_nobody_is_epipe),
		on_both(both_directions_at_once),
		on_both(send_waits_for_connect),
		on_both(poll_sees_a_listener),
		on_both(many_sockets),
		on_both(one_that_talks_leaves_others_a_turn),
		on_both(a_message_is_followed_by_a_look_at_all),
		on_both(only_talker),
		on_both(only_talker_sends_much),
	};

	alarm(50);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
