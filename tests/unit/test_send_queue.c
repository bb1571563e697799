/* test_send_queue.c - what waits to be sent: gathered, in order, whole, however little the socket
 * takes. */
#include "reactor_case.h"

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>

#include "transport/tcp/send_queue.h"

enum { ITEMS = 300, LONG_PARTS = 500, LONG_PART = 999 };

/* An item whose bytes are its number, in one part or in many. */
struct item {
	struct tcp_tx tx;
	unsigned number, sent;
	int left; /* parts to be filled in */
	unsigned holds, let_gos;
	char *begun; /* where its next byte was when it was let go */
};

/* --- what is asked of the engine -------------------------------------------------------------- */

static unsigned rooms; /* each is a system call with epoll, and one more operation with io_uring */

void __real_weft_sock_poll_out(struct weft_sock *sock, struct weft_op *op);
void __wrap_weft_sock_poll_out(struct weft_sock *sock, struct weft_op *op);
void __wrap_weft_sock_poll_out(struct weft_sock *sock, struct weft_op *op)
{
	rooms++;
	__real_weft_sock_poll_out(sock, op);
}

/* --- the sendq --------------------------------------------------------------------------------- */

static struct tcp_send_queue sendq;
static struct weft_sock sock;
static int other;
static unsigned drained, send_stopped;
static int failure;
static char bytes[LONG_PARTS][LONG_PART];
static struct item items[ITEMS];

static void on_failed(struct tcp_send_queue *l, int rc)
{
	failure = rc;
}

static void on_all_sent(struct tcp_send_queue *l)
{
	drained++;
}

static void on_stilled(struct tcp_send_queue *l)
{
	send_stopped++;
}

static unsigned refusals; /* of holds to come */

static bool on_hold(struct tcp_tx *tx)
{
	struct item *item = container_of(tx, struct item, tx);

	if (refusals) {
		refusals--;
		return false;
	}
	item->holds++;
	return true;
}

static void on_let_go(struct tcp_tx *tx)
{
	struct item *item = container_of(tx, struct item, tx);
	bool sent = tcp_send_queue_is_sent(&sendq, tx);

	assert_int_equal(item->holds, ++item->let_gos);
	item->begun = sent ? NULL : tcp_send_queue_next_part(&sendq)->iov_base;
}

static void open_line(int size)
{
	int fds[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), errno);
	assert_return_code(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), errno);
	assert_int_equal(weft_sock_open(r, &sock, fds[0]), 0);
	other = fds[1];
	drained = send_stopped = 0;
	failure = 0;
	memset(&sendq, 0, sizeof(sendq));
	tcp_send_queue_init(&sendq, &sock);
	sendq.failed = on_failed;
	sendq.all_sent = on_all_sent;
	sendq.send_stopped = on_stilled;
	sendq.hold_shared = on_hold;
	sendq.release_shared = on_let_go;
	refusals = 0;
}

static void close_line(void)
{
	tcp_send_queue_stop(&sendq);
	shutdown(sock.fd, SHUT_RDWR);
	while (sendq.busy)
		weft_reactor_turn(r, -1);
	weft_sock_close(&sock);
	tcp_send_queue_clear(&sendq);
	close(other);
}

static int fill_one(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct item *item = container_of(tx, struct item, tx);

	assert_true(room >= TCP_TX_PARTS);
	*iov = (struct iovec){ &item->number, sizeof(item->number) };
	return 1;
}

static int fill_many(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct item *item = container_of(tx, struct item, tx);
	int n = 0;

	for (; item->left && n < room; n++)
		iov[n] = (struct iovec){ bytes[LONG_PARTS - item->left--], LONG_PART };
	tx->more = item->left;
	return n;
}

static void on_sent(struct tcp_tx *tx)
{
	struct item *item = container_of(tx, struct item, tx);

	assert_int_equal(item->left, 0);
	item->sent++;
}

static void push(unsigned i, bool many)
{
	items[i] = (struct item){ .number = i, .left = many ? LONG_PARTS : 0 };
	items[i].tx.fill = many ? fill_many : fill_one;
	items[i].tx.sent = on_sent;
	tcp_send_queue_push(&sendq, &items[i].tx);
}

