/* conn.c - the target's RDMA connection: how it starts, and its events.
 *
 *   request ─▶ ACCEPTING ─▶ OPEN ──lost, or closed by the user──▶ CLOSING ─ … : see close.c
 *
 * A loss shows in one of many ways, or in several: an event of the connection manager, a work
 * request that failed, an asynchronous event of the adapter, the queue pair's state. The first one
 * counts. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/uri.h"
#include "transport/rdma/path.h"
#include "transport/rdma/rdma.h"

/* --- a loss ----------------------------------------------------------------------------------- */

void rdma_conn_wc_error(struct rdma_conn *conn, const struct ibv_wc *wc)
{
	struct weft_qpair_stats *stats = &conn->qp.stats;

	switch (wc->status) {
	case IBV_WC_WR_FLUSH_ERR:
		weft_counter_add(&stats->flushed, 1);
		break;
	case IBV_WC_RETRY_EXC_ERR:
		weft_counter_add(&stats->retried, 1);
		break;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		weft_counter_add(&stats->rnr, 1);
		break;
	default:
		break;
	}
	weft_qpair_close(&conn->qp, "%s", ibv_wc_status_str(wc->status));
}

void rdma_conn_async_event(struct rdma_async_events *events, enum ibv_event_type type)
{
	struct rdma_conn *conn = container_of(events, struct rdma_conn, events);

	if (type == IBV_EVENT_QP_LAST_WQE_REACHED)
		rdma_conn_last_wqe_reached(conn);
	else
		weft_qpair_close(&conn->qp, "%s", ibv_event_type_str(type));
}

/* Its completions and events may not have come yet, so the queue pair's state is checked. */
static void rdma_check_lost(struct weft_qpair *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_UNKNOWN };
	struct ibv_qp_init_attr init;

	if (!rdma_verbs->query_qp(rdma_conn_of(qp)->id->qp, &attr, IBV_QP_STATE, &init) &&
	    attr.qp_state == IBV_QPS_ERR)
		weft_qpair_close(qp, "its queue pair is in error");
}

/* --- events ----------------------------------------------------------------------------------- */

static void log_path(struct rdma_conn *conn)
{
	char peer[WEFT_URI_MAX];
	struct weft_path path;

	rdma_query_path(conn->id, &path);
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

/* The connection manager's default is 655 ms. */
static void set_rnr_timer(struct rdma_conn *conn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .min_rnr_timer = RDMA_RNR_TIMER };

	if (!conn->poller->dev->iwarp)
		rdma_verbs->modify_qp(conn->id->qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

static void conn_established(struct rdma_conn *conn)
{
	if (conn->state != RDMA_ACCEPTING)
		return;
	rdma_conn_enter(conn, RDMA_OPEN);
	set_rnr_timer(conn);
	log_path(conn);
}

void rdma_conn_cm_event(struct rdma_conn *conn, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		conn_established(conn);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		weft_qpair_close(&conn->qp, "the host disconnected");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		rdma_devs_note_removal();
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

/* --- the start: accept.c goes on with it ------------------------------------------------------ */

static void setup_expired(struct weft_timer *timer)
{
	struct rdma_conn *conn = container_of(timer, struct rdma_conn, timer);

	assert(conn->state < RDMA_CLOSING && !conn->qp.sqsize);
	weft_qpair_close(&conn->qp, "no Connect within %d s", RDMA_SETUP_MS / 1000);
}

static void post_recv_failed(struct rdma_recvs *recvs, int rc)
{
	struct rdma_conn *conn = container_of(recvs, struct rdma_conn, recvs);

	weft_qpair_close(&conn->qp, "receives: %s", strerror(-rc));
}

static void rdma_qpair_started(struct weft_qpair *qp)
{
	struct rdma_conn *conn = rdma_conn_of(qp);
	int rc;

	if (conn->state >= RDMA_CLOSING)
		return;
	weft_timer_stop(qp->group->reactor, &conn->timer);
	rc = conn->poller->uses_srq ? 0 : rdma_recvs_grow(&conn->recvs, conn->recvs.room);
	if (rc < 0)
		post_recv_failed(&conn->recvs, rc);
}

struct rdma_conn *rdma_conn_create(const struct rdma_conn_request *conn_req,
				   struct rdma_poller *poller)
{
	struct rdma_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->id = conn_req->id;
	conn->poller = poller;
	conn->depth = (uint16_t)(le16_to_cpu(conn_req->request.hsqsize) + 1u);
	conn->recvs.failed = post_recv_failed;
	conn->timer.fn = setup_expired;
	rdma_close_init(conn);
	rdma_tx_init(conn);
	conn->qp.peer = conn->id->route.addr.dst_storage;
	conn->qp.local = conn->id->route.addr.src_storage;
	if (weft_qpair_init(&conn->qp, &weft_rdma, conn_req->ops, conn_req->group) < 0) {
		free(conn);
		return NULL;
	}
	conn->id->context = conn;
	return conn;
}

/* An adapter gives up on a peer that is gone, but not on one that has no receives. */
static uint64_t stalled_since(struct weft_qpair *qp, const struct weft_stall *stall)
{
	const struct rdma_conn *conn = rdma_conn_of(qp);

	return conn->chains ? conn->moved_ns : 0;
}

const struct weft_transport weft_rdma = {
	.trtype = NVMF_TRTYPE_RDMA,
	.capsule_data = RDMA_CAPSULE_DATA,
	.sgls = NVME_CTRL_SGLS_KEYED,
	.sgl_descriptors_max = RDMA_DESCRIPTORS,
	.listen = rdma_target_listen,
	.unlisten = rdma_target_unlisten,
	.req_size = sizeof(struct rdma_req),
	.check_sgl = rdma_check_sgl,
	.sgl_len = rdma_sgl_len,
	.fetch = rdma_fetch,
	.abort_fetch = rdma_abort_fetch,
	.reply = rdma_reply,
	.started = rdma_qpair_started,
	.slot_freed = rdma_slot_freed,
	.stalled_since = stalled_since,
	.check_lost = rdma_check_lost,
	.close_when_sent = rdma_close_when_sent,
	.close = rdma_close,
	.free = rdma_free,
};
