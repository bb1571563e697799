/* poll_group.c - a poll group: what the queue pairs of one reactor share, and who must give it
 * back.
 *
 * There are two sets of buffers: for admitted hosts, and for everybody else (connections before
 * Connect, hosts of the discovery service). Hosts never wait for the second kind. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "transport/transport.h"

enum {
	TRIM_MS = 1000,
	TRIM_NEXT_MS = 1, /* until the next part */
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

/* False: there is more. */
static bool trim_slots(struct weft_poll_group *group)
{
	bool all = true;

	for (unsigned i = 0; i < WEFT_TRANSPORTS_MAX; i++)
		all &= weft_req_slots_trim(&group->slots[i]);
	return all;
}

static void trim_expired(struct weft_timer *timer)
{
	struct weft_poll_group *group = container_of(timer, struct weft_poll_group, trim);

	assert_on(group->reactor);
	if (!trim_slots(group))
		weft_timer_set(group->reactor, &group->trim, TRIM_NEXT_MS);
}

void weft_poll_group_trim_later(struct weft_poll_group *group)
{
	if (!weft_heap_has(&group->trim.node))
		weft_timer_set(group->reactor, &group->trim, TRIM_MS);
}

void weft_poll_group_trim_now(struct weft_poll_group *group)
{
	weft_timer_stop(group->reactor, &group->trim);
	while (!trim_slots(group))
		;
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
	weft_reclaim_init(&group->reclaim);
	group->trim.fn = trim_expired;
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
	assert(weft_reclaim_is_idle(&group->reclaim) && !weft_heap_has(&group->trim.node));
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
