/* raw_rdma_host.c - a host whose every capsule is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "peer/raw_rdma_host.h"

enum { CC_ENABLE = 0x460001, PROPERTY_CC = 0x14, PROPERTY_CSTS = 0x1c, SENT = 1000 };

/* --- the connection --------------------------------------------------------------------------- */

struct nvme_rdma_request raw_request(uint16_t qid, uint16_t depth, uint16_t cntlid)
{
	return (struct nvme_rdma_request){ .qid = cpu_to_le16(qid),
					   .hrqsize = cpu_to_le16(depth),
					   .hsqsize = cpu_to_le16((uint16_t)(depth - 1)),
					   .cntlid = cpu_to_le16(cntlid) };
}

void raw_open(struct raw *q, const char *ip)
{
	memset(q, 0, sizeof(*q));
	fabric_end_open(&q->end);
	fabric_end_resolve(&q->end, ip, case_port());
	q->end.init.cap.max_send_wr = 256;
	q->end.param.initiator_depth = 0;
	fabric_end_qp(&q->end);
	for (unsigned i = 0; i < END_RECVS; i++)
		fabric_end_recv(&q->end, i);
}

void raw_ask(struct raw *q, const void *data, uint8_t size)
{
	fabric_end_connect(&q->end, data, size);
}

void raw_close(struct raw *q)
{
	fabric_end_close(&q->end);
}

static void raw_establish(struct raw *q, const char *ip, uint16_t qid, uint16_t depth,
			  uint16_t cntlid)
{
	struct nvme_rdma_request request = raw_request(qid, depth, cntlid);
	struct nvme_rdma_accept answer;

	raw_open(q, ip);
	raw_ask(q, &request, sizeof(request));
	fabric_end_expect(&q->end, RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&answer, q->end.data, sizeof(answer));
	assert_int_equal(le16_to_cpu(answer.recfmt), 0);
	assert_int_equal(le16_to_cpu(answer.crqsize), depth);
}

/* --- commands --------------------------------------------------------------------------------- */

static uint32_t place(const struct raw *q)
{
	return q->sent % CASE_CAPSULES * CASE_CAPSULE;
}

char *raw_extra(struct raw *q)
{
	return q->end.memory + place(q) + sizeof(union nvme_sqe);
}

char *raw_data(struct raw *q)
{
	return q->end.memory + CASE_DATA;
}

void raw_send(struct raw *q, union nvme_sqe *sqe, uint32_t extra)
{
	sqe->common.cid = cpu_to_le16(++q->cid);
	memcpy(q->end.memory + place(q), sqe, sizeof(*sqe));
	assert_int_equal(fabric_end_send(&q->end, SENT, place(q), sizeof(*sqe) + extra), 0);
	q->sent++;
}

bool raw_is_answered(struct raw *q)
{
	struct ibv_wc wc;

	while (fabric_verbs.poll_cq(q->end.cq, 1, &wc) > 0)
		if (wc.opcode == IBV_WC_RECV)
			return true;
	return false;
}

struct nvme_cqe raw_answer(struct raw *q)
{
	struct nvme_cqe cqe;

	do {
		q->wc = fabric_end_wc(&q->end);
		assert_string_equal(ibv_wc_status_str(q->wc.status), "success");
	} while (q->wc.opcode != IBV_WC_RECV);
	assert_int_equal(q->wc.byte_len, sizeof(cqe));
	memcpy(&cqe, fabric_end_received(&q->end, q->wc.wr_id), sizeof(cqe));
	fabric_end_recv(&q->end, (unsigned)q->wc.wr_id);
	q->answers++;
	return cqe;
}

uint16_t raw_run(struct raw *q, union nvme_sqe *sqe, uint32_t extra)
{
	struct nvme_cqe cqe;

	raw_send(q, sqe, extra);
	cqe = raw_answer(q);
	assert_int_equal(le16_to_cpu(cqe.cid), q->cid);
	return le16_to_cpu(cqe.status) >> 1;
}

