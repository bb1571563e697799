/* compare.c - Compare: the host's data against the namespace's, in place for memory, through a
 * buffer for other storage. */
#include <string.h>

#include "target/io/io.h"

#define MISCOMPARE (SC_MEDIA(COMPARE_FAILED) | SC_DNR)

static bool data_is_equal(const struct tgt_req *treq, const void *ours)
{
	return !memcmp(treq->host_data, ours, treq->length);
}

static void compare_read_done(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);

	if (rc < 0)
		tgt_io_finish(req, tgt_io_status(req, rc));
	else
		tgt_io_finish(req, data_is_equal(tgt_req(req), req->data) ? 0 : MISCOMPARE);
}

static void compare_a_copy(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	tgt_io_submit(req, WEFT_IO_READ, req->data, treq->offset, treq->length, 0,
		      compare_read_done);
}

static bool compare_in_place(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	struct weft_backend *be = treq->ns->be;
	const void *at = be->ops->map(be, treq->offset);
	bool equal;

	if (!weft_guard_try_read(be->guard, at, treq->length))
		return false;
	equal = data_is_equal(treq, at);
	weft_guard_unlock_read(be->guard, at, treq->length);
	tgt_io_finish(req, equal ? 0 : MISCOMPARE);
	return true;
}

/* The data is at host_data, the namespace is entered and checked. */
void tgt_io_compare_run(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	assert(treq->host_data);
	tgt_stats_count(req, false, treq->length);
	if (treq->ns->be->ops->map)
		tgt_io_retry_until(req, compare_in_place);
	else
		tgt_io_buffer(req, compare_a_copy);
}

void tgt_io_compare(struct weft_req *req)
{
	static const struct tgt_write_data_ops input = {
		.check_command = tgt_io_set_data_range,
		.check_data = tgt_io_set_data_range,
		.execute = tgt_io_compare_run,
	};

	tgt_io_write_data(req, &input);
}
