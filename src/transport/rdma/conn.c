/* conn.c - a connection's beginning and end.
 *
 *   request ─▶ ACCEPTING ─▶ OPEN ──lost, or closed by the user──▶ CLOSING ──all is back──▶ CLOSED
 *
 * The end has an order: the queue pair goes into error, and the adapter hands back what it has of
 * it; it is destroyed, so that no buffer is in the adapter's hands; every request comes back; then the
 * user may free the connection. An adapter that hands nothing back is not waited for long: what it was
 * given dies with the queue pair. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/uri.h"
#include "transport/rdma/path.h"
#include "transport/rdma/rdma.h"

/* --- the end ---------------------------------------------------------------------------------------- */

static void drop_queue_pair(struct rdma_conn *conn)
{
	rdma_cq_drain(&conn->cq->cq);
	rdma_verbs->destroy_qp(conn->id);
	rdma_cq_drain(&conn->cq->cq);
	rdma_lane_remove(conn);
	conn->cq->room += conn->wrs_max;
	if (!conn->lane->shares) {
		conn->cq->room += conn->recvs.room;
		conn->recvs.qp = NULL;
		weft_task_cancel(&conn->recvs.post);
		weft_timer_stop(conn->qp.group->reactor, &conn->recvs.again);
	}
}

static void settle(struct rdma_conn *conn)
{
	conn->settled = true;
	weft_timer_stop(conn->qp.group->reactor, &conn->timer);
	drop_queue_pair(conn);
	conn->id->context = NULL;
	rdma_tx_settle(conn);
	weft_qpair_abort_all(&conn->qp);
	conn->qp.ops->closing(&conn->qp);
}

static void wrap_up(struct weft_task *task)
{
	struct rdma_conn *conn = container_of(task, struct rdma_conn, wrap_up);

	assert(conn->state == RDMA_CLOSING);
	if (!conn->settled && conn->chains && !conn->drained)
		return;
	if (!conn->settled)
		settle(conn);
	if (conn->qp.inflight)
		return;
	weft_task_cancel(&conn->wrap_up);
	conn->state = RDMA_CLOSED;
	conn->qp.ops->closed(&conn->qp);
}

void rdma_wrap_up_soon(struct rdma_conn *conn)
{
	if (conn->state == RDMA_CLOSING)
		weft_reactor_defer(conn->qp.group->reactor, &conn->wrap_up);
}

static void drain_over(struct weft_timer *timer)
{
	struct rdma_conn *conn = container_of(timer, struct rdma_conn, timer);

	conn->drained = true;
	rdma_wrap_up_soon(conn);
}

static void rdma_close(struct weft_qpair *qp)
{
	struct rdma_conn *conn = rdma_conn_of(qp);

	conn->state = RDMA_CLOSING;
	conn->timer.fn = drain_over;
	weft_timer_set(qp->group->reactor, &conn->timer, RDMA_DRAIN_MS);
	rdma_verbs->disconnect(conn->id);
	rdma_wrap_up_soon(conn);
}

static void slot_freed(struct weft_qpair *qp)
{
	rdma_wrap_up_soon(rdma_conn_of(qp));
}

static void rdma_free(struct weft_qpair *qp)
{
	struct rdma_conn *conn = rdma_conn_of(qp);
	struct rdma_lane *lane = conn->lane;
	struct rdma_cm_id *id = conn->id;

	assert(conn->state == RDMA_CLOSED);
	if (!lane->shares)
		rdma_recvs_end(&conn->recvs);
	weft_qpair_destroy(qp);
	free(conn);
	rdma_lane_put(lane, id);
}

void rdma_conn_failed(struct rdma_conn *conn, const struct ibv_wc *wc)
{
	struct weft_qpair_stats *stats = &conn->qp.stats;

	switch (wc->status) {
	case IBV_WC_WR_FLUSH_ERR:
		weft_count(&stats->flushed, 1);
		break;
	case IBV_WC_RETRY_EXC_ERR:
		weft_count(&stats->retried, 1);
		break;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		weft_count(&stats->rnr, 1);
		break;
	default:
		break;
	}
	weft_qpair_close(&conn->qp, "%s", ibv_wc_status_str(wc->status));
}

