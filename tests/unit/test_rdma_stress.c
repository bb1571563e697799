/* test_rdma_stress.c - the RDMA target among hosts that do anything, on a fabric that does
 * anything, as a seed says. Nothing is expected of it but that it lives, answers no command twice,
 * and that in the end nothing is left. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "peer/raw_rdma_host.h"
#include "stress.h"
#include "running.h"

#define IP "127.0.0.1"

enum { HOSTS = 5, ACTS = 400, PATIENCE = 40, DEPTH = 16, CIDS = 1 << 16 };

static const struct rdma_verbs *const v = &fabric_verbs;
static bool was_cut; /* a host may be gone, and the target cannot know */

struct host {
	struct raw q;
	bool here, admin;
	uint16_t cntlid;
	unsigned char owed[CIDS]; /* commands that were sent and not answered */
};

static struct host hosts[HOSTS];

/* --- a host, patient but not stubborn --------------------------------------------------------- */

static void part(struct host *h)
{
	raw_close(&h->q);
	h->here = false;
}

static bool event_comes(struct host *h)
{
	for (int i = 0; i < PATIENCE; i++, case_turn()) {
		struct rdma_cm_event *event;

		if (v->get_cm_event(h->q.end.channel, &event) < 0)
			continue;
		h->q.end.event = *event;
		v->ack_cm_event(event);
		return true;
	}
	return false;
}

static void send_it(struct host *h, union nvme_sqe *sqe, uint32_t len)
{
	uint32_t at = h->q.sent++ % CASE_CAPSULES * CASE_CAPSULE;

	sqe->common.cid = cpu_to_le16(++h->q.cid);
	memcpy(h->q.end.memory + at, sqe, sizeof(*sqe));
	if (fabric_end_send(&h->q.end, 1000, at, len) == 0)
		h->owed[h->q.cid]++;
}

static void take_answer(struct host *h, uint64_t wr_id, struct nvme_cqe *cqe)
{
	uint16_t cid;

	memcpy(cqe, fabric_end_received(&h->q.end, wr_id), sizeof(*cqe));
	cid = le16_to_cpu(cqe->cid);
	if (!h->owed[cid])
		fail_msg("seed %llu: an answer to command %u, which is not out",
			 (unsigned long long)stress_seed(), cid);
	h->owed[cid]--;
	fabric_end_recv(&h->q.end, (unsigned)wr_id);
}

/* Whatever lies there; true: an answer did. */
static bool look(struct host *h, struct nvme_cqe *cqe)
{
	struct ibv_wc wc;

	while (v->poll_cq(h->q.end.cq, 1, &wc) == 1)
		if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV) {
			take_answer(h, wc.wr_id, cqe);
			return true;
		}
	return false;
}

static bool answer_comes(struct host *h, struct nvme_cqe *cqe)
{
	for (int i = 0; i < PATIENCE; i++, case_turn())
		if (look(h, cqe))
			return true;
	return false;
}

static bool connect_command(struct host *h, uint16_t qid, uint16_t cntlid)
{
	union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
					    .rsvd1 = NVME_PSDT_SGL,
					    .fctype = NVMF_CONNECT,
					    .qid = cpu_to_le16(qid),
					    .sqsize = cpu_to_le16(DEPTH - 1) } };
	char *data = raw_data(&h->q);
	__le16 id = cpu_to_le16(cntlid);
	struct nvme_cqe cqe;

	memset(data, 0, 1024);
	memset(data, 0x55, 16);
	memcpy(data + 16, &id, 2);
	strcpy(data + 256, CASE_NQN);
	strcpy(data + 512, "nqn.2014-08.org.nvmexpress:uuid:55555555-5555-5555-5555-555555555555");
	raw_keyed(&h->q, &sqe, 0, 1024);
	send_it(h, &sqe, 64);
	if (!answer_comes(h, &cqe) || cqe.status)
		return false;
	h->cntlid = (uint16_t)le64_to_cpu(cqe.result);
	return true;
}

