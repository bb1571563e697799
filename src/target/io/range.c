/* range.c - Write Zeroes, Verify, Dataset Management: ranges without data from or for the host. */
#include <string.h>

#include "target/io/io.h"

/* Clears as much of [@at, @at + @left) as storage clears at once. */
static void clear_piece(struct weft_req *req, enum weft_io_kind kind, uint64_t at, uint64_t left,
			unsigned flags, void (*done)(struct weft_io *io, int rc))
{
	struct tgt_req *treq = tgt_req(req);
	uint64_t most = treq->ns->be->clear_max;
	uint64_t here = most ? most - at % most : left;
	uint64_t length = left < here ? left : here;
	uint16_t sc = tgt_io_check_piece(req, at, length);

	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_io_submit(req, kind, NULL, at, length, flags, done);
}

/* --- Write Zeroes ----------------------------------------------------------------------------- */

static void zero_piece(struct weft_req *req);

static void zero_piece_done(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);
	struct tgt_req *treq = tgt_req(req);

	treq->bytes_done += io->length;
	assert(treq->bytes_done <= treq->length);
	if (rc < 0 || treq->bytes_done == treq->length)
		tgt_io_finish(req, tgt_io_status(req, rc));
	else
		tgt_io_bulk(req, 0, zero_piece);
}

static void zero_piece(struct weft_req *req)
{
	uint16_t control = le16_to_cpu(req->cmd.rw.control);
	struct tgt_req *treq = tgt_req(req);

	clear_piece(req, WEFT_IO_ZERO, treq->offset + treq->bytes_done,
		    treq->length - treq->bytes_done,
		    tgt_io_durability(req, control & NVME_RW_FUA) |
			    (control & NVME_WZ_DEAC ? WEFT_IO_UNMAP : 0),
		    zero_piece_done);
}

void tgt_io_write_zeroes(struct weft_req *req)
{
	struct tgt_ns *ns = tgt_ns_enter(req, true, tgt_io_write_zeroes);
	uint16_t sc;

	if (!ns)
		return;
	sc = ns->be->read_only ? SC_GENERIC(NS_WRITE_PROTECTED) | SC_DNR :
				 tgt_io_set_range(req, ns);
	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_io_bulk(req, 0, zero_piece);
}

/* --- Verify: read everything, keep nothing ---------------------------------------------------- */

static void verify_piece(struct weft_req *req);

static void verify_next_piece(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);

	tgt_io_bulk(req, treq->length - treq->bytes_done, verify_piece);
}

static void verify_piece_read(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);
	struct tgt_req *treq = tgt_req(req);

	treq->bytes_done += treq->piece;
	assert(treq->bytes_done <= treq->length);
	if (rc < 0 || treq->bytes_done == treq->length)
		tgt_io_finish(req, tgt_io_status(req, rc));
	else
		verify_next_piece(req);
}

static void verify_piece(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	uint64_t at = treq->offset + treq->bytes_done;
	uint16_t sc = tgt_io_check_piece(req, at, treq->piece);

	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_io_submit(req, WEFT_IO_READ, req->data, at, treq->piece, 0, verify_piece_read);
}

void tgt_io_verify(struct weft_req *req)
{
	struct tgt_ns *ns = tgt_ns_enter(req, false, tgt_io_verify);
	uint16_t sc;

	if (!ns)
		return;
	sc = tgt_io_set_range(req, ns);
	if (!sc)
		tgt_stats_count(req, false, tgt_req(req)->length);
	if (sc || ns->be->ops->map) /* memory has nothing to verify */
		tgt_io_finish(req, sc);
	else
		verify_next_piece(req);
}

/* --- Dataset Management ----------------------------------------------------------------------- */

static unsigned dsm_ranges(const struct weft_req *req)
{
	return (le32_to_cpu(req->cmd.common.cdw10) & 0xff) + 1;
}

static struct nvme_dsm_range dsm_range(struct weft_req *req, unsigned index)
{
	struct nvme_dsm_range range;

	assert(index < dsm_ranges(req));
	memcpy(&range, (char *)tgt_req(req)->host_data + index * sizeof(range), sizeof(range));
	return range;
}

static void trim_piece(struct weft_req *req);

/* tgt_req.length: how many blocks the command may still deallocate. */
static void trim_piece_done(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);
	struct tgt_req *treq = tgt_req(req);

	if (rc < 0) {
		tgt_io_finish(req, tgt_io_status(req, rc));
		return;
	}
	assert(io->length >> treq->ns->lba_shift <= treq->length);
	treq->bytes_done += io->length >> treq->ns->lba_shift;
	treq->length -= (uint32_t)(io->length >> treq->ns->lba_shift);
	tgt_io_bulk(req, 0, trim_piece);
}

/* What is left of the range under way, or the next one that is not empty. */
static void trim_piece(struct weft_req *req)
{
	struct tgt_req *treq = tgt_req(req);
	uint8_t shift = treq->ns->lba_shift;
	struct nvme_dsm_range range;
	uint64_t left;

	for (; treq->length && treq->range < dsm_ranges(req); treq->range++, treq->bytes_done = 0) {
		range = dsm_range(req, treq->range);
		left = le32_to_cpu(range.nlb) - treq->bytes_done;
		if (!left)
			continue;
		clear_piece(req, WEFT_IO_TRIM,
			    (le64_to_cpu(range.slba) + treq->bytes_done) << shift,
			    (left < treq->length ? left : treq->length) << shift, 0,
			    trim_piece_done);
		return;
	}
	tgt_io_finish(req, 0);
}

static uint16_t dsm_before(struct weft_req *req, const struct tgt_ns *ns)
{
	(void)ns;
	tgt_req(req)->length = dsm_ranges(req) * (uint32_t)sizeof(struct nvme_dsm_range);
	return weft_req_check_sgl(req, tgt_req(req)->length);
}

static uint16_t dsm_after(struct weft_req *req, const struct tgt_ns *ns)
{
	if (ns->be->read_only)
		return SC_GENERIC(NS_WRITE_PROTECTED) | SC_DNR;
	for (unsigned i = 0; i < dsm_ranges(req); i++) {
		struct nvme_dsm_range range = dsm_range(req, i);
		uint16_t sc = tgt_io_check_lbas(ns, le64_to_cpu(range.slba),
						le32_to_cpu(range.nlb));

		if (sc)
			return sc;
	}
	return 0;
}

/* Attributes other than Deallocate are hints that we do not use. Deallocate is a hint, too: blocks
 * beyond the limits stay as they are (NVM 1.0, 3.2.3). */
static void dsm_run(struct weft_req *req)
{
	tgt_req(req)->length = TGT_DSM_BLOCKS;
	if (le32_to_cpu(req->cmd.common.cdw11) & 1u << 2)
		tgt_io_bulk(req, 0, trim_piece);
	else
		tgt_io_finish(req, 0);
}

void tgt_io_dsm(struct weft_req *req)
{
	static const struct tgt_write_data_ops input = {
		.writer = true,
		.list = true,
		.check_command = dsm_before,
		.check_data = dsm_after,
		.execute = dsm_run,
	};

	tgt_io_write_data(req, &input);
}