/* --- events ------------------------------------------------------------------------------------------- */

static void tell_path(struct rdma_conn *conn)
{
	char peer[WEFT_URI_MAX];
	struct weft_path path;

	rdma_path_of(conn->id, &path);
	weft_uri_format(NVMF_TRTYPE_RDMA, &conn->qp.peer, peer, sizeof(peer));
	if (path.mtu && path.port_mtu && path.mtu != path.port_mtu)
		weft_peer_log(
			WEFT_LOG_WARN,
			"%s: the path's MTU is %u, that of %s port %u is %u: give both ends and "
			"the switches between them the same MTU",
			peer, path.mtu, path.device, path.port, path.port_mtu);
	else
		weft_debug("%s: on %s port %u, %s, MTU %u", peer, path.device, path.port, path.kind,
			   path.mtu);
}

/* The connection manager leaves it at 655 ms. */
static void set_rnr_timer(struct rdma_conn *conn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .min_rnr_timer = RDMA_RNR_TIMER };

	if (!conn->lane->dev->iwarp)
		rdma_verbs->modify_qp(conn->id->qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

static void established(struct rdma_conn *conn)
{
	if (conn->state != RDMA_ACCEPTING)
		return;
	conn->state = RDMA_OPEN;
	set_rnr_timer(conn);
	tell_path(conn);
}

void rdma_conn_event(struct rdma_conn *conn, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		established(conn);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		weft_qpair_close(&conn->qp, "the host disconnected");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		rdma_devs_removed();
		weft_qpair_close(&conn->qp, "the adapter was removed");
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		weft_qpair_close(&conn->qp, "its address moved to another adapter");
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		weft_qpair_close(&conn->qp, "%s (status %d)", rdma_event_str(event->event),
				 event->status);
		break;
	default: /* TIMEWAIT_EXIT */
		break;
	}
}

/* --- the beginning --------------------------------------------------------------------------------------- */

static void setup_over(struct weft_timer *timer)
{
	struct rdma_conn *conn = container_of(timer, struct rdma_conn, timer);

	weft_qpair_close(&conn->qp, "no Connect within %d s", RDMA_SETUP_MS / 1000);
}

static void rdma_started(struct weft_qpair *qp)
{
	struct rdma_conn *conn = rdma_conn_of(qp);

	if (conn->state < RDMA_CLOSING)
		weft_timer_stop(qp->group->reactor, &conn->timer);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Two work requests for a command on the average, a full chain at the least. */
static uint32_t send_queue_size(const struct rdma_conn *conn)
{
	uint32_t wanted = 2u * conn->depth + RDMA_DESCRIPTORS + 1;

	return least(least(wanted, RDMA_WRS_MAX), (uint32_t)conn->lane->dev->attr.max_qp_wr);
}

static int own_receives(struct rdma_conn *conn, struct weft_err *err)
{
	struct rdma_lane *lane = conn->lane;
	uint32_t room = least(conn->depth, (uint32_t)lane->dev->attr.max_qp_wr);

	if (lane->shares)
		return 0;
	return rdma_recvs_init(&conn->recvs, &lane->keys, conn->qp.group->reactor, room, err);
}

static int shared_receives(struct rdma_lane *lane, struct weft_err *err)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = lane->recvs.room, .max_sge = 2 },
	};

	if (!lane->shares || lane->recvs.srq)
		return 0;
	lane->recvs.srq = rdma_verbs->create_srq(lane->dev->pd, &attr);
	return lane->recvs.srq ?
		       0 :
		       weft_fail(err, -errno, "shared receive queue: %s", strerror(errno));
}

static int create_queue_pair(struct rdma_conn *conn, struct weft_err *err)
{
	struct rdma_lane *lane = conn->lane;
	struct ibv_qp_init_attr attr = {
		.qp_context = conn,
		.send_cq = conn->cq->cq.cq,
		.recv_cq = conn->cq->cq.cq,
		.srq = lane->recvs.srq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = conn->wrs_max,
			.max_send_sge = 2,
			.max_recv_wr = lane->shares ? 0 : conn->recvs.room,
			.max_recv_sge = lane->shares ? 0 : 2,
			.max_inline_data = sizeof(struct nvme_cqe),
		},
	};

	conn->inlines = true;
	if (rdma_verbs->create_qp(conn->id, lane->dev->pd, &attr) < 0 && errno == EINVAL) {
		conn->inlines = false;
		attr.cap.max_inline_data = 0;
		rdma_verbs->create_qp(conn->id, lane->dev->pd, &attr);
	}
	if (!conn->id->qp)
		return weft_fail(err, -errno, "queue pair: %s", strerror(errno));
	conn->number = conn->id->qp->qp_num;
	rdma_lane_add(conn);
	return 0;
}

