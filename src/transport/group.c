/* group.c - the buffers that the queue pairs of one reactor share.
 *
 * There are two sets of them, for hosts and for peers that nobody had to let in (unknown ones, and
 * the hosts of the discovery service): these can wait for each other, and hosts never for them.
 *
 * A peer that does not read its answers, or does not send the data it was asked for, keeps buffers,
 * and through an adapter blocks of a namespace's own memory that others write to. That is its right
 * until others wait for them; then none may be kept for longer than RECLAIM_MS. A namespace that is
 * being removed waits for all answers that leave from its memory, and no longer than that. */
#include <errno.h>
#include <stdlib.h>

#include "transport/transport.h"
#include "transport/tcp/tcp.h"

enum {
	RECLAIM_MS = 10000,
	ANON_SHARE = 8, /* anonymous peers have one buffer where hosts have so many */
};

static void wake_serve(void *arg)
{
	struct weft_group *group = arg;

	weft_reactor_defer(group->reactor, &group->serve);
}

static void serve(struct weft_task *task)
{
	struct weft_group *group = container_of(task, struct weft_group, serve);

	weft_bufs_serve(&group->out);
	weft_bufs_serve(&group->in);
	weft_bufs_serve(&group->anon_out);
	weft_bufs_serve(&group->anon_in);
	tcp_chunks_serve(group);
}

void weft_keeper_init(struct weft_keeper *keeper)
{
	keeper->spares = keeper->lists = 0;
	weft_list_init(&keeper->waiting);
	weft_list_init(&keeper->link);
}

static bool wanted(const struct weft_group *group, const struct weft_bufs *in,
		   const struct weft_bufs *out)
{
	return weft_bufs_wanted(in) || weft_bufs_wanted(out) || !weft_list_empty(&group->wanting);
}

static bool somebody_waits(const struct weft_group *group)
{
	return wanted(group, &group->in, &group->out) ||
	       wanted(group, &group->anon_in, &group->anon_out);
}

/* A writer is kept out of something that the queue pair holds. */
static bool keeps_out(struct weft_qpair *qp)
{
	for (uint32_t i = 0; qp->holds && i < qp->touched; i++) {
		struct weft_req *req = weft_qpair_slot(qp, i);

		if (req && req->shared && weft_guard_wanted(req->guard, req->data, req->reply_len))
			return true;
	}
	return false;
}

/* Since when the user has waited for memory that answers of the queue pair leave from; 0: it does
 * not. A peer that takes one now and then gains nothing. */
static uint64_t awaited_since(struct weft_qpair *qp)
{
	uint64_t first = 0, since;

	for (uint32_t i = 0; i < qp->touched; i++) {
		struct weft_req *req = weft_qpair_slot(qp, i);

		since = req ? qp->ops->awaited_since(req) : 0;
		if (since && (!first || since < first))
			first = since;
	}
	return first;
}

/* Another reactor, whose turn began later than ours, may have said @since. */
static bool is_overdue(const struct weft_qpair *qp, uint64_t since)
{
	return since && weft_reactor_now_ns(qp->group->reactor) >= since + RECLAIM_MS * 1000000ull;
}

/* True: it is to be looked at again. */
static bool reclaim_from(struct weft_qpair *qp)
{
	uint64_t awaited = awaited_since(qp);
	bool overdue = !qp->closing && is_overdue(qp, qp->transport->holds_since(qp));

	if (overdue && wanted(qp->group, qp->in, qp->out))
		weft_qpair_close(qp, "keeps buffers that others wait for");
	else if (overdue && keeps_out(qp))
		weft_qpair_close(qp, "keeps blocks that others write to");
	else if (is_overdue(qp, awaited))
		weft_qpair_close(qp, "keeps a namespace from being removed");
	return qp->holds || awaited;
}

static void reclaim(struct weft_timer *timer)
{
	struct weft_group *group = container_of(timer, struct weft_group, reclaim);
	bool again = false;
	struct weft_qpair *qp;

	weft_list_for_each(qp, &group->qpairs, link)
		again |= reclaim_from(qp);
	if (again || somebody_waits(group))
		weft_group_watch_holders(group);
}

