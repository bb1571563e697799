/* qp.c - queue pairs: their life, what is posted to them, and how they end in ERR. */
#include "fabric/internal.h"
#include "fabric/ops.h"

static int cap_error(const struct fabric_dev *dev, const struct ibv_qp_init_attr *init)
{
	const struct ibv_device_attr *attr = &dev->conf.attr;
	const struct ibv_qp_cap *cap = &init->cap;

	if (!init->send_cq || !init->recv_cq || init->qp_type != IBV_QPT_RC)
		return EINVAL;
	if (cap->max_send_wr > (unsigned)attr->max_qp_wr ||
	    (!init->srq && cap->max_recv_wr > (unsigned)attr->max_qp_wr))
		return EINVAL;
	if (cap->max_send_sge > (unsigned)attr->max_sge ||
	    cap->max_recv_sge > (unsigned)attr->max_sge)
		return EINVAL;
	return cap->max_inline_data > dev->conf.max_inline ? EINVAL : 0;
}

static int create_error(const struct fabric_id *id, const struct ibv_pd *pd,
			const struct ibv_qp_init_attr *init)
{
	if (!id->pub.verbs || id->pub.qp || pd->context != id->pub.verbs)
		return EINVAL;
	if (init->srq && init->srq->pd->context != id->pub.verbs)
		return EINVAL;
	return id->dev->removed ? EIO : cap_error(id->dev, init);
}

static void qp_count_users(struct fabric_qp *qp, int by)
{
	container_of(qp->pub.send_cq, struct fabric_cq, pub)->users += (unsigned)by;
	container_of(qp->pub.recv_cq, struct fabric_cq, pub)->users += (unsigned)by;
	if (qp->pub.srq)
		container_of(qp->pub.srq, struct fabric_srq, pub)->users += (unsigned)by;
	container_of(qp->pub.pd, struct fabric_pd, pub)->users += (unsigned)by;
	fabric_count.qps += (unsigned)by;
}

static struct fabric_qp *qp_new(struct fabric_id *id, struct ibv_pd *pd,
				const struct ibv_qp_init_attr *init)
{
	struct fabric_qp *qp = fabric_new(sizeof(*qp));

	qp->pub = (struct ibv_qp){ .context = pd->context,
				   .qp_context = init->qp_context,
				   .pd = pd,
				   .send_cq = init->send_cq,
				   .recv_cq = init->recv_cq,
				   .srq = init->srq,
				   .handle = fabric_number(),
				   .qp_num = fabric_number() & 0xffffff,
				   .state = IBV_QPS_INIT,
				   .qp_type = init->qp_type };
	qp->dev = id->dev;
	qp->id = id;
	qp->cap = init->cap;
	qp->sig_all = init->sq_sig_all;
	qp->rq.max = init->srq ? 0 : init->cap.max_recv_wr;
	qp->rq.max_sge = init->cap.max_recv_sge;
	qp->hold = fabric_hold_all;
	weft_list_init(&qp->rq.recvs);
	weft_list_init(&qp->taken.recvs);
	weft_list_init(&qp->sends);
	weft_list_push(&fabric_qps, &qp->link);
	return qp;
}

int fabric_create_qp(struct rdma_cm_id *pub, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct fabric_id *id = fabric_id_in(pub);
	struct fabric_qp *qp;
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(create_qp);
	if (!pd)
		pd = pub->pd;
	errno = pd ? create_error(id, pd, init) : EINVAL;
	if (errno)
		return -1;
	qp = qp_new(id, pd, init);
	qp_count_users(qp, 1);
	pub->qp = &qp->pub;
	pub->pd = pd;
	pub->send_cq = init->send_cq;
	pub->recv_cq = init->recv_cq;
	pub->srq = init->srq;
	return 0;
}

/* --- completions ------------------------------------------------------------------------------ */

/* What adapters leave in a completion with an error is not to be relied on. */
static void poison_wc(struct ibv_wc *wc, bool receive)
{
	wc->opcode = receive ? IBV_WC_RDMA_READ : IBV_WC_RECV;
	wc->byte_len = 0xdeadbeef;
	wc->wc_flags = IBV_WC_WITH_INV;
	wc->invalidated_rkey = 0xdeadbeef;
	wc->vendor_err = 0x51;
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		fabric_count.flushed++;
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	default:
		return IBV_WC_SEND;
	}
}

static void send_free(struct fabric_send *send)
{
	weft_list_remove(&send->link);
	free(send->inlined);
	free(send);
}