static void hear(void *to, size_t len)
{
	while (len) {
		ssize_t n = recv(other, to, len, MSG_DONTWAIT);

		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		if (n < 0) {
			weft_reactor_turn(r, 1);
			continue;
		}
		to = (char *)to + n;
		len -= (size_t)n;
	}
}

static void hear_number(unsigned number)
{
	unsigned got;

	hear(&got, sizeof(got));
	assert_int_equal(got, number);
}

static void hear_long(void)
{
	static char got[LONG_PARTS * LONG_PART];

	hear(got, sizeof(got));
	assert_memory_equal(got, bytes, sizeof(got));
}

/* More than one send holds, all of it in order. */
static void in_order(void **state)
{
	need_reactor();
	open_line(64 << 10);
	for (unsigned i = 0; i < ITEMS; i++)
		push(i, false);
	for (unsigned i = 0; i < ITEMS; i++)
		hear_number(i);
	settle();
	for (unsigned i = 0; i < ITEMS; i++)
		assert_int_equal(items[i].sent, 1);
	assert_int_equal(drained, 1);
	close_line();
}

/* Items with more parts than one send takes, through a socket that takes little. */
static void in_pieces(void **state)
{
	need_reactor();
	for (size_t i = 0; i < sizeof(bytes); i++)
		((char *)bytes)[i] = (char)(i * 7 + i / 1000);
	open_line(4096);
	push(0, false);
	push(1, true);
	push(2, false);
	push(3, true);
	hear_number(0);
	hear_long();
	push(4, false);
	hear_number(2);
	hear_long();
	hear_number(4);
	settle();
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(items[i].sent, 1);
	close_line();
}

/* Nobody writes to it: it may lie there while the peer takes its time, and nothing asks whether
 * there is room but the send itself. The socket is full after each. */
static void waits_by_sending(void **state)
{
	size_t heard = 0;

	need_reactor();
	open_line(4096);
	rooms = 0;
	push(0, true);
	settle();
	while (heard < sizeof(bytes)) {
		static char got[LONG_PARTS * LONG_PART];
		ssize_t n = recv(other, got, sizeof(got), MSG_DONTWAIT);

		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		heard += n > 0 ? (size_t)n : 0;
		settle();
	}
	assert_int_equal(items[0].sent, 1);
	assert_int_equal(rooms, 0);
	close_line();
}

/* What has begun to leave is finished, what has not counts as sent; then others may follow. */
static void dropped(void **state)
{
	need_reactor();
	open_line(4096);
	push(0, true);
	push(1, false);
	settle();
	push(2, false);
	tcp_send_queue_drop_unsent(&sendq);
	assert_int_equal(items[0].sent, 0);
	assert_int_equal(items[1].sent, 1);
	assert_int_equal(items[2].sent, 1);
	push(3, false);
	hear_long();
	hear_number(3);
	settle();
	assert_int_equal(items[0].sent, 1);
	assert_int_equal(items[3].sent, 1);
	close_line();
}

static void dropped_idle(void **state)
{
	need_reactor();
	open_line(4096);
	tcp_send_queue_drop_unsent(&sendq);
	push(0, false);
	hear_number(0);
	settle();
	tcp_send_queue_drop_unsent(&sendq);
	assert_int_equal(items[0].sent, 1);
	close_line();
}

/* Stopped in the middle: everything is given back, once. */
static void stopped(void **state)
{
	need_reactor();
	open_line(4096);
	push(0, true);
	push(1, false);
	settle();
	items[0].left = 0; /* nobody asks for the rest any more */
	close_line();
	assert_int_equal(send_stopped, 1);
	assert_int_equal(items[0].sent, 1);
	assert_int_equal(items[1].sent, 1);
}

static void peer_gone(void **state)
{
	need_reactor();
	open_line(4096);
	close(other);
	push(0, false);
	settle();
	assert_int_equal(failure, -EPIPE);
	assert_int_equal(items[0].sent, 0);
	other = -1;
	close_line();
	assert_int_equal(items[0].sent, 1);
}

/* --- data that others write to ---------------------------------------------------------------- */

static char block[1 << 20];

static int fill_block(struct tcp_tx *tx, struct iovec *iov, int room)
{
	struct item *item = container_of(tx, struct item, tx);

	iov[0] = (struct iovec){ &item->number, sizeof(item->number) };
	iov[1] = (struct iovec){ block, sizeof(block) };
	return 2;
}

