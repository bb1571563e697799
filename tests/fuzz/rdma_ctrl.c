/* rdma_ctrl.c - a controller's end of an RDMA link. */
#include "rdma_ctrl.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>

#include "must.h"
#include "proto/rdma.h"

enum {
	COMMAND = sizeof(union nvme_sqe),
	CAPSULES = 16,
	CAPSULE = COMMAND + 8192 + RPEER_BLOCKS * 16,
	ANSWERS = 64,
	ANSWER = 64,
	WRS = 256,
	ALL_RIGHTS = 7,
	/* wr_id: of a receive its index, of a READ this and the order. */
	SENT = 1 << 8,
	READ = 1 << 9,
};

struct rdma_peer rdma_peer;

/* Where an order's data is, as its command said. */
static struct place {
	bool inside; /* the capsule */
	unsigned count;
	struct nvme_keyed_sgl blocks[RPEER_BLOCKS];
	uint32_t asked; /* bytes of the READ under way */
} places[ORDERS_MAX];

static struct memory {
	uint8_t capsules[CAPSULES][CAPSULE];
	uint8_t answers[ANSWERS][ANSWER];
	uint8_t data[ORDERS_MAX][ORDER_LEN_MAX]; /* of each order, read or to be written */
} memory;
static unsigned answers;

static const struct rdma_verbs *const v = &fabric_verbs;

/* --- beginning and end ------------------------------------------------------------------------ */

