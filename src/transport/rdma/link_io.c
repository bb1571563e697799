/* link_io.c - the host's SENDs and RECVs: commands go, completions come.
 *
 *   submit ─▶ data (link_data.c) ─▶ ready ──end of the turn──▶ one chain of SENDs
 *
 *   FREE ─▶ PREPARING ─▶ SENDING ─ SEND completed ─▶ SENT ─ RECV ─▶ FREE, done()
 *              │            └─ RECV ─▶ ANSWERED ─ SEND completed ───▲
 *              └─ the adapter cannot reach its data ────────────────┘
 *
 * There is a receive for every command that may be in flight, and it is posted again before its
 * command's slot is free: the controller always finds one. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/status.h"
#include "transport/rdma/link.h"

/* wr_id: a slot's address for a SEND, 1 + 2 * index for a receive. */
enum { WR_RECV = 1, SEND_BATCH = 32 };

#define FROM(state) (1u << RDMA_SLOT_##state)

/* States that may come before. */
static const unsigned slot_edges[] = {
	[RDMA_SLOT_FREE] = FROM(PREPARING) | FROM(SENT) | FROM(ANSWERED),
	[RDMA_SLOT_PREPARING] = FROM(FREE),
	[RDMA_SLOT_SENDING] = FROM(PREPARING),
	[RDMA_SLOT_SENT] = FROM(SENDING),
	[RDMA_SLOT_ANSWERED] = FROM(SENDING),
};

static void slot_enter(struct rdma_link_slot *rs, enum rdma_slot_state state)
{
	assert(slot_edges[state] & 1u << rs->state);
	rs->state = state;
}

/* --- receives --------------------------------------------------------------------------------- */

