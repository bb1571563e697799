/* event.c - CM events: queued, kept back, taken, acknowledged.
 *
 * Some of what librdmacm does is done when an event is taken: the id learns its device and its
 * route, and the QP that connected starts to work. */
#include "fabric/internal.h"
#include "fabric/ops.h"

enum { EVENT_TYPES = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1 };

static bool delayed_types[EVENT_TYPES][2];
static struct weft_list delayed;

void fabric_events_begin(void)
{
	memset(delayed_types, 0, sizeof(delayed_types));
	weft_list_init(&delayed);
}

static struct fabric_channel *channel_in(struct rdma_event_channel *channel)
{
	return container_of(channel, struct fabric_channel, pub);
}

static struct fabric_fifo *fifo_of(const struct fabric_cm_event *event)
{
	return &channel_in(event->owner->pub.channel)->events;
}

struct fabric_cm_event *fabric_event_new(struct fabric_id *id, enum rdma_cm_event_type type,
					 int status)
{
	struct fabric_cm_event *event = fabric_new(sizeof(*event));

	event->owner = event->id = id;
	event->pub.id = &id->pub;
	event->pub.event = type;
	event->pub.status = status;
	return event;
}

/* Its private data; where the wire pads, to @padded bytes. */
void fabric_event_fill(struct fabric_cm_event *event, const void *data, uint8_t size,
		       uint8_t padded)
{
	if (size)
		memcpy(event->data, data, size);
	event->pub.param.conn.private_data_len = event->id->dev->iwarp ? size : padded;
	if (event->pub.param.conn.private_data_len)
		event->pub.param.conn.private_data = event->data;
}

void fabric_event_push(struct fabric_cm_event *event)
{
	if (!event->injected && delayed_types[event->pub.event][event->id->passive])
		weft_list_push(&delayed, &event->link);
	else
		fabric_fifo_push(fifo_of(event), &event->link);
}

void fabric_event_tell(struct fabric_id *id, enum rdma_cm_event_type type, int status)
{
	fabric_event_push(fabric_event_new(id, type, status));
}

/* --- taken ------------------------------------------------------------------------------------ */

static void on_taken(struct fabric_cm_event *event)
{
	struct fabric_id *id = event->id;

	switch (event->pub.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		fabric_id_bind_dev(id);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		id->pub.route.path_rec = id->dev->iwarp ? NULL : &id->path;
		id->pub.route.num_paths = !id->dev->iwarp;
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		id->born = true;
		event->owner->requests--;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		fabric_conn_established(id);
		break;
	default:
		break;
	}
}

int fabric_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **to)
{
	struct fabric_cm_event *event;
	struct weft_list *item;
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(get_cm_event);
	item = fabric_fifo_take(&channel_in(channel)->events);
	if (!item)
		return -1;
	event = container_of(item, struct fabric_cm_event, link);
	event->owner->unacked++;
	if (!event->injected)
		on_taken(event);
	*to = &event->pub;
	return 0;
}

int fabric_ack_cm_event(struct rdma_cm_event *pub)
{
	struct fabric_cm_event *event = container_of(pub, struct fabric_cm_event, pub);
	FABRIC_LOCKED;

	event->owner->unacked--;
	free(event);
	return 0;
}

/* --- those of an id that goes ----------------------------------------------------------------- */

/* A request that nobody took: its id was never anybody's. */
static void drop(struct fabric_cm_event *event)
{
	if (event->owner != event->id) {
		fabric_events_drop(event->id);
		fabric_conn_refuse(event->id, NULL, 0);
		fabric_id_free(event->id);
	}
	free(event);
}

static struct fabric_cm_event *first_of(const struct weft_list *events, const struct fabric_id *id)
{
	struct fabric_cm_event *event;

	weft_list_for_each(event, events, link)
		if (event->owner == id)
			return event;
	return NULL;
}

/* One at a time: a request takes others with it. */
void fabric_events_drop(struct fabric_id *id)
{
	struct fabric_fifo *fifo = &channel_in(id->pub.channel)->events;
	struct fabric_cm_event *event;

	while ((event = first_of(&fifo->items, id))) {
		fabric_fifo_remove(fifo, &event->link);
		drop(event);
	}
	while ((event = first_of(&delayed, id))) {
		weft_list_remove(&event->link);
		drop(event);
	}
}

void fabric_events_move(struct fabric_id *id, struct rdma_event_channel *to)
{
	struct fabric_cm_event *event, *tmp;
	struct fabric_fifo *from = &channel_in(id->pub.channel)->events;

	weft_list_for_each_safe(event, tmp, &from->items, link)
		if (event->owner == id) {
			fabric_fifo_remove(from, &event->link);
			fabric_fifo_push(&channel_in(to)->events, &event->link);
		}
}

/* --- the test's ------------------------------------------------------------------------------- */

void fabric_event_data(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status,
		       const void *data, uint8_t size)
{
	struct fabric_cm_event *event;
	FABRIC_LOCKED;

	event = fabric_event_new(fabric_id_in(id), type, status);
	event->injected = true;
	if (size) {
		memcpy(event->data, data, size);
		event->pub.param.conn.private_data = event->data;
		event->pub.param.conn.private_data_len = size;
	}
	fabric_event_push(event);
}

void fabric_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	fabric_event_data(id, type, status, NULL, 0);
}

void fabric_delay(enum rdma_cm_event_type event, bool passive)
{
	FABRIC_LOCKED;

	delayed_types[event][passive] = true;
}

void fabric_deliver(void)
{
	struct weft_list *item;
	FABRIC_LOCKED;

	memset(delayed_types, 0, sizeof(delayed_types));
	while ((item = weft_list_pop(&delayed)))
		fabric_event_push(container_of(item, struct fabric_cm_event, link));
}
