/* buffer.c - the buffer that storage reads into: for Read and Compare, and for a Write whose own data
 * storage cannot take where it lies. A command waits for it outside of its namespace. The data of
 * a Write comes elsewhere: weft_req_fetch().
 *
 *   a buffer is free ──────────────────────────────────────────────▶ run
 *   none is ─▶ leave ─▶ wait for one ─▶ enter, check the range again ─▶ run
 *
 * Thousands of commands may wait for buffers that slow storage has. A removal or a quiesce of the
 * namespace waits for the commands that storage works for, and not for all of these.
 *
 * Invariant: who has quiesced a namespace does not wait for a buffer; a fused pair has the
 * namespace's own. So a command whose buffer comes while the namespace is quiesced keeps it
 * and waits: the quiesce will end. */
#include <assert.h>

#include "target/io/io.h"

static void enter_with_buffer(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct tgt_ns *ns = tgt_ns_enter(req, treq->writer, enter_with_buffer);
	uint16_t sc;

	assert(!treq->fused);
	if (!ns)
		return;
	sc = tgt_io_check_piece(req, treq->offset, treq->length);
	if (sc)
		tgt_io_finish(req, sc);
	else
		treq->with_buffer(req);
}

static void buffer_came(struct weft_req *req, uint16_t sc)
{
	if (sc)
		tgt_io_finish(req, sc);
	else
		enter_with_buffer(req);
}

void tgt_io_buffer(struct weft_req *req, void (*run)(struct weft_req *req))
{
	struct tgt_req *treq = tgt_req(req);

	assert(tgt_ns_at_work(req));
	if (treq->fused) {
		assert(treq->length <= TGT_PAIR_BYTES(tgt_ns_at_work(req)));
		req->data = tgt_ns_at_work(req)->pair_buffer;
		run(req);
		return;
	}
	if (weft_req_get_free_buffer(req, treq->length)) {
		run(req);
		return;
	}
	treq->with_buffer = run;
	tgt_ns_leave(req);
	weft_req_get_buffer(req, treq->length, buffer_came);
}
