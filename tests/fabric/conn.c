/* conn.c - connections: asked for, accepted, established.
 *
 *   connect ─▶ CONNECT_REQUEST ─▶ accept ─▶ ESTABLISHED ─ taken ─▶ ESTABLISHED
 *      (one end)          (the other)          (one end)              (the other) */
#include "fabric/internal.h"
#include "fabric/ops.h"

enum { REQ_DATA = 56, REP_DATA = 196 };

static bool valid(const struct fabric_id *id, const struct rdma_conn_param *param)
{
	const struct ibv_device_attr *attr = &id->dev->conf.attr;

	return (param->responder_resources == RDMA_MAX_RESP_RES ||
		param->responder_resources <= attr->max_qp_rd_atom) &&
	       (param->initiator_depth == RDMA_MAX_INIT_DEPTH ||
		param->initiator_depth <= attr->max_qp_init_rd_atom);
}

static uint8_t min_of(uint8_t a, int b)
{
	return a < b ? a : (uint8_t)b;
}

/* "As many as there can be" in numbers. */
static void settle_params(const struct fabric_id *id, struct rdma_conn_param *param)
{
	const struct ibv_device_attr *attr = &id->dev->conf.attr;

	param->responder_resources = min_of(param->responder_resources, attr->max_qp_rd_atom);
	param->initiator_depth = min_of(param->initiator_depth, attr->max_qp_init_rd_atom);
}

/* One end's parameters as the other sees them. */
static void mirror(struct fabric_cm_event *event, const struct rdma_conn_param *param,
		   uint32_t qp_num, uint8_t padded)
{
	event->pub.param.conn = *param;
	event->pub.param.conn.private_data = NULL;
	event->pub.param.conn.responder_resources = param->initiator_depth;
	event->pub.param.conn.initiator_depth = param->responder_resources;
	event->pub.param.conn.qp_num = qp_num;
	fabric_event_fill(event, param->private_data, param->private_data_len, padded);
}

static struct fabric_qp *qp_of(const struct fabric_id *id)
{
	return id->pub.qp ? fabric_qp_in(id->pub.qp) : NULL;
}

static uint32_t qp_num(const struct fabric_id *id)
{
	return id->pub.qp ? id->pub.qp->qp_num : 0;
}

/* --- asked for -------------------------------------------------------------------------------- */

static struct fabric_id *passive_new(struct fabric_id *listener, struct fabric_id *id)
{
	struct fabric_id *passive = fabric_id_new(listener->pub.channel, listener->pub.context,
						  listener->pub.ps);
	struct rdma_addr *addr = &passive->pub.route.addr;

	passive->passive = true;
	passive->state = ID_REQUESTED;
	passive->dev = id->dev;
	passive->tos = listener->tos;
	passive->ack_timeout = listener->ack_timeout;
	addr->src_storage = id->pub.route.addr.dst_storage;
	addr->dst_storage = id->pub.route.addr.src_storage;
	fabric_id_bind_dev(passive);
	passive->path.mtu = id->path.mtu;
	passive->pub.route.path_rec = id->dev->iwarp ? NULL : &passive->path;
	passive->pub.route.num_paths = !id->dev->iwarp;
	passive->peer = id;
	id->peer = passive;
	return passive;
}

