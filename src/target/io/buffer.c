/* buffer.c - Read, Compare and Write get a buffer for their data, and wait for it outside of their
 * namespace.
 *
 *   a buffer is free ────────────────────────────────────────────────────▶ run
 *   none is ─▶ leave ─▶ wait ─▶ enter, check the range again ─────────────▶ run
 *                        ▲            └─ the namespace is quiesced: give the buffer back
 *                        └──────────────── the quiesce has ended ─┘
 *
 * Thousands of commands may wait for buffers that slow storage has. A removal or a quiesce of the
 * namespace waits for the commands that storage works for, and not for all of these. The user of a
 * quiesce may need a buffer, too: no command keeps one while it waits for a quiesce to end.
 *
 * A fused pair is the exception: it has quiesced the namespace, and waits inside. */
#include <assert.h>

#include "target/io/io.h"

static void run_inside(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	uint16_t sc = tgt_io_check_piece(req, treq->offset, treq->length);

	if (sc)
		tgt_io_finish(req, sc);
	else
		treq->with_buffer(req);
}

static void hold_ended(struct weft_req *req);

static void buffer_came(struct weft_req *req, uint16_t sc)
{
	struct tgt_req *treq = tgt_req(req);
	struct tgt_ns *ns;

	if (!sc)
		sc = tgt_ns_check(req, &ns);
	if (sc)
		tgt_io_finish(req, sc);
	else if (tgt_ns_try_enter(req, ns, treq->writer, hold_ended))
		run_inside(req);
	else
		weft_req_put_buffer(req);
}

/* It waits for a buffer again, behind other commands of its host. */
static void hold_ended(struct weft_req *req)
{
	if (req->qp->closing) {
		tgt_io_finish(req, SC_GENERIC(ABORT_QUEUE));
		return;
	}
	weft_req_get_buffer(req, tgt_req(req)->length, buffer_came);
}

static void buffer_of_pair_came(struct weft_req *req, uint16_t sc)
{
	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_req(req)->with_buffer(req);
}

void tgt_io_buffer(struct weft_req *req, void (*run)(struct weft_req *req))
{
	struct tgt_req *treq = tgt_req(req);

	assert(tgt_ns_at_work(req));
	if (weft_req_get_free_buffer(req, treq->length)) {
		run(req);
		return;
	}
	treq->with_buffer = run;
	if (treq->fused) {
		weft_req_get_buffer(req, treq->length, buffer_of_pair_came);
		return;
	}
	tgt_ns_leave(req);
	weft_req_get_buffer(req, treq->length, buffer_came);
}
