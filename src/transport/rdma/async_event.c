/* async_event.c - the adapter's asynchronous events: a queue pair has no receives left, a queue
 * failed, a port went down.
 *
 *   async descriptor ─▶ whichever reactor wakes first ─▶ the object's own reactor ─▶ on_event()
 *                          └ about the adapter itself ─▶ every reactor that uses it ─▶ fatal()
 *
 * An adapter has one async descriptor per process, and an event can be read once. So every reactor
 * that uses the adapter watches it; the one that wakes first reads the event and queues it for the
 * reactor that owns the object. The owner is looked up before the event is acknowledged: until then
 * the object cannot be destroyed, and no other can get its address. The program may have queue
 * pairs of its own on the adapter, so only addresses are compared. */
#include "transport/rdma/async_event.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "lock/mutex.h"

static struct weft_mutex lock = WEFT_MUTEX_INITIALIZER; /* of all subscribers */

/* --- reading ---------------------------------------------------------------------------------- */

static void post_delivery(struct rdma_async_subscriber *async)
{
	assert_locked(&lock);
	if (async->posted)
		return;
	async->posted = true;
	weft_reactor_post(async->reactor, &async->msg);
}

static struct rdma_async_events *find_in_list(struct weft_list *list, const void *object)
{
	struct rdma_async_events *events;

	weft_list_for_each(events, list, link)
		if (events->object == object)
			return events;
	return NULL;
}

static struct rdma_async_events *find_events_of(struct rdma_dev *dev, const void *object)
{
	struct rdma_async_events *events = NULL;
	struct rdma_async_subscriber *async;

	assert_locked(&lock);
	weft_list_for_each(async, &dev->subscribers, link) {
		events = find_in_list(&async->pending, object);
		if (!events)
			events = find_in_list(&async->quiet, object);
		if (events)
			break;
	}
	return events;
}

static void queue_object_event(struct rdma_dev *dev, const void *object, enum ibv_event_type type)
{
	struct rdma_async_events *events;

	weft_mutex_lock(&lock);
	events = find_events_of(dev, object);
	if (events) {
		events->types |= 1u << type;
		weft_list_remove(&events->link);
		weft_list_push(&events->async->pending, &events->link);
		post_delivery(events->async);
	}
	weft_mutex_unlock(&lock);
}

static void queue_device_fatal(struct rdma_dev *dev)
{
	struct rdma_async_subscriber *async;

	weft_error("%s: the adapter failed; connections over it end", dev->ctx->device->name);
	rdma_devs_note_removal();
	weft_mutex_lock(&lock);
	weft_list_for_each(async, &dev->subscribers, link) {
		async->failed = true;
		post_delivery(async);
	}
	weft_mutex_unlock(&lock);
}

static void dispatch_event(struct rdma_dev *dev, const struct ibv_async_event *event)
{
	const char *name = dev->ctx->device->name;

	switch (event->event_type) {
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		queue_object_event(dev, event->element.qp, event->event_type);
		break;
	case IBV_EVENT_CQ_ERR:
		queue_object_event(dev, event->element.cq, event->event_type);
		break;
	case IBV_EVENT_SRQ_ERR:
		queue_object_event(dev, event->element.srq, event->event_type);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		queue_device_fatal(dev);
		break;
	case IBV_EVENT_PORT_ERR:
		weft_warn("%s: port %d is down: is there a link?", name, event->element.port_num);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		weft_info("%s: port %d is up", name, event->element.port_num);
		break;
	default:
		weft_debug("%s: %s", name, ibv_event_type_str(event->event_type));
		break;
	}
}

static void async_fd_readable(struct rdma_watch *watch)
{
	struct rdma_dev *dev = container_of(watch, struct rdma_async_subscriber, watch)->dev;
	struct ibv_async_event event;

	while (!rdma_verbs->get_async_event(dev->ctx, &event)) {
		dispatch_event(dev, &event);
		rdma_verbs->ack_async_event(&event);
	}
}

/* --- delivery --------------------------------------------------------------------------------- */