static void enable(struct host *h)
{
	union nvme_sqe set = { .property = { .opcode = NVME_FABRICS_OPCODE,
					     .rsvd1 = NVME_PSDT_SGL,
					     .fctype = NVMF_PROPERTY_SET,
					     .offset = cpu_to_le32(0x14),
					     .value = cpu_to_le64(0x460001) } };
	struct nvme_cqe cqe;

	send_it(h, &set, 64);
	answer_comes(h, &cqe);
}

static const char *const entries[] = {
	"create_event_channel",
	"migrate_id",
	"query_device",
	"alloc_pd",
	"create_comp_channel",
	"create_cq",
	"create_srq",
	"reg_mr",
	"create_qp",
	"accept",
	"post_srq_recv",
	"post_send",
	"modify_qp",
	"query_qp",
	"disconnect",
	"reject",
};

static struct host *any_admin(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (hosts[i].here && hosts[i].admin && stress_random(2))
			return &hosts[i];
	return NULL;
}

static void arrive(struct host *h)
{
	struct host *of = any_admin();
	uint16_t qid = of ? (uint16_t)(1 + stress_random(8)) : 0;
	struct nvme_rdma_request request = raw_request(qid, DEPTH, of ? of->cntlid : 0);

	memset(h->owed, 0, sizeof(h->owed));
	raw_open(&h->q, IP);
	h->here = true;
	h->admin = !of;
	if (!stress_random(10))
		((char *)&request)[stress_random(10)] ^= (char)(1 << stress_random(8));
	raw_ask(&h->q, &request, sizeof(request));
	if (!stress_random(6))
		fabric_fail(entries[stress_random(COUNT(entries))], stress_random(2), 1,
			    stress_random(2) ? ENOMEM : EIO);
	if (!event_comes(h) || h->q.end.event.event != RDMA_CM_EVENT_ESTABLISHED ||
	    !connect_command(h, qid, of ? of->cntlid : NVME_CNTLID_DYNAMIC))
		part(h);
	else if (!of)
		enable(h);
	fabric_fail_no_more();
}

/* --- commands --------------------------------------------------------------------------------- */

static void put_blocks(struct host *h, uint32_t n, uint32_t each)
{
	for (uint32_t i = 0; i < n; i++) {
		struct nvme_keyed_sgl block;

		nvme_keyed_sgl_set(&block, (uintptr_t)raw_data(&h->q) + stress_random(1 << 20),
				   each, h->q.end.mr->rkey + !stress_random(60));
		memcpy(raw_extra(&h->q) + 16 * i, &block, 16);
	}
}

static void good_command(struct host *h)
{
	uint32_t blocks = 1 + stress_random(stress_random(4) ? 16 : 2048), len = 512 * blocks,
		 extra = 0;
	union nvme_sqe sqe = raw_rw(stress_random(2), stress_random(1000), blocks);

	switch (stress_random(4)) {
	case 0:
		extra = 16 * (1 + stress_random(16));
		put_blocks(h, extra / 16, len / (extra / 16) + 1);
		sqe.common.sgl = raw_sgl(NVME_SGL_LAST_IN_CAPSULE, 0, extra);
		break;
	case 1:
		extra = len < 4096 ? len : 4096;
		sqe.common.sgl = raw_sgl(NVME_SGL_IN_CAPSULE, 0, extra);
		break;
	default:
		raw_keyed(&h->q, &sqe, stress_random(1 << 16), len);
		if (!stress_random(200))
			sqe.common.sgl.type = NVME_SGL_KEYED_INVALIDATE;
	}
	send_it(h, &sqe, 64 + extra);
}

static void bad_command(struct host *h)
{
	union nvme_sqe sqe = raw_rw(stress_random(2), stress_random(1 << 20),
				    1 + stress_random(70000));
	uint32_t extra = stress_random(4097);

	raw_keyed(&h->q, &sqe, stress_random(1 << 16), stress_random(1 << 24));
	for (uint32_t i = stress_random(4); i; i--)
		sqe.bytes[4 + stress_random(60)] = (uint8_t)stress_random(256);
	if (stress_random(2))
		sqe.common.opcode = (uint8_t)stress_random(256);
	if (!stress_random(3))
		sqe.common.sgl.type = (uint8_t[]){
			0x01, 0x31, 0x40, 0x4f, 0x00, 0x5a
		}[stress_random(6)];
	for (uint32_t i = 0; i < extra; i += 61)
		raw_extra(&h->q)[i] = (char)stress_random(256);
	send_it(h, &sqe, stress_random(20) ? 64 + extra : stress_random(8000));
}

