/* test_rdma_slow.c - the RDMA target on storage that takes its time: what that holds up, and what
 * it must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "storage/slow.h"
#include "rdma_session.h"
#include "target/target.h"
#include "transport/rdma/rdma.h"

enum {
	ALL = 1 << 20,
	RECEIVES = 64,
	HELD_MOST = RECEIVES / 4 * 3, /* the rest is for hosts whose storage is not the slow one */
	WRITES = CASE_DEPTH_MAX - 1,
};

static const struct rdma_verbs *const v = &fabric_verbs;

static int set_up_shared(void **state)
{
	fabric_begin();
	fabric_device("fake0")->attr.max_srq_wr = RECEIVES;
	case_start_slow(IP);
	return 0;
}

static int set_up_unshared(void **state)
{
	fabric_begin();
	fabric_device("fake0")->attr.max_srq = 0;
	case_start_slow(IP);
	return 0;
}

static int tear_down_slow(void **state)
{
	slow_end(ALL, 0);
	return tear_down(state);
}

static void send_in_capsule(void)
{
	union nvme_sqe write = raw_rw(true, 0, 1);

	memset(raw_extra(&io), 'w', BLOCK);
	write.common.sgl = raw_sgl(NVME_SGL_IN_CAPSULE, 0, BLOCK);
	raw_send(&io, &write, BLOCK);
	case_turns(2);
}

/* --- receives that writes hold ---------------------------------------------------------------- */

static struct weft_pool *pool_of(const struct raw *q)
{
	struct rdma_conn *conn = fabric_id_of(target_qp(q))->context;

	return weft_bufs_pool(&conn->qp.group->in, BLOCK);
}

/* Others have them all. */
static void **take_buffers(struct weft_pool *pool, unsigned *n)
{
	void **taken = calloc(pool->count, sizeof(*taken));

	for (*n = 0; *n < pool->count && (taken[*n] = weft_pool_take(pool)); (*n)++)
		;
	return taken;
}

static void give_buffers(struct weft_pool *pool, void **taken, unsigned n)
{
	while (n)
		weft_pool_give(pool, taken[--n]);
	free(taken);
}

static void count_answers(unsigned n, uint16_t status)
{
	while (n--)
		assert_int_equal(le16_to_cpu(raw_answer(&io).status) >> 1, status);
}

static void hold_what_they_may(void)
{
	for (unsigned i = 0; i < WRITES; i++)
		send_in_capsule();
	count_answers(WRITES - HELD_MOST, NVME_SC_CMD_INTERRUPTED);
	check_alive(&admin);
	assert_int_equal(slow_end(ALL, 0), HELD_MOST);
	count_answers(HELD_MOST, 0);
	/* All receives are back. */
	case_turns(4);
	assert_int_equal(fabric_receives(target_qp(&io)), RECEIVES);
}

/* One host's writes to slow storage hold what receives they may; what is beyond is sent back, to be
 * tried again, and everybody else is heard. Once they are answered, others may hold as many. */
static void some_are_never_held(void **state)
{
	struct weft_pool *pool;
	unsigned n;
	void **taken;

	raw_io(&io, IP, raw_admin(&admin, IP), 1, CASE_DEPTH_MAX);
	case_turns(4); /* that of its Connect is back */
	pool = pool_of(&io);
	taken = take_buffers(pool, &n);
	hold_what_they_may();
	hold_what_they_may();
	give_buffers(pool, taken, n);
	raw_close(&io);
	raw_close(&admin);
	case_settle();
}

static void send_list_in_capsule(void)
{
	union nvme_sqe dsm = { .common = { .opcode = nvme_cmd_dsm,
					   .flags = 0x40, /* SGL */
					   .nsid = cpu_to_le32(1),
					   .cdw11 = cpu_to_le32(1 << 2) } };
	const struct nvme_dsm_range range = { .nlb = cpu_to_le32(1) };

	memcpy(raw_extra(&io), &range, sizeof(range));
	dsm.common.sgl = raw_sgl(NVME_SGL_IN_CAPSULE, 0, CAPSULE_DATA);
	raw_send(&io, &dsm, CAPSULE_DATA);
	case_turns(2);
}

/* Storage has a few of a host's long commands at once: the next ones follow. */
static void end_in_turn(unsigned count)
{
	for (unsigned ended = 0; ended < count; case_turns(2)) {
		unsigned some = slow_end(ALL, 0);

		assert_int_not_equal(some, 0);
		ended += some;
	}
}

