/* test_fabric_work.c - work on the fabric: requests, receives, completions. */
#include "fabric_case.h"

#include <errno.h>
#include <string.h>

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

/* --- receives that are shared ----------------------------------------------------------------- */

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

/* --- completion queues ------------------------------------------------------------------------ */

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

/* --- iWARP ------------------------------------------------------------------------------------ */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_send),       CASE(test_inline),
		CASE(test_read_write), CASE(test_gather_and_chain),
		CASE(test_invalidate), CASE(test_srq),
		CASE(test_arm),        CASE(test_overrun),
		CASE(test_stale),      CASE(test_iwarp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
