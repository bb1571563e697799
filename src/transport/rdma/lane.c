/* lane.c - what the connections of one reactor share on one adapter.
 *
 *   create ─▶ connections come and go ─▶ the last one is gone ─▶ ends
 *                 └ a completion queue, the shared receives or the adapter break ─▶ all of them end,
 *                   and new ones get a lane of their own */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transport/rdma/rdma.h"

/* --- connections by number -------------------------------------------------------------------- */

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

/* --- what breaks ------------------------------------------------------------------------------ */

static void broke(struct rdma_lane *lane, const char *why)
{
	lane->broken = true;
	for (unsigned i = 0; i < RDMA_CONN_BUCKETS; i++)
		for (struct rdma_conn *conn = lane->by_number[i]; conn; conn = conn->next)
			weft_qpair_close(&conn->qp, "%s: %s", lane->dev->ctx->device->name, why);
}

static void adapter_failed(struct rdma_ear *ear)
{
	broke(container_of(ear, struct rdma_lane, ear), "the adapter failed");
}

static void srq_broke(struct rdma_news *news, enum ibv_event_type type)
{
	broke(container_of(news, struct rdma_lane, srq_news), ibv_event_type_str(type));
}

static void cq_broke(struct rdma_news *news, enum ibv_event_type type)
{
	broke(container_of(news, struct rdma_lane_cq, news)->lane, ibv_event_type_str(type));
}

/* --- completions ------------------------------------------------------------------------------ */

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

static struct rdma_lane_cq *with_room(struct rdma_lane *lane, uint32_t entries)
{
	struct rdma_lane_cq *cq;

	weft_list_for_each(cq, &lane->cqs, link)
		if (cq->room >= entries)
			return cq;
	return NULL;
}

static int add_cq(struct rdma_lane *lane, uint32_t size, struct rdma_lane_cq **out,
		  struct weft_err *err)
{
	struct rdma_lane_cq *cq = calloc(1, sizeof(*cq));
	int rc;

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
	cq->news.heard = cq_broke;
	rdma_news_start(&cq->news, &lane->ear, cq->cq.cq);
	/* All the receives of the lane may end in this one. */
	cq->room = size - RDMA_RECVS_MAX;
	weft_list_push(&lane->cqs, &cq->link);
	*out = cq;
	return 0;
}

int rdma_lane_cq(struct rdma_lane *lane, uint32_t entries, struct rdma_lane_cq **out,
		 struct weft_err *err)
{
	struct rdma_lane_cq *cq = with_room(lane, entries);
	uint32_t size = RDMA_CQ_ENTRIES;
	int rc = 0;

	if (size > (uint32_t)lane->dev->attr.max_cqe)
		size = (uint32_t)lane->dev->attr.max_cqe;
	if (!cq && size < RDMA_RECVS_MAX + entries)
		return weft_fail(err, -ENOSPC, "%s: completion queues are too short",
				 lane->dev->ctx->device->name);
	if (!cq)
		rc = add_cq(lane, size, &cq, err);
	if (rc < 0)
		return rc;
	cq->room -= entries;
	*out = cq;
	return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

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
	rdma_hub_lane_gone(hub);
}

static void ear_ended(struct rdma_ear *ear)
{
	struct rdma_lane *lane = container_of(ear, struct rdma_lane, ear);

	lane->hears = false;
	if (weft_list_empty(&lane->cqs))
		lane_free(lane);
}

static void lane_cq_closed(struct rdma_cq *cq)
{
	struct rdma_lane_cq *lane_cq = container_of(cq, struct rdma_lane_cq, cq);
	struct rdma_lane *lane = lane_cq->lane;

	weft_list_remove(&lane_cq->link);
	free(lane_cq);
	if (weft_list_empty(&lane->cqs) && !lane->hears)
		lane_free(lane);
}

void rdma_lane_end(struct rdma_lane *lane)
{
	struct rdma_lane_cq *cq, *next;

	weft_list_for_each_safe(cq, next, &lane->cqs, link) {
		rdma_news_end(&cq->news);
		rdma_cq_close(&cq->cq);
	}
	rdma_news_end(&lane->srq_news);
	rdma_ear_end(&lane->ear);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void recvs_failed(struct rdma_recvs *recvs, int rc)
{
	struct rdma_lane *lane = container_of(recvs, struct rdma_lane, recvs);

	weft_error("%s: receives: %s; tried again until it takes them",
		   lane->dev->ctx->device->name, strerror(-rc));
}

static uint32_t receives_max(const struct rdma_dev *dev)
{
	uint32_t most = (uint32_t)dev->attr.max_srq_wr;

	return most < RDMA_RECVS_MAX ? most : RDMA_RECVS_MAX;
}

static int share_receives(struct rdma_lane *lane, struct weft_err *err)
{
	struct rdma_dev *dev = lane->dev;

	lane->shares = dev->attr.max_srq > 0 && dev->attr.max_srq_sge >= 2;
	lane->recvs.failed = recvs_failed;
	if (!lane->shares)
		return 0;
	return rdma_recvs_init(&lane->recvs, &lane->keys, lane->hub->group->reactor,
			       receives_max(dev), dev->pd, err);
}

static int listen_to_adapter(struct rdma_lane *lane, struct weft_err *err)
{
	int rc;

	lane->ear.fatal = adapter_failed;
	lane->ear.ended = ear_ended;
	rc = rdma_ear_start(&lane->ear, lane->dev, lane->hub->group->reactor, err);
	if (rc < 0)
		return rc;
	lane->hears = true;
	lane->srq_news.heard = srq_broke;
	if (lane->shares)
		rdma_news_start(&lane->srq_news, &lane->ear, lane->recvs.srq);
	return 0;
}

int rdma_lane_create(struct rdma_hub *hub, struct rdma_dev *dev, struct rdma_lane **out,
		     struct weft_err *err)
{
	struct rdma_lane *lane = calloc(1, sizeof(*lane));
	int rc;

	if (!lane)
		return weft_fail(err, -ENOMEM, "out of memory");
	lane->hub = hub;
	lane->dev = dev;
	weft_list_init(&lane->cqs);
	rdma_keys_init(&lane->keys, &dev->target);
	rc = rdma_answers_init(&lane->answers);
	if (rc < 0) {
		weft_fail(err, rc, "no memory for answers");
		goto free_lane;
	}
	rc = share_receives(lane, err);
	if (rc < 0)
		goto end_answers;
	rc = listen_to_adapter(lane, err);
	if (rc < 0)
		goto end_receives;
	weft_list_push(&hub->lanes, &lane->link);
	*out = lane;
	return 0;

end_receives:
	if (lane->shares)
		rdma_recvs_end(&lane->recvs);
end_answers:
	rdma_answers_end(&lane->answers);
free_lane:
	rdma_keys_end(&lane->keys);
	free(lane);
	return rc;
}
