/* preempt_abort.c - Preempt and Abort: end all commands of the preempted hosts (victims).
 *
 *   victims, by host and namespace ─▶ connections, some in each turn ─▶ requests of victims
 *
 * A command that waits for data, a buffer or its turn is aborted. A command that storage has begun
 * cannot be aborted: it is marked, gets no next piece, and is looked at again until storage has ended
 * it, for the preempter waits for that. New commands of victims meet a reservation view that has no
 * registration of theirs any more; what they may still do is neither ended nor waited for.
 *
 * There may be tens of thousands of victims and of connections: victims are found by binary search,
 * and a turn does a slice. */
#include <stdlib.h>
#include <string.h>

#include "target/io/io.h"
#include "target/resv/resv.h"

static int compare_hosts(const void *a, const void *b)
{
	const struct resv_victim *one = a, *other = b;

	return memcmp(one->host, other->host, RESV_HOST_BYTES);
}

static int compare_victims(const void *a, const void *b)
{
	const struct resv_victim *one = a, *other = b;
	int diff = compare_hosts(a, b);

	return diff ? diff :
		      (one->ns_serial > other->ns_serial) - (one->ns_serial < other->ns_serial);
}

void tgt_resv_victims_sort(struct resv_victim *victims, unsigned n)
{
	if (n)
		qsort(victims, n, sizeof(*victims), compare_victims);
}

static struct resv_victim victim_of(const struct tgt_ctrl *ctrl, uint64_t ns_serial)
{
	struct resv_victim victim = { .ns_serial = ns_serial };

	memcpy(victim.host, ctrl->hostid, RESV_HOST_BYTES);
	return victim;
}

static bool is_victims_queue(const struct tgt_queue *queue, const struct resv_abort *abort)
{
	struct resv_victim key;

	if (!queue || tgt_queue_is_drained(queue) || !queue->qid)
		return false;
	key = victim_of(queue->ctrl, 0);
	return bsearch(&key, abort->victims, abort->n, sizeof(key), compare_hosts);
}

static bool is_victims_request(struct weft_req *req, const struct resv_abort *abort)
{
	struct resv_victim key = victim_of(tgt_queue(req)->ctrl, tgt_req(req)->ns_serial);

	return bsearch(&key, abort->victims, abort->n, sizeof(key), compare_victims);
}

/* False: storage has it. */
static bool abort_request(struct weft_req *req)
{
	if (tgt_io_abort(req, SC_GENERIC(CMD_ABORTED_PREMEPT)) || !tgt_ns_at_work(req))
		return true;
	tgt_req(req)->preempted = true;
	return false;
}

static bool request_has_ended(struct weft_req *req)
{
	return !tgt_req(req)->preempted || !tgt_ns_at_work(req);
}

static void abort_requests(struct resv_abort *abort, uint32_t *budget)
{
	struct weft_req *req;

	while ((req = weft_req_iter_next(&abort->reqs, budget)))
		if (is_victims_request(req, abort))
			abort->ended &= abort->again ? request_has_ended(req) : abort_request(req);
}

/* False: there are no more. */
static bool abort_next_connection(struct weft_poll_group *group, struct resv_abort *abort,
				  uint32_t *budget)
{
	struct weft_qpair *qp = weft_qpair_iter_next(group, &abort->walk);

	if (!qp)
		return false;
	--*budget;
	if (is_victims_queue(qp->owner, abort))
		weft_req_iter_begin(&abort->reqs, qp);
	return true;
}

bool tgt_resv_abort(struct weft_poll_group *group, struct resv_abort *abort)
{
	uint32_t budget = WEFT_REQS_PER_TURN; /* connections, too */

	assert_on(group->reactor);
	if (!abort->begun) {
		abort->begun = abort->ended = true;
		weft_qpair_iter_begin(group, &abort->walk);
	}
	while (budget) {
		abort_requests(abort, &budget);
		if (budget && !abort_next_connection(group, abort, &budget))
			return true;
	}
	return false;
}
