/* poll_group.c - the RDMA poll group of a reactor: its CM event channel, and a poller per adapter.
 *
 *   first connection ─▶ poll group, poller ─ … ─▶ last one gone ─▶ poller ends ─▶ poll group ends
 *
 * Ending takes several turns, because the reactor must forget a descriptor before the library
 * closes it; a connection that comes meanwhile gets a new poll group. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "transport/rdma/rdma.h"

/* That of connections that come now; NULL: none. */
static struct rdma_poll_group *current_poll_group(const struct weft_poll_group *group)
{
	return group->own[weft_transport_index(&weft_rdma)];
}

static void set_current_poll_group(struct weft_poll_group *group,
				   struct rdma_poll_group *poll_group)
{
	group->own[weft_transport_index(&weft_rdma)] = poll_group;
}

static void cm_channel_readable(struct rdma_watch *watch)
{
	struct rdma_poll_group *poll_group = container_of(watch, struct rdma_poll_group, watch);
	struct rdma_cm_event *event;

	while (!rdma_verbs->get_cm_event(poll_group->channel, &event)) {
		if (event->id->context)
			rdma_conn_cm_event(event->id->context, event);
		rdma_verbs->ack_cm_event(event);
	}
}

static void poll_group_ended(struct rdma_watch *watch)
{
	struct rdma_poll_group *poll_group = container_of(watch, struct rdma_poll_group, watch);
	struct weft_poll_group *group = poll_group->group;

	assert(!poll_group->conns && weft_list_empty(&poll_group->pollers));
	assert(current_poll_group(group) != poll_group);
	rdma_verbs->destroy_event_channel(poll_group->channel);
	free(poll_group);
	atomic_fetch_sub(&group->nqpairs, 1); /* the poll group may be destroyed now */
}

static int poll_group_create(struct weft_poll_group *group, struct rdma_poll_group **out)
{
	struct rdma_poll_group *poll_group = calloc(1, sizeof(*poll_group));
	int rc;

	if (!poll_group)
		return -ENOMEM;
	poll_group->group = group;
	weft_list_init(&poll_group->pollers);
	poll_group->watch.readable = cm_channel_readable;
	poll_group->watch.ended = poll_group_ended;
	poll_group->channel = rdma_verbs->create_event_channel();
	if (!poll_group->channel) {
		rc = -errno;
		goto free_poll_group;
	}
	rc = rdma_watch_start(&poll_group->watch, group->reactor, poll_group->channel->fd);
	if (rc < 0)
		goto destroy_channel;
	set_current_poll_group(group, poll_group);
	*out = poll_group;
	return 0;

destroy_channel:
	rdma_verbs->destroy_event_channel(poll_group->channel);
free_poll_group:
	free(poll_group);
	return rc;
}

void rdma_poll_group_poller_gone(struct rdma_poll_group *poll_group)
{
	if (!poll_group->conns && weft_list_empty(&poll_group->pollers))
		rdma_watch_end(&poll_group->watch);
}

/* --- its connections, by adapter -------------------------------------------------------------- */

static int find_or_create_poller(struct rdma_poll_group *poll_group, struct ibv_context *ctx,
				 struct rdma_poller **out, struct weft_err *err)
{
	struct rdma_poller *poller;
	struct rdma_dev *dev;
	int rc;

	weft_list_for_each(poller, &poll_group->pollers, link) {
		if (poller->dev->ctx == ctx && poller->conns && !poller->broken) {
			*out = poller;
			return 0;
		}
	}
	rc = rdma_dev_get(ctx, &dev, err);
	if (rc < 0)
		return rc;
	rc = rdma_poller_create(poll_group, dev, out, err);
	if (rc < 0)
		rdma_dev_put(dev);
	return rc;
}

int rdma_poller_get(struct weft_poll_group *group, struct ibv_context *ctx,
		    struct rdma_poller **poller, struct weft_err *err)
{
	struct rdma_poll_group *poll_group = current_poll_group(group);
	int rc = poll_group ? 0 : poll_group_create(group, &poll_group);

	assert_on(group->reactor);
	if (rc < 0) {
		atomic_fetch_sub(&group->nqpairs, 1);
		return weft_fail(err, rc, "connection events: %s", strerror(-rc));
	}
	rc = find_or_create_poller(poll_group, ctx, poller, err);
	if (rc == 0) {
		poll_group->conns++;
		(*poller)->conns++;
		rdma_mr_cache_retry_refused(&(*poller)->mrs);
	} else if (poll_group->conns) {
		atomic_fetch_sub(&group->nqpairs, 1);
	} else {
		set_current_poll_group(group, NULL);
		rdma_watch_end(&poll_group->watch);
	}
	return rc;
}

void rdma_poller_put(struct rdma_poller *poller, struct rdma_cm_id *id)
{
	struct rdma_poll_group *poll_group = poller->poll_group;
	bool last = !weft_count_down(poll_group->conns);

	assert_on(poll_group->group->reactor);
	if (last && current_poll_group(poll_group->group) == poll_group)
		set_current_poll_group(poll_group->group, NULL);
	if (!last)
		atomic_fetch_sub(&poll_group->group->nqpairs, 1);
	if (weft_count_down(poller->conns)) {
		if (id)
			rdma_verbs->destroy_id(id);
		return;
	}
	poller->last_id = id;
	rdma_poller_close(poller);
}
