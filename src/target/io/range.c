/* range.c - Write Zeroes, Verify, Dataset Management: ranges without data from or for the host. */
#include <string.h>

#include "target/io/io.h"

enum { VERIFY_BYTES = 128 << 10 };

/* --- Write Zeroes ----------------------------------------------------------------------------- */

void tgt_io_write_zeroes(struct weft_req *req)
{
	struct tgt_ns *ns = tgt_ns_enter(req, true, tgt_io_write_zeroes);
	uint16_t control = le16_to_cpu(req->cmd.rw.control), sc;
	struct tgt_req *treq = tgt_req(req);

	if (!ns)
		return;
	sc = ns->be->read_only ? SC_GENERIC(NS_WRITE_PROTECTED) | SC_DNR : tgt_io_range(req, ns);
	if (sc) {
		tgt_io_finish(req, sc);
		return;
	}
	tgt_io_submit(req, WEFT_IO_ZERO, NULL, treq->offset, treq->length,
		      tgt_io_durability(req, control & NVME_RW_FUA) |
			      (control & NVME_WZ_DEAC ? WEFT_IO_UNMAP : 0),
		      tgt_io_done);
}

/* --- Verify: read everything, keep nothing ---------------------------------------------------- */

static bool verify_step(struct weft_req *req, int rc)
{
	struct tgt_req *treq = tgt_req(req);
	uint64_t left = treq->length - treq->moved;
	uint64_t len = left < VERIFY_BYTES ? left : VERIFY_BYTES;

	if (rc < 0 || !left) {
		tgt_io_finish(req, tgt_io_status(req, rc));
		return false;
	}
	treq->moved += len;
	tgt_io_submit(req, WEFT_IO_READ, req->data, treq->offset + treq->moved - len, len, 0,
		      tgt_io_step_done);
	return true;
}

static void verify_buffer(struct weft_req *req, uint16_t sc)
{
	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_io_steps(req, verify_step);
}

void tgt_io_verify(struct weft_req *req)
{
	struct tgt_ns *ns = tgt_ns_enter(req, false, tgt_io_verify);
	uint16_t sc;

	if (!ns)
		return;
	sc = tgt_io_range(req, ns);
	if (sc || ns->be->ops->map) /* memory has nothing to verify */
		tgt_io_finish(req, sc);
	else
		weft_req_buffer(req, VERIFY_BYTES, verify_buffer);
}

/* --- Dataset Management ----------------------------------------------------------------------- */

static unsigned dsm_ranges(const struct weft_req *req)
{
	return (le32_to_cpu(req->cmd.common.cdw10) & 0xff) + 1;
}

static struct nvme_dsm_range dsm_range(struct weft_req *req, unsigned index)
{
	struct nvme_dsm_range range;

	memcpy(&range, (char *)tgt_req(req)->host_data + index * sizeof(range), sizeof(range));
	return range;
}

static bool dsm_step(struct weft_req *req, int rc)
{
	struct tgt_req *treq = tgt_req(req);
	uint8_t shift = treq->ns->lba_shift;
	struct nvme_dsm_range range;

	do {
		if (rc < 0 || treq->range == dsm_ranges(req)) {
			tgt_io_finish(req, tgt_io_status(req, rc));
			return false;
		}
		range = dsm_range(req, treq->range++);
	} while (!range.nlb);
	tgt_io_submit(req, WEFT_IO_TRIM, NULL, le64_to_cpu(range.slba) << shift,
		      (uint64_t)le32_to_cpu(range.nlb) << shift, 0, tgt_io_step_done);
	return true;
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

/* Attributes other than Deallocate are hints that we do not use. */
static void dsm_run(struct weft_req *req)
{
	if (le32_to_cpu(req->cmd.common.cdw11) & 1u << 2)
		tgt_io_steps(req, dsm_step);
	else
		tgt_io_finish(req, 0);
}

void tgt_io_dsm(struct weft_req *req)
{
	static const struct tgt_input input = { true, dsm_before, dsm_after, dsm_run };

	tgt_io_input(req, &input);
}
