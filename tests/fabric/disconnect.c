/* disconnect.c - connections that do not come about, and how others end. */
#include "fabric/internal.h"
#include "fabric/ops.h"

enum { REJ_DATA = 148 };

void fabric_conn_refused(struct fabric_id *id, int ib_status, int iw_status)
{
	id->state = ID_OVER;
	fabric_event_tell(id, RDMA_CM_EVENT_REJECTED, id->dev->iwarp ? iw_status : ib_status);
}

void fabric_conn_refuse(struct fabric_id *id, const void *data, uint8_t size)
{
	struct fabric_cm_event *event;

	id->state = ID_OVER;
	if (!id->peer)
		return;
	id->peer->state = ID_OVER;
	event = fabric_event_new(id->peer, RDMA_CM_EVENT_REJECTED,
				 id->dev->iwarp ? -ECONNRESET : FABRIC_REJ_CONSUMER);
	fabric_event_fill(event, data, size, REJ_DATA);
	fabric_event_push(event);
}

int fabric_reject(struct rdma_cm_id *pub, const void *data, uint8_t size)
{
	struct fabric_id *id = fabric_id_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(reject);
	if (id->state != ID_REQUESTED || (!id->dev->iwarp && size > REJ_DATA)) {
		errno = EINVAL;
		return -1;
	}
	fabric_conn_refuse(id, data, size);
	return 0;
}

/* --- ended ------------------------------------------------------------------------------------ */

static void tell_over(struct fabric_id *id)
{
	id->state = ID_OVER;
	if (id->over_told)
		return;
	id->over_told = true;
	fabric_event_tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	if (!id->dev->iwarp)
		fabric_event_tell(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

static void tell_peer(struct fabric_id *id, struct fabric_id *peer)
{
	if (peer->state == ID_ACCEPTED && id->state == ID_CONNECTING)
		fabric_conn_refused(peer, FABRIC_REJ_CONSUMER, -ECONNRESET);
	else if (peer->state != ID_REQUESTED)
		tell_over(peer);
	if (peer->dev->iwarp && peer->pub.qp)
		fabric_qp_error(fabric_qp_in(peer->pub.qp));
}

void fabric_conn_end(struct fabric_id *id)
{
	if (id->state < ID_CONNECTING || id->state == ID_LISTENING)
		return;
	if (id->peer && !id->cut)
		tell_peer(id, id->peer);
	if (id->state == ID_CONNECTED || id->state == ID_ACCEPTED)
		tell_over(id);
	id->state = ID_OVER;
}

int fabric_disconnect(struct rdma_cm_id *pub)
{
	struct fabric_id *id = fabric_id_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(disconnect);
	if (id->state < ID_CONNECTING || id->state == ID_LISTENING) {
		errno = EINVAL;
		return -1;
	}
	if (pub->qp && !id->dev->removed)
		fabric_qp_error(fabric_qp_in(pub->qp));
	fabric_conn_end(id);
	fabric_progress();
	return 0;
}

struct rdma_cm_id *fabric_peer_id(struct rdma_cm_id *id)
{
	struct fabric_id *peer;
	FABRIC_LOCKED;

	peer = fabric_id_in(id)->peer;
	return peer ? &peer->pub : NULL;
}
