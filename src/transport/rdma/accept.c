/* accept.c - a connection request becomes a connection, or is refused with a reason.
 *
 *   lane ─▶ migrate ─▶ room for completions ─▶ queue pair ─▶ receives ─▶ accept
 *
 * What was made on the way is undone in the same order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transport/rdma/rdma.h"

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t reads_of(const struct rdma_lane *lane, const struct rdma_arrival *arrival)
{
	uint32_t reads = least(arrival->initiator_depth,
			       (uint32_t)lane->dev->attr.max_qp_init_rd_atom);

	return reads ? reads : 1;
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
	return rdma_recvs_init(&conn->recvs, &lane->keys, conn->qp.group->reactor, room, NULL, err);
}

static int create_queue_pair(struct rdma_conn *conn, struct weft_err *err)
{
	struct rdma_lane *lane = conn->lane;
	struct ibv_qp_init_attr attr = {
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
	conn->news.heard = rdma_conn_heard;
	rdma_news_start(&conn->news, &lane->ear, conn->id->qp);
	rdma_lane_add(conn);
	return 0;
}

/* A lane's receives are for all its connections: as many as there are commands to come, or what
 * there is room for. Those of its own come with Connect (rdma_started()): each is memory that an
 * adapter holds, and who asks for a connection may be anybody. */
static int post_receives(struct rdma_conn *conn, struct weft_err *err)
{
	struct rdma_recvs *recvs = conn->lane->shares ? &conn->lane->recvs : &conn->recvs;
	int rc;

	if (!conn->lane->shares)
		recvs->qp = conn->id->qp;
	rc = rdma_recvs_grow(recvs,
			     conn->lane->shares ? recvs->made + conn->depth : RDMA_UNKNOWN_RECVS);
	return rc < 0 ? weft_fail(err, rc, "receives: %s", strerror(-rc)) : 0;
}

static int claim_completions(struct rdma_conn *conn, struct weft_err *err)
{
	uint32_t entries = conn->wrs_max + (conn->lane->shares ? 0 : conn->recvs.room);

	return rdma_lane_cq(conn->lane, entries, &conn->cq, err);
}

/* Commands that it finds a receive for. */
static uint16_t holds(const struct rdma_conn *conn)
{
	return (uint16_t)(conn->lane->shares ? conn->depth : conn->recvs.room);
}

static int accept_it(struct rdma_conn *conn, struct weft_err *err)
{
	const struct nvme_rdma_accept answer = { .crqsize = cpu_to_le16(holds(conn)) };
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

/* On iWARP a command that finds no receive is the end of its connection: there must be one for
 * each. */
static bool overcommits(const struct rdma_conn *conn)
{
	const struct rdma_lane *lane = conn->lane;

	return lane->dev->iwarp && lane->shares && lane->claimed + conn->depth > lane->recvs.room;
}

/* Everything that may be refused with a reason, before the connection is anybody's. */
static int build(struct rdma_conn *conn, const struct rdma_arrival *arrival, struct weft_err *err)
{
	int rc = own_receives(conn, err);

	if (rc < 0)
		return rc;
	if (overcommits(conn)) {
		rc = weft_fail(err, -ENOBUFS, "all receives are spoken for");
		goto end_receives;
	}
	conn->wrs = conn->wrs_max = send_queue_size(conn);
	conn->reads_max = reads_of(conn->lane, arrival);
	rc = claim_completions(conn, err);
	if (rc < 0)
		goto end_receives;
	rc = create_queue_pair(conn, err);
	if (rc < 0)
		goto release_completions;
	rc = post_receives(conn, err);
	if (rc == 0)
		rc = accept_it(conn, err);
	if (rc == 0)
		return 0;
	rdma_lane_remove(conn); /* what comes back of its receives is nobody's */
	rdma_conn_drop(conn);
	goto end_receives;

release_completions:
	conn->cq->room += conn->wrs_max + (conn->lane->shares ? 0 : conn->recvs.room);
end_receives:
	if (!conn->lane->shares)
		rdma_recvs_end(&conn->recvs);
	return rc;
}

static int open_conn(const struct rdma_arrival *arrival, struct rdma_lane *lane,
		     struct weft_err *err)
{
	struct rdma_conn *conn = rdma_conn_create(arrival, lane);
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
