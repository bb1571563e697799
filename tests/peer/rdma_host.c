/* rdma_host.c - a host's end of an NVMe/RDMA connection. */
#include "peer/rdma_host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "proto/rdma.h"

enum { RESOLVE_MS = 1000, ALL_RIGHTS = 7, SENT = 1 << 16 };

static const struct rdma_verbs *const v = &fabric_verbs;

/* --- beginning -------------------------------------------------------------------------------- */

static bool take_event(struct rdma_host *h, struct rdma_cm_event **event)
{
	if (!v->get_cm_event(h->channel, event))
		return true;
	must(errno == EAGAIN);
	return false;
}

static bool expect(struct rdma_host *h, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	bool came = take_event(h, &event);

	if (!came)
		return false;
	came = event->event == type;
	v->ack_cm_event(event);
	return came;
}

static bool resolve(struct rdma_host *h, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return !v->resolve_addr(h->id, NULL, (struct sockaddr *)&to, RESOLVE_MS) &&
	       expect(h, RDMA_CM_EVENT_ADDR_RESOLVED) && !v->resolve_route(h->id, RESOLVE_MS) &&
	       expect(h, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void post_answer(struct rdma_host *h, uint64_t index)
{
	struct ibv_sge sge = { (uintptr_t)h->memory->answers[index], RHOST_ANSWER, h->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (v->post_recv(h->id->qp, &wr, &bad))
		h->ended = true; /* the adapter is gone */
}

static bool make_queue_pair(struct rdma_host *h)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = RHOST_CAPSULES,
						  .max_recv_wr = RHOST_ANSWERS,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };

	h->pd = v->alloc_pd(h->id->verbs);
	if (!h->pd)
		return false;
	h->cq = v->create_cq(h->id->verbs, RHOST_CAPSULES + RHOST_ANSWERS, h, NULL, 0);
	h->mr = v->reg_mr(h->pd, h->memory, sizeof(*h->memory), ALL_RIGHTS);
	init.send_cq = init.recv_cq = h->cq;
	if (!h->cq || !h->mr || v->create_qp(h->id, h->pd, &init) < 0)
		return false;
	for (uint64_t i = 0; i < RHOST_ANSWERS; i++)
		post_answer(h, i);
	return true;
}

bool rdma_host_open(struct rdma_host *h, uint16_t port)
{
	struct rdma_host_memory *memory = h->memory ? h->memory : calloc(1, sizeof(*memory));

	must(memory && !h->channel);
	memset(h, 0, sizeof(*h));
	h->memory = memory;
	h->channel = v->create_event_channel();
	must(h->channel && fcntl(h->channel->fd, F_SETFL, O_NONBLOCK) == 0);
	must(!v->create_id(h->channel, &h->id, h, RDMA_PS_TCP));
	if (resolve(h, port) && make_queue_pair(h))
		return true;
	rdma_host_close(h);
	return false;
}

void rdma_host_ask(struct rdma_host *h, const struct rdma_host_request *request)
{
	const struct nvme_rdma_request data = {
		.qid = cpu_to_le16(request->qid),
		.hrqsize = cpu_to_le16((uint16_t)(request->hsqsize + 1)),
		.hsqsize = cpu_to_le16(request->hsqsize),
		.cntlid = cpu_to_le16(request->cntlid),
	};
	struct rdma_conn_param param = {
		.private_data = request->bytes ? request->bytes : &data,
		.private_data_len = request->bytes ? request->len : sizeof(data),
		.responder_resources = request->reads % 17,
		.retry_count = 7,
		.rnr_retry_count = request->rnr_retries & 7,
	};

	h->depth = request->hsqsize + 1u;
	h->tainted |= request->bytes || param.rnr_retry_count != 7 || !param.responder_resources;
	h->asked = true;
	if (v->connect(h->id, &param) < 0)
		h->ended = true;
}

/* --- the end ---------------------------------------------------------------------------------- */

struct ibv_qp *rdma_host_peer(const struct rdma_host *h)
{
	struct rdma_cm_id *peer = h->channel ? fabric_peer_id(h->id) : NULL;

	return peer ? peer->qp : NULL;
}

void rdma_host_cut(struct rdma_host *h)
{
	h->tainted = h->cut = true;
	fabric_cut(h->id->qp);
}

static void drop_memory(struct rdma_host *h)
{
	for (unsigned i = 0; i < h->nwindows; i++)
		must(!v->dereg_mr(h->windows[i]));
	if (h->mr)
		must(!v->dereg_mr(h->mr));
	if (h->cq)
		must(!v->destroy_cq(h->cq));
	if (h->pd)
		must(!v->dealloc_pd(h->pd));
}

void rdma_host_close(struct rdma_host *h)
{
	struct ibv_qp *peer = rdma_host_peer(h);

	if (!h->channel)
		return;
	/* Who is cut off is not missed before the keep-alive timer, if there is one. */
	if (h->cut && peer)
		fabric_event(fabric_id_of(peer), RDMA_CM_EVENT_DISCONNECTED, 0);
	if (h->id->qp)
		v->destroy_qp(h->id);
	must(!v->destroy_id(h->id));
	drop_memory(h);
	v->destroy_event_channel(h->channel);
	h->channel = NULL;
}

/* --- sending ---------------------------------------------------------------------------------- */

static void add_block(struct rdma_host *h, const union nvme_sqe *sqe,
		      const struct nvme_keyed_sgl *sgl)
{
	if (h->nblocks == RHOST_BLOCKS)
		return;
	h->blocks[h->nblocks++] = (struct rdma_host_block){
		.addr = le64_to_cpu(sgl->addr),
		.len = nvme_keyed_sgl_length(sgl),
		.key = nvme_keyed_sgl_key(sgl),
		.cid = le16_to_cpu(sqe->common.cid),
		.direction = nvme_cmd_direction(sqe),
		.invalidate = sgl->type == NVME_SGL_KEYED_INVALIDATE,
	};
}

static bool is_keyed(uint8_t type)
{
	return type == NVME_SGL_KEYED || type == NVME_SGL_KEYED_INVALIDATE;
}

/* The capsule's blocks, as far as there are such. */
static void note_blocks(struct rdma_host *h, const char *capsule, uint32_t len)
{
	struct nvme_keyed_sgl block;
	union nvme_sqe sqe;
	uint64_t at, end;

	memcpy(&sqe, capsule, sizeof(sqe));
	memcpy(&block, &sqe.common.sgl, sizeof(block));
	if (is_keyed(block.type))
		add_block(h, &sqe, &block);
	if (block.type != NVME_SGL_LAST_IN_CAPSULE)
		return;
	at = le64_to_cpu(sqe.common.sgl.addr);
	if (at > len - sizeof(sqe))
		return;
	end = at + le32_to_cpu(sqe.common.sgl.length);
	for (; at + sizeof(block) <= end && at + sizeof(block) <= len - sizeof(sqe);
	     at += sizeof(block)) {
		memcpy(&block, capsule + sizeof(sqe) + at, sizeof(block));
		if (is_keyed(block.type))
			add_block(h, &sqe, &block);
	}
}

static uint16_t cid_of(const char *capsule)
{
	union nvme_sqe sqe;

	memcpy(&sqe, capsule, sizeof(sqe));
	return le16_to_cpu(sqe.common.cid);
}

/* A write of data that is said to be in the capsule, and is not. */
static bool is_doomed(const char *capsule, uint32_t len)
{
	struct nvme_sgl sgl;
	union nvme_sqe sqe;
	uint64_t end;

	memcpy(&sqe, capsule, sizeof(sqe));
	sgl = sqe.common.sgl;
	end = le64_to_cpu(sgl.addr) + le32_to_cpu(sgl.length);
	return sqe.common.opcode == nvme_cmd_write && sgl.type == NVME_SGL_IN_CAPSULE &&
	       (end < le64_to_cpu(sgl.addr) || end > len - sizeof(sqe));
}

static void note_command(struct rdma_host *h, const char *capsule, uint32_t len)
{
	if (len < sizeof(union nvme_sqe))
		return;
	h->out[cid_of(capsule)]++;
	h->doomed[cid_of(capsule)] = is_doomed(capsule, len);
	h->open++;
	note_blocks(h, capsule, len);
}

static bool can_send(const struct rdma_host *h)
{
	return h->up && !h->ended && h->sending < RHOST_CAPSULES && h->nblocks < RHOST_BLOCKS - 512;
}

/* What is in the next capsule goes. */
static void send_capsule(struct rdma_host *h, uint32_t len)
{
	char *capsule = h->memory->capsules[h->sent % RHOST_CAPSULES];
	struct ibv_sge sge = { (uintptr_t)capsule, len, h->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = SENT,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	if (v->post_send(h->id->qp, &wr, &bad)) {
		h->ended = true;
		return;
	}
	h->sent++;
	h->sending++;
	note_command(h, capsule, len);
}

static char *next_capsule(struct rdma_host *h)
{
	return h->memory->capsules[h->sent % RHOST_CAPSULES];
}

void rdma_host_command(struct rdma_host *h, union nvme_sqe *sqe, const void *data, uint32_t len)
{
	if (!can_send(h) || h->out[h->cid])
		return;
	must(len <= RHOST_CAPSULE - sizeof(*sqe));
	sqe->common.cid = cpu_to_le16(h->cid);
	h->cmds[h->cid++] = *sqe;
	memcpy(next_capsule(h), sqe, sizeof(*sqe));
	if (len)
		memcpy(next_capsule(h) + sizeof(*sqe), data, len);
	send_capsule(h, sizeof(*sqe) + len);
}

void rdma_host_raw(struct rdma_host *h, const void *bytes, uint32_t len)
{
	if (!can_send(h))
		return;
	must(len <= RHOST_CAPSULE);
	if (len)
		memcpy(next_capsule(h), bytes, len);
	if (len >= sizeof(union nvme_sqe) && h->out[cid_of(next_capsule(h))] == UINT8_MAX)
		return;
	h->tainted = true;
	send_capsule(h, len);
}

uint32_t rdma_host_key(struct rdma_host *h, bool window)
{
	struct ibv_mr *mr = NULL;

	if (!window)
		return h->mr->rkey;
	if (h->nwindows < RHOST_WINDOWS)
		mr = v->reg_mr(h->pd, h->memory, sizeof(*h->memory), ALL_RIGHTS);
	if (mr)
		h->windows[h->nwindows++] = mr;
	else
		h->tainted = true; /* that key may be gone by now */
	return h->nwindows ? h->windows[h->nwindows - 1]->rkey : h->mr->rkey;
}

/* --- hearing ---------------------------------------------------------------------------------- */

static void accepted(struct rdma_host *h, const struct rdma_conn_param *param)
{
	struct nvme_rdma_accept answer;

	must(h->asked && !h->up && param->private_data_len >= sizeof(answer));
	memcpy(&answer, param->private_data, sizeof(answer));
	must(!answer.recfmt && answer.crqsize);
	must(h->tainted || le16_to_cpu(answer.crqsize) <= h->depth);
	h->up = true;
}

static void rejected(struct rdma_host *h, const struct rdma_cm_event *event)
{
	struct nvme_rdma_reject answer;

	h->ended = true;
	if (event->param.conn.private_data_len < sizeof(answer))
		return;
	memcpy(&answer, event->param.conn.private_data, sizeof(answer));
	must(!answer.recfmt && le16_to_cpu(answer.sts) <= NVME_RDMA_BAD_CNTLID);
}

static void hear_event(struct rdma_host *h, const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		accepted(h, &event->param.conn);
	else if (event->event == RDMA_CM_EVENT_REJECTED)
		rejected(h, event);
	else
		h->ended = true;
}

static bool is_connect(const union nvme_sqe *sqe)
{
	return sqe->common.opcode == NVME_FABRICS_OPCODE && sqe->connect.fctype == NVMF_CONNECT;
}

static void connected(struct rdma_host *h, const struct nvmf_connect_cmd *cmd, uint64_t result)
{
	h->connected = true;
	h->qid = le16_to_cpu(cmd->qid);
	h->sqsize = le16_to_cpu(cmd->sqsize) + 1u;
	h->cntlid = (uint16_t)result;
}

static void hear_answer(struct rdma_host *h, const struct ibv_wc *wc)
{
	struct nvme_cqe cqe;
	uint16_t cid;

	must(wc->byte_len == sizeof(cqe));
	memcpy(&cqe, h->memory->answers[wc->wr_id], sizeof(cqe));
	cid = le16_to_cpu(cqe.cid);
	must(h->out[cid]);
	must(cqe.status || h->out[cid] > 1 || !h->doomed[cid]);
	must(!(le16_to_cpu(cqe.status) & 1)); /* no phase on a fabric */
	h->out[cid]--;
	h->open--;
	h->status = le16_to_cpu(cqe.status);
	if (cid < RHOST_CIDS && is_connect(&h->cmds[cid]) && !cqe.status)
		connected(h, &h->cmds[cid].connect, le64_to_cpu(cqe.result));
	post_answer(h, wc->wr_id);
}

static void hear_completion(struct rdma_host *h, const struct ibv_wc *wc)
{
	if (wc->wr_id == SENT)
		h->sending--;
	if (wc->status != IBV_WC_SUCCESS)
		h->ended = true;
	else if (wc->wr_id != SENT)
		hear_answer(h, wc);
}

bool rdma_host_hear(struct rdma_host *h)
{
	struct rdma_cm_event *event;
	struct ibv_wc wc;
	bool heard = false;

	if (!h->channel || h->deaf)
		return false;
	for (; take_event(h, &event); heard = true) {
		hear_event(h, event);
		v->ack_cm_event(event);
	}
	for (; v->poll_cq(h->cq, 1, &wc) == 1; heard = true)
		hear_completion(h, &wc);
	return heard;
}

/* --- what the target may do ------------------------------------------------------------------- */

static uint64_t length(const struct ibv_send_wr *wr)
{
	uint64_t len = 0;

	for (int i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len;
}

static bool covers(const struct rdma_host_block *b, uint64_t addr, uint64_t len)
{
	return addr >= b->addr && len <= b->len && addr - b->addr <= b->len - len;
}

static bool allows(const struct rdma_host_block *b, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_INV:
		return b->invalidate && b->key == wr->invalidate_rkey;
	case IBV_WR_RDMA_READ:
		return b->direction == NVME_DIR_TO_CTRL && b->key == wr->wr.rdma.rkey &&
		       covers(b, wr->wr.rdma.remote_addr, length(wr));
	default:
		return b->direction == NVME_DIR_TO_HOST && b->key == wr->wr.rdma.rkey &&
		       covers(b, wr->wr.rdma.remote_addr, length(wr));
	}
}

void rdma_host_check(const struct rdma_host *h, const struct ibv_send_wr *wr)
{
	bool allowed = wr->opcode == IBV_WR_SEND;

	for (unsigned i = 0; i < h->nblocks && !allowed; i++)
		allowed = h->out[h->blocks[i].cid] && allows(&h->blocks[i], wr);
	must(allowed);
}

/* For an event, or for its other half. */
static bool may_wait(const struct rdma_host *h, unsigned cid)
{
	const struct nvme_cmd *cmd = &h->cmds[cid].common;

	return (!h->qid && cmd->opcode == nvme_admin_async_event) || cmd->flags & NVME_FUSE_MASK;
}

void rdma_host_check_settled(const struct rdma_host *h)
{
	if (!h->channel || h->tainted || h->ended || !h->connected || h->open >= h->sqsize)
		return;
	for (unsigned cid = 0; cid < RHOST_CIDS; cid++)
		must(!h->out[cid] || may_wait(h, cid));
}
