/* schedule.c - which request is carried out next: by itself, or as the test says. */
#include "fabric/transfer.h"

static struct fabric_send *first_send(const struct fabric_qp *qp)
{
	return weft_list_empty(&qp->sends) ? NULL :
					     container_of(qp->sends.next, struct fabric_send, link);
}

static void complete_send(struct fabric_qp *qp, struct fabric_send *send, enum ibv_wc_status status)
{
	struct fabric_qp *peer = qp->peer;

	fabric_qp_send_done(qp, send, status);
	if (status == IBV_WC_SUCCESS)
		return;
	fabric_qp_error(qp);
	if (peer && (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR))
		fabric_qp_error(peer);
}

static void count_send(const struct fabric_send *send)
{
	fabric_count.bytes += send->len;
	switch (send->wr.opcode) {
	case IBV_WR_RDMA_READ:
		fabric_count.reads++;
		break;
	case IBV_WR_RDMA_WRITE:
		fabric_count.writes++;
		break;
	default:
		fabric_count.sends++;
	}
}

static bool is_send(const struct fabric_send *send)
{
	return send->wr.opcode == IBV_WR_SEND || send->wr.opcode == IBV_WR_SEND_WITH_INV;
}

/* The peer has no receive. A try counts when the test asked for it: time is the test's. */
static bool rnr(struct fabric_qp *qp, struct fabric_send *send, bool asked)
{
	if (!send->met_rnr) {
		fabric_count.rnr++;
		send->met_rnr = true;
		qp->rnr_met = 0;
	}
	if (asked)
		qp->rnr_met++;
	if (qp->rnr_retries == FABRIC_RNR_FOREVER ||
	    (qp->rnr_retries && qp->rnr_met <= qp->rnr_retries))
		return false;
	complete_send(qp, send, IBV_WC_RNR_RETRY_EXC_ERR);
	return true;
}

static bool waits(const struct fabric_qp *qp)
{
	if (!first_send(qp) || qp->pub.state != IBV_QPS_RTS || qp->cut || qp->dev->removed)
		return true;
	return qp->peer && qp->peer->pub.state == IBV_QPS_INIT;
}

static bool carry_out_send(struct fabric_qp *qp, bool asked)
{
	struct fabric_send *send = first_send(qp);
	enum ibv_wc_status status = qp->fail_send;

	if (waits(qp))
		return false;
	if (status == IBV_WC_SUCCESS && (!qp->peer || qp->peer->pub.state != IBV_QPS_RTS))
		status = IBV_WC_RETRY_EXC_ERR;
	if (status == IBV_WC_SUCCESS && is_send(send)) {
		if (!fabric_rq_of(qp->peer)->count)
			return rnr(qp, send, asked);
		status = fabric_wire_send(qp, send);
	} else if (status == IBV_WC_SUCCESS) {
		status = fabric_wire_move(qp, send, send->len);
	}
	if (status == IBV_WC_SUCCESS)
		count_send(send);
	qp->fail_send = IBV_WC_SUCCESS;
	complete_send(qp, send, status);
	return true;
}

static bool is_held(const struct fabric_qp *qp)
{
	return first_send(qp) && qp->hold & 1u << first_send(qp)->wr.opcode;
}

void fabric_progress(void)
{
	struct fabric_qp *qp;
	bool moved;

	if (fabric_is_manual)
		return;
	do {
		moved = false;
		weft_list_for_each(qp, &fabric_qps, link)
			moved |= !is_held(qp) && carry_out_send(qp, false);
	} while (moved);
}

/* --- by hand ---------------------------------------------------------------------------------- */

void fabric_manual(bool manual)
{
	FABRIC_LOCKED;

	fabric_is_manual = manual;
	fabric_progress();
}

static struct fabric_qp *oldest_qp(void)
{
	struct fabric_qp *qp, *found = NULL;

	weft_list_for_each(qp, &fabric_qps, link)
		if (!waits(qp) && (!found || first_send(qp)->serial < first_send(found)->serial))
			found = qp;
	return found;
}

bool fabric_step(struct ibv_qp *pub)
{
	struct fabric_qp *qp;
	bool moved;
	FABRIC_LOCKED;

	qp = pub ? fabric_qp_in(pub) : oldest_qp();
	moved = qp && carry_out_send(qp, true);
	fabric_progress();
	return moved;
}

bool fabric_part(struct ibv_qp *pub, uint32_t bytes)
{
	struct fabric_qp *qp = fabric_qp_in(pub);
	FABRIC_LOCKED;

	if (waits(qp) || !qp->peer || is_send(first_send(qp)))
		return false;
	return fabric_wire_move(qp, first_send(qp), bytes) == IBV_WC_SUCCESS;
}

void fabric_run(void)
{
	struct fabric_qp *qp;
	bool moved;
	FABRIC_LOCKED;

	do {
		moved = false;
		weft_list_for_each(qp, &fabric_qps, link)
			moved |= carry_out_send(qp, false);
	} while (moved);
}

unsigned fabric_pending(struct ibv_qp *pub)
{
	struct fabric_send *send;
	unsigned n = 0;
	FABRIC_LOCKED;

	weft_list_for_each(send, &fabric_qp_in(pub)->sends, link)
		n++;
	return n;
}

const struct ibv_send_wr *fabric_next(struct ibv_qp *pub)
{
	const struct fabric_send *send;
	FABRIC_LOCKED;

	send = first_send(fabric_qp_in(pub));
	return send ? &send->wr : NULL;
}

void fabric_hold(struct ibv_qp *pub, unsigned opcodes)
{
	struct fabric_qp *qp;
	FABRIC_LOCKED;

	if (!pub)
		fabric_hold_all = opcodes;
	weft_list_for_each(qp, &fabric_qps, link)
		if (!pub || &qp->pub == pub)
			qp->hold = opcodes;
	fabric_progress();
}

/* --- faults ----------------------------------------------------------------------------------- */

void fabric_cut(struct ibv_qp *pub)
{
	struct fabric_qp *qp = fabric_qp_in(pub);
	FABRIC_LOCKED;

	qp->cut = qp->id->cut = true;
	if (qp->peer)
		qp->peer->cut = qp->peer->id->cut = true;
}

bool fabric_time_out(struct ibv_qp *pub)
{
	struct fabric_qp *qp = fabric_qp_in(pub);
	FABRIC_LOCKED;

	if (!first_send(qp))
		return false;
	complete_send(qp, first_send(qp), IBV_WC_RETRY_EXC_ERR);
	fabric_progress();
	return true;
}

void fabric_fail_next(struct ibv_qp *pub, bool receive, enum ibv_wc_status status)
{
	struct fabric_qp *qp = fabric_qp_in(pub);
	FABRIC_LOCKED;

	if (receive)
		qp->fail_recv = status;
	else
		qp->fail_send = status;
}

struct ibv_qp *fabric_peer(struct ibv_qp *qp)
{
	struct fabric_qp *peer;
	FABRIC_LOCKED;

	peer = fabric_qp_in(qp)->peer;
	return peer ? &peer->pub : NULL;
}

struct rdma_cm_id *fabric_id_of(struct ibv_qp *qp)
{
	FABRIC_LOCKED;

	return &fabric_qp_in(qp)->id->pub;
}