void fabric_qp_send_done(struct fabric_qp *qp, struct fabric_send *send, enum ibv_wc_status status)
{
	struct fabric_cqe cqe = { .wc = { .wr_id = send->wr.wr_id,
					  .status = status,
					  .opcode = wc_opcode(send->wr.opcode),
					  .byte_len = send->len,
					  .qp_num = qp->pub.qp_num },
				  .slot = send->slot };

	if (status != IBV_WC_SUCCESS)
		poison_wc(&cqe.wc, false);
	if (status != IBV_WC_SUCCESS || qp->sig_all || send->wr.send_flags & IBV_SEND_SIGNALED)
		fabric_cq_push(qp->pub.send_cq, &cqe, false);
	send_free(send);
}

void fabric_qp_recv_done(struct fabric_qp *qp, struct fabric_recv *recv, struct ibv_wc wc,
			 bool solicited)
{
	struct fabric_cqe cqe = { .wc = wc };

	cqe.wc.wr_id = recv->wr.wr_id;
	cqe.wc.qp_num = qp->pub.qp_num;
	cqe.wc.src_qp = qp->peer_num;
	if (wc.status != IBV_WC_SUCCESS)
		poison_wc(&cqe.wc, true);
	fabric_cq_push(qp->pub.recv_cq, &cqe, solicited);
	free(recv);
}

static void flush_receives(struct fabric_qp *qp, struct fabric_rq *rq)
{
	struct fabric_recv *recv;

	while ((recv = fabric_rq_pop(rq)))
		fabric_qp_recv_done(qp, recv, (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR },
				    false);
}

static void flush_sends(struct fabric_qp *qp)
{
	while (!weft_list_empty(&qp->sends))
		fabric_qp_send_done(qp, container_of(qp->sends.next, struct fabric_send, link),
				    IBV_WC_WR_FLUSH_ERR);
	flush_receives(qp, &qp->rq);
}

static void last_reached(struct fabric_qp *qp)
{
	if (qp->pub.srq && !qp->dev->conf.never_last)
		fabric_async_push(qp->dev, (struct ibv_async_event){
						   .element.qp = &qp->pub,
						   .event_type = IBV_EVENT_QP_LAST_WQE_REACHED });
}

void fabric_qp_error(struct fabric_qp *qp)
{
	if (qp->pub.state == IBV_QPS_ERR)
		return;
	qp->pub.state = IBV_QPS_ERR;
	flush_sends(qp);
	if (!qp->taken.count)
		last_reached(qp);
}

void fabric_take_ahead(struct ibv_qp *pub, unsigned count)
{
	struct fabric_qp *qp = fabric_qp_in(pub);
	struct fabric_recv *recv;
	FABRIC_LOCKED;

	while (count-- && (recv = fabric_rq_pop(fabric_rq_of(qp)))) {
		weft_list_push(&qp->taken.recvs, &recv->link);
		qp->taken.count++;
	}
}

void fabric_hand_back(struct ibv_qp *pub)
{
	struct fabric_qp *qp = fabric_qp_in(pub);
	FABRIC_LOCKED;

	flush_receives(qp, &qp->taken);
	last_reached(qp);
}

void fabric_destroy_qp(struct rdma_cm_id *id)
{
	struct fabric_qp *qp = fabric_qp_in(id->qp);
	struct fabric_recv *recv;
	FABRIC_LOCKED;

	fabric_async_wait(qp);
	fabric_async_forget(qp->dev, &qp->pub);
	while (!weft_list_empty(&qp->sends))
		send_free(container_of(qp->sends.next, struct fabric_send, link));
	while ((recv = fabric_rq_pop(&qp->rq)) || (recv = fabric_rq_pop(&qp->taken)))
		free(recv);
	if (!qp->dev->conf.stale_cqes) {
		fabric_cq_forget(qp->pub.send_cq, qp->pub.qp_num);
		fabric_cq_forget(qp->pub.recv_cq, qp->pub.qp_num);
	}
	if (qp->peer)
		qp->peer->peer = NULL;
	qp_count_users(qp, -1);
	weft_list_remove(&qp->link);
	free(qp);
	id->qp = NULL;
	fabric_progress();
}

int fabric_post_recv(struct ibv_qp *pub, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fabric_qp *qp = fabric_qp_in(pub);
	int rc;
	FABRIC_LOCKED;

	*bad = wr;
	FABRIC_FAULT_IBV(post_recv);
	if (pub->srq || qp->dev->removed)
		return pub->srq ? EINVAL : EIO;
	fabric_count.recv_posts++;
	rc = fabric_rq_post(&qp->rq, wr, bad);
	if (pub->state == IBV_QPS_ERR)
		flush_sends(qp);
	fabric_progress();
	return rc;
}
