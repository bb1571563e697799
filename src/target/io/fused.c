/* fused.c - Compare and Write as a fused pair: no other write comes between them (NVM 1.0, 2.1.4).
 *
 *   first (Compare) waits for second (Write) ─▶ both fetch their data ─▶ the tenant has few pairs
 *     ─▶ quiesce against writers ─▶ compare ─▶ write, or abort it ─▶ end the quiesce
 *
 * Storage's data is read into ns->pair_buffer, which the Write uses after that, if storage wants
 * its data aligned. One pair is at work on a namespace at a time, so it is always free, and a pair
 * that has quiesced the namespace waits for storage alone.
 *
 * Invariant: a pair is answered together; first->partner is second and the other way round. */

#include "target/io/io.h"

static void finish_pair(struct weft_req *first, uint16_t first_sc, struct weft_req *second,
			uint16_t second_sc)
{
	assert(tgt_req(first)->partner == second && tgt_req(second)->partner == first);
	tgt_req(first)->fused = tgt_req(second)->fused = false;
	tgt_io_finish(first, first_sc);
	tgt_io_finish(second, second_sc);
}

/* The command at fault gets the reason, the other one "aborted, failed fused command". The other
 * one has DNR if, and only if, a retry of the one at fault cannot help either. */
static void fail_pair(struct weft_req *req, uint16_t sc)
{
	finish_pair(req, sc, tgt_req(req)->partner, SC_GENERIC(FUSED_FAIL) | (sc & SC_DNR));
}

/* --- the namespace is quiesced, and after it -------------------------------------------------- */

static void fused_unquiesce(struct weft_req *req)
{
	struct tgt_ns *ns = tgt_ns_at_work(req);

	tgt_ns_quiesce_end(ns, ns->subsys->target);
}

void tgt_io_fused_step(struct weft_req *req, uint16_t status)
{
	bool is_first = req->cmd.common.opcode == nvme_cmd_compare;
	struct weft_req *partner = tgt_req(req)->partner;

	assert(tgt_req(partner)->fused && !req->out.at); /* it needs no buffer of others */
	if (is_first && !status) {
		tgt_io_write_run(partner);
		return;
	}
	fused_unquiesce(req);
	if (is_first)
		fail_pair(req, status);
	else
		finish_pair(partner, 0, req, status);
}

static uint16_t check_pair(struct weft_req *first, struct weft_req *second, struct tgt_ns *ns)
{
	uint16_t sc = tgt_req(second)->abort_status;

	if (!sc)
		sc = tgt_resv_check(second, ns);
	if (sc)
		return sc;
	if (ns->be->read_only)
		return SC_GENERIC(NS_WRITE_PROTECTED) | SC_DNR;
	if (le16_to_cpu(first->cmd.rw.nlb) > TGT_ACWU)
		return SC_GENERIC(AWU_EXCEEDED) | SC_DNR;
	sc = tgt_io_set_data_range(first, ns);
	return sc ? sc : tgt_io_set_data_range(second, ns);
}

/* True: both were answered, because they do not fit each other or the namespace. */
static bool refuse_pair(struct weft_req *first, struct weft_req *second, struct tgt_ns *ns)
{
	uint16_t reach = ns->removing ? SC_GENERIC(INVALID_NS) | SC_DNR :
					tgt_ana_check(tgt_queue(first)->ctrl, ns);
	uint16_t sc = reach ? 0 : check_pair(first, second, ns);

	if (reach)
		fail_pair(first, reach);
	else if (sc)
		fail_pair(second, sc);
	return reach || sc;
}

static void fused_quiesced(struct tgt_ns_quiesce *quiesce)
{
	struct tgt_req *treq = container_of(quiesce, struct tgt_req, quiesce);
	struct weft_req *first = treq->self, *second = treq->partner;
	struct tgt_ns *ns = quiesce->ns;

	assert(!ns || ns->quiesced_by == quiesce);
	if (!ns) {
		fail_pair(first, SC_GENERIC(INVALID_NS) | SC_DNR);
		return;
	}
	if (refuse_pair(first, second, ns)) {
		tgt_ns_quiesce_end(ns, ns->subsys->target);
		return;
	}
	treq->fused = tgt_req(second)->fused = true;
	tgt_ns_enter_quiesced(first, ns, false);
	tgt_ns_enter_quiesced(second, ns, true);
	tgt_io_compare_run(first);
}

/* --- both commands are here ------------------------------------------------------------------- */