/* A lane's receives are for all its connections: as many as there are commands to come, or what
 * there is room for. */
static int post_receives(struct rdma_conn *conn, struct weft_err *err)
{
	struct rdma_recvs *recvs = conn->lane->shares ? &conn->lane->recvs : &conn->recvs;
	int rc;

	if (!conn->lane->shares)
		recvs->qp = conn->id->qp;
	rc = rdma_recvs_grow(recvs, conn->lane->shares ? recvs->made + conn->depth : recvs->room);
	return rc < 0 ? weft_fail(err, rc, "receives: %s", strerror(-rc)) : 0;
}

static int claim_completions(struct rdma_conn *conn, struct weft_err *err)
{
	uint32_t entries = conn->wrs_max + (conn->lane->shares ? 0 : conn->recvs.room);

	return rdma_lane_cq(conn->lane, entries, &conn->cq, err);
}

static int accept_it(struct rdma_conn *conn, const struct rdma_arrival *arrival,
		     struct weft_err *err)
{
	const struct nvme_rdma_accept answer = { .crqsize = cpu_to_le16(conn->depth) };
	struct rdma_conn_param param = {
		.private_data = &answer,
		.private_data_len = sizeof(answer),
		.initiator_depth = (uint8_t)conn->reads_max,
		.flow_control = 1,
		.rnr_retry_count = 7,
	};

	if (rdma_verbs->accept(conn->id, &param) < 0)
		return weft_fail(err, -errno, "accept: %s", strerror(errno));
	return 0;
}

/* Everything that may be refused with a reason, before the connection is anybody's. */
static int build(struct rdma_conn *conn, const struct rdma_arrival *arrival, struct weft_err *err)
{
	int rc = own_receives(conn, err);

	if (rc < 0)
		return rc;
	conn->wrs = conn->wrs_max = send_queue_size(conn);
	rc = claim_completions(conn, err);
	if (rc < 0)
		goto end_receives;
	rc = shared_receives(conn->lane, err);
	if (rc == 0)
		rc = create_queue_pair(conn, err);
	if (rc < 0)
		goto release_completions;
	rc = post_receives(conn, err);
	if (rc == 0)
		rc = accept_it(conn, arrival, err);
	if (rc == 0)
		return 0;
	drop_queue_pair(conn);
	goto end_receives;

release_completions:
	conn->cq->room += conn->wrs_max + (conn->lane->shares ? 0 : conn->recvs.room);
end_receives:
	if (!conn->lane->shares)
		rdma_recvs_end(&conn->recvs);
	return rc;
}

static void recvs_failed(struct rdma_recvs *recvs, int rc)
{
	struct rdma_conn *conn = container_of(recvs, struct rdma_conn, recvs);

	weft_qpair_close(&conn->qp, "receives: %s", strerror(-rc));
}

static uint32_t reads_of(const struct rdma_lane *lane, const struct rdma_arrival *arrival)
{
	uint32_t reads = least(arrival->initiator_depth,
			       (uint32_t)lane->dev->attr.max_qp_init_rd_atom);

	return reads ? reads : 1;
}

static struct rdma_conn *conn_create(const struct rdma_arrival *arrival, struct rdma_lane *lane)
{
	struct rdma_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->id = arrival->id;
	conn->hub = lane->hub;
	conn->lane = lane;
	conn->depth = (uint16_t)(le16_to_cpu(arrival->request.hsqsize) + 1u);
	conn->reads_max = reads_of(lane, arrival);
	conn->recvs.failed = recvs_failed;
	conn->timer.fn = setup_over;
	weft_task_init(&conn->wrap_up, wrap_up);
	rdma_tx_init(conn);
	conn->qp.peer = conn->id->route.addr.dst_storage;
	conn->qp.local = conn->id->route.addr.src_storage;
	if (weft_qpair_init(&conn->qp, &weft_rdma, arrival->ops, arrival->group) < 0) {
		free(conn);
		return NULL;
	}
	conn->id->context = conn;
	return conn;
}

