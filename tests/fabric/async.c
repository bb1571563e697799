/* async.c - what an adapter says unasked: of itself, or of a QP, a CQ, an SRQ of its.
 *
 * What it is about cannot be destroyed while the event is in somebody's hands, and takes the events
 * that nobody took with it. */
#include "fabric/internal.h"
#include "fabric/ops.h"

static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

static struct fabric_qp *qp_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
		return fabric_qp_in(event->element.qp);
	default:
		return NULL;
	}
}

void fabric_async_push(struct fabric_dev *dev, struct ibv_async_event event)
{
	struct fabric_async_event *async = fabric_new(sizeof(*async));

	async->event = event;
	fabric_fifo_push(&dev->async, &async->link);
}

static bool is_about(const struct ibv_async_event *event, const void *thing)
{
	return event->event_type != IBV_EVENT_DEVICE_FATAL && event->element.qp == thing;
}

void fabric_async_forget(struct fabric_dev *dev, const void *thing)
{
	struct fabric_async_event *event, *tmp;

	weft_list_for_each_safe(event, tmp, &dev->async.items, link)
		if (is_about(&event->event, thing)) {
			fabric_fifo_remove(&dev->async, &event->link);
			free(event);
		}
}

/* As destroy_qp() does; in one thread that would be for ever. */
void fabric_async_wait(struct fabric_qp *qp)
{
	if (qp->unacked_async && pthread_equal(qp->async_taker, pthread_self()))
		fabric_misuse("destroy_qp with an async event not acknowledged");
	else
		while (qp->unacked_async)
			pthread_cond_wait(&acked, &fabric_mutex);
}

int fabric_get_async_event(struct ibv_context *ctx, struct ibv_async_event *to)
{
	struct fabric_async_event *event;
	struct fabric_qp *qp;
	struct weft_list *item;
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(get_async_event);
	item = fabric_fifo_take(&fabric_dev_of(ctx)->async);
	if (!item)
		return -1;
	event = container_of(item, struct fabric_async_event, link);
	*to = event->event;
	free(event);
	qp = qp_of(to);
	if (qp) {
		qp->unacked_async++;
		qp->async_taker = pthread_self();
	}
	return 0;
}

void fabric_ack_async_event(struct ibv_async_event *event)
{
	struct fabric_qp *qp = qp_of(event);
	FABRIC_LOCKED;

	if (!qp)
		return;
	qp->unacked_async--;
	pthread_cond_broadcast(&acked);
}

/* --- the test's ------------------------------------------------------------------------------- */

void fabric_async(const char *device, enum ibv_event_type type)
{
	struct fabric_dev *dev = fabric_dev_of(fabric_context(device));
	FABRIC_LOCKED;

	fabric_async_push(dev,
			  (struct ibv_async_event){ .element.port_num = 1, .event_type = type });
}

void fabric_async_of(struct ibv_qp *qp, enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.qp = qp, .event_type = type };
	FABRIC_LOCKED;

	if (type == IBV_EVENT_CQ_ERR)
		event.element.cq = qp->recv_cq;
	else if (type == IBV_EVENT_SRQ_ERR)
		event.element.srq = qp->srq;
	fabric_async_push(fabric_qp_in(qp)->dev, event);
}
