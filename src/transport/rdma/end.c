/* end.c - how a connection ends.
 *
 *   CLOSING ──all is back──▶ CLOSED ──its user lets go──▶ LEAVING ──no receive is missing──▶ gone
 *
 * It has an order: the queue pair goes into error, and the adapter hands back what it has of it, so
 * that no buffer is in its hands; every request comes back; then the user may free the connection.
 * The queue pair is destroyed when the adapter has said that it holds none of the shared receives
 * for it. An adapter that hands nothing back is not waited for long: the queue pair is destroyed
 * first then, and what it was given dies with it. */
#include <assert.h>
#include <stdlib.h>

#include "transport/rdma/rdma.h"

void rdma_conn_drop(struct rdma_conn *conn)
{
	rdma_cq_drain(&conn->cq->cq);
	rdma_news_end(&conn->news);
	rdma_verbs->destroy_qp(conn->id);
	rdma_cq_drain(&conn->cq->cq);
	rdma_lane_remove(conn);
	conn->cq->room += conn->wrs_max;
	if (conn->lane->shares)
		return;
	conn->cq->room += conn->recvs.room;
	rdma_recvs_stop(&conn->recvs);
}

/* No work request of it is under way: the adapter holds none of our buffers. */
static bool is_quiet(const struct rdma_conn *conn)
{
	return conn->wrs == conn->wrs_max;
}

static void drop_now(struct rdma_conn *conn)
{
	conn->dropped = true;
	rdma_conn_drop(conn);
}

static void settle(struct rdma_conn *conn)
{
	conn->settled = true;
	weft_timer_stop(conn->qp.group->reactor, &conn->timer);
	if (!conn->lane->shares || !is_quiet(conn))
		drop_now(conn);
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

void rdma_end_init(struct rdma_conn *conn)
{
	weft_task_init(&conn->wrap_up, wrap_up);
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

void rdma_close(struct weft_qpair *qp)
{
	struct rdma_conn *conn = rdma_conn_of(qp);

	conn->state = RDMA_CLOSING;
	conn->timer.fn = drain_over;
	weft_timer_set(qp->group->reactor, &conn->timer, RDMA_DRAIN_MS);
	if (!conn->lane->shares)
		rdma_recvs_stop(&conn->recvs);
	rdma_verbs->disconnect(conn->id);
	rdma_wrap_up_soon(conn);
}

void rdma_slot_freed(struct weft_qpair *qp)
{
	rdma_wrap_up_soon(rdma_conn_of(qp));
}

static void bury(struct rdma_conn *conn)
{
	struct rdma_lane *lane = conn->lane;
	struct rdma_cm_id *id = conn->id;

	if (!conn->dropped)
		rdma_conn_drop(conn);
	if (!lane->shares)
		rdma_recvs_end(&conn->recvs);
	free(conn);
	rdma_lane_put(lane, id);
}

static void last_never_said(struct weft_timer *timer)
{
	bury(container_of(timer, struct rdma_conn, timer));
}

/* A receive that the adapter has taken for this queue pair from those of all would be lost with it:
 * the adapter says when it has none. */
void rdma_free(struct weft_qpair *qp)
{
	struct rdma_conn *conn = rdma_conn_of(qp);

	assert(conn->state == RDMA_CLOSED);
	conn->state = RDMA_LEAVING;
	weft_qpair_destroy(qp);
	if (conn->dropped || conn->emptied) {
		bury(conn);
		return;
	}
	conn->timer.fn = last_never_said;
	weft_timer_set(qp->group->reactor, &conn->timer, RDMA_LAST_MS);
}

void rdma_conn_emptied(struct rdma_conn *conn)
{
	conn->emptied = true;
	if (conn->state < RDMA_LEAVING) {
		weft_qpair_close(&conn->qp, "its queue pair is in error");
		return;
	}
	weft_timer_stop(conn->qp.group->reactor, &conn->timer);
	bury(conn);
}
