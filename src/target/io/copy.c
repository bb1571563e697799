/* copy.c - Copy: ranges of a namespace are copied to one place of it, through a buffer (NVM 1.0,
 * 3.2.2).
 *
 *   range 0, range 1, …  ─▶ read a piece ─▶ write it at the destination, which moves along */
#include <string.h>

#include "target/io/io.h"

struct range {
	uint64_t slba;
	uint32_t nlb;
};

static unsigned copy_ranges(const struct weft_req *req)
{
	return (le32_to_cpu(req->cmd.common.cdw12) & 0xff) + 1;
}

static bool copy_fua(const struct weft_req *req)
{
	return le32_to_cpu(req->cmd.common.cdw12) & 1u << 30;
}

static struct range range_at(struct weft_req *req, unsigned index)
{
	struct nvme_copy_range raw;

	assert(index < copy_ranges(req));
	memcpy(&raw, (char *)tgt_req(req)->host_data + index * sizeof(raw), sizeof(raw));
	return (struct range){ le64_to_cpu(raw.slba), le16_to_cpu(raw.nlb) + 1u };
}

static uint64_t range_bytes(struct weft_req *req)
{
	return (uint64_t)range_at(req, tgt_req(req)->range).nlb << tgt_req(req)->ns->lba_shift;
}

/* --- pieces ----------------------------------------------------------------------------------- */

static void copy_piece(struct weft_req *req);

static void copy_next_piece(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	req->cqe.result = cpu_to_le64(treq->range); /* the first that is not copied whole */
	tgt_io_bulk(req, range_bytes(req) - treq->bytes_done, copy_piece);
}

static void copy_piece_written(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);
	struct tgt_req *treq = tgt_req(req);

	if (rc < 0) {
		tgt_io_finish(req, tgt_io_status(req, rc));
		return;
	}
	treq->offset += treq->piece;
	treq->bytes_done += treq->piece;
	assert(treq->bytes_done <= range_bytes(req));
	if (treq->bytes_done == range_bytes(req)) {
		treq->bytes_done = 0;
		treq->range++;
	}
	if (treq->range < copy_ranges(req)) {
		copy_next_piece(req);
		return;
	}
	req->cqe.result = cpu_to_le64(0);
	tgt_io_finish(req, 0);
}

static void copy_piece_read(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);
	struct tgt_req *treq = tgt_req(req);

	if (rc < 0) {
		tgt_io_finish(req, tgt_io_status(req, rc));
		return;
	}
	tgt_io_submit(req, WEFT_IO_WRITE, req->data, treq->offset, treq->piece,
		      tgt_io_durability(req, copy_fua(req)), copy_piece_written);
}

static void copy_piece(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	uint64_t from = (range_at(req, treq->range).slba << treq->ns->lba_shift) + treq->bytes_done;
	uint16_t sc = tgt_io_check_piece(req, from, treq->piece);

	if (!sc)
		sc = tgt_io_check_piece(req, treq->offset, treq->piece);
	if (sc) {
		tgt_io_finish(req, sc);
		return;
	}
	weft_reactor_bulk_spend(req->qp->group->reactor,
				treq->piece); /* checked again: it is written, too */
	tgt_io_submit(req, WEFT_IO_READ, req->data, from, treq->piece, 0, copy_piece_read);
}

static void copy_run(struct weft_req *req)
{
	tgt_stats_count(req, true, tgt_req(req)->length);
	copy_next_piece(req);
}

/* --- checks ----------------------------------------------------------------------------------- */

static uint16_t copy_before(struct weft_req *req, const struct tgt_ns *ns)
{
	(void)ns;
	if (le32_to_cpu(req->cmd.common.cdw12) >> 8 & 0xf) /* descriptor format 0 is what we know */
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	if (copy_ranges(req) > TGT_COPY_RANGES)
		return SC_COMMAND(CMD_SIZE_LIMIT_EXCEEDED) | SC_DNR;
	tgt_req(req)->length = copy_ranges(req) * (uint32_t)sizeof(struct nvme_copy_range);
	return weft_req_check_sgl(req, tgt_req(req)->length);
}

static uint16_t copy_after(struct weft_req *req, const struct tgt_ns *ns)
{
	uint64_t total = 0, to = le32_to_cpu(req->cmd.common.cdw10) |
				 (uint64_t)le32_to_cpu(req->cmd.common.cdw11) << 32;

	if (ns->be->read_only)
		return SC_GENERIC(NS_WRITE_PROTECTED) | SC_DNR;
	for (unsigned i = 0; i < copy_ranges(req); i++) {
		struct range range = range_at(req, i);
		uint16_t sc = tgt_io_check_lbas(ns, range.slba, range.nlb);

		if (sc)
			return sc;
		if (range.nlb > (uint32_t)TGT_COPY_RANGE_BYTES >> ns->lba_shift)
			return SC_COMMAND(CMD_SIZE_LIMIT_EXCEEDED) | SC_DNR;
		total += range.nlb;
	}
	if (total > (uint64_t)TGT_COPY_BYTES >> ns->lba_shift)
		return SC_COMMAND(CMD_SIZE_LIMIT_EXCEEDED) | SC_DNR;
	tgt_req(req)->offset = to << ns->lba_shift;
	tgt_req(req)->length = (uint32_t)(total << ns->lba_shift);
	return tgt_io_check_lbas(ns, to, total);
}

void tgt_io_copy(struct weft_req *req)
{
	static const struct tgt_write_data_ops input = {
		.writer = true,
		.list = true,
		.check_command = copy_before,
		.check_data = copy_after,
		.execute = copy_run,
	};

	tgt_io_write_data(req, &input);
}
