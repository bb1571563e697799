/* abort.c - the second half of Preempt and Abort: nothing of the preempted hosts goes on.
 *
 * A command that waits for data, a buffer or its turn is aborted. One that storage has begun cannot be
 * called back: the preempter waits for it, and it has no next piece. New commands of these hosts do not
 * get that far: the view has no registration of theirs any more. */
#include <string.h>

#include "target/io/io.h"
#include "target/resv/resv.h"

static bool is_of(const struct tgt_queue *queue, const struct resv_victim *victim)
{
	return !queue->over && queue->qid &&
	       !memcmp(queue->ctrl->hostid, victim->host, RESV_HOST_BYTES);
}

/* False: storage has it. */
static bool end_request(struct weft_req *req, uint64_t ns_serial)
{
	if (tgt_req(req)->ns_serial != ns_serial)
		return true;
	return weft_req_abort(req, SC_GENERIC(CMD_ABORTED_PREMEPT)) ||
	       tgt_io_bulk_end(req, SC_GENERIC(CMD_ABORTED_PREMEPT)) || !tgt_ns_at_work(req);
}

static bool end_requests(struct weft_qpair *qp, uint64_t ns_serial)
{
	bool ended = true;

	for (uint32_t i = 0; i < qp->touched; i++) {
		struct weft_req *req = weft_qpair_slot(qp, i);

		if (req)
			ended &= end_request(req, ns_serial);
	}
	return ended;
}

bool tgt_resv_abort(struct weft_group *group, const struct resv_victim *victims, unsigned n)
{
	struct weft_qpair *qp;
	bool ended = true;

	weft_list_for_each(qp, &group->qpairs, link)
		for (unsigned i = 0; i < n; i++)
			if (qp->owner && is_of(qp->owner, &victims[i]))
				ended &= end_requests(qp, victims[i].ns_serial);
	return ended;
}
