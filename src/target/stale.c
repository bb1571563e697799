/* stale.c - a Connect waits for the commands of the host's stale association.
 *
 *   Connect ─▶ waiting ─▶ scan: every reactor checks the host's connections ─▶ scanned
 *       ─▶ does a queue of this host end?
 *            ├─ no ─▶ Connect goes on
 *            └─ yes ─▶ drain wait (drain_wait.c); after 8 s Connect fails with "controller busy"
 *
 * The host will send its lost writes again, and newer ones after them. The first copy, which
 * storage still has, must not land last.
 *
 * The loss came before this Connect, and the reactor may not know of it: an adapter may tell later,
 * and a socket tells when all before it has been read, which waits for room. So a reactor asks for
 * the state of the connections of hosts that connect. A host that vanished from the network without
 * closing anything is left to Keep Alive.
 *
 * Thousands of hosts may connect at once, and there may be thousands of connections. So there is
 * one scan at a time, for all Connects that came before it; a reactor checks some connections in a
 * turn, and the control reactor goes on with some Connects in a turn.
 *
 * Invariant: while a Connect is on @waiting, a scan or the task that goes on is under way. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/internal.h"

enum {
	LIMIT_MS = 8000,
	CONNECTIONS_PER_TURN = 512, /* that a reactor looks at */
	ASKED_PER_TURN = 32,        /* … of which it asks so many: a system call each */
	CONNECTS_PER_TURN = 64,     /* that go on */
	HOST_BITS = 4096,
};

struct stale_wait {
	struct weft_list link; /* in the list of its stage */
	struct tgt_drain_wait drain;
	struct weft_req *req;
	void (*go_on)(struct weft_req *req);
	struct nvmf_connect_data data; /* the request's; in a capsule it may be unaligned */
	uint64_t host_hash;
};

struct scan_walk {
	struct weft_qpair_iter iter;
	bool begun;
};

struct tgt_stale {
	struct weft_target *target;
	struct tgt_barrier *barrier;
	struct weft_list waiting; /* for the next scan */
	struct weft_list scanned; /* the present scan is for them, and then they go on */
	struct weft_task go_on_task;
	uint64_t hosts[HOST_BITS / 64]; /* bits of those that connect: perhaps of others, too */
	struct scan_walk walks[];       /* by poll group, which owns it */
};

static void scan_if_waited_for(struct tgt_stale *stale);

/* --- a scan, on the reactors ------------------------------------------------------------------ */

static bool host_connects(const struct tgt_stale *stale, uint64_t hash)
{
	return stale->hosts[hash % HOST_BITS / 64] & UINT64_C(1) << hash % 64;
}

static bool is_of_host_that_connects(const struct tgt_stale *stale, const struct tgt_queue *queue)
{
	return queue && !tgt_queue_is_drained(queue) &&
	       host_connects(stale, queue->ctrl->host_hash);
}

/* The control reactor learns of lost connections before this reactor's answer. */
static void check_connection(struct weft_qpair *qp)
{
	if (weft_qpair_is_lost(qp))
		tgt_queue_lost(qp->owner);
}

static void find_lost_on_reactor(struct tgt_barrier *barrier, struct weft_poll_group *group)
{
	struct tgt_stale *stale = barrier->arg;
	struct scan_walk *walk = &stale->walks[group->index];
	struct weft_qpair *qp;
	unsigned asked = 0;

	if (!walk->begun)
		weft_qpair_iter_begin(group, &walk->iter);
	walk->begun = true;
	for (unsigned i = 0; i < CONNECTIONS_PER_TURN && asked < ASKED_PER_TURN; i++) {
		qp = weft_qpair_iter_next(group, &walk->iter);
		if (!qp) {
			walk->begun = false;
			tgt_barrier_arrive(barrier, group);
			return;
		}
		if (!is_of_host_that_connects(stale, qp->owner))
			continue;
		check_connection(qp);
		asked++;
	}
	tgt_barrier_requeue(barrier, group);
}

/* --- Connects that go on ---------------------------------------------------------------------- */

static struct tgt_queue *first_ending_queue(const struct tgt_drain_wait *drain)
{
	const struct stale_wait *wait = container_of(drain, struct stale_wait, drain);
	struct tgt_queue *queue;

	weft_list_for_each(queue, &drain->subsys->ending[wait->host_hash % TGT_ENDING_BUCKETS],
			   ending_link)
		if (queue->ctrl->host_hash == wait->host_hash &&
		    tgt_ctrl_is_of_host(queue->ctrl, wait->data.hostnqn, wait->data.hostid))
			return queue;
	return NULL;
}