static int open_conn(const struct rdma_arrival *arrival, struct rdma_lane *lane,
		     struct weft_err *err)
{
	struct rdma_conn *conn = conn_create(arrival, lane);
	int rc;

	if (!conn)
		return weft_fail(err, -ENOMEM, "out of memory");
	rc = build(conn, arrival, err);
	if (rc < 0) {
		conn->id->context = NULL;
		weft_qpair_destroy(&conn->qp);
		free(conn);
		return rc;
	}
	weft_timer_set(arrival->group->reactor, &conn->timer, RDMA_SETUP_MS);
	return 0;
}

static void refuse(const struct rdma_arrival *arrival, enum nvme_rdma_status sts,
		   const struct weft_err *why)
{
	weft_peer_log(WEFT_LOG_WARN, "RDMA connection refused: %s", why->text);
	rdma_target_reject(arrival->id, sts);
}

/* From here on the connection's events are the reactor's. */
static void adopt_into(const struct rdma_arrival *arrival, struct rdma_lane *lane)
{
	struct weft_err err = { "" };
	int rc;

	arrival->id->context = NULL;
	if (rdma_verbs->migrate_id(arrival->id, lane->hub->channel) < 0) {
		weft_fail(&err, -errno, "migrate: %s", strerror(errno));
		refuse(arrival, NVME_RDMA_NO_RESOURCES, &err);
		rdma_verbs->destroy_id(arrival->id);
		rdma_lane_put(lane, NULL);
		return;
	}
	rc = open_conn(arrival, lane, &err);
	if (rc < 0) {
		refuse(arrival, NVME_RDMA_NO_RESOURCES, &err);
		rdma_lane_put(lane, arrival->id);
	}
}

static void adopt(const struct rdma_arrival *arrival)
{
	uint32_t entries = le16_to_cpu(arrival->request.hsqsize) + 1u;
	enum nvme_rdma_status sts = NVME_RDMA_NO_RESOURCES;
	struct rdma_lane *lane = NULL;
	struct weft_err err = { "" };
	int rc;

	if (entries > arrival->group->depth_max) {
		sts = NVME_RDMA_BAD_HSQSIZE;
		atomic_fetch_sub(&arrival->group->nqpairs, 1);
		rc = weft_fail(&err, -EINVAL, "%s", nvme_rdma_status_text((uint16_t)sts));
	} else {
		rc = rdma_lane_get(arrival->group, arrival->id->verbs, &lane, &err);
	}
	if (rc == 0) {
		adopt_into(arrival, lane);
		return;
	}
	refuse(arrival, sts, &err);
	rdma_verbs->destroy_id(arrival->id);
}

void rdma_conn_adopt(struct weft_msg *msg)
{
	struct rdma_arrival *arrival = container_of(msg, struct rdma_arrival, msg);

	adopt(arrival);
	rdma_channel_put(arrival->channel);
	free(arrival);
}

static uint64_t holds_since(struct weft_qpair *qp)
{
	(void)qp; /* an adapter gives up on a silent peer by itself, in seconds */
	return 0;
}

const struct weft_transport weft_rdma = {
	.trtype = NVMF_TRTYPE_RDMA,
	.capsule_data = RDMA_CAPSULE_DATA,
	.sgls = NVME_CTRL_SGLS_KEYED,
	.descriptors = RDMA_DESCRIPTORS,
	.listen = rdma_target_listen,
	.unlisten = rdma_target_unlisten,
	.req_size = sizeof(struct rdma_req),
	.check_sgl = rdma_check_sgl,
	.sgl_len = rdma_sgl_len,
	.fetch = rdma_fetch,
	.abort_fetch = rdma_abort_fetch,
	.reply = rdma_reply,
	.started = rdma_started,
	.slot_freed = slot_freed,
	.holds_since = holds_since,
	.hang_up = rdma_hang_up,
	.close = rdma_close,
	.free = rdma_free,
};
