/* hub.c - what the RDMA connections of a reactor share: connection events, and a lane per adapter.
 *
 *   first connection ─▶ hub, lane ─ … ─▶ last one gone ─▶ lane ends ─▶ hub ends
 *
 * An end takes turns: a descriptor is forgotten by the reactor before its library closes it. A new
 * connection does not wait for that; it gets a hub of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transport/rdma/rdma.h"

/* --- connections by number ------------------------------------------------------------------------ */

static struct rdma_conn **bucket(struct rdma_lane *lane, uint32_t number)
{
	return &lane->by_number[number % RDMA_CONN_BUCKETS];
}

void rdma_lane_add(struct rdma_conn *conn)
{
	struct rdma_conn **at = bucket(conn->lane, conn->number);

	conn->next = *at;
	*at = conn;
	conn->lane->claimed += conn->depth;
}

void rdma_lane_remove(struct rdma_conn *conn)
{
	struct rdma_conn **at = bucket(conn->lane, conn->number);

	while (*at && *at != conn)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = conn->next;
	conn->lane->claimed -= conn->depth;
}

/* --- completions ------------------------------------------------------------------------------------ */

/* What a work request was is in its wr_id alone where it failed. */
static void completed(struct rdma_cq *cq, const struct ibv_wc *wc)
{
	struct rdma_lane *lane = container_of(cq, struct rdma_lane_cq, cq)->lane;

	if (wc->wr_id & 1)
		rdma_sent(wc);
	else
		rdma_received(lane, wc);
}

static void lane_cq_closed(struct rdma_cq *cq);

int rdma_lane_cq(struct rdma_lane *lane, uint32_t entries, struct rdma_lane_cq **out,
		 struct weft_err *err)
{
	uint32_t size = RDMA_CQ_ENTRIES;
	struct rdma_lane_cq *cq;
	int rc;

	weft_list_for_each(cq, &lane->cqs, link) {
		if (cq->room >= entries) {
			cq->room -= entries;
			*out = cq;
			return 0;
		}
	}
	if (size > (uint32_t)lane->dev->attr.max_cqe)
		size = (uint32_t)lane->dev->attr.max_cqe;
	if (size < RDMA_RECVS_MAX + entries)
		return weft_fail(err, -ENOSPC, "%s: completion queues are too short",
				 lane->dev->ctx->device->name);
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return weft_fail(err, -ENOMEM, "out of memory");
	cq->lane = lane;
	cq->cq.done = completed;
	cq->cq.closed = lane_cq_closed;
	rc = rdma_cq_open(&cq->cq, lane->hub->group->reactor, lane->dev->ctx, (int)size,
			  lane->hub->group->index, err);
	if (rc < 0) {
		free(cq);
		return rc;
	}
	/* All the receives of the lane may end in this one. */
	cq->room = size - RDMA_RECVS_MAX - entries;
	weft_list_push(&lane->cqs, &cq->link);
	*out = cq;
	return 0;
}

/* --- the hub ------------------------------------------------------------------------------------------ */

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

/* --- lanes --------------------------------------------------------------------------------------------- */

static void lane_free(struct rdma_lane *lane)
{
	struct rdma_hub *hub = lane->hub;

	if (lane->shares)
		rdma_recvs_end(&lane->recvs);
	rdma_answers_end(&lane->answers);
	rdma_keys_end(&lane->keys);
	rdma_dev_put(lane->dev);
	if (lane->last)
		rdma_verbs->destroy_id(lane->last);
	rdma_devs_sweep();
	weft_list_remove(&lane->link);
	free(lane);
	if (!hub->conns && weft_list_empty(&hub->lanes))
		rdma_watch_end(&hub->watch);
}

static void lane_cq_closed(struct rdma_cq *cq)
{
	struct rdma_lane_cq *lane_cq = container_of(cq, struct rdma_lane_cq, cq);
	struct rdma_lane *lane = lane_cq->lane;

	weft_list_remove(&lane_cq->link);
	free(lane_cq);
	if (weft_list_empty(&lane->cqs))
		lane_free(lane);
}

static void lane_end(struct rdma_lane *lane)
{
	struct rdma_lane_cq *cq, *next;

	if (weft_list_empty(&lane->cqs)) {
		lane_free(lane);
		return;
	}
	weft_list_for_each_safe(cq, next, &lane->cqs, link)
		rdma_cq_close(&cq->cq);
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
	lane_end(lane);
}

static void recvs_failed(struct rdma_recvs *recvs, int rc)
{
	struct rdma_lane *lane = container_of(recvs, struct rdma_lane, recvs);

	weft_error("%s: receives: %s", lane->dev->ctx->device->name, strerror(-rc));
}

static int lane_create(struct rdma_hub *hub, struct rdma_dev *dev, struct rdma_lane **out,
		       struct weft_err *err)
{
	struct rdma_lane *lane = calloc(1, sizeof(*lane));
	uint32_t room = RDMA_RECVS_MAX;
	int rc;

	if (!lane)
		return weft_fail(err, -ENOMEM, "out of memory");
	lane->hub = hub;
	lane->dev = dev;
	lane->shares = dev->attr.max_srq > 0 && dev->attr.max_srq_sge >= 2;
	lane->recvs.failed = recvs_failed;
	weft_list_init(&lane->cqs);
	rdma_keys_init(&lane->keys, &dev->target);
	if (room > (uint32_t)dev->attr.max_srq_wr)
		room = (uint32_t)dev->attr.max_srq_wr;
	rc = rdma_answers_init(&lane->answers);
	if (rc < 0) {
		weft_fail(err, rc, "no memory for answers");
		goto free_lane;
	}
	if (lane->shares)
		rc = rdma_recvs_init(&lane->recvs, &lane->keys, hub->group->reactor, room, dev->pd,
				     err);
	if (rc < 0)
		goto end_answers;
	weft_list_push(&hub->lanes, &lane->link);
	*out = lane;
	return 0;

end_answers:
	rdma_answers_end(&lane->answers);
free_lane:
	rdma_keys_end(&lane->keys);
	free(lane);
	return rc;
}

static int find_lane(struct rdma_hub *hub, struct ibv_context *ctx, struct rdma_lane **out,
		     struct weft_err *err)
{
	struct rdma_lane *lane;
	struct rdma_dev *dev;
	int rc;

	weft_list_for_each(lane, &hub->lanes, link) {
		if (lane->dev->ctx == ctx && lane->conns) {
			*out = lane;
			return 0;
		}
	}
	rc = rdma_dev_get(ctx, &dev, err);
	if (rc < 0)
		return rc;
	rc = lane_create(hub, dev, out, err);
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
	} else if (hub->conns) {
		atomic_fetch_sub(&group->nqpairs, 1);
	} else {
		group->rdma = NULL;
		rdma_watch_end(&hub->watch);
	}
	return rc;
}