static void push_shared(unsigned i, int (*fill)(struct tcp_tx *tx, struct iovec *iov, int room))
{
	items[i] = (struct item){ .number = i, .tx = { .fill = fill, .sent = on_sent } };
	items[i].tx.shared = true;
	tcp_send_queue_push(&sendq, &items[i].tx);
}

/* What cannot be held now goes in a later turn; what is before it does not wait for that. */
static void held_later(void **state)
{
	need_reactor();
	open_line(64 << 10);
	push(0, false);
	push_shared(1, fill_one);
	push_shared(2, fill_one);
	refusals = 3;
	hear_number(0);
	hear_number(1);
	hear_number(2);
	settle();
	assert_int_equal(refusals, 0);
	for (unsigned i = 1; i < 3; i++)
		assert_true(items[i].holds == items[i].let_gos && items[i].sent == 1);
	close_line();
}

/* Whoever writes there takes its time: the reactor does not turn until it has ended. */
static void held_much_later(void **state)
{
	unsigned turns = 0;

	need_reactor();
	open_line(64 << 10);
	refusals = UINT_MAX;
	push_shared(0, fill_one);
	push(1, false);
	do {
		assert_true(turns++ < 1000);
		weft_reactor_turn(r, 0);
	} while (weft_reactor_busy(r));
	assert_int_equal(items[0].holds, 0);
	refusals = 2;
	hear_number(0);
	hear_number(1);
	push_shared(2, fill_one); /* it is the first time again */
	refusals = 1;
	settle();
	assert_int_equal(refusals, 0);
	hear_number(2);
	refusals = UINT_MAX; /* and one that waits ends with its sendq */
	push_shared(3, fill_one);
	settle();
	close_line();
	assert_int_equal(items[3].sent, 1);
}

/* The peer reads nothing: no one is held meanwhile. What is put in the place of the bytes to come
 * is what comes. */
static void not_held_while_full(void **state)
{
	static char got[sizeof(block)], other_bytes[100];
	size_t begun;

	need_reactor();
	memset(block, 'a', sizeof(block));
	memset(other_bytes, 'b', sizeof(other_bytes));
	open_line(4096);
	rooms = 0;
	push_shared(0, fill_block);
	settle();
	assert_true(items[0].holds > 0 && items[0].holds == items[0].let_gos);
	assert_true(items[0].begun > block && items[0].begun < block + sizeof(block));
	assert_true(rooms > 0);
	begun = (size_t)(items[0].begun - block);
	tcp_send_queue_replace_part(&sendq, other_bytes, sizeof(other_bytes));
	memset(block, 'c', sizeof(block));
	hear_number(0);
	hear(got, sizeof(got));
	for (size_t i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], i < begun                       ? 'a' :
					 i < begun + sizeof(other_bytes) ? 'b' :
									   'c');
	settle();
	assert_true(items[0].holds == items[0].let_gos && items[0].sent == 1);
	close_line();
}

static void not_held_when_stopped(void **state)
{
	need_reactor();
	open_line(4096);
	push_shared(0, fill_block);
	push_shared(1, fill_block);
	settle();
	close_line();
	for (unsigned i = 0; i < 2; i++)
		assert_true(items[i].holds == items[i].let_gos && items[i].sent == 1);
}

/* --- helpers ---------------------------------------------------------------------------------- */

static void data_offset(void **state)
{
	static const struct {
		uint32_t header;
		uint8_t pda;
		uint32_t offset;
	} cases[] = {
		{ 24, 0, 24 }, { 28, 0, 28 },   { 24, 1, 24 },   { 28, 1, 32 },
		{ 72, 3, 80 }, { 76, 31, 128 }, { 24, 31, 128 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(tcp_data_offset(cases[i].header, cases[i].pda), cases[i].offset);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		on_both(in_order),
		on_both(in_pieces),
		on_both(waits_by_sending),
		on_both(dropped),
		on_both(dropped_idle),
		on_both(stopped),
		on_both(peer_gone),
		on_both(held_later),
		on_both(held_much_later),
		on_both(not_held_while_full),
		on_both(not_held_when_stopped),
		cmocka_unit_test(data_offset),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
