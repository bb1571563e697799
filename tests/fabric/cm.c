/* cm.c - ids and their channels: made, moved, set, destroyed. */
#include "fabric/internal.h"
#include "fabric/ops.h"

struct rdma_event_channel *fabric_create_event_channel(void)
{
	struct fabric_channel *channel;
	FABRIC_LOCKED;

	FABRIC_FAULT_NULL(create_event_channel);
	channel = fabric_new(sizeof(*channel));
	if (fabric_fifo_open(&channel->events) < 0) {
		free(channel);
		return NULL;
	}
	channel->pub.fd = channel->events.fd;
	fabric_count.channels++;
	return &channel->pub;
}

static struct fabric_channel *channel_in(struct rdma_event_channel *channel)
{
	return container_of(channel, struct fabric_channel, pub);
}

void fabric_destroy_event_channel(struct rdma_event_channel *pub)
{
	struct fabric_channel *channel = channel_in(pub);
	FABRIC_LOCKED;

	if (channel->ids)
		fabric_misuse("an event channel is destroyed that has %u id(s)", channel->ids);
	fabric_fifo_close(&channel->events);
	fabric_count.channels--;
	free(channel);
}

/* --- an id's life ----------------------------------------------------------------------------- */

struct fabric_id *fabric_id_new(struct rdma_event_channel *channel, void *context,
				enum rdma_port_space ps)
{
	struct fabric_id *id = fabric_new(sizeof(*id));

	id->pub.channel = channel;
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = IBV_QPT_RC;
	weft_list_push(&fabric_ids, &id->link);
	channel_in(channel)->ids++;
	fabric_count.ids++;
	return id;
}

void fabric_id_free(struct fabric_id *id)
{
	if (id->peer)
		id->peer->peer = NULL;
	channel_in(id->pub.channel)->ids--;
	weft_list_remove(&id->link);
	fabric_count.ids--;
	free(id);
}

int fabric_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		     enum rdma_port_space ps)
{
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(create_id);
	if (!channel || ps != RDMA_PS_TCP) {
		fabric_misuse("create_id without a channel, or not for RDMA_PS_TCP");
		errno = EINVAL;
		return -1;
	}
	*id = &fabric_id_new(channel, context, ps)->pub;
	return 0;
}

static bool busy(const struct fabric_id *id, const char *what)
{
	if (!id->unacked)
		return false;
	fabric_misuse("%s with %u event(s) not acknowledged", what, id->unacked);
	errno = EBUSY;
	return true;
}

int fabric_destroy_id(struct rdma_cm_id *pub)
{
	struct fabric_id *id = fabric_id_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(destroy_id);
	if (busy(id, "destroy_id"))
		return -1;
	if (pub->qp)
		fabric_misuse("destroy_id with its QP alive");
	if (id->state == ID_REQUESTED)
		fabric_conn_refuse(id, NULL, 0);
	else
		fabric_conn_end(id);
	fabric_events_drop(id);
	fabric_id_free(id);
	return 0;
}

int fabric_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
	struct fabric_id *id = fabric_id_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(migrate_id);
	if (busy(id, "migrate_id"))
		return -1;
	fabric_events_move(id, channel);
	channel_in(pub->channel)->ids--;
	channel_in(channel)->ids++;
	pub->channel = channel;
	return 0;
}

int fabric_set_option(struct rdma_cm_id *pub, int level, int name, void *value, size_t size)
{
	struct fabric_id *id = fabric_id_in(pub);
	bool flag = name == RDMA_OPTION_ID_REUSEADDR || name == RDMA_OPTION_ID_AFONLY;
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(set_option);
	if (level != RDMA_OPTION_ID || size != (flag ? sizeof(int) : 1)) {
		errno = level == RDMA_OPTION_ID ? EINVAL : ENOSYS;
		return -1;
	}
	if (name == RDMA_OPTION_ID_TOS)
		id->tos = *(uint8_t *)value;
	else if (name == RDMA_OPTION_ID_ACK_TIMEOUT)
		id->ack_timeout = *(uint8_t *)value;
	else if (name == RDMA_OPTION_ID_AFONLY)
		id->afonly = *(int *)value;
	else
		id->reuse = *(int *)value;
	return 0;
}
