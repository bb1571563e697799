/* poll_group.c - a poll group: what the queue pairs of one reactor share, and who must give it
 * back.
 *
 * There are two sets of buffers: for admitted hosts, and for everybody else (connections before
 * Connect, hosts of the discovery service). Hosts never wait for the second kind.
 *
 * A peer that does not read its replies, or does not send the data of its writes, keeps buffers;
 * over RDMA it also keeps blocks of a namespace's memory from being written. It may do so until
 * others wait for them, and then for RECLAIM_MS at most. The removal of a namespace waits as long
 * for replies that leave from the namespace's memory. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "transport/transport.h"

enum {
	RECLAIM_MS = 10000,
	ANON_DIVISOR = 8, /* peers that are not admitted have one buffer where hosts have so many */
};

static void schedule_serve_waiters(void *arg)
{
	struct weft_poll_group *group = arg;

	weft_reactor_defer(group->reactor, &group->serve_waiters);
}

static void serve_group_waiters(struct weft_task *task)
{
	struct weft_poll_group *group = container_of(task, struct weft_poll_group, serve_waiters);
	const struct weft_transport *transport;

	assert_on(group->reactor);
	weft_bufs_serve_waiters(&group->out);
	weft_bufs_serve_waiters(&group->in);
	weft_bufs_serve_waiters(&group->anon_out);
	weft_bufs_serve_waiters(&group->anon_in);
	for (unsigned i = 0; (transport = weft_transport_at(i)); i++)
		if (transport->serve_waiters)
			transport->serve_waiters(group);
}

void weft_rx_quota_init(struct weft_rx_quota *rx_quota)
{
	for (unsigned i = 0; i < WEFT_TRANSPORTS_MAX; i++) {
		rx_quota->parts[i].pinned = 0;
		weft_list_init(&rx_quota->parts[i].waiting);
		weft_list_init(&rx_quota->parts[i].link);
	}
}

/* For what a transport's connections share. */
static bool transports_have_waiters(const struct weft_poll_group *group)
{
	const struct weft_transport *transport;

	for (unsigned i = 0; (transport = weft_transport_at(i)); i++)
		if (transport->has_waiters && transport->has_waiters(group))
			return true;
	return false;
}

static bool buffers_have_waiters(const struct weft_poll_group *group, const struct weft_bufs *in,
				 const struct weft_bufs *out)
{
	return weft_bufs_has_waiters(in) || weft_bufs_has_waiters(out) ||
	       transports_have_waiters(group);
}

static bool has_any_waiter(const struct weft_poll_group *group)
{
	return buffers_have_waiters(group, &group->in, &group->out) ||
	       buffers_have_waiters(group, &group->anon_in, &group->anon_out);
}

/* A writer waits for blocks that a guarded reply of the queue pair holds. */
static bool blocks_writer(struct weft_qpair *qp)
{
	for (uint32_t i = 0; qp->guarded_replies && i < qp->high_water; i++) {
		struct weft_req *req = weft_qpair_req(qp, i);

		if (req && req->shared &&
		    weft_guard_writer_waits(req->guard, req->data, req->reply_len))
			return true;
	}
	return false;
}

/* Since when the user has waited for memory that replies of the queue pair leave from; 0: it does
 * not. A peer that reads a reply now and then gains no time. */
static uint64_t awaited_since(struct weft_qpair *qp)
{
	uint64_t first = 0, since;

	for (uint32_t i = 0; i < qp->high_water; i++) {
		struct weft_req *req = weft_qpair_req(qp, i);

		since = req ? qp->ops->awaited_since(req) : 0;
		if (since && (!first || since < first))
			first = since;
	}
	return first;
}

/* @since may be from another reactor, whose turn began later than ours. */
static bool is_overdue(const struct weft_qpair *qp, uint64_t since)
{
	return since && weft_reactor_now_ns(qp->group->reactor) >= since + RECLAIM_MS * 1000000ull;
}

/* true: check this queue pair again later. */
static bool reclaim_from(struct weft_qpair *qp)
{
	uint64_t awaited = awaited_since(qp);
	bool overdue = !qp->closing && is_overdue(qp, qp->transport->stalled_since(qp));

	if (overdue && buffers_have_waiters(qp->group, qp->in, qp->out))
		weft_qpair_close(qp, "keeps buffers that others wait for");
	else if (overdue && blocks_writer(qp))
		weft_qpair_close(qp, "keeps blocks that others write to");
	else if (is_overdue(qp, awaited))
		weft_qpair_close(qp, "keeps a namespace from being removed");
	return qp->guarded_replies || awaited;
}

static void reclaim_expired(struct weft_timer *timer)
{
	struct weft_poll_group *group = container_of(timer, struct weft_poll_group, reclaim);
	bool again = false;
	struct weft_qpair *qp;

	assert_on(group->reactor);
	weft_list_for_each(qp, &group->qpairs, link)
		again |= reclaim_from(qp);
	if (again || has_any_waiter(group))
		weft_poll_group_start_reclaim(group);
}

void weft_poll_group_start_reclaim(struct weft_poll_group *group)
{
	assert_on(group->reactor);
	if (!weft_heap_has(&group->reclaim.node))
		weft_timer_set(group->reactor, &group->reclaim, RECLAIM_MS / 5);
}

