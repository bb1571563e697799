/* park.c - parked commands: they are here and do not run yet.
 *
 *            ┌ frozen, or enough is on its way already ─▶ parked ─▶ it came, or left; thawed ┐
 *   capsule ─┴───────────────────────────────────────────────────────────────────────────────┴▶ run
 *
 * A host sends commands by the hundred. If the data of all its writes was asked for at once, it
 * would lie in as many buffers, and before that in the socket: more memory than any cache holds,
 * and each byte is moved three times. So R2Ts are out for little more than TCP_OWED_MAX, which is
 * what a fast network has on its way, and the next write runs when some of that has come.
 *
 * It is the same with reads that are copied before they are sent (see stable_data): the socket
 * takes them from buffers that are in the second cache, TCP_COPIES_MAX of them, used again and
 * again.
 *
 * Nothing may come between the two commands of a fused pair: neither of them is parked for data,
 * and parked commands stay parked until both have come. A frozen poll group parks everything; then
 * the second half of a parked pair is next on the list, or comes when the list is empty.
 *
 * Invariant: the user has not seen a parked command, and it holds no buffer. While there is one,
 * the poll group is frozen, or the host owes data or half of a pair, or replies are being sent. */
#include "proto/status.h"
#include "transport/tcp/tcp.h"

static bool asks_for_data(const union nvme_sqe *cmd)
{
	return nvme_cmd_direction(cmd) == NVME_DIR_TO_CTRL &&
	       cmd->common.sgl.type == NVME_SGL_TRANSPORT;
}

static bool may_be_copied(const struct tcp_conn *conn, const union nvme_sqe *cmd)
{
	return conn->qp.stable_data && nvme_cmd_direction(cmd) == NVME_DIR_TO_HOST;
}

/* The first half of a parked pair has run; the second half is next on the list. */
static bool next_is_parked(const struct tcp_conn *conn)
{
	return tcp_req_of(conn->qp.fused_waiting)->unparked && !weft_list_empty(&conn->parked);
}

bool tcp_must_park(const struct tcp_conn *conn, const struct tcp_req *treq)
{
	const union nvme_sqe *cmd = &treq->req.cmd;

	if (conn->qp.fused_waiting)
		return next_is_parked(conn);
	if (conn->qp.group->frozen)
		return true;
	if (cmd->common.flags & NVME_FUSE_MASK)
		return false;
	return (conn->owed >= TCP_OWED_MAX && asks_for_data(cmd)) ||
	       (conn->copies >= TCP_COPIES_MAX && may_be_copied(conn, cmd));
}

void tcp_park(struct tcp_conn *conn, struct tcp_req *treq)
{
	treq->parked = true;
	conn->qp.parked++;
	weft_list_push(&conn->parked, &treq->req.link);
}

static struct weft_req *unpark(struct tcp_conn *conn)
{
	struct weft_list *link = weft_list_pop(&conn->parked);
	struct weft_req *req;

	if (!link)
		return NULL;
	req = container_of(link, struct weft_req, link);
	tcp_req_of(req)->parked = false;
	tcp_req_of(req)->unparked = true;
	conn->qp.parked--;
	return req;
}

static bool may_run(const struct tcp_conn *conn)
{
	if (conn->stream.state != TCP_STREAM_OPEN || conn->qp.group->frozen)
		return false;
	if (conn->qp.fused_waiting)
		return next_is_parked(conn);
	return conn->owed < TCP_OWED_MAX && conn->copies < TCP_COPIES_MAX;
}

void tcp_run_parked(struct tcp_conn *conn)
{
	struct weft_req *req;

	while (may_run(conn) && (req = unpark(conn)))
		conn->qp.ops->command(req);
}

void tcp_refuse_parked(struct tcp_conn *conn)
{
	struct weft_req *req;

	while ((req = unpark(conn)))
		weft_req_reply(req, SC_GENERIC(ABORT_QUEUE));
}