static void listen_there(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(RPEER_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	must(!v->create_id(rdma_peer.channel, &rdma_peer.listener, NULL, RDMA_PS_TCP));
	must(!v->bind_addr(rdma_peer.listener, (struct sockaddr *)&at));
	must(!v->listen(rdma_peer.listener, 4));
}

void rdma_ctrl_open(bool nobody)
{
	rdma_peer = (struct rdma_peer){ .open = true, .channel = v->create_event_channel() };
	must(rdma_peer.channel && fcntl(rdma_peer.channel->fd, F_SETFL, O_NONBLOCK) == 0);
	if (!nobody)
		listen_there();
	memset(places, 0, sizeof(places));
	answers = 0;
}

static void drop_queue_pair(void)
{
	if (rdma_peer.id->qp)
		v->destroy_qp(rdma_peer.id);
	if (rdma_peer.mr)
		must(!v->dereg_mr(rdma_peer.mr));
	if (rdma_peer.cq)
		must(!v->destroy_cq(rdma_peer.cq));
	if (rdma_peer.pd)
		must(!v->dealloc_pd(rdma_peer.pd));
}

void rdma_ctrl_close(void)
{
	if (!rdma_peer.open)
		return;
	rdma_peer.open = false;
	rdma_peer.ended = true;
	if (rdma_peer.id) {
		drop_queue_pair();
		must(!v->destroy_id(rdma_peer.id));
	}
	if (rdma_peer.listener)
		must(!v->destroy_id(rdma_peer.listener));
	v->destroy_event_channel(rdma_peer.channel);
}

struct ibv_qp *rdma_ctrl_qp(void)
{
	return rdma_peer.open && rdma_peer.id ? rdma_peer.id->qp : NULL;
}

/* --- the connection --------------------------------------------------------------------------- */

static void post_receive(uint64_t index)
{
	struct ibv_sge sge = { (uintptr_t)memory.capsules[index], CAPSULE, rdma_peer.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 }, *bad;

	rdma_peer.tainted |= v->post_recv(rdma_peer.id->qp, &wr, &bad) != 0;
}

static bool make_queue_pair(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = WRS,
						  .max_recv_wr = CAPSULES,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	struct ibv_context *ctx = rdma_peer.id->verbs;

	rdma_peer.pd = v->alloc_pd(ctx);
	if (!rdma_peer.pd)
		return false;
	rdma_peer.cq = v->create_cq(ctx, WRS + CAPSULES, NULL, NULL, 0);
	rdma_peer.mr = v->reg_mr(rdma_peer.pd, &memory, sizeof(memory), ALL_RIGHTS);
	init.send_cq = init.recv_cq = rdma_peer.cq;
	if (!rdma_peer.cq || !rdma_peer.mr || v->create_qp(rdma_peer.id, rdma_peer.pd, &init) < 0)
		return false;
	for (uint64_t i = 0; i < CAPSULES; i++)
		post_receive(i);
	return true;
}

void rdma_ctrl_accept(const void *bytes, uint8_t len)
{
	const struct nvme_rdma_accept answer = { .crqsize = cpu_to_le16(
							 (uint16_t)rdma_peer.depth) };
	struct rdma_conn_param param = { .private_data = bytes ? bytes : &answer,
					 .private_data_len = bytes ? len : sizeof(answer),
					 .initiator_depth = 4,
					 .rnr_retry_count = 7 };

	if (!rdma_peer.open || !rdma_peer.asked || rdma_peer.answered)
		return;
	rdma_peer.answered = true;
	rdma_peer.tainted |= bytes != NULL;
	if (!make_queue_pair() || v->accept(rdma_peer.id, &param) < 0)
		rdma_peer.tainted = true;
}

void rdma_ctrl_reject(const void *bytes, uint8_t len)
{
	if (!rdma_peer.open || !rdma_peer.asked || rdma_peer.answered)
		return;
	rdma_peer.answered = rdma_peer.ended = true;
	v->reject(rdma_peer.id, bytes, len);
}

void rdma_ctrl_disconnect(void)
{
	if (!rdma_peer.open || !rdma_peer.id)
		return;
	rdma_peer.ended = true;
	v->disconnect(rdma_peer.id);
}

static void on_request(const struct rdma_cm_event *event)
{
	struct nvme_rdma_request request;

	must(!rdma_peer.asked && event->param.conn.private_data_len >= sizeof(request));
	memcpy(&request, event->param.conn.private_data, sizeof(request));
	must(!request.recfmt && le16_to_cpu(request.hsqsize) == rdma_peer.depth &&
	     le16_to_cpu(request.hrqsize) > rdma_peer.depth);
	rdma_peer.id = event->id;
	rdma_peer.asked = true;
}

static void hear_event(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		on_request(event);
	else if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		rdma_peer.up = true;
}

/* --- commands --------------------------------------------------------------------------------- */

static uint32_t place_len(const struct place *place)
{
	uint32_t len = 0;

	for (unsigned i = 0; i < place->count; i++)
		len += nvme_keyed_sgl_length(&place->blocks[i]);
	return len;
}

static void take_list(struct place *place, const struct nvme_sgl *sgl, const uint8_t *capsule,
		      uint32_t len)
{
	uint32_t length = le32_to_cpu(sgl->length);

	place->count = length / (uint32_t)sizeof(place->blocks[0]);
	must(!sgl->addr && length == len - COMMAND && place->count > 1 &&
	     place->count <= RPEER_BLOCKS && length % sizeof(place->blocks[0]) == 0);
	memcpy(place->blocks, capsule + COMMAND, length);
}

static void take_place(struct order *o, const uint8_t *capsule, uint32_t len)
{
	struct place *place = &places[o - orders];
	struct nvme_sgl sgl;

	memcpy(&sgl, capsule + offsetof(struct nvme_cmd, sgl), sizeof(sgl));
	place->inside = sgl.type == NVME_SGL_IN_CAPSULE;
	if (place->inside) {
		must(order_direction(o) == NVME_DIR_TO_CTRL && o->len <= rdma_peer.capsule);
		must(!sgl.addr && le32_to_cpu(sgl.length) == o->len && len == COMMAND + o->len);
		must(!memcmp(capsule + COMMAND, order_bytes(o, 0), o->len));
		return;
	}
	if (sgl.type == NVME_SGL_LAST_IN_CAPSULE) {
		take_list(place, &sgl, capsule, len);
	} else {
		must(sgl.type == NVME_SGL_KEYED && len == COMMAND);
		memcpy(&place->blocks[0], &sgl, sizeof(sgl));
		place->count = 1;
	}
	must(place->count <= (rdma_peer.blocks ? rdma_peer.blocks : 1) || place->count == 1);
	must(place_len(place) == o->len);
}

static void hear_capsule(const uint8_t *capsule, uint32_t len)
{
	union nvme_sqe sqe;
	struct order *o;

	must(len >= COMMAND);
	memcpy(&sqe, capsule, COMMAND);
	o = order_find(le16_to_cpu(sqe.common.cid));
	must(o && !o->seen && sqe.common.opcode == o->sqe.common.opcode);
	must((sqe.common.flags & 0xc0) == 0x40);
	o->seen = true;
	take_place(o, capsule, len);
}

/* Whether what was read is what is there. */
static void hear_read(unsigned index)
{
	if (!rdma_peer.tainted && order_is_open(&orders[index]))
		must(!memcmp(memory.data[index], order_bytes(&orders[index], 0),
			     places[index].asked));
}

static void hear_completion(const struct ibv_wc *wc)
{
	if (wc->wr_id >= SENT)
		rdma_peer.busy--;
	if (wc->status != IBV_WC_SUCCESS)
		rdma_peer.ended = true;
	else if (wc->wr_id & READ)
		hear_read((unsigned)wc->wr_id & (SENT - 1));
	else if (wc->wr_id < SENT) {
		hear_capsule(memory.capsules[wc->wr_id], wc->byte_len);
		post_receive(wc->wr_id);
	}
}

bool rdma_ctrl_hear(void)
{
	struct rdma_cm_event *event;
	struct ibv_wc wc;
	bool heard = false;

	for (; rdma_peer.open && !v->get_cm_event(rdma_peer.channel, &event); heard = true) {
		hear_event(event);
		v->ack_cm_event(event);
	}
	for (; rdma_peer.open && rdma_peer.cq && v->poll_cq(rdma_peer.cq, 1, &wc) == 1;
	     heard = true)
		hear_completion(&wc);
	return heard;
}

/* --- answers ---------------------------------------------------------------------------------- */

static bool can_post(void)
{
	return rdma_ctrl_qp() && rdma_peer.up && !rdma_peer.ended &&
	       rdma_peer.busy < WRS - RPEER_BLOCKS;
}

static void post(struct ibv_send_wr *wr, const void *at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)at, len, rdma_peer.mr->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (v->post_send(rdma_peer.id->qp, wr, &bad))
		rdma_peer.ended = true;
	else
		rdma_peer.busy++;
}