static int create_buffers(struct weft_poll_group *group)
{
	const struct {
		struct weft_bufs *bufs;
		uint32_t share, largest;
		bool sink;
	} sets[] = {
		{ &group->in, 1, WEFT_MDTS_BYTES, true },
		{ &group->out, 1, WEFT_MDTS_BYTES, false },
		{ &group->anon_in, ANON_DIVISOR, WEFT_ANON_BYTES, true },
		{ &group->anon_out, ANON_DIVISOR, WEFT_ANON_BYTES, false },
	};
	int n, rc = 0;

	for (n = 0; n < 4 && !rc; n++)
		rc = weft_bufs_init(sets[n].bufs, sets[n].share, sets[n].largest, sets[n].sink,
				    schedule_serve_waiters, group);
	for (n--; rc && n--;)
		weft_bufs_destroy(sets[n].bufs);
	return rc;
}

static void destroy_buffers(struct weft_poll_group *group)
{
	weft_bufs_destroy(&group->anon_out);
	weft_bufs_destroy(&group->anon_in);
	weft_bufs_destroy(&group->out);
	weft_bufs_destroy(&group->in);
}

/* Of the transports before @end. */
static void destroy_transport_parts(struct weft_poll_group *group, unsigned end)
{
	const struct weft_transport *transport;

	for (unsigned i = 0; i < end && (transport = weft_transport_at(i)); i++)
		if (transport->group_destroy)
			transport->group_destroy(group);
}

static int create_transport_parts(struct weft_poll_group *group, uint32_t qpairs_max)
{
	const struct weft_transport *transport;
	int rc = 0;

	for (unsigned i = 0; (transport = weft_transport_at(i)); i++) {
		if (transport->group_create)
			rc = transport->group_create(group, qpairs_max);
		if (rc < 0) {
			destroy_transport_parts(group, i);
			return rc;
		}
	}
	return 0;
}

int weft_poll_group_create(struct weft_poll_group **out, struct weft_reactor *r, unsigned index,
			   uint32_t depth_max, uint32_t qpairs_max, uint32_t unknown_max)
{
	struct weft_poll_group *group = calloc(1, sizeof(*group));
	int rc = -ENOMEM;

	if (!group)
		return rc;
	group->reactor = r;
	group->index = index;
	group->depth_max = depth_max;
	group->reclaim.fn = reclaim_expired;
	weft_task_init(&group->serve_waiters, serve_group_waiters);
	weft_list_init(&group->qpairs);
	weft_list_init(&group->iters);
	weft_req_walks_init(&group->walks);
	weft_preconnect_init(&group->preconnect, unknown_max);
	rc = create_buffers(group);
	if (rc < 0)
		goto free_group;
	rc = create_transport_parts(group, qpairs_max);
	if (rc < 0)
		goto free_buffers;
	*out = group;
	return 0;

free_buffers:
	destroy_buffers(group);
free_group:
	free(group);
	return rc;
}

void weft_poll_group_destroy(struct weft_poll_group *group)
{
	assert(weft_list_empty(&group->qpairs) && weft_list_empty(&group->iters));
	assert(!weft_heap_has(&group->reclaim.node));
	assert(weft_list_empty(&group->walks.flows));
	weft_task_cancel(&group->walks.task);
	destroy_transport_parts(group, WEFT_TRANSPORTS_MAX);
	destroy_buffers(group);
	for (unsigned i = 0; i < WEFT_TRANSPORTS_MAX; i++)
		weft_req_slots_destroy(&group->slots[i]);
	free(group);
}

void weft_poll_group_close_all(struct weft_poll_group *group, const char *why)
{
	struct weft_qpair *qp;

	assert_on(group->reactor);
	weft_list_for_each(qp, &group->qpairs, link)
		weft_qpair_close(qp, "%s", why);
}

void weft_poll_group_freeze(struct weft_poll_group *group)
{
	struct weft_qpair *qp;

	assert_on(group->reactor);
	assert(!group->frozen);
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

void weft_poll_group_thaw(struct weft_poll_group *group)
{
	struct weft_qpair *qp;

	assert_on(group->reactor);
	assert(group->frozen);
	group->frozen = false;
	weft_list_for_each(qp, &group->qpairs, link)
		if (!qp->closing && qp->transport->thaw)
			qp->transport->thaw(qp);
}

/* --- iterating -------------------------------------------------------------------------------- */

void weft_qpair_iter_begin(struct weft_poll_group *group, struct weft_qpair_iter *iter)
{
	assert_on(group->reactor);
	iter->at = group->qpairs.next;
	weft_list_push(&group->iters, &iter->link);
}

struct weft_qpair *weft_qpair_iter_next(struct weft_poll_group *group, struct weft_qpair_iter *iter)
{
	struct weft_list *at = iter->at;

	assert_on(group->reactor);
	assert(!weft_list_empty(&iter->link));
	if (at == &group->qpairs) {
		weft_list_remove(&iter->link);
		return NULL;
	}
	iter->at = at->next;
	return container_of(at, struct weft_qpair, link);
}
