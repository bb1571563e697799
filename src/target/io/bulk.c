/* bulk.c - bulk work: commands that ask storage for more than their host sends or reads (Copy,
 * Verify, Write Zeroes, Dataset Management) are done in pieces.
 *
 *   tgt_io_bulk() ─▶ leave ─▶ its host's flow ─▶ a buffer ─▶ enter ─▶ piece() ─▶ storage ─▶ finish
 *        ▲                                                                         │
 *        └─────────────────────────────── more is left ────────────────────────────┘
 *
 * Every host has a flow on the reactor, and flows take turns, with a limit of bytes in a turn and
 * of pieces at once: see reactor/bulk.c. A command's piece is under way from its turn on, also
 * while it waits for a buffer. So only a few commands of a host wait for buffers, and storage has
 * only a few of its pieces, however long it takes over them. A command gives its buffer back after
 * each piece: hundreds of commands would keep the buffers that others read into.
 *
 * Between two pieces a command is not at work: a quiesce or a removal of the namespace waits only
 * for pieces that storage has. When its turn comes and it has its buffer, the command enters the
 * namespace like a new one. It waits while the namespace is quiesced. It ends, with some of its
 * work done, if the namespace is gone, too small or inaccessible by then, if another host has
 * reserved it, or if the command was aborted; a Copy reports how far it got. If its connection is
 * gone, the rest is not done.
 *
 * A command that waits for its turn is under way: a freeze waits for it. */
#include "target/io/io.h"

static void bulk_turn(struct weft_task *task);

struct weft_bulk_flow *tgt_io_bulk_queue(struct weft_req *req)
{
	return &tgt_queue(req)->ctrl->flow->per_reactor[req->qp->group->index].bulk;
}

/* --- pieces ----------------------------------------------------------------------------------- */

static struct weft_reactor *reactor_of(const struct weft_req *req)
{
	return req->qp->group->reactor;
}

static void piece_begins(struct weft_req *req)
{
	assert(tgt_req(req)->waits == TGT_WAITS_FOR_TURN ||
	       tgt_req(req)->waits == TGT_WAITS_FOR_BYTES);
	if (tgt_req(req)->waits < TGT_WAITS_IN_PIECE)
		weft_reactor_bulk_piece_begin(reactor_of(req), tgt_io_bulk_queue(req));
	tgt_req(req)->waits = TGT_WAITS_IN_PIECE;
}

void tgt_io_piece_ends(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	if (treq->waits >= TGT_WAITS_IN_PIECE)
		weft_reactor_bulk_piece_end(reactor_of(req), tgt_io_bulk_queue(req));
	treq->waits = TGT_WAITS_NOT;
}

static void bulk_enqueue(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	assert(treq->waits == TGT_WAITS_NOT || treq->waits == TGT_WAITS_FOR_UNQUIESCE);
	tgt_ns_leave(req);
	if (req->qp->closing) {
		tgt_io_finish(req, SC_GENERIC(ABORT_QUEUE));
		return;
	}
	treq->self = req;
	treq->waits = TGT_WAITS_FOR_TURN;
	weft_task_init(&treq->io.bulk_task, bulk_turn);
	weft_reactor_bulk_push(reactor_of(req), tgt_io_bulk_queue(req), &treq->io.bulk_task);
}

/* Gives the buffer back: the command will wait for a turn again. */
static void bulk_wait_for_unquiesce(struct weft_req *req)
{
	assert(tgt_req(req)->waits == TGT_WAITS_IN_PIECE && !tgt_ns_at_work(req));
	weft_req_put_buffer(req);
	tgt_io_piece_ends(req);
	tgt_req(req)->waits = TGT_WAITS_FOR_UNQUIESCE;
}

static void bulk_enter_ns(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_lookup(req, &ns);

	if (!sc && tgt_queue(req)->qid) /* an admin command reads no data */
		sc = tgt_resv_check(req, ns);
	if (sc)
		tgt_io_finish(req, sc);
	else if (tgt_ns_try_enter(req, ns, treq->writer, bulk_enqueue))
		treq->do_piece(req);
	else
		bulk_wait_for_unquiesce(req);
}

/* The buffer may come when the turn has no bytes left: the command keeps it for the next turn. */
static void bulk_buffer_ready(struct weft_req *req, uint16_t sc)
{
	struct tgt_req *treq = tgt_req(req);

	assert(treq->waits == TGT_WAITS_IN_PIECE && !tgt_ns_at_work(req));
	if (sc) {
		tgt_io_finish(req, sc);
	} else if (weft_reactor_bulk_spend(reactor_of(req), treq->piece)) {
		bulk_enter_ns(req);
	} else {
		treq->waits = TGT_WAITS_FOR_BYTES;
		weft_reactor_bulk_retry(reactor_of(req), &treq->io.bulk_task);
	}
}

static void bulk_turn(struct weft_task *task)
{
	struct weft_req *req = tgt_io_req(container_of(task, struct weft_io, bulk_task));
	struct tgt_req *treq = tgt_req(req);

	piece_begins(req);
	if (treq->piece && !req->out.at)
		weft_req_get_buffer(req, treq->piece, bulk_buffer_ready);
	else
		bulk_buffer_ready(req, 0);
}

/* --- the whole -------------------------------------------------------------------------------- */

void tgt_io_bulk(struct weft_req *req, uint64_t bytes, void (*piece)(struct weft_req *req))
{
	struct tgt_req *treq = tgt_req(req);

	assert(tgt_ns_at_work(req) && !treq->fused);
	weft_req_put_buffer(req);
	tgt_io_piece_ends(req);
	treq->piece = bytes < TGT_PIECE_BYTES ? (uint32_t)bytes : TGT_PIECE_BYTES;
	treq->do_piece = piece;
	if (treq->abort_status)
		tgt_io_finish(req, treq->abort_status);
	else
		bulk_enqueue(req);
}

bool tgt_io_bulk_abort(struct weft_req *req, uint8_t sc)
{
	struct tgt_req *treq = tgt_req(req);

	switch (treq->waits) {
	case TGT_WAITS_FOR_TENANT:
		tgt_limit_unwait(req);
		break;
	case TGT_WAITS_FOR_TURN:
		weft_reactor_bulk_cancel(tgt_io_bulk_queue(req), &treq->io.bulk_task);
		break;
	case TGT_WAITS_FOR_BYTES:
		weft_task_cancel(&treq->io.bulk_task);
		break;
	case TGT_WAITS_FOR_UNQUIESCE:
		weft_list_remove(&req->link);
		break;
	default:
		treq->abort_status = sc;
		return false;
	}
	assert(!tgt_ns_at_work(req));
	if (tgt_io_is_fused(req))
		tgt_io_fused_abort(req, sc);
	else
		tgt_io_finish(req, sc);
	return true;
}

/* The flow may wait long for pieces of the host's other queues, and the tenant for their lists and
 * pairs. */
void tgt_io_bulk_closing(struct weft_req *req)
{
	uint8_t waits = tgt_req(req)->waits;

	if (waits == TGT_WAITS_FOR_TENANT || waits == TGT_WAITS_FOR_TURN ||
	    waits == TGT_WAITS_FOR_BYTES)
		tgt_io_bulk_abort(req, SC_GENERIC(ABORT_QUEUE));
}
