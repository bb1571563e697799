/* comeback.c - a host that connects anew waits for what its lost connections left behind.
 *
 *   Connect ─▶ every reactor looks at its connections ─▶ is a queue of this host ending?
 *      ├─ no ─▶ it goes on
 *      └─ yes ─▶ when it is gone, or refused as busy if that takes too long
 *
 * The host sends its writes again, and perhaps newer ones after them. A first copy that storage
 * still has in hand must not be the last to arrive.
 *
 * That a connection was lost shows when its reactor looks at the socket. The loss came before this
 * Connect; a reactor that was visited three times has looked at least once in between. An adapter
 * may take longer to tell, and is asked. What neither knows of, a host that vanished from the
 * network and comes back by another way, is Keep Alive's to find. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/internal.h"

enum { VISITS = 3, LIMIT_MS = 8000 };

struct comeback {
	struct tgt_over over;
	struct tgt_round *round;
	struct weft_req *req;
	void (*go_on)(struct weft_req *req);
	struct nvmf_connect_data data; /* the request's: in a capsule it lies anywhere */
	unsigned visits;
};

static bool is_of_host(const struct tgt_queue *queue, const struct nvmf_connect_data *data)
{
	return tgt_ctrl_is_of(queue->ctrl, data->hostnqn, data->hostid);
}

/* On a reactor; home hears of what is lost before the answer. */
static void visit(struct tgt_round *round, struct weft_poll_group *group)
{
	struct comeback *cb = round->arg;
	struct weft_qpair *qp;

	weft_list_for_each(qp, &group->qpairs, link) {
		struct tgt_queue *queue = qp->owner;

		if (queue && !queue->over && is_of_host(queue, &cb->data) && weft_qpair_is_lost(qp))
			tgt_queue_lost(queue);
	}
	tgt_round_answer(round, group);
}

static bool ends_of_host(const struct tgt_over *over, const struct tgt_queue *queue)
{
	const struct comeback *cb = container_of(over, struct comeback, over);

	return queue->ending && is_of_host(queue, &cb->data);
}

static void free_comeback(struct comeback *cb)
{
	free(cb->round);
	free(cb);
}

static void waited(struct tgt_over *over, bool all)
{
	struct comeback *cb = container_of(over, struct comeback, over);

	if (all) {
		cb->go_on(cb->req);
	} else {
		weft_peer_log(WEFT_LOG_WARN,
			      "%s: host %s has to wait: storage still has commands of its lost "
			      "connection",
			      cb->data.subsysnqn, tgt_host_name(cb->data.hostnqn));
		tgt_home_reply(cb->req, SC_COMMAND(CONNECT_CTRL_BUSY));
	}
	free_comeback(cb);
}

static void visited(struct tgt_round *round)
{
	struct comeback *cb = round->arg;

	if (--cb->visits) {
		tgt_round_start(round);
		return;
	}
	cb->over.subsys = tgt_subsys_named(round->target, cb->data.subsysnqn);
	if (cb->over.subsys)
		tgt_over_wait(&cb->over, LIMIT_MS);
	else
		waited(&cb->over, true);
}

void tgt_comeback(struct weft_target *t, struct weft_req *req, void (*go_on)(struct weft_req *req))
{
	struct comeback *cb = calloc(1, sizeof(*cb));

	if (cb)
		cb->round = tgt_round_new(t);
	if (!cb || !cb->round) {
		free(cb);
		tgt_home_reply(req, SC_COMMAND(CONNECT_CTRL_BUSY));
		return;
	}
	cb->over.awaits = ends_of_host;
	cb->over.done = waited;
	cb->req = req;
	cb->go_on = go_on;
	memcpy(&cb->data, req->data, sizeof(cb->data));
	cb->visits = VISITS;
	cb->round->arg = cb;
	cb->round->visit = visit;
	cb->round->done = visited;
	tgt_round_start(cb->round);
}
