/* accept.c - accepts a connection request, or rejects it with a reason.
 *
 *   poller ─▶ migrate ─▶ room for completions ─▶ queue pair ─▶ receives ─▶ accept
 *
 * A failure undoes the steps that were made. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transport/rdma/rdma.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t reads_max_of(const struct rdma_poller *poller,
			     const struct rdma_conn_request *conn_req)
{
	uint32_t reads = min_u32(conn_req->initiator_depth,
				 (uint32_t)poller->dev->attr.max_qp_init_rd_atom);

	return reads ? reads : 1;
}

/* Two work requests for a command on the average, a full chain at the least. */
static uint32_t send_queue_size(const struct rdma_conn *conn)
{
	uint32_t wanted = 2u * conn->depth + RDMA_DESCRIPTORS + 1;

	return min_u32(min_u32(wanted, RDMA_WRS_MAX), (uint32_t)conn->poller->dev->attr.max_qp_wr);
}

static int init_own_receives(struct rdma_conn *conn, struct weft_err *err)
{
	struct rdma_poller *poller = conn->poller;
	uint32_t room = min_u32(conn->depth, (uint32_t)poller->dev->attr.max_qp_wr);

	if (poller->uses_srq)
		return 0;
	return rdma_recvs_init(&conn->recvs, &poller->mrs, conn->qp.group->reactor, room, NULL,
			       err);
}

static int create_queue_pair(struct rdma_conn *conn, struct weft_err *err)
{
	struct rdma_poller *poller = conn->poller;
	struct ibv_qp_init_attr attr = {
		.send_cq = conn->cq->cq.cq,
		.recv_cq = conn->cq->cq.cq,
		.srq = poller->recvs.srq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = conn->wrs_max,
			.max_send_sge = 2,
			.max_recv_wr = poller->uses_srq ? 0 : conn->recvs.room,
			.max_recv_sge = poller->uses_srq ? 0 : 2,
			.max_inline_data = sizeof(struct nvme_cqe),
		},
	};

	conn->can_inline = true;
	if (rdma_verbs->create_qp(conn->id, poller->dev->pd, &attr) < 0 && errno == EINVAL) {
		conn->can_inline = false;
		attr.cap.max_inline_data = 0;
		rdma_verbs->create_qp(conn->id, poller->dev->pd, &attr);
	}
	if (!conn->id->qp)
		return weft_fail(err, -errno, "queue pair: %s", strerror(errno));
	rdma_conn_qp_enter(conn, RDMA_QP_CREATED);
	conn->qp_num = conn->id->qp->qp_num;
	conn->events.on_event = rdma_conn_async_event;
	rdma_async_events_add(&conn->events, &poller->async, conn->id->qp);
	rdma_poller_add_conn(conn);
	return 0;
}

/* A poller's shared receives serve all its connections: as many as commands may come, or as there
 * is room for. A connection's own receives are posted after Connect (rdma_qpair_started()): they
 * are memory that the adapter holds, and before Connect the peer may be anybody. */
static int post_receives(struct rdma_conn *conn, struct weft_err *err)
{
	struct rdma_recvs *recvs = conn->poller->uses_srq ? &conn->poller->recvs : &conn->recvs;
	int rc;

	assert(conn->id->qp && (!conn->poller->uses_srq || recvs->srq));
	if (!conn->poller->uses_srq)
		recvs->qp = conn->id->qp;
	rc = rdma_recvs_grow(recvs, conn->poller->uses_srq ? recvs->made + conn->depth :
							     RDMA_PRECONNECT_RECVS);
	return rc < 0 ? weft_fail(err, rc, "receives: %s", strerror(-rc)) : 0;
}

static int claim_completions(struct rdma_conn *conn, struct weft_err *err)
{
	uint32_t entries = conn->wrs_max + (conn->poller->uses_srq ? 0 : conn->recvs.room);

	return rdma_poller_claim_cq(conn->poller, entries, &conn->cq, err);
}

/* How many commands the host may send: each must find a receive. */
static uint16_t crqsize_of(const struct rdma_conn *conn)
{
	return (uint16_t)(conn->poller->uses_srq ? conn->depth : conn->recvs.room);
}

