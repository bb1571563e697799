/* stale.c - a Connect waits for the commands of the host's stale association.
 *
 *   Connect ─▶ every reactor checks its sockets, three times ─▶ is a queue of this host draining?
 *      ├─ no ─▶ Connect goes on
 *      └─ yes ─▶ drain wait (drain_wait.c); after 8 s Connect fails with "controller busy"
 *
 * The host will send its lost writes again, and newer ones after them. The first copy, which
 * storage still has, must not land last.
 *
 * A reactor learns of a lost connection when it reads the socket. The loss came before this
 * Connect, and a reactor that has answered three barriers has read its sockets at least once in
 * between. An RDMA adapter may tell later, so it is asked. A host that vanished from the network
 * without closing anything is left to Keep Alive. */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/log.h"
#include "target/internal.h"

enum { LOST_SCANS = 3, LIMIT_MS = 8000 };

struct stale_wait {
	struct tgt_drain_wait drain;
	struct tgt_barrier *barrier;
	struct weft_req *req;
	void (*go_on)(struct weft_req *req);
	struct nvmf_connect_data data; /* the request's; in a capsule it may be unaligned */
	unsigned scans_left;
};

static bool queue_is_of_host(const struct tgt_queue *queue, const struct nvmf_connect_data *data)
{
	return tgt_ctrl_is_of_host(queue->ctrl, data->hostnqn, data->hostid);
}

/* The control reactor learns of lost connections before this reactor's answer. */
static void find_lost_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct stale_wait *stale = barrier->arg;
	struct weft_qpair *qp;

	weft_list_for_each(qp, &group->qpairs, link) {
		struct tgt_queue *queue = qp->owner;

		if (queue && !tgt_queue_is_drained(queue) &&
		    queue_is_of_host(queue, &stale->data) && weft_qpair_is_lost(qp))
			tgt_queue_lost(queue);
	}
	tgt_barrier_arrive(barrier, group);
}

static bool queue_is_stale(const struct tgt_drain_wait *drain, const struct tgt_queue *queue)
{
	const struct stale_wait *stale = container_of(drain, struct stale_wait, drain);

	return tgt_queue_drains(queue) && queue_is_of_host(queue, &stale->data);
}

static void stale_wait_free(struct stale_wait *stale)
{
	free(stale->barrier);
	free(stale);
}

static void stale_drained(struct tgt_drain_wait *drain, bool all)
{
	struct stale_wait *stale = container_of(drain, struct stale_wait, drain);

	assert(!stale->scans_left);
	if (all) {
		stale->go_on(stale->req);
	} else {
		weft_peer_log(WEFT_LOG_WARN,
			      "%s: host %s has to wait: storage still has commands of its lost "
			      "connection",
			      stale->data.subsysnqn, tgt_host_name(stale->data.hostnqn));
		tgt_control_reply(stale->req, SC_COMMAND(CONNECT_CTRL_BUSY));
	}
	stale_wait_free(stale);
}

static void lost_scan_done(struct tgt_barrier *barrier)
{
	struct stale_wait *stale = barrier->arg;

	if (weft_count_down(stale->scans_left)) {
		tgt_barrier_start(barrier);
		return;
	}
	stale->drain.subsys = tgt_subsys_find_any(barrier->target, stale->data.subsysnqn);
	if (stale->drain.subsys)
		tgt_drain_wait_start(&stale->drain, LIMIT_MS);
	else
		stale_drained(&stale->drain, true);
}

void tgt_stale_wait(struct weft_target *t, struct weft_req *req,
		    void (*go_on)(struct weft_req *req))
{
	struct stale_wait *stale = calloc(1, sizeof(*stale));

	assert_on_control(t);
	assert(req->data_len >= sizeof(stale->data));
	if (stale)
		stale->barrier = tgt_barrier_new(t);
	if (!stale || !stale->barrier) {
		free(stale);
		tgt_control_reply(req, SC_COMMAND(CONNECT_CTRL_BUSY));
		return;
	}
	stale->drain.awaits = queue_is_stale;
	stale->drain.done = stale_drained;
	stale->req = req;
	stale->go_on = go_on;
	memcpy(&stale->data, req->data, sizeof(stale->data));
	stale->scans_left = LOST_SCANS;
	stale->barrier->arg = stale;
	stale->barrier->on_reactor = find_lost_on_reactor;
	stale->barrier->done = lost_scan_done;
	tgt_barrier_start(stale->barrier);
}