/* The next event of an object of this reactor; NULL: there is none. */
static struct rdma_async_events *next_event(struct rdma_async_subscriber *async,
					    enum ibv_event_type *type)
{
	struct rdma_async_events *events = NULL;

	weft_mutex_lock(&lock);
	if (!weft_list_empty(&async->pending)) {
		events = container_of(async->pending.next, struct rdma_async_events, link);
		assert(events->types && events->async == async);
		*type = (enum ibv_event_type)__builtin_ctz(events->types);
		events->types &= events->types - 1;
		if (!events->types) {
			weft_list_remove(&events->link);
			weft_list_push(&async->quiet, &events->link);
		}
	}
	weft_mutex_unlock(&lock);
	return events;
}

static bool take_fatal(struct rdma_async_subscriber *async)
{
	bool failed;

	weft_mutex_lock(&lock);
	failed = async->failed;
	async->failed = async->posted = false;
	weft_mutex_unlock(&lock);
	return failed;
}

static void finish_unsubscribe(struct rdma_async_subscriber *async)
{
	bool over;

	weft_mutex_lock(&lock);
	over = async->ending && !async->watching && !async->posted;
	weft_mutex_unlock(&lock);
	if (over)
		async->ended(async);
}

static void deliver_events(struct weft_msg *msg)
{
	struct rdma_async_subscriber *async = container_of(msg, struct rdma_async_subscriber, msg);
	bool failed = take_fatal(async);
	enum ibv_event_type type;
	struct rdma_async_events *events;

	assert_on(async->reactor);
	if (failed && !async->ending)
		async->fatal(async);
	while ((events = next_event(async, &type)))
		events->on_event(events, type);
	finish_unsubscribe(async);
}

void rdma_async_events_add(struct rdma_async_events *events, struct rdma_async_subscriber *async,
			   const void *object)
{
	assert_driving(async->reactor);
	assert(!events->async && events->on_event && !async->ending);
	events->async = async;
	events->object = object;
	events->types = 0;
	weft_mutex_lock(&lock);
	weft_list_push(&async->quiet, &events->link);
	weft_mutex_unlock(&lock);
}

void rdma_async_events_remove(struct rdma_async_events *events)
{
	if (!events->async)
		return;
	assert_driving(events->async->reactor);
	weft_mutex_lock(&lock);
	weft_list_remove(&events->link);
	weft_mutex_unlock(&lock);
	events->async = NULL;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void async_watch_ended(struct rdma_watch *watch)
{
	struct rdma_async_subscriber *async = container_of(watch, struct rdma_async_subscriber,
							   watch);

	async->watching = false;
	finish_unsubscribe(async);
}

int rdma_async_subscribe(struct rdma_async_subscriber *async, struct rdma_dev *dev,
			 struct weft_reactor *r, struct weft_err *err)
{
	int rc;

	assert_driving(r);
	assert(async->fatal && async->ended && !async->watching && !async->ending);
	async->dev = dev;
	async->reactor = r;
	async->msg.fn = deliver_events;
	async->watch.readable = async_fd_readable;
	async->watch.ended = async_watch_ended;
	weft_list_init(&async->quiet);
	weft_list_init(&async->pending);
	rc = rdma_watch_start(&async->watch, r, dev->ctx->async_fd);
	if (rc < 0)
		return weft_fail(err, rc, "%s: events: %s", dev->ctx->device->name, strerror(-rc));
	async->watching = true;
	weft_mutex_lock(&lock);
	weft_list_push(&dev->subscribers, &async->link);
	weft_mutex_unlock(&lock);
	return 0;
}

void rdma_async_unsubscribe(struct rdma_async_subscriber *async)
{
	assert_driving(async->reactor);
	assert(async->watching && !async->ending);
	weft_mutex_lock(&lock);
	assert(weft_list_empty(&async->quiet) && weft_list_empty(&async->pending));
	weft_list_remove(&async->link);
	async->ending = true;
	weft_mutex_unlock(&lock);
	rdma_watch_end(&async->watch);
}
