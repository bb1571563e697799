/* rx.c - the target receives commands: finds their connection, and where their data is.
 *
 * An SGL is checked once, here. An error is kept until the user wants the data: a command that
 * moves none may carry anything. */
#include <assert.h>
#include <string.h>

#include "transport/rdma/rdma.h"

static struct rdma_conn *conn_by_qp_num(struct rdma_poller *poller, uint32_t number)
{
	struct rdma_conn *conn = poller->conns_by_qp_num[number % RDMA_CONN_BUCKETS];

	while (conn && conn->qp_num != number)
		conn = conn->next;
	return conn;
}

/* --- where the data is ------------------------------------------------------------------------ */

static uint16_t add_block(struct rdma_req *rreq, const struct nvme_keyed_sgl *sgl)
{
	uint32_t length = nvme_keyed_sgl_length(sgl);

	if (sgl->type != NVME_SGL_KEYED && sgl->type != NVME_SGL_KEYED_INVALIDATE)
		return SC_GENERIC(SGL_INVALID_TYPE) | SC_DNR;
	if (sgl->type == NVME_SGL_KEYED_INVALIDATE && !rreq->nblocks)
		rreq->invalidate = true;
	assert(rreq->nblocks < RDMA_DESCRIPTORS);
	rreq->blocks[rreq->nblocks++] = (struct rdma_block){
		.addr = le64_to_cpu(sgl->addr),
		.length = length,
		.key = nvme_keyed_sgl_key(sgl),
	};
	rreq->sgl_len += length;
	return 0;
}

/* @room: bytes of the capsule behind the command. */
static bool is_inside(const struct nvme_sgl *sgl, uint32_t room)
{
	uint64_t offset = le64_to_cpu(sgl->addr);

	return offset <= room && le32_to_cpu(sgl->length) <= room - offset;
}

static uint16_t add_sgl_segment(struct rdma_req *rreq, const struct nvme_sgl *sgl,
				const struct rdma_recv *recv, uint32_t room)
{
	uint32_t length = le32_to_cpu(sgl->length), n = length / sizeof(struct nvme_keyed_sgl);
	struct nvme_keyed_sgl block;
	uint16_t sc = 0;

	if (!is_inside(sgl, room))
		return SC_GENERIC(SGL_INVALID_OFFSET) | SC_DNR;
	if (!n || length % sizeof(block))
		return SC_GENERIC(SGL_INVALID_LAST) | SC_DNR;
	if (n > RDMA_DESCRIPTORS)
		return SC_GENERIC(SGL_INVALID_COUNT) | SC_DNR;
	for (uint32_t i = 0; i < n && !sc; i++) {
		memcpy(&block, recv->data + le64_to_cpu(sgl->addr) + i * sizeof(block),
		       sizeof(block));
		sc = add_block(rreq, &block);
	}
	return sc;
}

static uint16_t take_capsule_data(struct rdma_req *rreq, const struct nvme_sgl *sgl,
				  struct rdma_recv *recv, uint32_t room)
{
	rreq->sgl_len = le32_to_cpu(sgl->length);
	if (nvme_cmd_direction(&rreq->req.cmd) != NVME_DIR_TO_CTRL)
		return SC_GENERIC(SGL_INVALID_TYPE) | SC_DNR;
	if (!is_inside(sgl, room))
		return SC_GENERIC(SGL_INVALID_OFFSET) | SC_DNR;
	if (rreq->sgl_len) {
		rreq->req.data = recv->data + le64_to_cpu(sgl->addr);
		rreq->recv = recv;
	}
	return 0;
}

static uint16_t parse_sgl(struct rdma_req *rreq, struct rdma_recv *recv, uint32_t room)
{
	const struct nvme_sgl *sgl = &rreq->req.cmd.common.sgl;

	switch (sgl->type) {
	case NVME_SGL_IN_CAPSULE:
		return take_capsule_data(rreq, sgl, recv, room);
	case NVME_SGL_LAST_IN_CAPSULE:
		return add_sgl_segment(rreq, sgl, recv, room);
	default:
		return add_block(rreq, (const struct nvme_keyed_sgl *)sgl);
	}
}

uint16_t rdma_check_sgl(struct weft_req *req, uint32_t len)
{
	struct rdma_req *rreq = rdma_req_of(req);

	if (rreq->sgl_status)
		return rreq->sgl_status;
	return rreq->sgl_len < len ? SC_GENERIC(SGL_INVALID_DATA) | SC_DNR : 0;
}

