/* test_rdma_async_event.c - what an adapter says unasked, and what the RDMA target makes of it:
 * receives that a dying queue pair has taken are waited for; what is broken ends, and nothing else
 * does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rdma_session.h"
#include "transport/rdma/rdma.h"
#include "running.h"

enum { BOTH_ENDS_OF_ADMIN = 2 };

static const struct rdma_verbs *const v = &fabric_verbs;

static int set_up_apart(void **state)
{
	fabric_begin();
	case_start_apart(IP);
	return 0;
}

static int set_up_silent(void **state)
{
	fabric_begin();
	fabric_device("fake0")->never_last = true;
	return session_start();
}

static void check_reads(struct raw *q)
{
	union nvme_sqe read = raw_rw(false, 0, 8);

	raw_keyed(q, &read, 0, 4096);
	assert_int_equal(raw_run(q, &read, 0), 0);
}

static void check_end(struct raw *q, bool ends)
{
	if (ends)
		raw_expect_end(q);
	else
		assert_true(fabric_end_quiet(&q->end));
}

/* --- the last receive ------------------------------------------------------------------------- */

/* The host is gone; the adapter has @taken receives for the queue pair still. */
static struct ibv_qp *leave_behind(unsigned taken)
{
	struct ibv_qp *qp = target_qp(&io);

	fabric_take_ahead(qp, taken);
	raw_close(&io);
	case_turns(20);
	return qp;
}

/* A queue pair that was destroyed before it has handed them back takes them with it: they are
 * everybody's. */
static void receives_are_waited_for(void **state)
{
	uint16_t cntlid = raw_admin(&admin, IP);

	for (unsigned i = 0; i < 3; i++) {
		struct ibv_qp *dying;
		unsigned before;

		raw_io(&io, IP, cntlid, 1, DEPTH);
		case_turns(4);
		before = fabric_receives(target_qp(&admin));
		dying = leave_behind(3);
		case_advance(100);
		assert_int_equal(fabric_counts().qps, BOTH_ENDS_OF_ADMIN + 1);
		fabric_hand_back(dying);
		case_turns(10);
		assert_int_equal(fabric_counts().qps, BOTH_ENDS_OF_ADMIN);
		assert_int_equal(fabric_receives(target_qp(&admin)), before);
	}
	check_alive(&admin);
	raw_close(&admin);
	case_settle();
}

/* With the adapter's word nothing waits for a clock. */
static void nothing_is_waited_for(void **state)
{
	session_open();
	raw_close(&io);
	case_turns(20);
	assert_int_equal(fabric_counts().qps, BOTH_ENDS_OF_ADMIN);
	raw_close(&admin);
	case_settle();
}

/* An adapter that never says it is not waited for without end. */
static void waits_with_a_bound(void **state)
{
	session_open();
	raw_close(&io);
	case_turns(20);
	assert_int_equal(fabric_counts().qps, BOTH_ENDS_OF_ADMIN + 1);
	case_advance(1000);
	assert_int_equal(fabric_counts().qps, BOTH_ENDS_OF_ADMIN);
	check_alive(&admin);
	raw_close(&admin);
	case_settle();
}

/* Its queue pair is broken and empty, and the adapter says both before anybody listens. */
static void both_are_heard(void **state)
{
	session_open();
	fabric_async_of(target_qp(&io), IBV_EVENT_QP_FATAL);
	fabric_async_of(target_qp(&io), IBV_EVENT_QP_LAST_WQE_REACHED);
	case_turns(10);
	check_end(&io, true);
	raw_close(&io);
	case_turns(20);
	assert_int_equal(fabric_counts().qps, BOTH_ENDS_OF_ADMIN);
	raw_close(&admin);
	case_settle();
}

