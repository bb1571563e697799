/* io.c - I/O commands, on the reactor of their queue: the table, and what they have in common.
 *
 *   command ─▶ enter the namespace ─▶ check ─▶ data or buffer ─▶ storage ─▶ finish ─▶ reply
 *
 * A command that waits for its data has left the namespace: it looks the namespace up again, which
 * may be gone, smaller or another one by then. */
#include "target/io/io.h"

#include "target/resv/resv.h"

#define EFFECTS_READ  NVME_CMD_EFFECTS_CSUPP
#define EFFECTS_WRITE (NVME_CMD_EFFECTS_CSUPP | NVME_CMD_EFFECTS_LBCC)

const struct tgt_command_info tgt_io_commands[] = {
	{ nvme_cmd_flush, .execute = tgt_io_flush, .effects = EFFECTS_READ },
	{ nvme_cmd_write, .execute = tgt_io_write, .effects = EFFECTS_WRITE },
	{ nvme_cmd_read, .execute = tgt_io_read, .effects = EFFECTS_READ },
	{ nvme_cmd_compare, .execute = tgt_io_compare, .effects = EFFECTS_READ },
	{ nvme_cmd_write_zeroes, .execute = tgt_io_write_zeroes, .effects = EFFECTS_WRITE },
	{ nvme_cmd_dsm, .execute = tgt_io_dsm, .effects = EFFECTS_WRITE },
	{ nvme_cmd_verify, .execute = tgt_io_verify, .effects = EFFECTS_READ },
	{ nvme_cmd_copy, .execute = tgt_io_copy, .effects = EFFECTS_WRITE },
	{ nvme_cmd_resv_register, .execute = tgt_resv_change, .effects = EFFECTS_READ },
	{ nvme_cmd_resv_report, .execute = tgt_resv_report, .effects = EFFECTS_READ },
	{ nvme_cmd_resv_acquire, .execute = tgt_resv_change, .effects = EFFECTS_READ },
	{ nvme_cmd_resv_release, .execute = tgt_resv_change, .effects = EFFECTS_READ },
	{ 0 },
};

void tgt_io_command(struct weft_req *req)
{
	const struct tgt_command_info *info = tgt_command_find(tgt_io_commands,
							       req->cmd.common.opcode);

	if ((tgt_io_is_fused(req) || tgt_queue(req)->fused_first) && tgt_io_fused(req))
		return;
	if (!info)
		tgt_io_finish(req, SC_GENERIC(INVALID_OPCODE) | SC_DNR);
	else
		info->execute(req);
}

/* --- checks ----------------------------------------------------------------------------------- */

uint16_t tgt_io_check_lbas(const struct tgt_ns *ns, uint64_t slba, uint64_t nlb)
{
	uint64_t blocks = atomic_load_explicit(&ns->blocks, memory_order_relaxed);

	if (slba > blocks || nlb > blocks - slba)
		return SC_GENERIC(LBA_RANGE) | SC_DNR;
	return 0;
}

uint16_t tgt_io_check_piece(struct weft_req *req, uint64_t offset, uint64_t length)
{
	const struct tgt_ns *ns = tgt_ns_at_work(req);

	assert(!((offset | length) & ((1u << ns->lba_shift) - 1)));
	return tgt_io_check_lbas(ns, offset >> ns->lba_shift, length >> ns->lba_shift);
}

uint16_t tgt_io_set_range(struct weft_req *req, const struct tgt_ns *ns)
{
	struct tgt_req *treq = tgt_req(req);
	uint64_t slba = le64_to_cpu(req->cmd.rw.slba);
	uint32_t nlb = le16_to_cpu(req->cmd.rw.nlb) + 1u;
	uint16_t sc = tgt_io_check_lbas(ns, slba, nlb);

	if (sc)
		return sc;
	treq->offset = slba << ns->lba_shift;
	treq->length = nlb << ns->lba_shift;
	return 0;
}

uint16_t tgt_io_set_data_range(struct weft_req *req, const struct tgt_ns *ns)
{
	struct tgt_req *treq = tgt_req(req);
	uint32_t nlb = le16_to_cpu(req->cmd.rw.nlb) + 1u;
	uint16_t sc;

	if (nlb > WEFT_MDTS_BYTES >> ns->lba_shift)
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	sc = tgt_io_set_range(req, ns);
	if (sc)
		return sc;
	return weft_req_check_sgl(req, treq->length);
}

unsigned tgt_io_durability(struct weft_req *req, bool fua)
{
	struct tgt_ctrl *ctrl = tgt_queue(req)->ctrl;

	if (fua || !atomic_load_explicit(&ctrl->write_cache, memory_order_relaxed))
		return WEFT_IO_FUA;
	return 0;
}

/* --- to the storage and back ------------------------------------------------------------------ */

struct weft_req *tgt_io_req(struct weft_io *io)
{
	struct tgt_req *treq = container_of(io, struct tgt_req, io);

	return treq->self;
}

void tgt_io_submit(struct weft_req *req, enum weft_io_kind kind, void *buf, uint64_t offset,
		   uint64_t length, unsigned flags, void (*done)(struct weft_io *io, int rc))
{
	struct tgt_req *treq = tgt_req(req);
	int rc;

	assert(tgt_ns_at_work(req));
	treq->self = req;
	treq->io.kind = kind;
	treq->io.flags = flags;
	treq->io.buf = buf;
	treq->io.offset = offset;
	treq->io.length = length;
	treq->io.done = done;
	rc = weft_backend_submit(treq->ns->be, &treq->io);
	if (rc < 0)
		done(&treq->io, rc);
}

static void retry_request(struct weft_task *task)
{
	struct weft_req *req = tgt_io_req(container_of(task, struct weft_io, retry.task));

	if (!tgt_req(req)->attempt(req))
		weft_retry_later(req->qp->group->reactor, &tgt_req(req)->io.retry);
}

void tgt_io_retry_until(struct weft_req *req, bool (*attempt)(struct weft_req *req))
{
	struct tgt_req *treq = tgt_req(req);

	assert(tgt_ns_at_work(req));
	if (attempt(req))
		return;
	treq->self = req;
	treq->attempt = attempt;
	weft_retry_init(&treq->io.retry, retry_request);
	weft_retry_later(req->qp->group->reactor, &treq->io.retry);
}

void tgt_io_done(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);

	tgt_io_finish(req, tgt_io_status(req, rc));
}

bool tgt_io_abort(struct weft_req *req, uint8_t sc)
{
	return weft_req_abort(req, sc) || tgt_io_bulk_abort(req, sc);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* By way of the control reactor, which keeps the error log and the health status. */
static void io_fail_on_control(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);

	assert(tgt_req(req)->status && !tgt_ns_at_work(req));
	tgt_health_command_failed(tgt_queue(req)->ctrl->subsys, tgt_nsid(req));
	tgt_control_reply(req, tgt_req(req)->status);
}

void tgt_io_finish(struct weft_req *req, uint16_t status)
{
	struct tgt_req *treq = tgt_req(req);

	if (treq->fused) {
		tgt_io_fused_step(req, status);
		return;
	}
	if (treq->waits)
		tgt_io_piece_ends(req);
	if (treq->counted)
		tgt_limit_release(req);
	if (tgt_ns_at_work(req))
		tgt_ns_leave(req);
	if (!status || req->qp->closing) {
		weft_req_reply(req, status);
		return;
	}
	treq->status = status;
	tgt_post_control(req, io_fail_on_control);
}