/* --- what happens ----------------------------------------------------------------------------- */

static struct ibv_qp *any_qp(void)
{
	return fabric_qp(stress_random(2 * HOSTS));
}

/* Not a host's: it would send what it has overwritten by then. */
static void hold_or_let_go(struct host *h)
{
	struct ibv_qp *qp = fabric_peer(h->q.end.id->qp);

	if (qp)
		fabric_hold(qp, stress_random(2) ?
					0 :
					(1u << IBV_WR_RDMA_READ) |
						(stress_random(2) ? 1u << IBV_WR_SEND : 0) |
						(stress_random(2) ? 1u << IBV_WR_RDMA_WRITE : 0));
}

static void step(void)
{
	struct ibv_qp *qp = any_qp();

	if (!qp)
		return;
	if (stress_random(3))
		fabric_step(qp);
	else
		fabric_part(qp, stress_random(5000));
}

static void break_one(void)
{
	struct ibv_qp *qp = any_qp();

	if (!qp)
		return;
	switch (stress_random(5)) {
	case 0:
		fabric_cut(qp);
		was_cut = true;
		break;
	case 1:
		fabric_time_out(qp);
		break;
	default:
		fabric_fail_next(qp, stress_random(2),
				 (enum ibv_wc_status)(1 + stress_random(IBV_WC_GENERAL_ERR)));
	}
}

static void event(struct host *h)
{
	struct rdma_cm_id *id = fabric_peer_id(h->q.end.id);

	if (id && stress_random(2))
		fabric_event(id,
			     (enum rdma_cm_event_type)(RDMA_CM_EVENT_CONNECT_ERROR +
						       stress_random(10)),
			     -(int)stress_random(130));
}

static void fail_calls(void)
{
	fabric_fail(entries[stress_random(COUNT(entries))], stress_random(3), 1 + stress_random(2),
		    ENOMEM);
	case_turns(stress_random(10));
	fabric_fail_no_more();
}

static void leave(struct host *h)
{
	if (stress_random(2))
		v->disconnect(h->q.end.id);
	if (stress_random(2))
		case_turns(stress_random(5));
	if (stress_random(3))
		part(h);
}

static void act(void)
{
	struct host *h = &hosts[stress_random(HOSTS)];
	struct nvme_cqe cqe;
	uint32_t what = stress_random(100);

	if (!h->here)
		arrive(h);
	else if (what < 45)
		good_command(h);
	else if (what < 55)
		bad_command(h);
	else if (what < 65)
		hold_or_let_go(h);
	else if (what < 75)
		step();
	else if (what < 77)
		break_one();
	else if (what < 79)
		event(h);
	else if (what < 81)
		fail_calls();
	else if (what < 84)
		leave(h);
	else if (what < 86)
		case_advance(stress_random(3000));
	else
		case_turns(stress_random(4));
	while (h->here && look(h, &cqe))
		;
}

void stress_round(void)
{
	was_cut = false;
	fabric_begin();
	if (stress_random(3) == 0)
		fabric_map(IP, "iwarp0");
	if (stress_random(4) == 0)
		fabric_device("fake0")->attr.max_srq = fabric_device("iwarp0")->attr.max_srq = 0;
	if (stress_random(4) == 0)
		fabric_device("fake0")->attr.max_qp_wr = 300;
	if (stress_random(2))
		case_start(IP);
	else
		case_start_apart(IP);
	weft_log_set_level(WEFT_LOG_ERROR);
	for (int i = 0; i < ACTS; i++)
		act();
	for (unsigned i = 0; i < HOSTS; i++)
		if (hosts[i].here)
			part(&hosts[i]);
	if (!was_cut)
		case_settle();
	case_stop();
	fabric_end();
}