void weft_group_watch_holders(struct weft_group *group)
{
	if (!weft_heap_has(&group->reclaim.node))
		weft_timer_set(group->reactor, &group->reclaim, RECLAIM_MS / 5);
}

static int create_buffers(struct weft_group *group, uint32_t qpairs_max)
{
	const struct {
		struct weft_bufs *bufs;
		uint32_t share, largest;
		bool sink;
	} sets[] = {
		{ &group->in, 1, WEFT_MDTS_BYTES, true },
		{ &group->out, 1, WEFT_MDTS_BYTES, false },
		{ &group->anon_in, ANON_SHARE, WEFT_ANON_BYTES, true },
		{ &group->anon_out, ANON_SHARE, WEFT_ANON_BYTES, false },
	};
	int n, rc = 0;

	for (n = 0; n < 4 && !rc; n++)
		rc = weft_bufs_init(sets[n].bufs, sets[n].share, sets[n].largest, sets[n].sink,
				    wake_serve, group);
	if (!rc)
		rc = weft_pool_init(&group->chunks, TCP_CHUNK_BYTES, tcp_chunks_for(qpairs_max),
				    wake_serve, group);
	else
		n--;
	while (rc && n--)
		weft_bufs_destroy(sets[n].bufs);
	return rc;
}

int weft_group_create(struct weft_group **out, struct weft_reactor *r, unsigned index,
		      uint32_t depth_max, uint32_t qpairs_max, uint32_t unknown_max)
{
	struct weft_group *group = calloc(1, sizeof(*group));
	int rc = group ? create_buffers(group, qpairs_max) : -ENOMEM;

	if (rc < 0) {
		free(group);
		return rc;
	}
	group->reactor = r;
	group->index = index;
	group->depth_max = depth_max;
	group->reclaim.fn = reclaim;
	weft_task_init(&group->serve, serve);
	weft_list_init(&group->qpairs);
	weft_list_init(&group->walks);
	weft_list_init(&group->wanting);
	weft_unknown_init(&group->unknown, unknown_max);
	*out = group;
	return 0;
}

void weft_group_destroy(struct weft_group *group)
{
	weft_pool_destroy(&group->chunks);
	weft_bufs_destroy(&group->anon_out);
	weft_bufs_destroy(&group->anon_in);
	weft_bufs_destroy(&group->out);
	weft_bufs_destroy(&group->in);
	weft_slots_destroy(&group->slots[0]);
	weft_slots_destroy(&group->slots[1]);
	free(group);
}

void weft_group_close_all(struct weft_group *group, const char *why)
{
	struct weft_qpair *qp;

	weft_list_for_each(qp, &group->qpairs, link)
		weft_qpair_close(qp, "%s", why);
}

void weft_group_freeze(struct weft_group *group)
{
	struct weft_qpair *qp;

	group->frozen = true;
	weft_list_for_each(qp, &group->qpairs, link) {
		if (qp->closing)
			continue;
		if (qp->transport->freeze)
			qp->transport->freeze(qp);
		else
			weft_qpair_close(qp, "it cannot be handed over");
	}
}

void weft_group_thaw(struct weft_group *group)
{
	struct weft_qpair *qp;

	group->frozen = false;
	weft_list_for_each(qp, &group->qpairs, link)
		if (!qp->closing && qp->transport->thaw)
			qp->transport->thaw(qp);
}

/* --- walks ------------------------------------------------------------------------------------ */

void weft_walk_begin(struct weft_group *group, struct weft_walk *walk)
{
	walk->at = group->qpairs.next;
	weft_list_push(&group->walks, &walk->link);
}

struct weft_qpair *weft_walk_next(struct weft_group *group, struct weft_walk *walk)
{
	struct weft_list *at = walk->at;

	if (at == &group->qpairs) {
		weft_list_remove(&walk->link);
		return NULL;
	}
	walk->at = at->next;
	return container_of(at, struct weft_qpair, link);
}