void raw_expect_end(struct raw *q)
{
	fabric_end_take(&q->end);
	assert_string_equal(rdma_event_str(q->end.event.event),
			    rdma_event_str(RDMA_CM_EVENT_DISCONNECTED));
	fabric_verbs.disconnect(q->end.id);
}

struct nvme_sgl raw_sgl(uint8_t type, uint64_t addr, uint32_t len)
{
	return (struct nvme_sgl){ .addr = cpu_to_le64(addr),
				  .length = cpu_to_le32(len),
				  .type = type };
}

void raw_keyed(struct raw *q, union nvme_sqe *sqe, uint32_t offset, uint32_t len)
{
	nvme_keyed_sgl_set((struct nvme_keyed_sgl *)&sqe->common.sgl,
			   (uintptr_t)raw_data(q) + offset, len, q->end.mr->rkey);
	sqe->common.flags = NVME_PSDT_SGL;
}

union nvme_sqe raw_rw(bool write, uint64_t slba, uint32_t blocks)
{
	return (union nvme_sqe){ .rw = { .opcode = write ? nvme_cmd_write : nvme_cmd_read,
					 .flags = NVME_PSDT_SGL,
					 .nsid = cpu_to_le32(1),
					 .slba = cpu_to_le64(slba),
					 .nlb = cpu_to_le16((uint16_t)(blocks - 1)) } };
}

/* --- a controller ----------------------------------------------------------------------------- */

static void send_connect(struct raw *q, uint16_t qid, uint16_t depth, uint16_t cntlid)
{
	union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
					    .rsvd1 = NVME_PSDT_SGL,
					    .fctype = NVMF_CONNECT,
					    .qid = cpu_to_le16(qid),
					    .sqsize = cpu_to_le16((uint16_t)(depth - 1)) } };
	char *data = raw_data(q);
	__le16 id = cpu_to_le16(cntlid);

	memset(data, 0, 1024);
	memset(data, 0x77, 16);
	memcpy(data + 16, &id, 2);
	strcpy(data + 256, CASE_NQN);
	strcpy(data + 512, "nqn.2014-08.org.nvmexpress:uuid:77777777-7777-7777-7777-777777777777");
	raw_keyed(q, &sqe, 0, 1024);
	raw_send(q, &sqe, 0);
}

static uint16_t connect_queue(struct raw *q, uint16_t qid, uint16_t depth, uint16_t cntlid)
{
	struct nvme_cqe cqe;

	send_connect(q, qid, depth, cntlid);
	cqe = raw_answer(q);
	assert_int_equal(le16_to_cpu(cqe.status), 0);
	return (uint16_t)le64_to_cpu(cqe.result);
}

void raw_admin_asks(struct raw *q, const char *ip)
{
	raw_establish(q, ip, 0, 32, 0);
	send_connect(q, 0, 32, NVME_CNTLID_DYNAMIC);
}

uint16_t raw_admin(struct raw *q, const char *ip)
{
	union nvme_sqe set = { .property = { .opcode = NVME_FABRICS_OPCODE,
					     .rsvd1 = NVME_PSDT_SGL,
					     .fctype = NVMF_PROPERTY_SET,
					     .offset = cpu_to_le32(PROPERTY_CC),
					     .value = cpu_to_le64(CC_ENABLE) } };

	raw_establish(q, ip, 0, 32, 0);
	q->cntlid = connect_queue(q, 0, 32, NVME_CNTLID_DYNAMIC);
	assert_int_equal(raw_run(q, &set, 0), 0);
	return q->cntlid;
}

void raw_io(struct raw *q, const char *ip, uint16_t cntlid, uint16_t qid, uint16_t depth)
{
	raw_establish(q, ip, qid, depth, cntlid);
	connect_queue(q, qid, depth, cntlid);
}
