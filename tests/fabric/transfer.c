/* transfer.c - carries out send requests: the memory of one end against that of the other.
 *
 * A request is carried out whole or not at all (fabric_part() aside), in the order of its queue. */
#include "fabric/internal.h"
#include "fabric/transfer.h"

enum { SEGS_MAX = 64 };

struct segs {
	unsigned count;
	struct {
		char *at;
		uint32_t len;
	} seg[SEGS_MAX];
};

static bool segs_of(struct ibv_pd *pd, const struct ibv_sge *sge, int count, int access,
		    struct segs *segs)
{
	segs->count = 0;
	for (int i = 0; i < count; i++) {
		char *at;

		if (!sge[i].length)
			continue;
		at = fabric_mem_at(pd, false, sge[i].lkey, sge[i].addr, sge[i].length, access);
		if (!at)
			return false;
		segs->seg[segs->count].at = at;
		segs->seg[segs->count++].len = sge[i].length;
	}
	return true;
}

static bool segs_here(struct fabric_qp *qp, const struct fabric_send *send, int access,
		      struct segs *segs)
{
	if (!send->inlined)
		return segs_of(qp->pub.pd, send->sge, send->wr.num_sge, access, segs);
	segs->count = 1;
	segs->seg[0].at = send->inlined;
	segs->seg[0].len = send->len;
	return true;
}

static bool segs_there(struct fabric_qp *peer, const struct fabric_send *send, int access,
		       struct segs *segs)
{
	segs->count = send->len ? 1 : 0;
	if (!send->len)
		return true;
	segs->seg[0].len = send->len;
	segs->seg[0].at = fabric_mem_at(peer->pub.pd, true, send->wr.wr.rdma.rkey,
					send->wr.wr.rdma.remote_addr, send->len, access);
	return segs->seg[0].at;
}

/* The first @len bytes of @from to @to, as far as they reach. */
static void segs_copy(struct segs *to, struct segs *from, uint32_t len)
{
	for (unsigned i = 0, j = 0; i < to->count && j < from->count && len;) {
		uint32_t n = to->seg[i].len < from->seg[j].len ? to->seg[i].len : from->seg[j].len;

		n = n < len ? n : len;
		memmove(to->seg[i].at, from->seg[j].at, n);
		fabric_count.copies++;
		len -= n;
		to->seg[i].at += n;
		from->seg[j].at += n;
		i += (to->seg[i].len -= n) == 0;
		j += (from->seg[j].len -= n) == 0;
	}
}

static uint64_t segs_len(const struct segs *segs)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < segs->count; i++)
		len += segs->seg[i].len;
	return len;
}

/* --- READ and WRITE --------------------------------------------------------------------------- */

enum ibv_wc_status fabric_wire_move(struct fabric_qp *qp, struct fabric_send *send, uint32_t len)
{
	bool read = send->wr.opcode == IBV_WR_RDMA_READ;
	int here = !read          ? 0 :
		   qp->dev->iwarp ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE :
				    IBV_ACCESS_LOCAL_WRITE;
	struct segs local, remote;

	if (!segs_here(qp, send, here, &local))
		return IBV_WC_LOC_PROT_ERR;
	if (read && !qp->initiator_depth)
		return IBV_WC_LOC_QP_OP_ERR;
	if (read && !qp->peer->responder_resources)
		return IBV_WC_REM_INV_REQ_ERR;
	if (!segs_there(qp->peer, send, read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE,
			&remote))
		return IBV_WC_REM_ACCESS_ERR;
	segs_copy(read ? &local : &remote, read ? &remote : &local, len);
	return IBV_WC_SUCCESS;
}

/* --- SEND ------------------------------------------------------------------------------------- */

static void recv_failed(struct fabric_qp *peer, enum ibv_wc_status status)
{
	fabric_qp_recv_done(peer, fabric_rq_pop(fabric_rq_of(peer)),
			    (struct ibv_wc){ .status = status }, false);
	fabric_qp_error(peer);
}

static void recv_done(struct fabric_qp *peer, const struct fabric_send *send)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .byte_len = send->len };

	if (send->wr.opcode == IBV_WR_SEND_WITH_INV) {
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = send->wr.invalidate_rkey;
	}
	fabric_count.recvs++;
	fabric_qp_recv_done(peer, fabric_rq_pop(fabric_rq_of(peer)), wc,
			    send->wr.send_flags & IBV_SEND_SOLICITED);
}

static bool invalidated(struct fabric_qp *peer, const struct fabric_send *send)
{
	if (send->wr.opcode != IBV_WR_SEND_WITH_INV)
		return true;
	fabric_count.invalidations++;
	return peer->dev->conf.invalidates &&
	       fabric_mem_invalidate(peer->pub.pd, send->wr.invalidate_rkey);
}

enum ibv_wc_status fabric_wire_send(struct fabric_qp *qp, struct fabric_send *send)
{
	struct fabric_qp *peer = qp->peer;
	struct fabric_recv *recv = container_of(fabric_rq_of(peer)->recvs.next, struct fabric_recv,
						link);
	enum ibv_wc_status fail = peer->fail_recv;
	struct segs local, remote;

	if (!segs_here(qp, send, 0, &local))
		return IBV_WC_LOC_PROT_ERR;
	if (!segs_of(peer->pub.srq ? peer->pub.srq->pd : peer->pub.pd, recv->sge, recv->wr.num_sge,
		     IBV_ACCESS_LOCAL_WRITE, &remote))
		fail = IBV_WC_LOC_PROT_ERR;
	else if (segs_len(&remote) < send->len)
		fail = IBV_WC_LOC_LEN_ERR;
	if (fail != IBV_WC_SUCCESS) {
		peer->fail_recv = IBV_WC_SUCCESS;
		recv_failed(peer, fail);
		return fail == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
	}
	if (!invalidated(peer, send))
		return IBV_WC_REM_ACCESS_ERR;
	segs_copy(&remote, &local, send->len);
	recv_done(peer, send);
	return IBV_WC_SUCCESS;
}
