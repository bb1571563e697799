/* preempt_abort.c - Preempt and Abort: end all commands of the preempted hosts (victims).
 *
 *   victims, by host and namespace ─▶ connections, some in each turn ─▶ requests of victims
 *
 * A command that waits for data, a buffer or its turn is aborted. A command that storage has begun
 * cannot be aborted: the preempter waits for it, and it gets no next piece. New commands of victims
 * fail already: the reservation view has no registration of theirs any more.
 *
 * There may be tens of thousands of victims and of connections: victims are found by binary search,
 * and a turn does a slice. */
#include <stdlib.h>
#include <string.h>

#include "target/io/io.h"
#include "target/resv/resv.h"

enum { SLICE = 512 }; /* connections and requests visited in a turn */

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
	return weft_req_abort(req, SC_GENERIC(CMD_ABORTED_PREMEPT)) ||
	       tgt_io_bulk_abort(req, SC_GENERIC(CMD_ABORTED_PREMEPT)) || !tgt_ns_at_work(req);
}

static void abort_requests(struct weft_qpair *qp, struct resv_abort *abort)
{
	for (uint32_t i = 0; i < qp->high_water; i++) {
		struct weft_req *req = weft_qpair_req(qp, i);

		if (req && is_victims_request(req, abort))
			abort->ended &= abort_request(req);
	}
}

bool tgt_resv_abort(struct weft_poll_group *group, struct resv_abort *abort)
{
	struct weft_qpair *qp;
	uint32_t cost = 0;

	assert_on(group->reactor);
	if (!abort->begun) {
		abort->begun = abort->ended = true;
		weft_qpair_iter_begin(group, &abort->walk);
	}
	while (cost < SLICE) {
		qp = weft_qpair_iter_next(group, &abort->walk);
		if (!qp)
			return true;
		cost++;
		if (!is_victims_queue(qp->owner, abort))
			continue;
		cost += qp->high_water;
		abort_requests(qp, abort);
	}
	return false;
}
