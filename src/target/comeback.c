/* comeback.c - a host that connects anew waits for what its lost connections left behind.
 *
 *   Connect ─▶ every reactor: is a connection of this host ending there, its commands with storage?
 *      ├─ no ─▶ it goes on
 *      └─ yes ─▶ asked again in a moment, and refused as busy if that takes too long
 *
 * The host sends its writes again, and perhaps newer ones after them. A first copy that storage still
 * has in hand must not be the last to arrive.
 *
 * That a connection was lost shows when its reactor looks at the socket. The loss came before this
 * Connect; a reactor that was asked three times has looked at least once in between. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/internal.h"

enum { ROUNDS = 3, AGAIN_MS = 2, LIMIT_MS = 8000 };

struct comeback {
	struct tgt_round *round;
	struct weft_req *req;
	void (*go_on)(struct weft_req *req);
	const struct nvmf_connect_data *data; /* the request's */
	struct weft_timer timer;
	uint64_t until_ns;
	unsigned rounds;
	atomic_bool ending;
};

static bool is_of_host(const struct tgt_queue *queue, const struct nvmf_connect_data *data)
{
	const struct tgt_ctrl *ctrl = queue->ctrl;

	return !queue->over && !strcmp(ctrl->subsys->nqn, data->subsysnqn) &&
	       !strcmp(ctrl->hostnqn, data->hostnqn) &&
	       !memcmp(ctrl->hostid, data->hostid, sizeof(ctrl->hostid));
}

static void visit(struct tgt_round *round, struct weft_group *group)
{
	struct comeback *cb = round->arg;
	struct weft_qpair *qp;

	weft_list_for_each(qp, &group->qpairs, link)
		if (qp->closing && qp->inflight && qp->owner && is_of_host(qp->owner, cb->data))
			atomic_store(&cb->ending, true);
	tgt_round_answer(round, group);
}

static void end(struct comeback *cb)
{
	free(cb->round);
	free(cb);
}

static void ask(struct comeback *cb)
{
	atomic_store(&cb->ending, false);
	tgt_round_start(cb->round);
}

static void ask_again(struct weft_timer *timer)
{
	ask(container_of(timer, struct comeback, timer));
}

static void give_up(struct comeback *cb)
{
	weft_peer_log(WEFT_LOG_WARN,
		      "%s: host %s has to wait: storage still has commands of its lost connection",
		      cb->data->subsysnqn, cb->data->hostnqn);
	tgt_home_reply(cb->req, SC_COMMAND(CONNECT_CTRL_BUSY));
}

static void done(struct tgt_round *round)
{
	struct comeback *cb = round->arg;
	struct weft_target *t = round->target;
	bool ending = atomic_load(&cb->ending);

	if (!ending && --cb->rounds) {
		ask(cb);
		return;
	}
	if (ending && weft_reactor_now_ns(t->home) < cb->until_ns) {
		cb->rounds = 1;
		weft_timer_set(t->home, &cb->timer, AGAIN_MS);
		return;
	}
	if (ending)
		give_up(cb);
	else
		cb->go_on(cb->req);
	end(cb);
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
	cb->req = req;
	cb->go_on = go_on;
	cb->data = req->data;
	cb->timer.fn = ask_again;
	cb->until_ns = weft_reactor_now_ns(t->home) + LIMIT_MS * 1000000ull;
	cb->rounds = ROUNDS;
	cb->round->arg = cb;
	cb->round->visit = visit;
	cb->round->done = done;
	ask(cb);
}