/* --- what breaks ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	enum ibv_event_type type;
	bool io_ends, admin_ends;
} thing_cases[] = {
	{ "QP fatal", IBV_EVENT_QP_FATAL, true, false },
	{ "QP request error", IBV_EVENT_QP_REQ_ERR, true, false },
	{ "QP access error", IBV_EVENT_QP_ACCESS_ERR, true, false },
	{ "QP in error, of itself", IBV_EVENT_QP_LAST_WQE_REACHED, true, false },
	{ "QP established by data", IBV_EVENT_COMM_EST, false, false },
	{ "CQ error", IBV_EVENT_CQ_ERR, true, true },
	{ "SRQ error", IBV_EVENT_SRQ_ERR, true, true },
};

static void things(void **state)
{
	for_each_named(i, thing_cases, name) {
		session_open();
		fabric_async_of(target_qp(&io), thing_cases[i].type);
		case_turns(10);
		check_end(&admin, thing_cases[i].admin_ends);
		check_end(&io, thing_cases[i].io_ends);
		if (!thing_cases[i].admin_ends)
			check_alive(&admin);
		if (!thing_cases[i].io_ends)
			check_reads(&io);
		session_close();
	}
}

/* What is broken takes no new connection: the next one is on something that works. */
static void next_one_is_whole(void **state)
{
	struct raw other;

	session_open();
	fabric_take_ahead(target_qp(&io), 1); /* the old poller stays a while */
	fabric_async_of(target_qp(&io), IBV_EVENT_CQ_ERR);
	case_turns(10);
	raw_admin(&other, IP);
	assert_int_equal(fabric_counts().srqs, 2);
	raw_expect_end(&io);
	raw_expect_end(&admin);
	raw_close(&other);
	session_close();
}

static const struct {
	const char *name;
	enum ibv_event_type type;
	bool ends;
} device_cases[] = {
	{ "port down", IBV_EVENT_PORT_ERR, false }, { "port up", IBV_EVENT_PORT_ACTIVE, false },
	{ "GIDs", IBV_EVENT_GID_CHANGE, false },    { "LID", IBV_EVENT_LID_CHANGE, false },
	{ "fatal", IBV_EVENT_DEVICE_FATAL, true },
};

static void devices(void **state)
{
	for_each_named(i, device_cases, name) {
		session_open();
		fabric_async("fake0", device_cases[i].type);
		case_turns(10);
		check_end(&io, device_cases[i].ends);
		check_end(&admin, device_cases[i].ends);
		if (!device_cases[i].ends)
			check_alive(&admin);
		session_close();
	}
}

/* Their queue pairs have numbers that the target finds in the same place. */
static void open_both_side_by_side(void)
{
	struct ibv_pd *pd = v->alloc_pd(fabric_context("fake0"));
	struct ibv_pd *next = v->alloc_pd(fabric_context("fake0"));
	unsigned step = next->handle - pd->handle, apart;
	uint16_t cntlid;

	v->dealloc_pd(next);
	v->dealloc_pd(pd);
	session_open();
	apart = (target_qp(&io)->qp_num - target_qp(&admin)->qp_num) / step;
	session_close();
	cntlid = raw_admin(&admin, IP);
	for (; apart % RDMA_CONN_BUCKETS; apart++)
		v->dealloc_pd(v->alloc_pd(fabric_context("fake0")));
	raw_io(&io, IP, cntlid, 1, DEPTH);
	assert_int_equal(target_qp(&io)->qp_num % RDMA_CONN_BUCKETS,
			 target_qp(&admin)->qp_num % RDMA_CONN_BUCKETS);
}

static void all_of_a_device(void **state)
{
	open_both_side_by_side();
	fabric_async("fake0", IBV_EVENT_DEVICE_FATAL);
	case_turns(10);
	check_end(&io, true);
	check_end(&admin, true);
	session_close();
}

/* A program's own queue pairs may be on the adapter: what is said of them is not for us. */
static void strangers(void **state)
{
	session_open();
	fabric_async_of(io.end.id->qp, IBV_EVENT_QP_FATAL);
	fabric_async_of(io.end.id->qp, IBV_EVENT_CQ_ERR);
	case_turns(10);
	check_alive(&admin);
	check_reads(&io);
	session_close();
}

#define CASE(f, set_up) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* With a name, or a pattern, only the cases of that name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(receives_are_waited_for, set_up),
		CASE(nothing_is_waited_for, set_up),
		CASE(waits_with_a_bound, set_up_silent),
		CASE(both_are_heard, set_up_silent),
		CASE(things, set_up),
		CASE(next_one_is_whole, set_up),
		CASE(devices, set_up),
		CASE(devices, set_up_apart),
		CASE(all_of_a_device, set_up),
		CASE(strangers, set_up),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