/* Lists of ranges last, and a host can have very many: they hold a quarter of the receives, and
 * none of the buffers that small data of others moves to. */
static void lists_hold_a_quarter(void **state)
{
	const unsigned most = RECEIVES / 4;
	struct weft_pool *pool;
	uint32_t nfree;

	raw_io(&io, IP, raw_admin(&admin, IP), 1, CASE_DEPTH_MAX);
	case_turns(4);
	pool = pool_of(&io);
	nfree = pool->nfree;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < WRITES; i++)
			send_list_in_capsule();
		count_answers(WRITES - most, NVME_SC_CMD_INTERRUPTED);
		assert_int_equal(pool->nfree, nfree);
		check_alive(&admin);
		end_in_turn(most);
		count_answers(most, 0);
		case_turns(4);
		assert_int_equal(fabric_receives(target_qp(&io)), RECEIVES);
	}
	raw_close(&io);
	raw_close(&admin);
	case_settle();
}

/* --- a queue that is full --------------------------------------------------------------------- */

/* Its host agreed to so many, and knows which are under way: one more is a host that has lost
 * count. */
static void one_more_than_the_queue_holds(void **state)
{
	session_open();
	for (unsigned i = 0; i < DEPTH; i++)
		send_in_capsule();
	assert_true(fabric_end_quiet(&io.end));
	check_alive(&admin);
	send_in_capsule();
	raw_expect_end(&io);
	check_alive(&admin);
	assert_int_equal(slow_end(ALL, 0), DEPTH);
	session_close();
}

/* --- a host that comes back ------------------------------------------------------------------- */

static uint32_t silent_qp; /* of which the adapter has completions that it does not hand out */
static unsigned kept;

static int keep_those_of_one(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = v->poll_cq(cq, 1, wc);

	while (n == 1 && wc->qp_num == silent_qp) {
		kept++;
		n = v->poll_cq(cq, 1, wc);
	}
	return n;
}

static bool is_answered_soon(struct raw *q)
{
	for (unsigned i = 0; i < 100; i++) {
		if (raw_is_answered(q))
			return true;
		case_advance(2);
	}
	return false;
}

/* Its queue pair is in error, and nothing that shows it has come up yet: no event, no flushed
 * receive. Its write is with storage. The same host connects anew, to write that again, and then
 * newer data: it must not be the first copy that arrives last. */
static void lost_and_not_noticed(void **state)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct raw again;

	raw_io(&io, IP, raw_admin(&admin, IP), 1, CASE_DEPTH_MAX);
	send_in_capsule();
	silent_qp = target_qp(&io)->qp_num;
	kept = 0;
	replaced = fabric_verbs;
	replaced.poll_cq = keep_those_of_one;
	rdma_verbs = &replaced;
	assert_int_equal(v->modify_qp(target_qp(&io), &error, IBV_QP_STATE), 0);
	raw_admin_asks(&again, IP);
	assert_false(is_answered_soon(&again));
	assert_true(kept > 0); /* or this tests nothing */
	assert_int_equal(slow_end(ALL, 0), 1);
	assert_true(is_answered_soon(&again));
	rdma_verbs = v;
	raw_close(&again);
	raw_close(&io);
	raw_close(&admin);
	case_settle();
}

/* --- blocks that a read holds ----------------------------------------------------------------- */

static struct ibv_wc late[8]; /* completions of that one, handed out later */
static int nlate;
static bool hand_out;

static int delay_those_of_one(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n;

	if (hand_out && nlate) {
		*wc = late[--nlate];
		return 1;
	}
	n = v->poll_cq(cq, 1, wc);
	if (n != 1 || hand_out || wc->qp_num != silent_qp || wc->opcode == IBV_WC_RECV)
		return n;
	late[nlate++] = *wc;
	return 0;
}

/* The adapter of the target does not say that it has sent the answer to a read of block 0. */
static void read_and_hear_nothing(struct raw *writer)
{
	union nvme_sqe read = raw_rw(false, 0, 1);

	session_open();
	raw_io(writer, IP, admin.cntlid, 2, DEPTH);
	silent_qp = target_qp(&io)->qp_num;
	nlate = 0;
	hand_out = false;
	replaced = fabric_verbs;
	replaced.poll_cq = delay_those_of_one;
	rdma_verbs = &replaced;
	raw_keyed(&io, &read, 0, BLOCK);
	assert_int_equal(raw_run(&io, &read, 0), 0);
}