static void stale_drained(struct tgt_drain_wait *drain, bool all)
{
	struct stale_wait *wait = container_of(drain, struct stale_wait, drain);

	if (all) {
		wait->go_on(wait->req);
	} else {
		weft_peer_log(WEFT_LOG_WARN,
			      "%s: host %s has to wait: storage still has commands of its lost "
			      "connection",
			      wait->data.subsysnqn, tgt_host_name(wait->data.hostnqn));
		tgt_control_reply(wait->req, SC_COMMAND(CONNECT_CTRL_BUSY));
	}
	free(wait);
}

static void connect_go_on(struct tgt_stale *stale, struct stale_wait *wait)
{
	wait->drain.subsys = tgt_subsys_find_any(stale->target, wait->data.subsysnqn);
	if (wait->drain.subsys)
		tgt_drain_wait_start(&wait->drain, LIMIT_MS);
	else
		stale_drained(&wait->drain, true);
}

static void connects_go_on(struct weft_task *task)
{
	struct tgt_stale *stale = container_of(task, struct tgt_stale, go_on_task);
	struct weft_list *link;

	for (unsigned i = 0; i < CONNECTS_PER_TURN && (link = weft_list_pop(&stale->scanned)); i++)
		connect_go_on(stale, container_of(link, struct stale_wait, link));
	if (!weft_list_empty(&stale->scanned))
		weft_reactor_defer(stale->target->control, &stale->go_on_task);
	else
		scan_if_waited_for(stale);
}

/* --- a scan, on the control reactor ----------------------------------------------------------- */

static void scan_done(struct tgt_barrier *barrier)
{
	struct tgt_stale *stale = barrier->arg;

	weft_reactor_defer(stale->target->control, &stale->go_on_task);
}

static void scan_if_waited_for(struct tgt_stale *stale)
{
	struct stale_wait *wait;

	assert(weft_list_empty(&stale->scanned) && !stale->barrier->pending);
	if (weft_list_empty(&stale->waiting))
		return;
	weft_list_splice(&stale->scanned, &stale->waiting);
	memset(stale->hosts, 0, sizeof(stale->hosts));
	weft_list_for_each(wait, &stale->scanned, link)
		stale->hosts[wait->host_hash % HOST_BITS / 64] |= UINT64_C(1)
								  << wait->host_hash % 64;
	tgt_barrier_start(stale->barrier);
}

void tgt_stale_wait(struct weft_target *t, struct weft_req *req,
		    void (*go_on)(struct weft_req *req))
{
	struct stale_wait *wait = calloc(1, sizeof(*wait));
	struct tgt_stale *stale = t->stale;

	assert_on_control(t);
	if (!wait) {
		tgt_control_reply(req, SC_COMMAND(CONNECT_CTRL_BUSY));
		return;
	}
	memcpy(&wait->data, req->data, sizeof(wait->data));
	wait->host_hash = tgt_host_hash(t, wait->data.hostnqn, wait->data.hostid);
	wait->drain.first_awaited = first_ending_queue;
	wait->drain.done = stale_drained;
	wait->req = req;
	wait->go_on = go_on;
	weft_list_push(&stale->waiting, &wait->link);
	if (weft_list_empty(&stale->scanned))
		scan_if_waited_for(stale);
}

/* --- beginning and end ------------------------------------------------------------------------ */

int tgt_stale_create(struct weft_target *t)
{
	struct tgt_stale *stale = calloc(1, sizeof(*stale) +
						    t->npoll_groups * sizeof(stale->walks[0]));

	if (!stale)
		return -ENOMEM;
	t->stale = stale;
	stale->target = t;
	weft_list_init(&stale->waiting);
	weft_list_init(&stale->scanned);
	weft_task_init(&stale->go_on_task, connects_go_on);
	stale->barrier = tgt_barrier_new(t);
	if (!stale->barrier)
		return -ENOMEM;
	stale->barrier->arg = stale;
	stale->barrier->on_reactor = find_lost_on_reactor;
	stale->barrier->done = scan_done;
	return 0;
}

void tgt_stale_destroy(struct weft_target *t)
{
	if (!t->stale)
		return;
	assert(weft_list_empty(&t->stale->waiting) && weft_list_empty(&t->stale->scanned));
	weft_task_cancel(&t->stale->go_on_task);
	free(t->stale->barrier);
	free(t->stale);
}
