/* cq.c - completion queues and the channels that wake their readers.
 *
 * Armed, the next completion that comes gives one event and the arm is spent; completions that lie
 * in the queue already give none. That is the race every reader must close by polling again. */
#include "fabric/internal.h"
#include "fabric/ops.h"

static struct fabric_cq *cq_in(struct ibv_cq *cq)
{
	return container_of(cq, struct fabric_cq, pub);
}

static struct fabric_comp_channel *channel_in(struct ibv_comp_channel *channel)
{
	return container_of(channel, struct fabric_comp_channel, pub);
}

struct ibv_comp_channel *fabric_create_comp_channel(struct ibv_context *ctx)
{
	struct fabric_comp_channel *channel;
	FABRIC_LOCKED;

	FABRIC_FAULT_NULL(create_comp_channel);
	channel = fabric_new(sizeof(*channel));
	if (fabric_fifo_open(&channel->events) < 0) {
		free(channel);
		return NULL;
	}
	channel->pub.context = ctx;
	channel->pub.fd = channel->events.fd;
	fabric_count.comp_channels++;
	return &channel->pub;
}

int fabric_destroy_comp_channel(struct ibv_comp_channel *pub)
{
	struct fabric_comp_channel *channel = channel_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(destroy_comp_channel);
	if (pub->refcnt)
		return EBUSY;
	fabric_fifo_close(&channel->events);
	fabric_count.comp_channels--;
	free(channel);
	return 0;
}

static int cq_error(const struct fabric_dev *dev, int cqe, int vector)
{
	if (dev->removed)
		return EIO;
	if (cqe < 1 || cqe > dev->conf.attr.max_cqe)
		return EINVAL;
	return vector < 0 || vector >= dev->ctx.num_comp_vectors ? EINVAL : 0;
}

struct ibv_cq *fabric_create_cq(struct ibv_context *ctx, int cqe, void *context,
				struct ibv_comp_channel *channel, int vector)
{
	const struct fabric_dev *dev = fabric_dev_of(ctx);
	struct fabric_cq *cq;
	FABRIC_LOCKED;

	FABRIC_FAULT_NULL(create_cq);
	errno = cq_error(dev, cqe, vector);
	if (errno)
		return NULL;
	cq = fabric_new(sizeof(*cq));
	cq->ring = fabric_new((size_t)cqe * sizeof(*cq->ring));
	cq->pub.context = ctx;
	cq->pub.channel = channel;
	cq->pub.cq_context = context;
	cq->pub.handle = fabric_number();
	cq->pub.cqe = cqe;
	if (channel)
		channel->refcnt++;
	fabric_count.cqs++;
	return &cq->pub;
}

static void drop_events(struct fabric_cq *cq)
{
	struct fabric_comp_channel *channel = channel_in(cq->pub.channel);
	struct fabric_cq_event *event, *tmp;

	weft_list_for_each_safe(event, tmp, &channel->events.items, link)
		if (event->cq == cq) {
			fabric_fifo_remove(&channel->events, &event->link);
			free(event);
		}
	channel->pub.refcnt--;
}

int fabric_destroy_cq(struct ibv_cq *pub)
{
	struct fabric_cq *cq = cq_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(destroy_cq);
	if (cq->users)
		return EBUSY;
	if (cq->unacked)
		fabric_misuse("destroy_cq with %u event(s) not acknowledged", cq->unacked);
	if (pub->channel)
		drop_events(cq);
	fabric_async_forget(fabric_dev_of(pub->context), pub);
	fabric_count.cqs--;
	free(cq->ring);
	free(cq);
	return 0;
}

/* --- completions ------------------------------------------------------------------------------ */

static void wake(struct fabric_cq *cq)
{
	struct fabric_cq_event *event = fabric_new(sizeof(*event));

	event->cq = cq;
	fabric_fifo_push(&channel_in(cq->pub.channel)->events, &event->link);
}

void fabric_cq_push(struct ibv_cq *pub, const struct fabric_cqe *cqe, bool solicited)
{
	struct fabric_cq *cq = cq_in(pub);
	bool error = cqe->wc.status != IBV_WC_SUCCESS;

	if (cq->count == (unsigned)pub->cqe) {
		fabric_misuse("a CQ of %d entries is overrun", pub->cqe);
		return;
	}
	cq->ring[(cq->first + cq->count++) % (unsigned)pub->cqe] = *cqe;
	if (!cq->armed || (cq->solicited_only && !solicited && !error))
		return;
	cq->armed = false;
	if (pub->channel)
		wake(cq);
}

void fabric_cq_forget(struct ibv_cq *pub, uint32_t qp_num)
{
	struct fabric_cq *cq = cq_in(pub);
	unsigned size = (unsigned)pub->cqe, kept = 0;

	for (unsigned i = 0; i < cq->count; i++) {
		const struct fabric_cqe *cqe = &cq->ring[(cq->first + i) % size];

		if (cqe->wc.qp_num != qp_num)
			cq->ring[(cq->first + kept++) % size] = *cqe;
	}
	cq->count = kept;
}

/* The slots up to this one are free again. */
static void free_slots(const struct fabric_cqe *cqe)
{
	struct fabric_qp *qp;

	weft_list_for_each(qp, &fabric_qps, link)
		if (qp->pub.qp_num == cqe->wc.qp_num && cqe->slot > qp->freed)
			qp->freed = cqe->slot;
}

int fabric_poll_cq(struct ibv_cq *pub, int max, struct ibv_wc *wc)
{
	struct fabric_cq *cq = cq_in(pub);
	int n;
	FABRIC_LOCKED;

	if (fabric_fault("poll_cq"))
		return -1;
	for (n = 0; n < max && cq->count; n++) {
		const struct fabric_cqe *cqe = &cq->ring[cq->first];

		wc[n] = cqe->wc;
		free_slots(cqe);
		cq->first = (cq->first + 1) % (unsigned)pub->cqe;
		cq->count--;
	}
	return n;
}

/* --- events ----------------------------------------------------------------------------------- */

int fabric_req_notify_cq(struct ibv_cq *pub, int solicited_only)
{
	struct fabric_cq *cq = cq_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_IBV(req_notify_cq);
	/* An arm for everything is not weakened by a later one. */
	cq->solicited_only = solicited_only && (!cq->armed || cq->solicited_only);
	cq->armed = true;
	return 0;
}

int fabric_get_cq_event(struct ibv_comp_channel *pub, struct ibv_cq **cq, void **context)
{
	struct fabric_cq_event *event;
	struct weft_list *item;
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(get_cq_event);
	item = fabric_fifo_take(&channel_in(pub)->events);
	if (!item)
		return -1;
	event = container_of(item, struct fabric_cq_event, link);
	*cq = &event->cq->pub;
	*context = event->cq->pub.cq_context;
	event->cq->unacked++;
	free(event);
	return 0;
}

void fabric_ack_cq_events(struct ibv_cq *pub, unsigned count)
{
	struct fabric_cq *cq = cq_in(pub);
	FABRIC_LOCKED;

	if (count > cq->unacked)
		fabric_misuse("ack_cq_events of %u where %u were taken", count, cq->unacked);
	cq->unacked -= count;
}
