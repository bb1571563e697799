/* test_fabric_conn.c - connections on the fabric: made, refused, ended, moved. */
#include "fabric_case.h"
#include "running.h"

#include <errno.h>
#include <netinet/in.h>

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
	for_each_named(i, ways, listen) {
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

	for_each_row(i, fates) {
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
	for_each_row(i, types)
		fabric_event(b.id, types[i], -5);
	for_each_row(i, types) {
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_connect),    CASE(test_early_send),        CASE(test_late_established),
		CASE(test_ways),       CASE(test_bad_ways),          CASE(test_ports),
		CASE(test_reject),     CASE(test_forgotten_request), CASE(test_lost_request),
		CASE(test_disconnect), CASE(test_disconnect_iwarp),  CASE(test_injected_events),
		CASE(test_migrate),    CASE(test_unacknowledged),    CASE(test_removal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