static int post_receive(struct rdma_link *rl, uint32_t index)
{
	struct ibv_sge sge = { (uintptr_t)&rl->cqes[index], sizeof(struct nvme_cqe), rl->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2 * index | WR_RECV, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	assert(index < rl->receives);
	return -abs(rdma_verbs->post_recv(rl->id->qp, &wr, &bad));
}

int rdma_link_post_receives(struct rdma_link *rl)
{
	int rc = 0;

	for (uint32_t i = 0; i < rl->receives && rc == 0; i++)
		rc = post_receive(rl, i);
	return rc;
}

/* --- sends ------------------------------------------------------------------------------------ */

/* A command without data is small enough to go inline with its work request. */
static unsigned inline_flag(const struct rdma_link *rl, const struct rdma_link_slot *rs)
{
	return rs->nsge == 1 && rs->capsule_len <= rl->inline_max ? IBV_SEND_INLINE : 0;
}

static int fill_send_batch(struct rdma_link *rl, struct ibv_send_wr *wr)
{
	struct rdma_link_slot *rs;
	int n = 0;

	while (n < SEND_BATCH && !weft_list_empty(&rl->ready)) {
		rs = container_of(weft_list_pop(&rl->ready), struct rdma_link_slot, link);
		wr[n] = (struct ibv_send_wr){
			.wr_id = (uintptr_t)rs,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED | inline_flag(rl, rs),
			.sg_list = rs->sge,
			.num_sge = rs->nsge,
		};
		slot_enter(rs, RDMA_SLOT_SENDING);
		if (n)
			wr[n - 1].next = &wr[n];
		n++;
	}
	return n;
}

static void complete_slot(struct rdma_link *rl, struct rdma_link_slot *rs);

static void complete_refused(struct rdma_link *rl)
{
	struct rdma_link_slot *rs;

	while (rl->state == RDMA_LINK_OPEN && !weft_list_empty(&rl->refused)) {
		rs = container_of(weft_list_pop(&rl->refused), struct rdma_link_slot, link);
		rs->slot.cqe = (struct nvme_cqe){
			.cid = rs->slot.cmd.common.cid,
			.status = cpu_to_le16((SC_GENERIC(DATA_XFER_ERROR) | SC_DNR) << 1),
		};
		assert(rs->state == RDMA_SLOT_PREPARING);
		complete_slot(rl, rs);
	}
}

static void post_sends(struct weft_task *task)
{
	struct rdma_link *rl = container_of(task, struct rdma_link, flush);
	struct ibv_send_wr wr[SEND_BATCH], *bad;
	int n, rc = 0;

	complete_refused(rl);

	while (rc == 0 && rl->state == RDMA_LINK_OPEN && (n = fill_send_batch(rl, wr)) > 0) {
		rc = rdma_verbs->post_send(rl->id->qp, wr, &bad);
		rl->link.stats.posted += (uint64_t)n;
	}
	if (rc)
		weft_link_close(&rl->link, -abs(rc), "send: %s", strerror(abs(rc)));
}

void rdma_link_io_init(struct rdma_link *rl)
{
	weft_list_init(&rl->ready);
	weft_list_init(&rl->refused);
	weft_task_init(&rl->flush, post_sends);
}

void rdma_link_submit(struct weft_link *link, struct weft_link_slot *slot)
{
	struct rdma_link_slot *rs = rdma_link_slot_of(slot);

	slot->cmd.common.flags = (__u8)((slot->cmd.common.flags & 0x3f) | NVME_PSDT_SGL);
	slot_enter(rs, RDMA_SLOT_PREPARING);
	rdma_link_map_data(rdma_link_of(link), rs);
}

void rdma_link_refuse(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	assert(weft_list_empty(&rs->link));
	weft_list_push(&rl->refused, &rs->link);
	weft_reactor_defer(rl->link.reactor, &rl->flush);
}

void rdma_link_send(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	rs->capsule->sqe = rs->slot.cmd;
	rs->sge[0] = (struct ibv_sge){ (uintptr_t)rs->capsule, rs->capsule_len, rl->mr->lkey };
	assert(rs->state == RDMA_SLOT_PREPARING && weft_list_empty(&rs->link));
	weft_list_push(&rl->ready, &rs->link);
	weft_reactor_defer(rl->link.reactor, &rl->flush);
}

/* --- completions ------------------------------------------------------------------------------ */

static void complete_slot(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	slot_enter(rs, RDMA_SLOT_FREE);
	rdma_link_unmap_data(rl, rs);
	weft_link_complete(&rl->link, &rs->slot);
}

static void wc_failed(struct rdma_link *rl, const struct ibv_wc *wc)
{
	struct weft_queue_stats *stats = &rl->link.stats;

	stats->flushed += wc->status == IBV_WC_WR_FLUSH_ERR;
	stats->retried += wc->status == IBV_WC_RETRY_EXC_ERR;
	stats->rnr += wc->status == IBV_WC_RNR_RETRY_EXC_ERR;
	weft_link_close(&rl->link, wc->status == IBV_WC_RETRY_EXC_ERR ? -ETIMEDOUT : -ECONNRESET,
			"connection lost: %s", ibv_wc_status_str(wc->status));
}

static void response_received(struct rdma_link *rl, const struct nvme_cqe *cqe)
{
	uint16_t cid = le16_to_cpu(cqe->cid);
	struct weft_link_slot *slot = weft_link_find_slot(&rl->link, cid);
	struct rdma_link_slot *rs = slot ? rdma_link_slot_of(slot) : NULL;

	if (!rs || (rs->state != RDMA_SLOT_SENDING && rs->state != RDMA_SLOT_SENT)) {
		weft_link_close(&rl->link, -EPROTO,
				"a completion for command %u, which is not in flight", cid);
		return;
	}
	slot->cqe = *cqe;
	slot->moved = slot->data_len;
	if (rs->state == RDMA_SLOT_SENT)
		complete_slot(rl, rs);
	else
		slot_enter(rs, RDMA_SLOT_ANSWERED);
}

static void send_completed(struct rdma_link *rl, struct rdma_link_slot *rs)
{
	if (rs->state == RDMA_SLOT_ANSWERED)
		complete_slot(rl, rs);
	else if (rs->state == RDMA_SLOT_SENDING)
		slot_enter(rs, RDMA_SLOT_SENT);
}

static void recv_completed(struct rdma_link *rl, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)(wc->wr_id >> 1);
	struct nvme_cqe cqe = rl->cqes[index];
	int rc;

	if (wc->byte_len != sizeof(cqe)) {
		weft_link_close(&rl->link, -EPROTO, "a completion of %u bytes", wc->byte_len);
		return;
	}
	if (wc->wc_flags & IBV_WC_WITH_INV) { /* no command offers one */
		weft_link_close(&rl->link, -EPROTO, "the controller invalidated a key of ours");
		return;
	}
	rc = post_receive(rl, index);
	if (rc < 0)
		weft_link_close(&rl->link, rc, "receive: %s", strerror(-rc));
	else
		response_received(rl, &cqe);
}

void rdma_link_wc_done(struct rdma_cq *cq, const struct ibv_wc *wc)
{
	struct rdma_link *rl = container_of(cq, struct rdma_link, cq);

	if (rl->state >= RDMA_LINK_CLOSING)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		wc_failed(rl, wc);
	} else if (wc->wr_id & WR_RECV) {
		recv_completed(rl, wc);
	} else {
		send_completed(rl, (struct rdma_link_slot *)(uintptr_t)wc->wr_id);
	}
}
