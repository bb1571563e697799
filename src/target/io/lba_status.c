/* lba_status.c - Get LBA Status: which blocks of a range are allocated. An admin command that
 * storage answers.
 *
 *   control reactor ─▶ back to the queue's reactor ─▶ enter the namespace ─▶ its turn, a buffer
 *       ─▶ storage ─▶ reply
 *
 * The control reactor only passes it on in its host's turn. The search for extents is bounded, and
 * it is bulk work: a limited amount in a turn, one command after the other. We decide how much one
 * command reports; its host asks again behind the last descriptor.
 *
 * Blocks of which storage knows nothing count as allocated. Reservations do not apply: no data is
 * read. */
#include <assert.h>
#include <string.h>

#include "target/io/io.h"

enum { ANSWER_MAX = 4096 };

/* A descriptor takes the place of the extent that storage has reported. */
static_assert(sizeof(struct weft_extent) == sizeof(struct nvme_lba_status_desc), "one for one");

static const struct nvme_lba_status_cmd *cmd_of(const struct weft_req *req)
{
	return &req->cmd.lba_status;
}

static uint32_t answer_bytes(const struct weft_req *req)
{
	uint64_t bytes = (le32_to_cpu(cmd_of(req)->mndw) + 1ull) * 4;

	return bytes < ANSWER_MAX ? (uint32_t)bytes : ANSWER_MAX;
}

static unsigned desc_room(const struct weft_req *req)
{
	return (unsigned)((answer_bytes(req) - sizeof(struct nvme_lba_status)) /
			  sizeof(struct nvme_lba_status_desc));
}

/* RL 0: all to the end of the namespace. A range that reaches beyond that is an error. */
static uint16_t check_range(struct weft_req *req, const struct tgt_ns *ns, uint64_t *length)
{
	uint64_t slba = le64_to_cpu(cmd_of(req)->slba), nlb = le16_to_cpu(cmd_of(req)->rl);
	uint64_t blocks = atomic_load_explicit(&ns->blocks, memory_order_relaxed);

	if (slba >= blocks)
		return SC_GENERIC(LBA_RANGE) | SC_DNR;
	if (!nlb)
		nlb = blocks - slba;
	*length = nlb << ns->lba_shift;
	tgt_req(req)->offset = slba << ns->lba_shift;
	return tgt_io_check_lbas(ns, slba, nlb);
}

static uint16_t check_lba_status(struct weft_req *req, const struct tgt_ns *ns, uint64_t *length)
{
	uint32_t least = sizeof(struct nvme_lba_status) + sizeof(struct nvme_lba_status_desc);
	uint16_t sc;

	if (cmd_of(req)->atype != NVME_LBA_STATUS_ALLOCATED || answer_bytes(req) < least)
		return SC_GENERIC(INVALID_FIELD) | SC_DNR;
	sc = weft_req_check_sgl(req, answer_bytes(req));
	return sc ? sc : check_range(req, ns, length);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* A descriptor has 32 bits for its blocks; false: the host asks again for the rest of the
 * extent. */
static bool fill_lba_desc(struct nvme_lba_status_desc *desc, uint8_t shift)
{
	struct weft_extent extent;
	uint64_t blocks;
	bool fits;

	memcpy(&extent, desc, sizeof(extent));
	blocks = extent.length >> shift;
	fits = blocks <= UINT32_MAX;
	*desc = (struct nvme_lba_status_desc){
		.dslba = cpu_to_le64(extent.offset >> shift),
		.nlb = cpu_to_le32(fits ? (uint32_t)blocks : UINT32_MAX),
		.status = NVME_LBARS_ALLOCATED,
	};
	return fits;
}

static void answer_extents(struct weft_req *req, const struct weft_io *io)
{
	struct nvme_lba_status *answer = req->data;
	bool fits = true;
	unsigned n = 0;

	assert(io->extents <= desc_room(req) && io->covered && io->covered <= io->length);
	while (n < io->extents && fits)
		fits = fill_lba_desc(&answer->descs[n++], tgt_ns_at_work(req)->lba_shift);
	answer->nlsd = cpu_to_le32(n);
	answer->cmpc = fits && io->covered == io->length ? NVME_CMPC_COMPLETE :
							   NVME_CMPC_INCOMPLETE;
	req->reply_len = answer_bytes(req);
	tgt_io_finish(req, 0);
}

/* --- to the storage and back ------------------------------------------------------------------ */

static void report_all_allocated(struct weft_io *io)
{
	*(struct weft_extent *)io->buf = (struct weft_extent){ io->offset, io->length };
	io->extents = 1;
	io->covered = io->length;
}

static void on_extents(struct weft_io *io, int rc)
{
	struct weft_req *req = tgt_io_req(io);

	if (rc == -EOPNOTSUPP)
		report_all_allocated(io);
	if (rc < 0 && rc != -EOPNOTSUPP)
		tgt_io_finish(req, tgt_io_status(req, rc));
	else
		answer_extents(req, io);
}

/* The namespace may have shrunk since. */
static void lba_status_find_extents(struct weft_req *req)
{
	struct nvme_lba_status *answer = req->data;
	struct tgt_req *treq = tgt_req(req);
	uint64_t length = 0;
	uint16_t sc = check_range(req, tgt_ns_at_work(req), &length);

	if (sc) {
		tgt_io_finish(req, sc);
		return;
	}
	memset(answer, 0, answer_bytes(req));
	treq->io.extents = desc_room(req);
	tgt_io_submit(req, WEFT_IO_EXTENTS, answer->descs, treq->offset, length, 0, on_extents);
}

static void lba_status_enter_ns(struct weft_req *req)
{
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_lookup(req, &ns);
	uint64_t length;

	if (sc) {
		tgt_io_finish(req, sc);
		return;
	}
	if (!tgt_ns_try_enter(req, ns, false, lba_status_enter_ns))
		return;
	sc = check_lba_status(req, ns, &length);
	if (sc)
		tgt_io_finish(req, sc);
	else
		tgt_io_bulk(req, answer_bytes(req), lba_status_find_extents);
}

static void lba_status_on_reactor(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);

	assert_on(req->qp->group->reactor);
	lba_status_enter_ns(req);
}

void tgt_lba_status(struct weft_req *req)
{
	tgt_post_reactor(req, lba_status_on_reactor);
}
