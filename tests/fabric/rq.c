/* rq.c - receives: of one QP, or of many that share them. */
#include "fabric/internal.h"
#include "fabric/ops.h"

static struct fabric_srq *srq_in(struct ibv_srq *srq)
{
	return container_of(srq, struct fabric_srq, pub);
}

struct fabric_rq *fabric_rq_of(struct fabric_qp *qp)
{
	return qp->pub.srq ? &srq_in(qp->pub.srq)->rq : &qp->rq;
}

static int recv_add(struct fabric_rq *rq, const struct ibv_recv_wr *wr)
{
	struct fabric_recv *recv;

	if (wr->num_sge < 0 || (unsigned)wr->num_sge > rq->max_sge)
		return EINVAL;
	if (rq->count == rq->max)
		return ENOMEM;
	recv = fabric_new(sizeof(*recv) + (size_t)wr->num_sge * sizeof(*recv->sge));
	recv->wr = *wr;
	recv->wr.sg_list = recv->sge;
	if (wr->num_sge)
		memcpy(recv->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*recv->sge));
	weft_list_push(&rq->recvs, &recv->link);
	rq->count++;
	return 0;
}

int fabric_rq_post(struct fabric_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr; wr = wr->next) {
		int rc = recv_add(rq, wr);

		if (rc) {
			*bad = wr;
			return rc;
		}
	}
	return 0;
}

struct fabric_recv *fabric_rq_pop(struct fabric_rq *rq)
{
	struct weft_list *item = weft_list_pop(&rq->recvs);

	if (!item)
		return NULL;
	rq->count--;
	return container_of(item, struct fabric_recv, link);
}

unsigned fabric_receives(struct ibv_qp *qp)
{
	FABRIC_LOCKED;

	return fabric_rq_of(fabric_qp_in(qp))->count;
}

/* --- shared ----------------------------------------------------------------------------------- */

static int srq_error(const struct fabric_dev *dev, const struct ibv_srq_attr *attr)
{
	if (dev->removed)
		return EIO;
	if (dev->srqs >= (unsigned)dev->conf.attr.max_srq)
		return ENOMEM;
	if (!attr->max_wr || attr->max_wr > (unsigned)dev->conf.attr.max_srq_wr ||
	    attr->max_sge > (unsigned)dev->conf.attr.max_srq_sge)
		return EINVAL;
	return 0;
}

struct ibv_srq *fabric_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct fabric_dev *dev = fabric_dev_of(pd->context);
	struct fabric_srq *srq;
	FABRIC_LOCKED;

	FABRIC_FAULT_NULL(create_srq);
	errno = srq_error(dev, &init->attr);
	if (errno)
		return NULL;
	srq = fabric_new(sizeof(*srq));
	srq->pub.context = pd->context;
	srq->pub.srq_context = init->srq_context;
	srq->pub.pd = pd;
	srq->pub.handle = fabric_number();
	weft_list_init(&srq->rq.recvs);
	srq->rq.max = init->attr.max_wr;
	srq->rq.max_sge = init->attr.max_sge;
	container_of(pd, struct fabric_pd, pub)->users++;
	dev->srqs++;
	fabric_count.srqs++;
	return &srq->pub;
}

int fabric_destroy_srq(struct ibv_srq *pub)
{
	struct fabric_srq *srq = srq_in(pub);
	struct fabric_recv *recv;
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(destroy_srq);
	if (srq->users)
		return EBUSY;
	fabric_async_forget(fabric_dev_of(pub->context), pub);
	while ((recv = fabric_rq_pop(&srq->rq)))
		free(recv);
	container_of(pub->pd, struct fabric_pd, pub)->users--;
	fabric_dev_of(pub->context)->srqs--;
	fabric_count.srqs--;
	free(srq);
	return 0;
}

int fabric_post_srq_recv(struct ibv_srq *pub, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int rc;
	FABRIC_LOCKED;

	*bad = wr;
	FABRIC_FAULT_IBV(post_srq_recv);
	if (fabric_dev_of(pub->context)->removed)
		return EIO;
	fabric_count.srq_posts++;
	rc = fabric_rq_post(&srq_in(pub)->rq, wr, bad);
	fabric_progress();
	return rc;
}
