/* manual_end_work.c - one end by hand: its requests and their completions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/manual_end.h"

enum { TURNS_MAX = 20000 };

static const struct rdma_verbs *const v = &fabric_verbs;

void fabric_end_recv(struct fabric_end *end, unsigned index)
{
	struct ibv_sge sge = { .addr = (uintptr_t)fabric_end_received(end, index),
			       .length = END_RECV_SIZE,
			       .lkey = end->recv_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_true(index < END_RECVS);
	assert_int_equal(v->post_recv(end->id->qp, &wr, &bad), 0);
}

char *fabric_end_received(struct fabric_end *end, uint64_t wr_id)
{
	return end->recvs + wr_id * END_RECV_SIZE;
}

int fabric_end_post(struct fabric_end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return v->post_send(end->id->qp, wr, &bad);
}

int fabric_end_move(struct fabric_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id,
		    uint32_t offset, uint32_t len, uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)end->memory + offset,
			       .length = len,
			       .lkey = end->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { remote, rkey } };

	return fabric_end_post(end, &wr);
}

int fabric_end_send(struct fabric_end *end, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	return fabric_end_move(end, IBV_WR_SEND, wr_id, offset, len, 0, 0);
}

struct ibv_wc fabric_end_wc(struct fabric_end *end)
{
	struct ibv_wc wc;

	for (int i = 0; v->poll_cq(end->cq, 1, &wc) != 1; i++) {
		if (!fabric_end_turn || i == TURNS_MAX)
			fail_msg("no completion came");
		fabric_end_turn();
	}
	return wc;
}

struct ibv_wc fabric_end_done(struct fabric_end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = fabric_end_wc(end);

	assert_string_equal(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.qp_num, end->id->qp->qp_num);
	return wc;
}

bool fabric_end_idle(struct fabric_end *end)
{
	struct ibv_wc wc;

	return v->poll_cq(end->cq, 1, &wc) == 0;
}
