/* test_fabric.c - the fabric itself: that it does what adapters do, and refuses what they refuse.
 *
 * What is proven here is what the tests of the target and of the host stand on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric_end.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const struct rdma_verbs *const v = &fabric_verbs;
static struct fabric_end a, b; /* @a connects, @b accepts */
static unsigned misuses;
static char misuse[200];

static void on_misuse(const char *what)
{
	misuses++;
	snprintf(misuse, sizeof(misuse), "%s", what);
}

static int set_up(void **state)
{
	fabric_begin();
	misuses = 0;
	fabric_end_open(&a);
	fabric_end_open(&b);
	return 0;
}

static int tear_down(void **state)
{
	fabric_end_close(&a);
	fabric_end_close(&b);
	fabric_end();
	return 0;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static enum ibv_qp_state state_of(const struct fabric_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(v->query_qp(end->id->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* --- connections -------------------------------------------------------------------------------- */

static void test_connect(void **state)
{
	fabric_end_listen(&b, "127.0.0.1", 0);
	assert_ptr_equal(b.listener->verbs, fabric_context("fake0"));
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	assert_ptr_equal(a.id->verbs, fabric_context("fake0"));
	assert_int_equal(a.id->port_num, 1);
	assert_int_equal(a.id->route.path_rec->mtu, IBV_MTU_1024);
	fabric_end_qp(&a);
	fabric_end_connect(&a, "hello", 5);
	assert_true(fabric_end_quiet(&a));

	fabric_end_request(&b);
	assert_int_equal(b.event.param.conn.private_data_len, 56);
	assert_memory_equal(b.data, "hello\0\0\0", 8);
	assert_ptr_equal(b.event.listen_id, b.listener);
	assert_ptr_equal(b.id->context, &b);
	assert_ptr_equal(b.id->verbs, fabric_context("fake0"));
	assert_int_equal(rdma_get_dst_port(b.id), rdma_get_src_port(a.id));
	assert_ptr_equal(fabric_peer_id(a.id), b.id);
	fabric_end_qp(&b);
	fabric_end_accept(&b, "welcome", 7);
	/* The one that accepted works at once, the one that connected when it knows. */
	assert_int_equal(state_of(&b), IBV_QPS_RTS);
	assert_int_equal(state_of(&a), IBV_QPS_INIT);
	assert_int_equal(fabric_end_send(&a, 1, 0, 1), EINVAL);
	assert_true(fabric_end_quiet(&b));

	fabric_end_expect(&a, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(a.event.param.conn.private_data_len, 196);
	assert_memory_equal(a.data, "welcome", 8);
	assert_int_equal(state_of(&a), IBV_QPS_RTS);
	fabric_end_expect(&b, RDMA_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(fabric_peer(a.id->qp), b.id->qp);
}

/* What is sent to an end that does not know yet waits for it. */
static void test_early_send(void **state)
{
	fabric_end_listen(&b, "127.0.0.1", 0);
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_qp(&a);
	fabric_end_recv(&a, 0);
	fabric_end_connect(&a, NULL, 0);
	fabric_end_request(&b);
	fabric_end_qp(&b);
	fabric_end_accept(&b, NULL, 0);
	assert_int_equal(fabric_end_send(&b, 1, 0, 10), 0);
	assert_true(fabric_end_idle(&a) && fabric_end_idle(&b));
	fabric_end_expect(&a, RDMA_CM_EVENT_ESTABLISHED);
	fabric_end_done(&b, 1, IBV_WC_SUCCESS);
	fabric_end_done(&a, 0, IBV_WC_SUCCESS);
}

/* ... and the passive end may get its first message before its event. */
static void test_late_established(void **state)
{
	fabric_delay(RDMA_CM_EVENT_ESTABLISHED, true);
	fabric_end_listen(&b, "127.0.0.1", 0);
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_qp(&a);
	fabric_end_connect(&a, NULL, 0);
	fabric_end_request(&b);
	fabric_end_qp(&b);
	fabric_end_recv(&b, 3);
	fabric_end_accept(&b, NULL, 0);
	fabric_end_expect(&a, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(fabric_end_send(&a, 1, 0, 10), 0);
	fabric_end_done(&b, 3, IBV_WC_SUCCESS);
	assert_true(fabric_end_quiet(&b));
	fabric_deliver();
	fabric_end_expect(&b, RDMA_CM_EVENT_ESTABLISHED);
}

struct way {
	const char *listen, *to, *map;
	enum rdma_cm_event_type answer;
	int status;
};

static const struct way ways[] = {
	{ "127.0.0.1", "127.0.0.1", NULL, RDMA_CM_EVENT_ESTABLISHED, 0 },
	{ "0.0.0.0", "127.0.0.1", NULL, RDMA_CM_EVENT_ESTABLISHED, 0 },
	{ "0.0.0.0", "127.8.9.1", NULL, RDMA_CM_EVENT_ESTABLISHED, 0 },
	{ "::", "::1", NULL, RDMA_CM_EVENT_ESTABLISHED, 0 },
	{ "::", "127.0.0.1", NULL, RDMA_CM_EVENT_ESTABLISHED, 0 },
	{ "::1", "::1", NULL, RDMA_CM_EVENT_ESTABLISHED, 0 },
	{ "0.0.0.0", "10.0.0.1", "10.0.0.1", RDMA_CM_EVENT_ESTABLISHED, 0 },
	{ "127.0.0.2", "127.0.0.1", NULL, RDMA_CM_EVENT_REJECTED, 8 },
	{ "0.0.0.0", "::1", NULL, RDMA_CM_EVENT_REJECTED, 8 },
	{ "127.0.0.2", "127.0.0.1", "127.0.0.1", RDMA_CM_EVENT_REJECTED, -ECONNREFUSED },
};

static void test_ways(void **state)
{
	for (unsigned i = 0; i < COUNT(ways); i++) {
		const struct way *w = &ways[i];

		if (w->map)
			fabric_map(w->map, "iwarp0");
		fabric_end_listen(&b, w->listen, 4420);
		fabric_end_resolve(&a, w->to, 4420);
		fabric_end_connect(&a, "x", 1);
		if (w->answer == RDMA_CM_EVENT_ESTABLISHED) {
			fabric_end_request(&b);
			assert_ptr_equal(b.id->verbs, a.id->verbs);
			fabric_end_accept(&b, NULL, 0);
		}
		fabric_end_expect(&a, w->answer);
		assert_int_equal(a.event.status, w->status);
		tear_down(state);
		set_up(state);
	}
}

static void test_bad_ways(void **state)
{
	static const struct {
		enum rdma_cm_event_type fate;
		int status;
	} fates[] = { { RDMA_CM_EVENT_ADDR_ERROR, -ENODEV },
		      { RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT },
		      { RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT },
		      { RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL } };
	struct sockaddr_in dst = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000009) };
	struct rdma_cm_id *id;

	for (unsigned i = 0; i < COUNT(fates); i++) {
		fabric_path("127.0.0.9", fates[i].fate, fates[i].status);
		assert_return_code(v->create_id(a.channel, &id, NULL, RDMA_PS_TCP), errno);
		assert_return_code(v->resolve_addr(id, NULL, (struct sockaddr *)&dst, 1), errno);
		fabric_end_take(&a);
		if (a.event.event == RDMA_CM_EVENT_ADDR_RESOLVED) {
			assert_return_code(v->resolve_route(id, 1), errno);
			fabric_end_take(&a);
		}
		if (a.event.event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
			assert_return_code(v->connect(id, &a.param), errno);
			fabric_end_take(&a);
		}
		assert_int_equal(a.event.event, fates[i].fate);
		assert_int_equal(a.event.status, fates[i].status);
		v->destroy_id(id);
	}
	/* An address that no adapter has. */
	dst.sin_addr.s_addr = htonl(0x0a000001);
	assert_return_code(v->create_id(a.channel, &id, NULL, RDMA_PS_TCP), errno);
	assert_return_code(v->resolve_addr(id, NULL, (struct sockaddr *)&dst, 1), errno);
	fabric_end_expect(&a, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(v->bind_addr(id, (struct sockaddr *)&dst), -1);
	v->destroy_id(id);
}

static void test_ports(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(4420) };
	struct rdma_cm_id *id;

	fabric_end_listen(&b, "127.0.0.1", 4420);
	assert_return_code(v->create_id(a.channel, &id, NULL, RDMA_PS_TCP), errno);
	assert_int_equal(v->bind_addr(id, (struct sockaddr *)&any), -1);
	assert_int_equal(errno, EADDRINUSE);
	any.sin_port = 0;
	assert_return_code(v->bind_addr(id, (struct sockaddr *)&any), errno);
	assert_int_not_equal(rdma_get_src_port(id), 0);
	assert_null(id->verbs);
	v->destroy_id(id);
}

static void test_reject(void **state)
{
	fabric_end_listen(&b, "127.0.0.1", 0);
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_connect(&a, NULL, 0);
	fabric_end_request(&b);
	assert_return_code(v->reject(b.id, "no", 2), errno);
	fabric_end_expect(&a, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(a.event.status, 28);
	assert_int_equal(a.event.param.conn.private_data_len, 148);
	assert_string_equal(a.data, "no");
}

/* Requests that nobody took go with their listener. */
static void test_forgotten_request(void **state)
{
	fabric_end_listen(&b, "127.0.0.1", 0);
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_connect(&a, NULL, 0);
	assert_int_equal(fabric_counts().ids, 3);
	v->destroy_id(b.listener);
	b.listener = NULL;
	assert_int_equal(fabric_counts().ids, 1);
	fabric_end_expect(&a, RDMA_CM_EVENT_REJECTED);
}

/* The one that asked is gone when it is accepted. */
static void test_lost_request(void **state)
{
	fabric_end_listen(&b, "127.0.0.1", 0);
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_connect(&a, NULL, 0);
	v->destroy_id(a.id);
	a.id = NULL;
	fabric_end_request(&b);
	fabric_end_accept(&b, NULL, 0);
	fabric_end_expect(&b, RDMA_CM_EVENT_UNREACHABLE);
}

static void test_disconnect(void **state)
{
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_recv(&a, 0);
	fabric_end_recv(&b, 0);
	assert_return_code(v->disconnect(a.id), errno);
	fabric_end_done(&a, 0, IBV_WC_WR_FLUSH_ERR);
	fabric_end_expect(&a, RDMA_CM_EVENT_DISCONNECTED);
	fabric_end_expect(&a, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	fabric_end_expect(&b, RDMA_CM_EVENT_DISCONNECTED);
	/* The other QP is its owner's to end. */
	assert_int_equal(state_of(&b), IBV_QPS_RTS);
	assert_true(fabric_end_idle(&b));
	assert_return_code(v->disconnect(b.id), errno);
	fabric_end_done(&b, 0, IBV_WC_WR_FLUSH_ERR);
	fabric_end_expect(&b, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_true(fabric_end_quiet(&a) && fabric_end_quiet(&b));
}

static void test_disconnect_iwarp(void **state)
{
	fabric_map("127.0.0.1", "iwarp0");
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_recv(&b, 0);
	assert_return_code(v->disconnect(a.id), errno);
	fabric_end_done(&b, 0, IBV_WC_WR_FLUSH_ERR);
	fabric_end_expect(&b, RDMA_CM_EVENT_DISCONNECTED);
	assert_true(fabric_end_quiet(&b));
}

static void test_injected_events(void **state)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_DISCONNECTED,   RDMA_CM_EVENT_DISCONNECTED,
		RDMA_CM_EVENT_TIMEWAIT_EXIT,  RDMA_CM_EVENT_ADDR_CHANGE,
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_UNREACHABLE,
	};

	fabric_end_pair(&a, &b, "127.0.0.1");
	for (unsigned i = 0; i < COUNT(types); i++)
		fabric_event(b.id, types[i], -5);
	for (unsigned i = 0; i < COUNT(types); i++) {
		fabric_end_expect(&b, types[i]);
		assert_int_equal(b.event.status, -5);
	}
	assert_int_equal(state_of(&b), IBV_QPS_RTS);
	assert_true(fabric_end_quiet(&a));
}

static void test_migrate(void **state)
{
	struct rdma_event_channel *other = v->create_event_channel();
	struct rdma_event_channel *mine = b.channel;

	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_event(b.id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_true(readable(mine->fd));
	assert_return_code(v->migrate_id(b.id, other), errno);
	assert_false(readable(mine->fd));
	assert_true(readable(other->fd));
	assert_ptr_equal(b.id->channel, other);
	b.channel = other;
	fabric_end_expect(&b, RDMA_CM_EVENT_ADDR_CHANGE);
	v->migrate_id(b.id, mine);
	v->destroy_event_channel(other);
	b.channel = mine;
}

static void test_unacknowledged(void **state)
{
	struct rdma_cm_event *event;

	fabric_on_misuse(on_misuse);
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_event(b.id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	assert_return_code(v->get_cm_event(b.channel, &event), errno);
	assert_int_equal(v->destroy_id(b.id), -1);
	assert_int_equal(v->migrate_id(b.id, a.channel), -1);
	assert_int_equal(misuses, 2);
	v->ack_cm_event(event);
}

static void test_removal(void **state)
{
	struct ibv_async_event event;

	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_remove("fake0");
	fabric_end_expect(&a, RDMA_CM_EVENT_DEVICE_REMOVAL);
	fabric_end_expect(&b, RDMA_CM_EVENT_DEVICE_REMOVAL);
	assert_ptr_equal(b.event.id, b.listener);
	fabric_end_expect(&b, RDMA_CM_EVENT_DEVICE_REMOVAL);
	assert_int_equal(v->get_async_event(a.id->verbs, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	v->ack_async_event(&event);
	assert_int_equal(fabric_end_send(&a, 1, 0, 1), EIO);
	assert_null(v->reg_mr(a.pd, a.memory, 1, 0));
}

/* --- work --------------------------------------------------------------------------------------- */

static void test_send(void **state)
{
	struct ibv_wc wc;

	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_recv(&b, 5);
	memcpy(a.memory, "some bytes", 10);
	assert_int_equal(fabric_end_send(&a, 77, 0, 10), 0);
	wc = fabric_end_done(&a, 77, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	wc = fabric_end_done(&b, 5, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 10);
	assert_int_equal(wc.wc_flags, 0);
	assert_memory_equal(fabric_end_received(&b, 5), "some bytes", 10);
}

static void test_inline(void **state)
{
	char data[65] = "from the stack, without a key";
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = 64 };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED };

	a.init.cap.max_inline_data = 64;
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_manual(true);
	fabric_end_recv(&b, 0);
	assert_int_equal(fabric_end_post(&a, &wr), 0);
	memset(data, 'x', sizeof(data)); /* it was taken when it was posted */
	assert_true(fabric_step(NULL));
	fabric_end_done(&b, 0, IBV_WC_SUCCESS);
	assert_string_equal(fabric_end_received(&b, 0), "from the stack, without a key");
	sge.length = 65;
	assert_int_equal(fabric_end_post(&a, &wr), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	sge.length = 1;
	assert_int_equal(fabric_end_post(&a, &wr), EINVAL);
}

static void test_read_write(void **state)
{
	struct fabric_counts before;

	fabric_end_pair(&a, &b, "127.0.0.1");
	before = fabric_counts();
	memset(a.memory, 'a', 100);
	assert_int_equal(fabric_end_move(&a, IBV_WR_RDMA_WRITE, 1, 0, 100,
					 (uintptr_t)b.memory + 1000, b.mr->rkey),
			 0);
	assert_int_equal(fabric_end_done(&a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
	assert_memory_equal(b.memory + 1000, a.memory, 100);
	memset(b.memory, 'b', 50);
	assert_int_equal(fabric_end_move(&a, IBV_WR_RDMA_READ, 2, 200, 50, (uintptr_t)b.memory,
					 b.mr->rkey),
			 0);
	assert_int_equal(fabric_end_done(&a, 2, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
	assert_memory_equal(a.memory + 200, b.memory, 50);
	assert_true(fabric_end_idle(&b));
	assert_int_equal(fabric_counts().posts, before.posts + 2);
	assert_int_equal(fabric_counts().reads, 1);
	assert_int_equal(fabric_counts().writes, 1);
	assert_int_equal(fabric_counts().bytes, 150);
}

/* Three pieces here, four there, none alike; the second request carries the first's completion. */
static void test_gather_and_chain(void **state)
{
	struct ibv_sge from[3], to[4];
	struct ibv_recv_wr recv = { .sg_list = to, .num_sge = 4 }, *bad;
	struct ibv_send_wr wr[2] = {
		{ .wr_id = 1,
		  .next = &wr[1],
		  .sg_list = from,
		  .num_sge = 1,
		  .opcode = IBV_WR_RDMA_WRITE },
		{ .wr_id = 2,
		  .sg_list = from,
		  .num_sge = 3,
		  .opcode = IBV_WR_SEND,
		  .send_flags = IBV_SEND_SIGNALED },
	};

	a.init.cap.max_send_sge = b.init.cap.max_recv_sge = 4;
	fabric_end_pair(&a, &b, "127.0.0.1");
	for (unsigned i = 0; i < 60; i++)
		a.memory[i] = (char)i;
	for (unsigned i = 0; i < 3; i++)
		from[i] = (struct ibv_sge){ (uintptr_t)a.memory + 20 * i, 20, a.mr->lkey };
	for (unsigned i = 0; i < 4; i++)
		to[i] = (struct ibv_sge){ (uintptr_t)b.memory + 100 * i, 17, b.mr->lkey };
	assert_int_equal(v->post_recv(b.id->qp, &recv, &bad), 0);
	wr[0].wr.rdma.remote_addr = (uintptr_t)b.memory + 5000;
	wr[0].wr.rdma.rkey = b.mr->rkey;
	assert_int_equal(fabric_end_post(&a, wr), 0);
	fabric_end_done(&a, 2, IBV_WC_SUCCESS);
	assert_true(fabric_end_idle(&a));
	assert_int_equal(fabric_end_done(&b, 0, IBV_WC_SUCCESS).byte_len, 60);
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(b.memory[i / 17 * 100 + i % 17], i);
	assert_memory_equal(b.memory + 5000, a.memory, 20);
	assert_int_equal(fabric_counts().posts, 1);
}

static void test_invalidate(void **state)
{
	struct ibv_mr *mr;
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	fabric_end_pair(&a, &b, "127.0.0.1");
	mr = v->reg_mr(b.pd, b.memory, 100, END_ALL_RIGHTS);
	fabric_end_recv(&b, 0);
	wr.invalidate_rkey = mr->rkey;
	assert_int_equal(fabric_end_post(&a, &wr), 0);
	fabric_end_done(&a, 1, IBV_WC_SUCCESS);
	wc = fabric_end_done(&b, 0, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, mr->rkey);
	fabric_end_move(&a, IBV_WR_RDMA_READ, 2, 0, 10, (uintptr_t)b.memory, mr->rkey);
	fabric_end_done(&a, 2, IBV_WC_REM_ACCESS_ERR);
	v->dereg_mr(mr);
}

/* --- what goes wrong ---------------------------------------------------------------------------- */

static void test_rnr(void **state)
{
	fabric_end_pair(&a, &b, "127.0.0.1");
	assert_int_equal(fabric_end_send(&a, 1, 0, 10), 0);
	assert_int_equal(fabric_end_send(&a, 2, 0, 10), 0);
	assert_true(fabric_end_idle(&a));
	assert_int_equal(fabric_counts().rnr, 1);
	fabric_end_recv(&b, 0);
	fabric_end_done(&a, 1, IBV_WC_SUCCESS);
	assert_true(fabric_end_idle(&a));
	assert_int_equal(fabric_counts().rnr, 2);
	fabric_end_recv(&b, 1);
	fabric_end_done(&a, 2, IBV_WC_SUCCESS);
}

static void test_rnr_exceeded(void **state)
{
	b.param.rnr_retry_count = 2; /* for those who send to b */
	fabric_end_pair(&a, &b, "127.0.0.1");
	assert_int_equal(fabric_end_send(&a, 1, 0, 10), 0);
	assert_false(fabric_step(a.id->qp));
	assert_false(fabric_step(a.id->qp));
	assert_true(fabric_end_idle(&a));
	assert_true(fabric_step(a.id->qp));
	fabric_end_done(&a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(state_of(&a), IBV_QPS_ERR);
}

struct wrong {
	const char *what;
	enum ibv_wr_opcode opcode;
	int rights; /* of the memory there */
	uint64_t offset;
	uint32_t len;
	bool lkey, foreign; /* names it by its lkey; it is of another PD */
	enum ibv_wc_status status;
};

static const struct wrong wrongs[] = {
	{ "read, allowed", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, 0, 100, 0, 0, IBV_WC_SUCCESS },
	{ "read to the end", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, 60, 40, 0, 0,
	  IBV_WC_SUCCESS },
	{ "read beyond", IBV_WR_RDMA_READ, END_ALL_RIGHTS, 60, 41, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "read before", IBV_WR_RDMA_READ, END_ALL_RIGHTS, -1ull, 2, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "read wrapping", IBV_WR_RDMA_READ, END_ALL_RIGHTS, -50ull, 99, 0, 0,
	  IBV_WC_REM_ACCESS_ERR },
	{ "no right to read", IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0,
	  1, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "no right to write", IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	  0, 1, 0, 0, IBV_WC_REM_ACCESS_ERR },
	{ "an lkey", IBV_WR_RDMA_WRITE, END_ALL_RIGHTS, 0, 1, 1, 0, IBV_WC_REM_ACCESS_ERR },
	{ "another PD's", IBV_WR_RDMA_WRITE, END_ALL_RIGHTS, 0, 1, 0, 1, IBV_WC_REM_ACCESS_ERR },
	{ "nothing, nowhere", IBV_WR_RDMA_WRITE, 0, 500, 0, 1, 1, IBV_WC_SUCCESS },
};

static void test_rights(void **state)
{
	for (unsigned i = 0; i < COUNT(wrongs); i++) {
		const struct wrong *w = &wrongs[i];
		struct ibv_mr *mr;

		fabric_end_pair(&a, &b, "127.0.0.1");
		fabric_end_recv(&b, 0);
		mr = v->reg_mr(w->foreign ? a.pd : b.pd, b.memory, 100, w->rights);
		assert_non_null(mr);
		fabric_end_move(&a, w->opcode, 9, 0, w->len, (uintptr_t)b.memory + w->offset,
				w->lkey ? mr->lkey : mr->rkey);
		fabric_end_done(&a, 9, w->status);
		/* An intruder costs both ends the connection. */
		if (w->status != IBV_WC_SUCCESS)
			fabric_end_done(&b, 0, IBV_WC_WR_FLUSH_ERR);
		v->dereg_mr(mr);
		tear_down(state);
		set_up(state);
	}
}

static void test_local_rights(void **state)
{
	struct ibv_sge sge = { .length = 10 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_mr *mr;

	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_recv(&b, 0);
	assert_null(v->reg_mr(a.pd, a.memory, 10, IBV_ACCESS_REMOTE_WRITE));
	mr = v->reg_mr(a.pd, a.memory, 10, 0);
	sge.addr = (uintptr_t)a.memory + 1;
	sge.lkey = mr->lkey;
	assert_int_equal(fabric_end_post(&a, &wr), 0);
	fabric_end_done(&a, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(state_of(&a), IBV_QPS_ERR);
	v->dereg_mr(mr);
}

static void test_too_long(void **state)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 4, .sg_list = &sge, .num_sge = 1 }, *bad;

	fabric_end_pair(&a, &b, "127.0.0.1");
	sge = (struct ibv_sge){ (uintptr_t)b.memory, 9, b.mr->lkey };
	assert_int_equal(v->post_recv(b.id->qp, &wr, &bad), 0);
	fabric_end_send(&a, 1, 0, 10);
	fabric_end_done(&b, 4, IBV_WC_LOC_LEN_ERR);
	fabric_end_done(&a, 1, IBV_WC_REM_INV_REQ_ERR);
}

static void test_flush(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr quiet = { .wr_id = 2, .opcode = IBV_WR_SEND };

	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_recv(&a, 0);
	fabric_end_send(&a, 1, 0, 1); /* nobody receives it */
	fabric_end_post(&a, &quiet);
	assert_int_equal(v->modify_qp(a.id->qp, &attr, IBV_QP_STATE), 0);
	fabric_end_done(&a, 1, IBV_WC_WR_FLUSH_ERR);
	fabric_end_done(&a, 2, IBV_WC_WR_FLUSH_ERR);
	fabric_end_done(&a, 0, IBV_WC_WR_FLUSH_ERR);
	/* What is posted from now on is flushed as well. */
	fabric_end_recv(&a, 3);
	fabric_end_done(&a, 3, IBV_WC_WR_FLUSH_ERR);
	fabric_end_send(&a, 4, 0, 1);
	fabric_end_done(&a, 4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(fabric_counts().flushed, 5);
	/* Its peer hears nothing more. */
	fabric_end_recv(&b, 0);
	fabric_end_send(&b, 5, 0, 1);
	fabric_end_done(&b, 5, IBV_WC_RETRY_EXC_ERR);
	fabric_end_done(&b, 0, IBV_WC_WR_FLUSH_ERR);
}

static void test_send_slots(void **state)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr[4] = { 0 }, *bad;

	a.init.cap.max_send_wr = 3;
	fabric_end_pair(&a, &b, "127.0.0.1");
	for (unsigned i = 0; i < 4; i++) {
		fabric_end_recv(&b, i);
		wr[i] = (struct ibv_send_wr){ .wr_id = i,
					      .next = i < 3 ? &wr[i + 1] : NULL,
					      .sg_list = &sge,
					      .opcode = IBV_WR_SEND };
	}
	wr[2].send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(v->post_send(a.id->qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[3]);
	/* All three were sent, but that is known when a completion says so. */
	assert_int_equal(fabric_counts().sends, 3);
	assert_int_equal(v->post_send(a.id->qp, &wr[3], &bad), ENOMEM);
	fabric_end_done(&a, 2, IBV_WC_SUCCESS);
	assert_int_equal(v->post_send(a.id->qp, &wr[3], &bad), 0);
}

static void test_limits(void **state)
{
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_device_attr attr;

	fabric_device("fake0")->attr.max_qp_wr = 40;
	a.init.cap.max_send_wr = a.init.cap.max_recv_wr = 2;
	b.init.cap.max_send_wr = b.init.cap.max_recv_wr = 40;
	fabric_end_pair(&a, &b, "127.0.0.1");
	assert_int_equal(v->query_device(a.id->verbs, &attr), 0);
	assert_int_equal(attr.max_qp_wr, 40);
	assert_int_equal(v->post_recv(a.id->qp, &wr, &bad), 0);
	assert_int_equal(v->post_recv(a.id->qp, &wr, &bad), 0);
	assert_int_equal(v->post_recv(a.id->qp, &wr, &bad), ENOMEM);
	wr.num_sge = 5;
	assert_int_equal(v->post_recv(b.id->qp, &wr, &bad), EINVAL);
	init = b.init;
	v->destroy_qp(b.id);
	init.cap.max_send_wr = 41;
	assert_int_equal(v->create_qp(b.id, b.pd, &init), -1);
	init.cap.max_send_wr = 40;
	init.cap.max_inline_data = 257;
	assert_int_equal(v->create_qp(b.id, b.pd, &init), -1);
	init.cap.max_inline_data = 256;
	assert_int_equal(v->create_qp(b.id, b.pd, &init), 0);
	assert_null(v->create_cq(a.id->verbs, 1 << 21, NULL, NULL, 0));
}

static void test_busy(void **state)
{
	fabric_end_pair(&a, &b, "127.0.0.1");
	assert_int_equal(v->dealloc_pd(a.pd), EBUSY);
	assert_int_equal(v->destroy_cq(a.cq), EBUSY);
	assert_int_equal(v->destroy_comp_channel(a.comp), EBUSY);
}

/* --- receives that are shared ------------------------------------------------------------------- */

static void test_srq(void **state)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 2, .max_sge = 1 } };
	struct ibv_async_event event;
	struct ibv_recv_wr wr = { .wr_id = 70 }, *bad;
	struct ibv_pd *pd = v->alloc_pd(fabric_context("fake0"));
	struct ibv_srq *srq = v->create_srq(pd, &init);

	b.init.srq = srq;
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_send(&a, 1, 0, 0);
	assert_int_equal(fabric_counts().rnr, 1);
	assert_int_equal(v->post_recv(b.id->qp, &wr, &bad), EINVAL);
	assert_int_equal(v->post_srq_recv(srq, &wr, &bad), 0);
	fabric_end_done(&b, 70, IBV_WC_SUCCESS);
	assert_int_equal(v->post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(v->post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(v->post_srq_recv(srq, &wr, &bad), ENOMEM);
	assert_int_equal(fabric_receives(b.id->qp), 2);
	/* They outlive the QP. */
	assert_return_code(v->disconnect(b.id), errno);
	assert_true(fabric_end_idle(&b));
	assert_int_equal(fabric_receives(b.id->qp), 2);
	assert_int_equal(v->get_async_event(b.id->verbs, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, b.id->qp);
	v->ack_async_event(&event);
	assert_int_equal(v->destroy_srq(srq), EBUSY);
	fabric_end_drop_qp(&b);
	assert_int_equal(v->destroy_srq(srq), 0);
	assert_int_equal(v->dealloc_pd(pd), 0);
}

/* --- completion queues -------------------------------------------------------------------------- */

static void take_cq_event(struct fabric_end *end)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(v->get_cq_event(end->comp, &cq, &context), 0);
	assert_ptr_equal(cq, end->cq);
	assert_ptr_equal(context, end);
	v->ack_cq_events(cq, 1);
}

static void test_arm(void **state)
{
	struct ibv_cq *cq;
	void *context;

	fabric_end_pair(&a, &b, "127.0.0.1");
	for (unsigned i = 0; i < 4; i++)
		fabric_end_recv(&b, i);
	/* Not armed: none. */
	fabric_end_send(&a, 0, 0, 1);
	assert_false(readable(b.comp->fd));
	/* Armed behind a completion: none for that one, one for the next, and no more. */
	assert_int_equal(v->req_notify_cq(b.cq, 0), 0);
	assert_false(readable(b.comp->fd));
	fabric_end_send(&a, 1, 0, 1);
	assert_true(readable(b.comp->fd));
	fabric_end_send(&a, 2, 0, 1);
	take_cq_event(&b);
	assert_false(readable(b.comp->fd));
	assert_int_equal(v->get_cq_event(b.comp, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	/* Only for those who ask for it. */
	assert_int_equal(v->req_notify_cq(b.cq, 1), 0);
	fabric_end_send(&a, 3, 0, 1);
	assert_false(readable(b.comp->fd));
}

static void test_overrun(void **state)
{
	struct ibv_cq *small;

	fabric_on_misuse(on_misuse);
	small = v->create_cq(fabric_context("fake0"), 2, NULL, NULL, 0);
	b.init.recv_cq = small;
	fabric_end_pair(&a, &b, "127.0.0.1");
	for (unsigned i = 0; i < 3; i++) {
		fabric_end_recv(&b, i);
		assert_int_equal(misuses, 0);
		fabric_end_send(&a, i, 0, 1);
	}
	assert_int_equal(misuses, 1);
	assert_string_equal(misuse, "a CQ of 2 entries is overrun");
	fabric_end_drop_qp(&b);
	v->destroy_cq(small);
}

/* Completions of a QP that is gone: some adapters take them back, some do not. */
static void test_stale(void **state)
{
	for (int iwarp = 0; iwarp < 2; iwarp++) {
		struct ibv_cq *cq;
		struct ibv_wc wc;

		fabric_map("127.0.0.1", iwarp ? "iwarp0" : "fake0");
		cq = v->create_cq(fabric_context(iwarp ? "iwarp0" : "fake0"), 8, NULL, NULL, 0);
		b.init.recv_cq = cq;
		fabric_end_pair(&a, &b, "127.0.0.1");
		fabric_end_recv(&b, 0);
		fabric_end_send(&a, 0, 0, 1);
		fabric_end_drop_qp(&b);
		assert_int_equal(v->poll_cq(cq, 1, &wc), iwarp);
		v->destroy_cq(cq);
		tear_down(state);
		set_up(state);
	}
}

/* --- iWARP -------------------------------------------------------------------------------------- */

static void test_iwarp(void **state)
{
	struct ibv_sge sge[2] = { 0 };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_RDMA_READ
	};
	struct ibv_mr *mr;

	fabric_map("127.0.0.1", "iwarp0");
	fabric_end_pair(&a, &b, "127.0.0.1");
	assert_int_equal(a.event.param.conn.private_data_len, 7);
	assert_int_equal(a.id->verbs->device->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(fabric_end_post(&a, &wr), EINVAL); /* one SGE */
	fabric_end_move(&a, IBV_WR_RDMA_READ, 2, 0, 10, (uintptr_t)b.memory, b.mr->rkey);
	fabric_end_done(&a, 2, IBV_WC_SUCCESS);
	/* Where READ puts the data, remote writes must be allowed. */
	mr = v->reg_mr(a.pd, a.memory, 10, IBV_ACCESS_LOCAL_WRITE);
	sge[0] = (struct ibv_sge){ (uintptr_t)a.memory, 10, mr->lkey };
	wr.num_sge = 1;
	wr.wr.rdma.remote_addr = (uintptr_t)b.memory;
	wr.wr.rdma.rkey = b.mr->rkey;
	assert_int_equal(fabric_end_post(&a, &wr), 0);
	fabric_end_done(&a, 1, IBV_WC_LOC_PROT_ERR);
	v->dereg_mr(mr);
}

/* --- the test decides --------------------------------------------------------------------------- */

static void test_manual(void **state)
{
	struct fabric_end c, d;

	fabric_end_open(&c);
	fabric_end_open(&d);
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_pair(&c, &d, "127.0.0.2");
	fabric_manual(true);
	memset(b.memory, 'b', 100);
	memset(d.memory, 'd', 100);
	fabric_end_move(&a, IBV_WR_RDMA_READ, 1, 0, 100, (uintptr_t)b.memory, b.mr->rkey);
	fabric_end_move(&c, IBV_WR_RDMA_READ, 2, 0, 100, (uintptr_t)d.memory, d.mr->rkey);
	assert_int_equal(fabric_pending(a.id->qp), 1);
	assert_int_equal(fabric_next(a.id->qp)->opcode, IBV_WR_RDMA_READ);
	assert_true(fabric_end_idle(&a) && fabric_end_idle(&c));
	/* The later one first. */
	assert_true(fabric_step(c.id->qp));
	fabric_end_done(&c, 2, IBV_WC_SUCCESS);
	assert_true(fabric_part(a.id->qp, 30));
	assert_int_equal(a.memory[29], 'b');
	assert_int_equal(a.memory[30], 0);
	assert_true(fabric_end_idle(&a));
	assert_true(fabric_step(NULL));
	fabric_end_done(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(a.memory[99], 'b');
	assert_false(fabric_step(NULL));
	fabric_end_close(&c);
	fabric_end_close(&d);
}

static void test_hold(void **state)
{
	fabric_hold(NULL, 1u << IBV_WR_RDMA_READ);
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_recv(&b, 0);
	fabric_end_recv(&b, 1);
	fabric_end_send(&a, 1, 0, 1);
	fabric_end_move(&a, IBV_WR_RDMA_READ, 2, 0, 100, (uintptr_t)b.memory, b.mr->rkey);
	fabric_end_send(&a, 3, 0, 1);
	fabric_end_done(&a, 1, IBV_WC_SUCCESS);
	assert_true(fabric_end_idle(&a));
	fabric_hold(NULL, 0);
	fabric_end_done(&a, 2, IBV_WC_SUCCESS);
	fabric_end_done(&a, 3, IBV_WC_SUCCESS);
}

/* The peer goes away in the middle of a READ, and nobody says so. */
static void test_cut(void **state)
{
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_cut(b.id->qp);
	fabric_end_move(&a, IBV_WR_RDMA_READ, 1, 0, 100, (uintptr_t)b.memory, b.mr->rkey);
	fabric_end_send(&a, 2, 0, 1);
	assert_false(fabric_step(a.id->qp));
	v->disconnect(b.id);
	assert_true(fabric_end_quiet(&a) && fabric_end_idle(&a));
	assert_true(fabric_time_out(a.id->qp));
	fabric_end_done(&a, 1, IBV_WC_RETRY_EXC_ERR);
	fabric_end_done(&a, 2, IBV_WC_WR_FLUSH_ERR);
}

static void test_fail_next(void **state)
{
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_recv(&a, 0);
	fabric_end_recv(&b, 0);
	fabric_end_recv(&b, 1);
	fabric_fail_next(b.id->qp, true, IBV_WC_LOC_PROT_ERR);
	fabric_end_send(&a, 1, 0, 1);
	fabric_end_done(&b, 0, IBV_WC_LOC_PROT_ERR);
	fabric_end_done(&b, 1, IBV_WC_WR_FLUSH_ERR);
	fabric_end_done(&a, 1, IBV_WC_REM_OP_ERR);
	fabric_end_done(&a, 0, IBV_WC_WR_FLUSH_ERR);
}

static void test_fail_send(void **state)
{
	fabric_end_pair(&a, &b, "127.0.0.1");
	fabric_end_recv(&b, 0);
	fabric_fail_next(a.id->qp, false, IBV_WC_LOC_QP_OP_ERR);
	fabric_end_send(&a, 1, 0, 1);
	fabric_end_done(&a, 1, IBV_WC_LOC_QP_OP_ERR);
	assert_true(fabric_end_idle(&b));
}

static void test_fail_calls(void **state)
{
	struct ibv_pd *pd = v->alloc_pd(fabric_context("fake0"));
	struct ibv_mr *mr;

	fabric_fail("reg_mr", 1, 2, ENOMEM);
	fabric_fail("create_event_channel", 0, 1, EMFILE);
	mr = v->reg_mr(pd, a.memory, 1, 0);
	assert_non_null(mr);
	for (int i = 0; i < 2; i++) {
		assert_null(v->reg_mr(pd, a.memory, 1, 0));
		assert_int_equal(errno, ENOMEM);
	}
	v->dereg_mr(mr);
	mr = v->reg_mr(pd, a.memory, 1, 0);
	assert_non_null(mr);
	v->dereg_mr(mr);
	v->dealloc_pd(pd);
	assert_null(v->create_event_channel());
	assert_int_equal(errno, EMFILE);
}

/* --- two threads -------------------------------------------------------------------------------- */

enum { ECHOES = 500 };

static void make_blocking(struct fabric_end *end)
{
	assert_return_code(fcntl(end->channel->fd, F_SETFL, 0), errno);
}

/* The next completion, slept for. */
static struct ibv_wc sleep_for(struct fabric_end *end)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	for (;;) {
		if (v->poll_cq(end->cq, 1, &wc) == 1)
			return wc;
		assert_int_equal(v->req_notify_cq(end->cq, 0), 0);
		if (v->poll_cq(end->cq, 1, &wc) == 1)
			return wc;
		assert_int_equal(v->get_cq_event(end->comp, &cq, &context), 0);
		v->ack_cq_events(cq, 1);
	}
}

static void echo(struct fabric_end *end, bool first)
{
	for (unsigned sent = 0, got = 0; got < ECHOES;) {
		struct ibv_wc wc;

		if (first && sent == got) {
			memcpy(end->memory, &sent, sizeof(sent));
			assert_int_equal(fabric_end_send(end, 1000, 0, sizeof(sent)), 0);
			sent++;
		}
		wc = sleep_for(end);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode != IBV_WC_RECV)
			continue;
		assert_memory_equal(fabric_end_received(end, wc.wr_id), &got, sizeof(got));
		fabric_end_recv(end, (unsigned)wc.wr_id);
		if (!first) {
			memcpy(end->memory, &got, sizeof(got));
			assert_int_equal(fabric_end_send(end, 1000, 0, sizeof(got)), 0);
		}
		got++;
	}
}

static void *serve(void *arg)
{
	fabric_end_request(&b);
	fabric_end_qp(&b);
	assert_return_code(fcntl(b.comp->fd, F_SETFL, 0), errno);
	fabric_end_recv(&b, 0);
	fabric_end_accept(&b, NULL, 0);
	fabric_end_expect(&b, RDMA_CM_EVENT_ESTABLISHED);
	echo(&b, false);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread;

	make_blocking(&a);
	make_blocking(&b);
	fabric_end_listen(&b, "127.0.0.1", 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_qp(&a);
	assert_return_code(fcntl(a.comp->fd, F_SETFL, 0), errno);
	fabric_end_recv(&a, 0);
	fabric_end_connect(&a, NULL, 0);
	fabric_end_expect(&a, RDMA_CM_EVENT_ESTABLISHED);
	echo(&a, true);
	pthread_join(thread, NULL);
	assert_int_equal(fabric_counts().recvs, 2 * ECHOES);
}

/* --- the rest ----------------------------------------------------------------------------------- */

static void test_dmabuf(void **state)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);
	struct ibv_mr *mr;
	char byte;

	assert_return_code(ftruncate(fd, 8192), errno);
	fabric_end_pair(&a, &b, "127.0.0.1");
	mr = v->reg_dmabuf_mr(b.pd, 4096, 4096, 0x100000, fd, END_ALL_RIGHTS);
	assert_non_null(mr);
	a.memory[0] = 'g';
	fabric_end_move(&a, IBV_WR_RDMA_WRITE, 1, 0, 1, 0x100007, mr->rkey);
	fabric_end_done(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(pread(fd, &byte, 1, 4096 + 7), 1);
	assert_int_equal(byte, 'g');
	v->dereg_mr(mr);
	fabric_device("fake0")->dmabuf = false;
	assert_null(v->reg_dmabuf_mr(b.pd, 0, 4096, 0, fd, END_ALL_RIGHTS));
	assert_int_equal(errno, EOPNOTSUPP);
	close(fd);
}

static void test_queries(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_gid_entry gid;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	uint8_t tos = 0x68;

	fabric_device("fake0")->port.active_mtu = IBV_MTU_4096;
	fabric_end_listen(&b, "127.0.0.1", 0);
	assert_return_code(v->set_option(b.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1),
			   errno);
	a.param.responder_resources = 1;
	a.param.initiator_depth = 2;
	fabric_end_resolve(&a, "127.0.0.1", fabric_end_port(&b));
	fabric_end_qp(&a);
	fabric_end_connect(&a, NULL, 0);
	fabric_end_request(&b);
	/* What one asks to start is what the other must answer. */
	assert_int_equal(b.event.param.conn.responder_resources, 2);
	assert_int_equal(b.event.param.conn.initiator_depth, 1);
	assert_int_equal(b.event.param.conn.qp_num, a.id->qp->qp_num);
	fabric_end_qp(&b);
	fabric_end_accept(&b, NULL, 0);
	assert_int_equal(v->query_qp(b.id->qp, &attr, IBV_QP_PATH_MTU, &init), 0);
	assert_int_equal(attr.path_mtu, IBV_MTU_4096);
	assert_int_equal(attr.dest_qp_num, a.id->qp->qp_num);
	assert_int_equal(attr.ah_attr.grh.traffic_class, 0x68);
	assert_int_equal(v->query_port(b.id->verbs, 1, &port), 0);
	assert_int_equal(port.active_mtu, IBV_MTU_4096);
	assert_int_equal(v->query_gid(b.id->verbs, 1, attr.ah_attr.grh.sgid_index, &gid), 0);
	assert_int_equal(gid.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_memory_equal(gid.gid.raw, b.id->route.addr.addr.ibaddr.sgid.raw, 16);
	assert_int_equal(v->query_gid(b.id->verbs, 1, 99, &gid), EINVAL);
}

static void test_left(void **state)
{
	struct ibv_pd *pd;

	fabric_end_pair(&a, &b, "127.0.0.1");
	assert_string_equal(fabric_left(), " 3 id(s) 2 event channel(s) 2 PD(s) 4 MR(s) 2 CQ(s)"
					   " 2 completion channel(s) 2 QP(s)");
	tear_down(state);
	fabric_begin();
	assert_string_equal(fabric_left(), "");
	pd = v->alloc_pd(fabric_context("fake0"));
	assert_string_equal(fabric_left(), " 1 PD(s)");
	v->dealloc_pd(pd);
	fabric_end();
	set_up(state);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_connect),
		CASE(test_early_send),
		CASE(test_late_established),
		CASE(test_ways),
		CASE(test_bad_ways),
		CASE(test_ports),
		CASE(test_reject),
		CASE(test_forgotten_request),
		CASE(test_lost_request),
		CASE(test_disconnect),
		CASE(test_disconnect_iwarp),
		CASE(test_injected_events),
		CASE(test_migrate),
		CASE(test_unacknowledged),
		CASE(test_removal),
		CASE(test_send),
		CASE(test_inline),
		CASE(test_read_write),
		CASE(test_gather_and_chain),
		CASE(test_invalidate),
		CASE(test_rnr),
		CASE(test_rnr_exceeded),
		CASE(test_rights),
		CASE(test_local_rights),
		CASE(test_too_long),
		CASE(test_flush),
		CASE(test_send_slots),
		CASE(test_limits),
		CASE(test_busy),
		CASE(test_srq),
		CASE(test_arm),
		CASE(test_overrun),
		CASE(test_stale),
		CASE(test_iwarp),
		CASE(test_manual),
		CASE(test_hold),
		CASE(test_cut),
		CASE(test_fail_next),
		CASE(test_fail_send),
		CASE(test_fail_calls),
		CASE(test_dmabuf),
		CASE(test_queries),
		CASE(test_threads),
		CASE(test_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
