/* group.c - the buffers that the queue pairs of one reactor share.
 *
 * A peer that does not read its answers, or does not send the data it was asked for, keeps buffers.
 * That is its right until others wait for them; then none may be kept for longer than
 * RECLAIM_MS. */
#include <errno.h>
#include <stdlib.h>

#include "transport/transport.h"
#include "transport/tcp/tcp.h"

enum { RECLAIM_MS = 10000 };

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
	weft_pool_serve(&group->chunks);
}

static bool somebody_waits(const struct weft_group *group)
{
	return weft_bufs_wanted(&group->in) || weft_bufs_wanted(&group->out) ||
	       !weft_list_empty(&group->chunks.waiters);
}

static void reclaim(struct weft_timer *timer)
{
	struct weft_group *group = container_of(timer, struct weft_group, reclaim);
	uint64_t now = weft_reactor_now_ns(group->reactor), since;
	struct weft_qpair *qp;

	if (!somebody_waits(group))
		return;
	weft_list_for_each(qp, &group->qpairs, link) {
		since = qp->closing ? 0 : qp->transport->holds_since(qp);
		if (since && now - since >= RECLAIM_MS * 1000000ull)
			weft_qpair_close(qp, "keeps buffers that others wait for");
	}
	weft_timer_set(group->reactor, &group->reclaim, RECLAIM_MS / 5);
}

void weft_group_short_of_buffers(struct weft_group *group)
{
	if (!weft_heap_has(&group->reclaim.node))
		weft_timer_set(group->reactor, &group->reclaim, RECLAIM_MS / 5);
}

int weft_group_create(struct weft_group **out, struct weft_reactor *r, unsigned index,
		      uint32_t depth_max, uint32_t qpairs_max)
{
	struct weft_group *group = calloc(1, sizeof(*group));
	int rc;

	if (!group)
		return -ENOMEM;
	group->reactor = r;
	group->index = index;
	group->depth_max = depth_max;
	group->reclaim.fn = reclaim;
	weft_task_init(&group->serve, serve);
	weft_list_init(&group->qpairs);
	rc = weft_bufs_init(&group->in, 1, true, wake_serve, group);
	if (rc < 0)
		goto free_group;
	rc = weft_bufs_init(&group->out, 1, false, wake_serve, group);
	if (rc < 0)
		goto destroy_in;
	rc = weft_pool_init(&group->chunks, TCP_CHUNK_BYTES, tcp_chunks_for(qpairs_max), wake_serve,
			    group);
	if (rc < 0)
		goto destroy_out;
	*out = group;
	return 0;

destroy_out:
	weft_bufs_destroy(&group->out);
destroy_in:
	weft_bufs_destroy(&group->in);
free_group:
	free(group);
	return rc;
}

void weft_group_destroy(struct weft_group *group)
{
	weft_pool_destroy(&group->chunks);
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