uint32_t rdma_sgl_len(struct weft_req *req)
{
	return rdma_req_of(req)->sgl_len;
}

/* --- commands --------------------------------------------------------------------------------- */

/* The command fails with Command Interrupted: some receives always stay free, for hosts whose
 * storage is not the slow one. */
static void interrupt_command(struct rdma_req *rreq)
{
	rreq->sgl_status = SC_GENERIC(CMD_INTERRUPTED);
	rreq->req.data = NULL;
	rreq->recv = NULL;
}

/* Other connections cannot use a held receive: when many are held, small data is copied to a
 * buffer. */
static void copy_out_of_receive(struct rdma_conn *conn, struct rdma_req *rreq)
{
	struct weft_pool *pool = weft_bufs_pool(conn->qp.in, rreq->sgl_len);
	void *at = weft_pool_take(pool);

	if (!at) {
		if (rreq->recv->owner->held >= rreq->recv->owner->room / 4 * 3)
			interrupt_command(rreq);
		return;
	}
	memcpy(at, rreq->req.data, rreq->sgl_len);
	weft_counter_add(&conn->qp.stats.copied_bytes, rreq->sgl_len);
	rreq->req.in = (struct weft_req_buf){ .pool = pool, .at = at };
	rreq->req.data = at;
	rreq->recv = NULL;
}

bool rdma_carries_ranges(const struct weft_req *req)
{
	return req->qp->rx_part && req->qp->sqid &&
	       nvme_io_traits(req->cmd.common.opcode) & NVME_IO_LIST;
}

/* Commands with range lists take long. They are not copied to a buffer, and those of one tenant may
 * hold a quarter of the shared receives. */
static void charge_range_list(struct rdma_conn *conn, struct rdma_req *rreq)
{
	const struct rdma_recvs *recvs = rreq->recv->owner;
	uint32_t most = recvs->srq ? recvs->room : UINT32_MAX;

	if (conn->qp.rx_part->pinned >= most / 4 || recvs->held >= most / 4 * 3)
		interrupt_command(rreq);
	else
		conn->qp.rx_part->pinned++;
}

static void start_command(struct rdma_conn *conn, struct rdma_recv *recv, uint32_t room)
{
	struct weft_req *req = weft_req_alloc(&conn->qp);
	struct rdma_req *rreq = req ? rdma_req_of(req) : NULL;

	if (!req) {
		rdma_recv_put(recv);
		weft_qpair_close(&conn->qp, "more commands than the queue holds");
		return;
	}
	memcpy(&req->cmd, recv->sqe, sizeof(req->cmd));
	weft_list_init(&rreq->link);
	weft_list_init(&req->waiter.link);
	rreq->recv = NULL;
	rreq->resp_buf = NULL;
	rreq->sgl_len = 0;
	rreq->nblocks = rreq->wrs = 0;
	rreq->invalidate = rreq->reading = rreq->held = false;
	rreq->sgl_status = parse_sgl(rreq, recv, room);
	if (rreq->recv && rdma_carries_ranges(req))
		charge_range_list(conn, rreq);
	else if (rreq->recv && recv->owner->held >= recv->owner->room / 2)
		copy_out_of_receive(conn, rreq);
	assert(!rreq->recv || rreq->recv == recv);
	if (rreq->recv)
		recv->owner->held++;
	else
		rdma_recv_put(recv);
	conn->qp.ops->command(req);
}

void rdma_recv_completed(struct rdma_poller *poller, const struct ibv_wc *wc)
{
	struct rdma_recv *recv = (struct rdma_recv *)(uintptr_t)wc->wr_id;
	struct rdma_conn *conn = conn_by_qp_num(poller, wc->qp_num);

	if (!conn || conn->state >= RDMA_CLOSING || wc->status != IBV_WC_SUCCESS) {
		rdma_recv_put(recv);
		if (conn && wc->status != IBV_WC_SUCCESS)
			rdma_conn_wc_error(conn, wc);
	} else if (wc->byte_len < RDMA_COMMAND) {
		rdma_recv_put(recv);
		weft_qpair_close(&conn->qp, "a capsule of %u bytes", wc->byte_len);
	} else {
		start_command(conn, recv, wc->byte_len - RDMA_COMMAND);
	}
}
