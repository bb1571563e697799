/* hub.c - what the RDMA connections of a reactor share: connection events, and a lane per adapter.
 *
 *   first connection ─▶ hub, lane ─ … ─▶ last one gone ─▶ lane ends ─▶ hub ends
 *
 * An end takes turns: a descriptor is forgotten by the reactor before its library closes it. A new
 * connection does not wait for that; it gets a hub of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/rdma/rdma.h"

static void readable(struct rdma_watch *watch)
{
	struct rdma_hub *hub = container_of(watch, struct rdma_hub, watch);
	struct rdma_cm_event *event;

	while (!rdma_verbs->get_cm_event(hub->channel, &event)) {
		if (event->id->context)
			rdma_conn_event(event->id->context, event);
		rdma_verbs->ack_cm_event(event);
	}
}

static void hub_ended(struct rdma_watch *watch)
{
	struct rdma_hub *hub = container_of(watch, struct rdma_hub, watch);
	struct weft_group *group = hub->group;

	rdma_verbs->destroy_event_channel(hub->channel);
	free(hub);
	atomic_fetch_sub(&group->nqpairs, 1); /* the group may go now */
}

static int hub_create(struct weft_group *group, struct rdma_hub **out)
{
	struct rdma_hub *hub = calloc(1, sizeof(*hub));
	int rc;

	if (!hub)
		return -ENOMEM;
	hub->group = group;
	weft_list_init(&hub->lanes);
	hub->watch.readable = readable;
	hub->watch.ended = hub_ended;
	hub->channel = rdma_verbs->create_event_channel();
	if (!hub->channel) {
		rc = -errno;
		goto free_hub;
	}
	rc = rdma_watch_start(&hub->watch, group->reactor, hub->channel->fd);
	if (rc < 0)
		goto destroy_channel;
	*out = group->rdma = hub;
	return 0;

destroy_channel:
	rdma_verbs->destroy_event_channel(hub->channel);
free_hub:
	free(hub);
	return rc;
}

void rdma_hub_lane_gone(struct rdma_hub *hub)
{
	if (!hub->conns && weft_list_empty(&hub->lanes))
		rdma_watch_end(&hub->watch);
}

/* --- its connections, by adapter -------------------------------------------------------------- */

static int find_lane(struct rdma_hub *hub, struct ibv_context *ctx, struct rdma_lane **out,
		     struct weft_err *err)
{
	struct rdma_lane *lane;
	struct rdma_dev *dev;
	int rc;

	weft_list_for_each(lane, &hub->lanes, link) {
		if (lane->dev->ctx == ctx && lane->conns && !lane->broken) {
			*out = lane;
			return 0;
		}
	}
	rc = rdma_dev_get(ctx, &dev, err);
	if (rc < 0)
		return rc;
	rc = rdma_lane_create(hub, dev, out, err);
	if (rc < 0)
		rdma_dev_put(dev);
	return rc;
}

int rdma_lane_get(struct weft_group *group, struct ibv_context *ctx, struct rdma_lane **lane,
		  struct weft_err *err)
{
	struct rdma_hub *hub = group->rdma;
	int rc = hub ? 0 : hub_create(group, &hub);

	if (rc < 0) {
		atomic_fetch_sub(&group->nqpairs, 1);
		return weft_fail(err, rc, "connection events: %s", strerror(-rc));
	}
	rc = find_lane(hub, ctx, lane, err);
	if (rc == 0) {
		hub->conns++;
		(*lane)->conns++;
		rdma_keys_try_again(&(*lane)->keys);
	} else if (hub->conns) {
		atomic_fetch_sub(&group->nqpairs, 1);
	} else {
		group->rdma = NULL;
		rdma_watch_end(&hub->watch);
	}
	return rc;
}

void rdma_lane_put(struct rdma_lane *lane, struct rdma_cm_id *id)
{
	struct rdma_hub *hub = lane->hub;
	bool last = !--hub->conns;

	if (last && hub->group->rdma == hub)
		hub->group->rdma = NULL;
	if (!last)
		atomic_fetch_sub(&hub->group->nqpairs, 1);
	if (--lane->conns) {
		if (id)
			rdma_verbs->destroy_id(id);
		return;
	}
	lane->last = id;
	rdma_lane_end(lane);
}