static int send_accept(struct rdma_conn *conn, struct weft_err *err)
{
	const struct nvme_rdma_accept answer = { .crqsize = cpu_to_le16(crqsize_of(conn)) };
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

/* On iWARP a command that finds no receive ends the connection: there must be one for each. */
static bool exceeds_srq(const struct rdma_conn *conn)
{
	const struct rdma_poller *poller = conn->poller;

	return poller->dev->iwarp && poller->uses_srq &&
	       poller->claimed + conn->depth > poller->recvs.room;
}

/* All that can fail, and be rejected with a reason, before the user sees the connection. */
static int create_conn_resources(struct rdma_conn *conn, const struct rdma_conn_request *conn_req,
				 struct weft_err *err)
{
	int rc = init_own_receives(conn, err);

	if (rc < 0)
		return rc;
	if (exceeds_srq(conn)) {
		rc = weft_fail(err, -ENOBUFS, "all receives are spoken for");
		goto end_receives;
	}
	conn->wrs = conn->wrs_max = send_queue_size(conn);
	conn->reads_max = reads_max_of(conn->poller, conn_req);
	rc = claim_completions(conn, err);
	if (rc < 0)
		goto end_receives;
	rc = create_queue_pair(conn, err);
	if (rc < 0)
		goto release_completions;
	rc = post_receives(conn, err);
	if (rc == 0)
		rc = send_accept(conn, err);
	if (rc == 0)
		return 0;
	rdma_conn_destroy_qp(conn);
	goto end_receives;

release_completions:
	conn->cq->room += conn->wrs_max + (conn->poller->uses_srq ? 0 : conn->recvs.room);
end_receives:
	if (!conn->poller->uses_srq)
		rdma_recvs_end(&conn->recvs);
	return rc;
}

static int open_conn(const struct rdma_conn_request *conn_req, struct rdma_poller *poller,
		     struct weft_err *err)
{
	struct rdma_conn *conn = rdma_conn_create(conn_req, poller);
	int rc;

	if (!conn)
		return weft_fail(err, -ENOMEM, "out of memory");
	rc = create_conn_resources(conn, conn_req, err);
	if (rc < 0) {
		conn->id->context = NULL;
		weft_qpair_destroy(&conn->qp);
		free(conn);
		return rc;
	}
	weft_qpair_accepted(&conn->qp);
	weft_timer_set(conn_req->group->reactor, &conn->timer, RDMA_SETUP_MS);
	return 0;
}

static void reject_request(const struct rdma_conn_request *conn_req, enum nvme_rdma_status sts,
			   const struct weft_err *why)
{
	weft_peer_log(WEFT_LOG_WARN, "RDMA connection refused: %s", why->text);
	rdma_target_reject(conn_req->id, sts);
}

/* From here on the connection's events come to this reactor. */
static void accept_on_poller(const struct rdma_conn_request *conn_req, struct rdma_poller *poller)
{
	struct weft_err err = { "" };
	int rc;

	conn_req->id->context = NULL;
	if (rdma_verbs->migrate_id(conn_req->id, poller->poll_group->channel) < 0) {
		weft_fail(&err, -errno, "migrate: %s", strerror(errno));
		reject_request(conn_req, NVME_RDMA_NO_RESOURCES, &err);
		rdma_verbs->destroy_id(conn_req->id);
		rdma_poller_put(poller, NULL);
		return;
	}
	rc = open_conn(conn_req, poller, &err);
	if (rc < 0) {
		reject_request(conn_req, NVME_RDMA_NO_RESOURCES, &err);
		rdma_poller_put(poller, conn_req->id);
	}
}

static void accept_request(const struct rdma_conn_request *conn_req)
{
	uint32_t entries = le16_to_cpu(conn_req->request.hsqsize) + 1u;
	enum nvme_rdma_status sts = NVME_RDMA_NO_RESOURCES;
	struct rdma_poller *poller = NULL;
	struct weft_err err = { "" };
	int rc;

	if (entries > conn_req->group->depth_max) {
		sts = NVME_RDMA_BAD_HSQSIZE;
		atomic_fetch_sub(&conn_req->group->nqpairs, 1);
		rc = weft_fail(&err, -EINVAL, "%s", nvme_rdma_status_text((uint16_t)sts));
	} else {
		rc = rdma_poller_get(conn_req->group, conn_req->id->verbs, &poller, &err);
	}
	if (rc == 0) {
		accept_on_poller(conn_req, poller);
		return;
	}
	reject_request(conn_req, sts, &err);
	rdma_verbs->destroy_id(conn_req->id);
}

void rdma_conn_accept(struct weft_msg *msg)
{
	struct rdma_conn_request *conn_req = container_of(msg, struct rdma_conn_request, msg);

	assert_on(conn_req->group->reactor);
	accept_request(conn_req);
	rdma_cm_channel_put(conn_req->channel);
	free(conn_req);
}
