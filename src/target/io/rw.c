/* rw.c - Read, Write, Flush. */
#include <string.h>

#include "target/io/io.h"

static bool has_fua(const struct weft_req *req)
{
	return le16_to_cpu(req->cmd.rw.control) & NVME_RW_FUA;
}

/* --- Read ------------------------------------------------------------------------------------- */

static void read_into(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	req->reply_len = treq->length;
	tgt_io_submit(req, WEFT_IO_READ, req->data, treq->offset, treq->length,
		      has_fua(req) ? WEFT_IO_FUA : 0, tgt_io_done);
}

static void *mapped_address(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	return treq->ns->be->ops->map(treq->ns->be, treq->offset);
}

/* The reply leaves from the namespace's own memory, block by block as it is then; the memory is
 * pinned until the reply has left. */
static void read_in_place(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	req->data = mapped_address(req);
	req->reply_len = treq->length;
	req->shared = true;
	req->guard = treq->ns->be->guard;
	tgt_ns_pin(req);
	tgt_io_finish(req, 0);
}

/* Copies the blocks as they are now. */
static bool copy_guarded(struct weft_req *req)
{
	struct weft_guard *guard = tgt_req(req)->ns->be->guard;
	const void *at = mapped_address(req);

	req->reply_len = tgt_req(req)->length;
	if (!weft_guard_try_read(guard, at, req->reply_len))
		return false;
	req->qp->transport->copy(req, at);
	weft_guard_unlock_read(guard, at, req->reply_len);
	tgt_io_finish(req, 0);
	return true;
}

static void read_a_copy(struct weft_req *req)
{
	tgt_io_retry_until(req, copy_guarded);
}

void tgt_io_read(struct weft_req *req)
{
	struct tgt_ns *ns = tgt_ns_enter(req, false, tgt_io_read);
	uint16_t sc;

	if (!ns)
		return;
	sc = tgt_io_set_data_range(req, ns);
	if (sc) {
		tgt_io_finish(req, sc);
		return;
	}
	tgt_stats_count(req, false, tgt_req(req)->length);
	if (!ns->be->ops->map)
		tgt_io_buffer(req, read_into);
	else if (req->qp->stable_data)
		tgt_io_buffer(req, read_a_copy);
	else
		read_in_place(req);
}

/* --- Write ------------------------------------------------------------------------------------ */

static void submit_write(struct weft_req *req, void *data)
{
	struct tgt_req *treq = tgt_req(req);

	tgt_io_submit(req, WEFT_IO_WRITE, data, treq->offset, treq->length,
		      tgt_io_durability(req, has_fua(req)), tgt_io_done);
}

static void write_aligned(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	memcpy(req->data, treq->host_data, treq->length);
	submit_write(req, req->data);
}

/* The data is at host_data, the namespace is entered and checked. */
void tgt_io_write_run(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	tgt_stats_count(req, true, treq->length);
	if ((uintptr_t)treq->host_data % treq->ns->be->align)
		tgt_io_buffer(req, write_aligned);
	else
		submit_write(req, treq->host_data);
}

static uint16_t write_check(struct weft_req *req, const struct tgt_ns *ns)
{
	if (ns->be->read_only)
		return SC_GENERIC(NS_WRITE_PROTECTED) | SC_DNR;
	return tgt_io_set_data_range(req, ns);
}

void tgt_io_write(struct weft_req *req)
{
	static const struct tgt_write_data_ops input = {
		.writer = true,
		.check_command = write_check,
		.check_data = write_check,
		.execute = tgt_io_write_run,
	};

	tgt_io_write_data(req, &input);
}

/* --- Flush ------------------------------------------------------------------------------------ */

static void submit_flush(struct weft_req *req, void (*done)(struct weft_io *io, int rc))
{
	tgt_req(req)->flushes = tgt_ns_cached_writes(tgt_ns_at_work(req));
	tgt_io_submit(req, WEFT_IO_FLUSH, NULL, 0, 0, 0, done);
}

static void count_flush(struct weft_req *req, int rc)
{
	if (!rc)
		tgt_ns_flushed(tgt_ns_at_work(req), tgt_req(req)->flushes);
}

static void flush_done(struct weft_io *io, int rc)
{
	count_flush(tgt_io_req(io), rc);
	tgt_io_done(io, rc);
}

void tgt_io_flush(struct weft_req *req)
{
	if (tgt_ns_enter(req, false, tgt_io_flush))
		submit_flush(req, flush_done);
}

/* --- shutdown: flush every namespace with writes that are not durable, in turn ---------------- */

static void shutdown_flush_next(struct weft_req *req);

static void shutdown_done_on_control(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);

	tgt_ctrl_shutdown_done(tgt_queue(req)->ctrl);
	tgt_control_reply(req, 0);
}

/* A shutdown goes on after a flush that failed; the log has a line about it. */
static void shutdown_flush_done(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);

	assert(tgt_req(req)->range < WEFT_NSID_MAX);
	count_flush(req, rc);
	tgt_io_status(req, rc);
	tgt_ns_leave(req);
	tgt_req(req)->range++;
	shutdown_flush_next(req);
}

/* NULL: there is no other. */
static struct tgt_ns *next_unflushed(struct weft_req *req)
{
	struct weft_subsys *s = tgt_queue(req)->ctrl->subsys;
	struct tgt_req *treq = tgt_req(req);

	for (; treq->range < WEFT_NSID_MAX; treq->range++) {
		struct tgt_ns *ns = tgt_ns_find(s, treq->range + 1u);

		if (ns && !tgt_ns_is_flushed(ns))
			return ns;
	}
	return NULL;
}

static void shutdown_flush_next(struct weft_req *req)
{
	struct tgt_ns *ns = next_unflushed(req);

	if (!ns)
		tgt_post_control(req, shutdown_done_on_control);
	else if (tgt_ns_try_enter(req, ns, false, shutdown_flush_next))
		submit_flush(req, shutdown_flush_done);
}

void tgt_io_shutdown(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);

	assert_on(req->qp->group->reactor);
	assert(!tgt_req(req)->range);
	shutdown_flush_next(req);
}