static void send_write(struct raw *q, uint64_t slba)
{
	union nvme_sqe write = raw_rw(true, slba, 1);

	memset(raw_extra(q), 'n', BLOCK);
	write.common.sgl = raw_sgl(NVME_SGL_IN_CAPSULE, 0, BLOCK);
	raw_send(q, &write, BLOCK);
}

/* It may still be reading the block. Other blocks are written meanwhile. */
static void a_read_under_way_keeps_a_write_out(void **state)
{
	struct raw writer;

	read_and_hear_nothing(&writer);
	send_write(&writer, 0);
	assert_false(is_answered_soon(&writer));
	send_write(&writer, 4096);
	assert_int_equal(le16_to_cpu(raw_answer(&writer).status) >> 1, 0);
	assert_int_equal(nlate, 1); /* or this tests nothing */
	hand_out = true;
	case_advance(1);
	assert_int_equal(le16_to_cpu(raw_answer(&writer).status) >> 1, 0);
	rdma_verbs = v;
	raw_close(&writer);
	session_close();
}

/* Neither the write nor a read behind it, which it keeps out, makes the reactor turn meanwhile. */
static void who_waits_for_a_block_is_at_rest(void **state)
{
	union nvme_sqe read = raw_rw(false, 0, 1);
	struct raw writer, reader;

	read_and_hear_nothing(&writer);
	raw_io(&reader, IP, admin.cntlid, 3, DEPTH);
	send_write(&writer, 0);
	case_turns(4);
	raw_keyed(&reader, &read, 0, BLOCK);
	raw_send(&reader, &read, 0);
	case_turns(1000);
	assert_false(weft_reactor_busy(case_control()));
	assert_false(raw_is_answered(&writer) || raw_is_answered(&reader));
	hand_out = true;
	assert_true(is_answered_soon(&writer) && is_answered_soon(&reader));
	rdma_verbs = v;
	raw_close(&reader);
	raw_close(&writer);
	session_close();
}

/* But not for ever: a host whose adapter does not take its answer has to go. */
static void a_read_that_never_ends_has_to_go(void **state)
{
	struct raw writer;

	read_and_hear_nothing(&writer);
	case_advance(60000);
	check_alive(&admin); /* nobody waits for the block: it may take its time */
	assert_int_equal(nlate, 1);
	send_write(&writer, 0);
	case_turns(10);
	for (unsigned i = 0; i < 10 && !hand_out; i++) {
		case_advance(2000);
		hand_out = target_qp(&io)->state == IBV_QPS_ERR;
	}
	assert_true(hand_out);
	case_advance(1);
	assert_int_equal(le16_to_cpu(raw_answer(&writer).status) >> 1, 0);
	rdma_verbs = v;
	raw_close(&writer);
	session_close();
}

static void removed(void *arg)
{
	*(bool *)arg = true;
}

/* A namespace that is removed stays until its last byte has left; and no longer than that is
 * allowed to take. */
static void a_removal_waits_for_a_read_under_way(void **state)
{
	struct weft_err err = { "" };
	struct rdma_conn *conn;
	bool over = false;
	struct raw writer;

	read_and_hear_nothing(&writer);
	conn = fabric_id_of(target_qp(&io))->context;
	assert_int_equal(weft_ns_remove(weft_subsys_find(case_target(), CASE_NQN), 1, removed,
					&over, &err),
			 0);
	for (unsigned i = 0; i < 4; i++)
		case_advance(2000);
	assert_false(over);
	for (unsigned i = 0; i < 3 && !hand_out; i++) {
		case_advance(2000);
		hand_out = target_qp(&io)->state == IBV_QPS_ERR;
	}
	assert_true(hand_out);
	assert_string_equal(conn->qp.why, "keeps a namespace from being removed");
	case_turns(10);
	assert_true(over);
	check_alive(&admin);
	rdma_verbs = v;
	raw_close(&writer);
	session_close();
}

#define CASE(f, set_up) cmocka_unit_test_setup_teardown(f, set_up, tear_down_slow)

/* With a name, or a pattern, only the cases of that name. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(some_are_never_held, set_up_shared),
		CASE(lists_hold_a_quarter, set_up_shared),
		CASE(one_more_than_the_queue_holds, set_up_shared),
		CASE(lost_and_not_noticed, set_up_unshared),
		cmocka_unit_test_setup_teardown(a_read_under_way_keeps_a_write_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_waits_for_a_block_is_at_rest, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_read_that_never_ends_has_to_go, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_removal_waits_for_a_read_under_way, set_up,
						tear_down),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
