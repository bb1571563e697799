/* bulk.c - commands that ask storage for more than their host sends or reads: Copy, Verify, Write
 * Zeroes, Dataset Management.
 *
 *   tgt_io_bulk() ─▶ leave ─▶ its host's line ─▶ enter ─▶ a buffer ─▶ piece() ─▶ storage ─▶ finish
 *        ▲                                                                         │
 *        └─────────────────────────────── more is left ────────────────────────────┘
 *
 * Every host has a line on the reactor, and lines take turns, so many bytes a turn: see
 * reactor/bulk.c. A command asks for a buffer when its turn comes, and gives it back after its
 * piece: hundreds of them would keep those that others read into. Only one that had to wait for its
 * buffer, and got it when the turn was spent, is in line with it.
 *
 * Between two pieces a command is not at work: who wants the namespace for itself, or removes it,
 * waits for a piece at most. When its turn comes the command enters like one that comes anew. It
 * waits while the namespace is held; and it ends, with some of its work done, if the namespace is
 * gone, too small or out of reach by then, or reserved by another host. A Copy says how far it got.
 * So it does if it is aborted. If its connection is gone, the rest of it is for nobody.
 *
 * A command in line is under way: a freeze waits for it. */
#include "target/io/io.h"

static void at_its_turn(struct weft_task *task);

struct weft_bulk_line *tgt_io_line(struct weft_req *req)
{
	return &tgt_queue(req)->ctrl->flow->bulk[req->qp->group->index].line;
}

static void get_in_line(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	tgt_ns_leave(req);
	treq->self = req;
	treq->waits = TGT_WAITS_FOR_TURN;
	weft_task_init(&treq->io.turn, at_its_turn);
	weft_reactor_bulk(req->qp->group->reactor, tgt_io_line(req), &treq->io.turn);
}

/* A buffer that had to be waited for may come when the turn has no bytes left: it is kept. */
static void run_piece(struct weft_req *req, uint16_t sc)
{
	struct tgt_req *treq = tgt_req(req);

	if (sc)
		tgt_io_finish(req, sc);
	else if (weft_reactor_spend(req->qp->group->reactor, treq->piece))
		treq->do_piece(req);
	else
		get_in_line(req);
}

/* Who holds the namespace may need a buffer, too. */
static void wait_for_hold(struct weft_req *req)
{
	weft_req_unbuffer(req);
	tgt_req(req)->waits = TGT_WAITS_FOR_HOLD;
}

static void enter(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_of(req, &ns);

	if (!sc && tgt_queue(req)->qid) /* an admin command tells no data */
		sc = tgt_resv_check(req, ns);
	if (sc)
		tgt_io_finish(req, sc);
	else if (!tgt_ns_try_enter(req, ns, treq->writer, get_in_line))
		wait_for_hold(req);
	else if (treq->piece && !req->out.at)
		weft_req_buffer(req, treq->piece, run_piece);
	else
		run_piece(req, 0);
}

static void at_its_turn(struct weft_task *task)
{
	struct weft_req *req = tgt_io_req(container_of(task, struct weft_io, turn));

	tgt_req(req)->waits = TGT_WAITS_NOT;
	if (req->qp->closing)
		tgt_io_finish(req, SC_GENERIC(ABORT_QUEUE));
	else
		enter(req);
}

void tgt_io_bulk(struct weft_req *req, uint64_t bytes, void (*piece)(struct weft_req *req))
{
	struct tgt_req *treq = tgt_req(req);

	weft_req_unbuffer(req);
	treq->piece = bytes < TGT_PIECE_BYTES ? (uint32_t)bytes : TGT_PIECE_BYTES;
	treq->do_piece = piece;
	if (treq->ends_as)
		tgt_io_finish(req, treq->ends_as);
	else
		get_in_line(req);
}

bool tgt_io_bulk_end(struct weft_req *req, uint8_t sc)
{
	struct tgt_req *treq = tgt_req(req);

	switch (treq->waits) {
	case TGT_WAITS_FOR_LIST:
		tgt_io_list_forget(req);
		break;
	case TGT_WAITS_FOR_TURN:
		weft_reactor_unbulk(tgt_io_line(req), &treq->io.turn);
		break;
	case TGT_WAITS_FOR_HOLD:
		weft_list_remove(&req->link);
		break;
	default:
		treq->ends_as = sc;
		return false;
	}
	treq->waits = TGT_WAITS_NOT;
	tgt_io_finish(req, sc);
	return true;
}