static void pair_quiesce(struct weft_req *first)
{
	struct tgt_req *treq = tgt_req(first);
	struct tgt_ns *ns;
	uint16_t sc = tgt_ns_lookup(first, &ns);

	assert(treq->data_ready && tgt_req(treq->partner)->data_ready && treq->counted);
	if (sc) {
		fail_pair(first, sc);
		return;
	}
	treq->self = first;
	treq->quiesce = (struct tgt_ns_quiesce){
		.ns = ns,
		.level = NS_QUIESCE_WRITERS,
		.reactor = first->qp->group->reactor,
		.quiesced = fused_quiesced,
	};
	tgt_ns_quiesce_begin(&treq->quiesce, ns->subsys->target);
}

static void pair_data_ready(struct weft_req *first, struct weft_req *second)
{
	if (tgt_req(first)->status)
		fail_pair(first, tgt_req(first)->status);
	else if (tgt_req(second)->status)
		fail_pair(second, tgt_req(second)->status);
	else
		tgt_limit_admit(first, pair_quiesce);
}

static void pair_fetched(struct weft_req *req, uint16_t sc)
{
	struct tgt_req *treq = tgt_req(req), *other = tgt_req(treq->partner);
	bool is_first = req->cmd.common.opcode == nvme_cmd_compare;

	assert(!treq->data_ready);
	treq->status = sc;
	treq->host_data = req->data;
	treq->data_ready = true;
	if (other->data_ready)
		pair_data_ready(is_first ? req : treq->partner, is_first ? treq->partner : req);
}

void tgt_io_fused_abort(struct weft_req *first, uint16_t sc)
{
	fail_pair(first, sc);
}

static bool pair_matches(const struct weft_req *first, const struct weft_req *second)
{
	const struct nvme_rw_cmd *a = &first->cmd.rw, *b = &second->cmd.rw;

	return b->opcode == nvme_cmd_write && a->nsid == b->nsid && a->slba == b->slba &&
	       a->nlb == b->nlb;
}

static void pair_begin(struct weft_req *first, struct weft_req *second)
{
	struct tgt_ns *ns;
	uint16_t sc;

	assert(first != second && !tgt_queue(first)->fused_first);
	tgt_req(first)->partner = second;
	tgt_req(second)->partner = first;
	tgt_req(first)->data_ready = tgt_req(second)->data_ready = false;
	if (!pair_matches(first, second)) {
		fail_pair(second, SC_GENERIC(INVALID_FIELD) | SC_DNR);
		return;
	}
	sc = tgt_ns_lookup(first, &ns);
	if (sc) {
		fail_pair(first, sc);
		return;
	}
	tgt_req(second)->ns_serial = tgt_req(first)->ns_serial;
	if (refuse_pair(first, second, ns))
		return;
	weft_req_fetch_both(first, second, tgt_req(first)->length, pair_fetched);
}

/* --- arrival ---------------------------------------------------------------------------------- */

static void wait_for_second(struct tgt_queue *queue, struct weft_req *first)
{
	queue->fused_first = first;
	queue->qp->fused_waiting = first;
}

static bool pair_first(struct weft_req *req, struct tgt_queue *queue)
{
	if (req->cmd.common.opcode == nvme_cmd_compare)
		wait_for_second(queue, req);
	else
		tgt_io_finish(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
	return true;
}

bool tgt_io_fused(struct weft_req *req)
{
	struct tgt_queue *queue = tgt_queue(req);
	struct weft_req *first = queue->fused_first;
	unsigned fuse = req->cmd.common.flags & NVME_FUSE_MASK;

	assert(fuse || first);
	wait_for_second(queue, NULL);
	if (first && fuse == NVME_FUSE_SECOND) {
		pair_begin(first, req);
		return true;
	}
	if (first)
		tgt_io_finish(first, SC_GENERIC(FUSED_MISSING) | SC_DNR);
	switch (fuse) {
	case 0:
		return false;
	case NVME_FUSE_FIRST:
		return pair_first(req, queue);
	case NVME_FUSE_SECOND:
		tgt_io_finish(req, SC_GENERIC(FUSED_MISSING) | SC_DNR);
		return true;
	default:
		tgt_io_finish(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
		return true;
	}
}

void tgt_io_fused_closing(struct tgt_queue *queue)
{
	struct weft_req *first = queue->fused_first;

	wait_for_second(queue, NULL);
	if (first)
		tgt_io_finish(first, SC_GENERIC(FUSED_MISSING) | SC_DNR);
}
