/* test_fabric_wrong.c - what goes wrong on the fabric, of itself and because the test says so. */
#include "fabric_case.h"
#include "running.h"

#include <errno.h>
#include <string.h>

/* --- what goes wrong -------------------------------------------------------------------------- */

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
	for_each_named(i, wrongs, what) {
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

/* --- the test decides ------------------------------------------------------------------------- */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_rnr),          CASE(test_rnr_exceeded), CASE(test_rights),
		CASE(test_local_rights), CASE(test_too_long),     CASE(test_flush),
		CASE(test_send_slots),   CASE(test_limits),       CASE(test_busy),
		CASE(test_manual),       CASE(test_hold),         CASE(test_cut),
		CASE(test_fail_next),    CASE(test_fail_send),    CASE(test_fail_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
