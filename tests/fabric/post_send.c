/* post_send.c - send requests, as post_send() takes them; and what can be asked of a QP. */
#include "fabric/internal.h"
#include "fabric/ops.h"

static uint64_t serial;

static bool can_invalidate(const struct fabric_dev *dev)
{
	return dev->conf.attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS &&
	       !dev->conf.refuses_inv;
}

static int send_error(const struct fabric_qp *qp, const struct ibv_send_wr *wr, uint64_t len)
{
	bool read = wr->opcode == IBV_WR_RDMA_READ;

	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_INV &&
	    wr->opcode != IBV_WR_RDMA_WRITE && !read)
		return EINVAL;
	if (wr->opcode == IBV_WR_SEND_WITH_INV && !can_invalidate(qp->dev))
		return EINVAL;
	if (wr->num_sge < 0 || (unsigned)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	if (read && wr->num_sge > qp->dev->conf.attr.max_sge_rd)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && (read || len > qp->cap.max_inline_data))
		return EINVAL;
	if (len > qp->dev->conf.port.max_msg_sz)
		return EINVAL;
	return qp->posted - qp->freed == qp->cap.max_send_wr ? ENOMEM : 0;
}

static uint64_t wr_len(const struct ibv_send_wr *wr)
{
	uint64_t len = 0;

	for (int i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len;
}

static void take_inline(struct fabric_send *send)
{
	size_t at = 0;

	send->inlined = fabric_new(send->len + 1);
	for (int i = 0; i < send->wr.num_sge; i++) {
		memcpy(send->inlined + at, (const void *)(uintptr_t)send->sge[i].addr,
		       send->sge[i].length);
		at += send->sge[i].length;
	}
	fabric_count.inlined++;
}

static int send_add(struct fabric_qp *qp, const struct ibv_send_wr *wr)
{
	struct fabric_send *send;
	uint64_t len = wr_len(wr);
	int rc = send_error(qp, wr, len);

	if (rc)
		return rc;
	send = fabric_new(sizeof(*send) + (size_t)wr->num_sge * sizeof(*send->sge));
	send->wr = *wr;
	send->wr.next = NULL;
	send->wr.sg_list = send->sge;
	if (wr->num_sge)
		memcpy(send->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*send->sge));
	send->len = (uint32_t)len;
	send->slot = ++qp->posted;
	send->serial = ++serial;
	if (wr->send_flags & IBV_SEND_INLINE)
		take_inline(send);
	weft_list_push(&qp->sends, &send->link);
	if (qp->pub.state == IBV_QPS_ERR)
		fabric_qp_send_done(qp, send, IBV_WC_WR_FLUSH_ERR);
	return 0;
}

int fabric_post_send(struct ibv_qp *pub, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fabric_qp *qp = fabric_qp_in(pub);
	int rc = 0;
	FABRIC_LOCKED;

	*bad = wr;
	FABRIC_FAULT_IBV(post_send);
	if (qp->dev->removed)
		return EIO;
	if (pub->state != IBV_QPS_RTS && pub->state != IBV_QPS_ERR)
		return EINVAL;
	fabric_count.posts++;
	for (; wr && !rc; wr = rc ? wr : wr->next) {
		rc = send_add(qp, wr);
		*bad = wr;
	}
	fabric_progress();
	return rc;
}

/* --- states ----------------------------------------------------------------------------------- */

void fabric_qp_connected(struct fabric_qp *qp)
{
	if (qp->pub.state == IBV_QPS_INIT)
		qp->pub.state = IBV_QPS_RTS;
	fabric_progress();
}

int fabric_modify_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask)
{
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(modify_qp);
	if (fabric_qp_in(pub)->dev->removed)
		return EIO;
	if (!(mask & IBV_QP_STATE))
		return 0;
	if (attr->qp_state == IBV_QPS_RTS && pub->state == IBV_QPS_RTS)
		return 0; /* only its attributes */
	if (attr->qp_state != IBV_QPS_ERR)
		return EINVAL;
	fabric_qp_error(fabric_qp_in(pub));
	fabric_progress();
	return 0;
}

static void query_path(const struct fabric_qp *qp, struct ibv_qp_attr *attr)
{
	const struct fabric_id *id = qp->id;

	attr->path_mtu = qp->path_mtu;
	attr->dest_qp_num = qp->peer_num;
	attr->port_num = attr->ah_attr.port_num = id->pub.port_num;
	attr->timeout = id->ack_timeout ? id->ack_timeout : 19;
	attr->retry_cnt = qp->retries;
	attr->rnr_retry = qp->rnr_retries;
	attr->max_rd_atomic = qp->initiator_depth;
	attr->max_dest_rd_atomic = qp->responder_resources;
	if (qp->dev->iwarp)
		return;
	attr->ah_attr.is_global = 1;
	attr->ah_attr.grh.dgid = id->pub.route.addr.addr.ibaddr.dgid;
	attr->ah_attr.grh.sgid_index = id->pub.route.addr.src_addr.sa_family == AF_INET ? 3 : 5;
	attr->ah_attr.grh.hop_limit = 64;
	attr->ah_attr.grh.traffic_class = id->tos;
}

int fabric_query_qp(struct ibv_qp *pub, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init)
{
	const struct fabric_qp *qp = fabric_qp_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(query_qp);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = attr->cur_qp_state = pub->state;
	attr->cap = qp->cap;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	query_path(qp, attr);
	*init = (struct ibv_qp_init_attr){ .qp_context = pub->qp_context,
					   .send_cq = pub->send_cq,
					   .recv_cq = pub->recv_cq,
					   .srq = pub->srq,
					   .cap = qp->cap,
					   .qp_type = pub->qp_type,
					   .sq_sig_all = qp->sig_all };
	return 0;
}