static void request(struct fabric_id *listener, struct fabric_id *id)
{
	struct fabric_id *passive = passive_new(listener, id);
	struct fabric_cm_event *event = fabric_event_new(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	event->owner = listener;
	event->pub.listen_id = &listener->pub;
	mirror(event, &id->param, qp_num(id), REQ_DATA);
	listener->requests++;
	fabric_event_push(event);
}

static void deliver_request(struct fabric_id *id)
{
	const struct sockaddr *dst = &id->pub.route.addr.dst_addr;
	int status;
	enum rdma_cm_event_type fate = fabric_addr_fate(dst, &status);
	struct fabric_id *listener = fabric_listener(dst);

	if (fate == RDMA_CM_EVENT_UNREACHABLE || fate == RDMA_CM_EVENT_CONNECT_ERROR ||
	    fate == RDMA_CM_EVENT_REJECTED)
		fabric_event_tell(id, fate, status);
	else if (fabric_addr_dev(dst) != id->dev)
		fabric_event_tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	else if (!listener)
		fabric_conn_refused(id, FABRIC_REJ_NO_SERVICE, -ECONNREFUSED);
	else if (listener->requests >= listener->backlog)
		fabric_conn_refused(id, FABRIC_REJ_CONSUMER, -ECONNRESET);
	else
		request(listener, id);
}

int fabric_connect(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
	struct fabric_id *id = fabric_id_in(pub);
	FABRIC_LOCKED;

	FABRIC_FAULT_RDMA(connect);
	if (id->state != ID_ROUTE_RESOLVED || !valid(id, param) ||
	    (!id->dev->iwarp && param->private_data_len > REQ_DATA)) {
		errno = EINVAL;
		return -1;
	}
	if (id->dev->removed) {
		errno = ENODEV;
		return -1;
	}
	id->state = ID_CONNECTING;
	id->param = *param;
	settle_params(id, &id->param);
	deliver_request(id);
	id->param.private_data = NULL;
	return 0;
}

/* --- answered --------------------------------------------------------------------------------- */

static void set_path(struct fabric_id *id, const struct rdma_conn_param *param, uint8_t retries,
		     uint8_t rnr_retries)
{
	struct fabric_qp *qp = qp_of(id);
	struct fabric_qp *peer = qp_of(id->peer);

	if (!qp)
		return;
	qp->responder_resources = param->responder_resources;
	qp->initiator_depth = param->initiator_depth;
	qp->retries = retries;
	qp->rnr_retries = rnr_retries;
	qp->path_mtu = id->path.mtu;
	if (peer) {
		qp->peer = peer;
		qp->peer_num = peer->pub.qp_num;
	}
}

/* The limits that one end sets are those that the other lives with. */
static void link_qps(struct fabric_id *id, const struct rdma_conn_param *answer)
{
	struct fabric_id *peer = id->peer;
	struct rdma_conn_param mirrored = { .responder_resources = answer->initiator_depth,
					    .initiator_depth = answer->responder_resources };

	set_path(id, answer, peer->param.retry_count, peer->param.rnr_retry_count);
	set_path(peer, &mirrored, peer->param.retry_count, answer->rnr_retry_count);
}

static void established(struct fabric_id *id)
{
	id->state = ID_CONNECTED;
	if (id->pub.qp)
		fabric_qp_connected(fabric_qp_in(id->pub.qp));
}

static void answer_request(struct fabric_id *id, const struct rdma_conn_param *param)
{
	struct fabric_cm_event *event = fabric_event_new(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0);

	mirror(event, param, qp_num(id), REP_DATA);
	link_qps(id, param);
	id->state = ID_ACCEPTED;
	if (id->pub.qp)
		fabric_qp_connected(fabric_qp_in(id->pub.qp));
	fabric_event_push(event);
	if (!id->dev->iwarp)
		return;
	established(id->peer);
	established(id);
	fabric_event_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* librdmacm has readied the QP when it asks the kernel, and takes it to ERR if that refuses. */
static int accept_fault(struct fabric_id *id)
{
	int error = fabric_fault("accept");

	if (error && id->pub.qp && !id->dev->removed)
		fabric_qp_error(fabric_qp_in(id->pub.qp));
	errno = error;
	return error ? -1 : 0;
}

int fabric_accept(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
	struct fabric_id *id = fabric_id_in(pub);
	struct rdma_conn_param own = { .responder_resources = RDMA_MAX_RESP_RES,
				       .initiator_depth = RDMA_MAX_INIT_DEPTH };
	FABRIC_LOCKED;

	if (accept_fault(id) < 0)
		return -1;
	own = param ? *param : own;
	errno = id->state != ID_REQUESTED || !valid(id, &own) ? EINVAL :
		id->dev->removed                              ? ENODEV :
								0;
	if (errno)
		return -1;
	settle_params(id, &own);
	if (id->peer) {
		answer_request(id, &own);
		return 0;
	}
	/* Nobody is there to hear it. */
	id->state = ID_OVER;
	fabric_event_tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	return 0;
}

void fabric_conn_established(struct fabric_id *id)
{
	struct fabric_id *peer = id->peer;

	if (id->passive || id->dev->iwarp || id->state != ID_CONNECTING)
		return;
	established(id);
	if (!peer || peer->state != ID_ACCEPTED)
		return;
	peer->state = ID_CONNECTED;
	fabric_event_tell(peer, RDMA_CM_EVENT_ESTABLISHED, 0);
}
