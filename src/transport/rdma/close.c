/* close.c - how the target's RDMA connection ends.
 *
 *   ACCEPTING ─▶ OPEN ─▶ CLOSING ──── flushed ────▶ ANSWERING ─ all is back ─▶ CLOSED
 *       └───────────────────▲ └─▶ UNFLUSHED ───────────▲                          │ the user frees it
 *                                                       gone ◀─ AWAIT_LAST_WQE ◀──┘
 *
 * The order: the queue pair goes into error; the adapter flushes its work requests, so that it
 * holds no buffer; every request is answered; the user may free the connection. The queue pair is
 * destroyed after LAST_WQE_REACHED, or its shared receives would be lost. An adapter that flushes
 * nothing within RDMA_DRAIN_MS is not waited for: destroying the queue pair ends its use of our
 * memory. */
#include <assert.h>
#include <stdlib.h>

#include "transport/rdma/rdma.h"

#define FROM(state)    (1u << RDMA_##state)
#define FROM_QP(state) (1u << RDMA_QP_##state)

/* States that may come before. */
static const unsigned conn_edges[] = {
	[RDMA_OPEN] = FROM(ACCEPTING),    [RDMA_CLOSING] = FROM(ACCEPTING) | FROM(OPEN),
	[RDMA_UNFLUSHED] = FROM(CLOSING), [RDMA_ANSWERING] = FROM(CLOSING) | FROM(UNFLUSHED),
	[RDMA_CLOSED] = FROM(ANSWERING),  [RDMA_AWAIT_LAST_WQE] = FROM(CLOSED),
};

static const unsigned qp_edges[] = {
	[RDMA_QP_CREATED] = FROM_QP(NONE),
	[RDMA_QP_LAST_WQE] = FROM_QP(CREATED),
	[RDMA_QP_DESTROYED] = FROM_QP(CREATED) | FROM_QP(LAST_WQE),
};

void rdma_conn_enter(struct rdma_conn *conn, enum rdma_state state)
{
	assert_on(conn->qp.group->reactor);
	assert(conn_edges[state] & 1u << conn->state);
	conn->state = state;
}

void rdma_conn_qp_enter(struct rdma_conn *conn, enum rdma_qp_state state)
{
	assert_on(conn->qp.group->reactor);
	assert(qp_edges[state] & 1u << conn->qp_state);
	conn->qp_state = state;
}

void rdma_conn_destroy_qp(struct rdma_conn *conn)
{
	rdma_conn_qp_enter(conn, RDMA_QP_DESTROYED);
	rdma_poller_remove_conn(conn); /* completions of its receives find no connection now */
	rdma_cq_drain(&conn->cq->cq);
	rdma_async_events_remove(&conn->events);
	rdma_verbs->destroy_qp(conn->id);
	rdma_cq_drain(&conn->cq->cq);
	conn->cq->room += conn->wrs_max;
	if (conn->poller->uses_srq)
		return;
	conn->cq->room += conn->recvs.room;
	rdma_recvs_stop(&conn->recvs);
}

/* No work request is under way: the adapter holds none of our buffers. */
static bool all_wrs_returned(const struct rdma_conn *conn)
{
	return conn->wrs == conn->wrs_max;
}

static void abort_outstanding(struct rdma_conn *conn)
{
	rdma_conn_enter(conn, RDMA_ANSWERING);
	weft_timer_stop(conn->qp.group->reactor, &conn->timer);
	if (!conn->poller->uses_srq || !all_wrs_returned(conn))
		rdma_conn_destroy_qp(conn);
	conn->id->context = NULL;
	rdma_tx_abort_all(conn);
	conn->qp.ops->closing(&conn->qp);
	weft_qpair_end_requests(&conn->qp);
}

static void conn_finish_close(struct weft_task *task)
{
	struct rdma_conn *conn = container_of(task, struct rdma_conn, finish_close);

	if (conn->state == RDMA_CLOSING && conn->chains)
		return;
	if (conn->state != RDMA_ANSWERING)
		abort_outstanding(conn);
	if (weft_qpair_in_use(&conn->qp))
		return;
	weft_task_cancel(&conn->finish_close);
	rdma_conn_enter(conn, RDMA_CLOSED);
	conn->qp.ops->closed(&conn->qp);
}

void rdma_close_init(struct rdma_conn *conn)
{
	weft_task_init(&conn->finish_close, conn_finish_close);
}

void rdma_finish_close_soon(struct rdma_conn *conn)
{
	if (conn->state >= RDMA_CLOSING && conn->state < RDMA_CLOSED)
		weft_reactor_defer(conn->qp.group->reactor, &conn->finish_close);
}

static void drain_expired(struct weft_timer *timer)
{
	struct rdma_conn *conn = container_of(timer, struct rdma_conn, timer);

	rdma_conn_enter(conn, RDMA_UNFLUSHED);
	rdma_finish_close_soon(conn);
}

void rdma_close(struct weft_qpair *qp)
{
	struct rdma_conn *conn = rdma_conn_of(qp);

	rdma_conn_enter(conn, RDMA_CLOSING);
	conn->timer.fn = drain_expired;
	weft_timer_set(qp->group->reactor, &conn->timer, RDMA_DRAIN_MS);
	if (!conn->poller->uses_srq)
		rdma_recvs_stop(&conn->recvs);
	rdma_verbs->disconnect(conn->id);
	rdma_finish_close_soon(conn);
}

void rdma_slot_freed(struct weft_qpair *qp)
{
	rdma_finish_close_soon(rdma_conn_of(qp));
}

static void conn_free(struct rdma_conn *conn)
{
	struct rdma_poller *poller = conn->poller;
	struct rdma_cm_id *id = conn->id;

	assert(conn->state == RDMA_AWAIT_LAST_WQE);
	if (conn->qp_state != RDMA_QP_DESTROYED)
		rdma_conn_destroy_qp(conn);
	if (!poller->uses_srq)
		rdma_recvs_end(&conn->recvs);
	free(conn);
	rdma_poller_put(poller, id);
}

static void last_wqe_expired(struct weft_timer *timer)
{
	conn_free(container_of(timer, struct rdma_conn, timer));
}

/* A shared receive that the adapter has taken for this queue pair would be lost with it: the
 * adapter reports when it has none (LAST_WQE_REACHED). */
void rdma_free(struct weft_qpair *qp)
{
	struct rdma_conn *conn = rdma_conn_of(qp);

	rdma_conn_enter(conn, RDMA_AWAIT_LAST_WQE);
	weft_qpair_destroy(qp);
	if (conn->qp_state != RDMA_QP_CREATED) {
		conn_free(conn);
		return;
	}
	conn->timer.fn = last_wqe_expired;
	weft_timer_set(qp->group->reactor, &conn->timer, RDMA_LAST_WQE_MS);
}

void rdma_conn_last_wqe_reached(struct rdma_conn *conn)
{
	if (conn->qp_state == RDMA_QP_CREATED)
		rdma_conn_qp_enter(conn, RDMA_QP_LAST_WQE);
	if (conn->state < RDMA_AWAIT_LAST_WQE) {
		weft_qpair_close(&conn->qp, "its queue pair is in error");
		return;
	}
	weft_timer_stop(conn->qp.group->reactor, &conn->timer);
	conn_free(conn);
}
