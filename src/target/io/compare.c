/* compare.c - Compare: the host's data beside ours; memory where it lies, storage piece by
 * piece. */
#include <string.h>

#include "target/io/io.h"

enum { PIECE_BYTES = 128 << 10 };

#define MISCOMPARE (SC_MEDIA(COMPARE_FAILED) | SC_DNR)

static uint32_t piece(const struct tgt_req *treq)
{
	uint64_t left = treq->length - treq->moved;

	return left < PIECE_BYTES ? (uint32_t)left : PIECE_BYTES;
}

static bool same(const struct tgt_req *treq, const void *ours, uint32_t len)
{
	return !memcmp((char *)treq->host_data + treq->moved, ours, len);
}

static bool compare_step(struct weft_req *req, int rc)
{
	struct tgt_req *treq = tgt_req(req);

	if (rc < 0) {
		tgt_io_finish(req, tgt_io_status(req, rc));
		return false;
	}
	if (treq->writing) { /* a piece is here */
		if (!same(treq, req->data, piece(treq))) {
			tgt_io_finish(req, MISCOMPARE);
			return false;
		}
		treq->moved += piece(treq);
	}
	if (treq->moved == treq->length) {
		tgt_io_finish(req, 0);
		return false;
	}
	treq->writing = true;
	tgt_io_submit(req, WEFT_IO_READ, req->data, treq->offset + treq->moved, piece(treq), 0,
		      tgt_io_step_done);
	return true;
}

static void compare_buffer(struct weft_req *req, uint16_t sc)
{
	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_io_steps(req, compare_step);
}

static void compare_in_place(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct weft_backend *be = treq->ns->be;
	const void *at = be->ops->map(be, treq->offset);
	bool equal;

	if (!weft_guard_share(be->guard, at, treq->length)) {
		tgt_io_next_turn(req, compare_in_place);
		return;
	}
	equal = same(treq, at, treq->length);
	weft_guard_unshare(be->guard, at, treq->length);
	tgt_io_finish(req, equal ? 0 : MISCOMPARE);
}

/* The data is here, the namespace is entered and checked. */
void tgt_io_compare_run(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	treq->host_data = req->data;
	if (treq->ns->be->ops->map)
		compare_in_place(req);
	else
		weft_req_buffer(req, piece(treq), compare_buffer);
}

void tgt_io_compare(struct weft_req *req)
{
	static const struct tgt_input input = { false, tgt_io_data_range, tgt_io_data_range,
						tgt_io_compare_run };

	tgt_io_input(req, &input);
}