/* @len bytes, from or to the order's blocks in turn. */
static void move(const struct order *o, enum ibv_wr_opcode opcode, uint64_t id, uint8_t *at,
		 uint32_t len)
{
	const struct place *place = &places[o - orders];

	for (unsigned i = 0; i < place->count && len; i++) {
		const struct nvme_keyed_sgl *block = &place->blocks[i];
		uint32_t n = nvme_keyed_sgl_length(block);
		struct ibv_send_wr wr = { .opcode = opcode,
					  .wr_id = i + 1 < place->count && n < len ? SENT : id };

		n = n < len ? n : len;
		wr.wr.rdma.remote_addr = le64_to_cpu(block->addr);
		wr.wr.rdma.rkey = nvme_keyed_sgl_key(block);
		post(&wr, at, n);
		at += n;
		len -= n;
	}
}

static bool is_to_be_read(const struct order *o)
{
	return o->seen && order_direction(o) == NVME_DIR_TO_CTRL && !places[o - orders].inside;
}

void rdma_ctrl_read(struct order *o, uint32_t len)
{
	unsigned index = (unsigned)(o - orders);

	if (!can_post() || !is_to_be_read(o) || places[index].asked)
		return;
	places[index].asked = len < o->len ? len : o->len;
	move(o, IBV_WR_RDMA_READ, READ | index, memory.data[index], places[index].asked);
}

void rdma_ctrl_write(struct order *o, uint32_t len)
{
	if (!can_post() || !o->seen || order_direction(o) != NVME_DIR_TO_HOST)
		return;
	len = len < o->len ? len : o->len;
	memcpy(memory.data[o - orders], order_bytes(o, 0), len);
	move(o, IBV_WR_RDMA_WRITE, SENT, memory.data[o - orders], len);
	o->received = len > o->received ? len : o->received;
}

static void answer(enum ibv_wr_opcode opcode, const void *bytes, uint32_t len, uint32_t key)
{
	struct ibv_send_wr wr = { .opcode = opcode, .wr_id = SENT, .invalidate_rkey = key };
	uint8_t *at = memory.answers[answers++ % ANSWERS];

	must(len <= ANSWER);
	if (len)
		memcpy(at, bytes, len);
	post(&wr, at, len);
}

bool rdma_ctrl_resp(const struct nvme_cqe *cqe, uint32_t key)
{
	if (!can_post())
		return false;
	answer(key ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND, cqe, sizeof(*cqe), key);
	return true;
}

void rdma_ctrl_raw(const void *bytes, uint32_t len)
{
	if (!can_post())
		return;
	rdma_peer.tainted = true;
	answer(IBV_WR_SEND, bytes, len, 0);
}

uint32_t rdma_ctrl_key(const struct order *o)
{
	const struct place *place = &places[o - orders];

	return place->count ? nvme_keyed_sgl_key(&place->blocks[0]) : 0;
}
