/* poller.c - an RDMA poller: what the connections of one reactor share on one adapter.
 *
 *   create ─▶ connections come and go ─▶ the last one is gone ─▶ ends
 *
 * If a completion queue, the SRQ or the adapter fails, all connections of the poller are closed,
 * and new ones get a new poller. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transport/rdma/rdma.h"

/* --- connections by number -------------------------------------------------------------------- */

static struct rdma_conn **conn_bucket(struct rdma_poller *poller, uint32_t number)
{
	return &poller->conns_by_qp_num[number % RDMA_CONN_BUCKETS];
}

void rdma_poller_add_conn(struct rdma_conn *conn)
{
	struct rdma_conn **at = conn_bucket(conn->poller, conn->qp_num);

	assert_on(conn->qp.group->reactor);
	assert(!conn->next && *at != conn);
	conn->next = *at;
	*at = conn;
	conn->poller->claimed += conn->depth;
}

void rdma_poller_remove_conn(struct rdma_conn *conn)
{
	struct rdma_conn **at = conn_bucket(conn->poller, conn->qp_num);

	for (; *at != conn; at = &(*at)->next)
		assert(*at);
	*at = conn->next;
	assert(conn->poller->claimed >= conn->depth);
	conn->poller->claimed -= conn->depth;
}

/* --- failures --------------------------------------------------------------------------------- */

static void poller_broke(struct rdma_poller *poller, const char *why)
{
	assert_on(poller->poll_group->group->reactor);
	poller->broken = true;
	for (unsigned i = 0; i < RDMA_CONN_BUCKETS; i++)
		for (struct rdma_conn *conn = poller->conns_by_qp_num[i]; conn; conn = conn->next)
			weft_qpair_close(&conn->qp, "%s: %s", poller->dev->ctx->device->name, why);
}

static void poller_device_fatal(struct rdma_async_subscriber *async)
{
	poller_broke(container_of(async, struct rdma_poller, async), "the adapter failed");
}

static void srq_error(struct rdma_async_events *events, enum ibv_event_type type)
{
	poller_broke(container_of(events, struct rdma_poller, srq_events),
		     ibv_event_type_str(type));
}

static void cq_error(struct rdma_async_events *events, enum ibv_event_type type)
{
	poller_broke(container_of(events, struct rdma_poller_cq, events)->poller,
		     ibv_event_type_str(type));
}

/* --- completions ------------------------------------------------------------------------------ */

/* Of a failed work request only wr_id says what it was. */
static void poller_wc_done(struct rdma_cq *cq, const struct ibv_wc *wc)
{
	struct rdma_poller *poller = container_of(cq, struct rdma_poller_cq, cq)->poller;

	if (wc->wr_id & 1)
		rdma_send_completed(wc);
	else
		rdma_recv_completed(poller, wc);
}

static void poller_cq_closed(struct rdma_cq *cq);

static struct rdma_poller_cq *cq_with_room(struct rdma_poller *poller, uint32_t entries)
{
	struct rdma_poller_cq *cq;

	weft_list_for_each(cq, &poller->cqs, link)
		if (cq->room >= entries)
			return cq;
	return NULL;
}

static int poller_add_cq(struct rdma_poller *poller, uint32_t size, struct rdma_poller_cq **out,
			 struct weft_err *err)
{
	struct rdma_poller_cq *cq = calloc(1, sizeof(*cq));
	int rc;

	if (!cq)
		return weft_fail(err, -ENOMEM, "out of memory");
	cq->poller = poller;
	cq->cq.done = poller_wc_done;
	cq->cq.closed = poller_cq_closed;
	rc = rdma_cq_open(&cq->cq, poller->poll_group->group->reactor, poller->dev->ctx, (int)size,
			  poller->poll_group->group->index, err);
	if (rc < 0) {
		free(cq);
		return rc;
	}
	cq->events.on_event = cq_error;
	rdma_async_events_add(&cq->events, &poller->async, cq->cq.cq);
	/* All the receives of the poller may end in this one. */
	cq->room = size - RDMA_RECVS_MAX;
	weft_list_push(&poller->cqs, &cq->link);
	*out = cq;
	return 0;
}

int rdma_poller_claim_cq(struct rdma_poller *poller, uint32_t entries, struct rdma_poller_cq **out,
			 struct weft_err *err)
{
	struct rdma_poller_cq *cq = cq_with_room(poller, entries);
	uint32_t size = RDMA_CQ_ENTRIES;
	int rc = 0;

	if (size > (uint32_t)poller->dev->attr.max_cqe)
		size = (uint32_t)poller->dev->attr.max_cqe;
	if (!cq && size < RDMA_RECVS_MAX + entries)
		return weft_fail(err, -ENOSPC, "%s: completion queues are too short",
				 poller->dev->ctx->device->name);
	if (!cq)
		rc = poller_add_cq(poller, size, &cq, err);
	if (rc < 0)
		return rc;
	assert(cq->room >= entries);
	cq->room -= entries;
	*out = cq;
	return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void poller_free(struct rdma_poller *poller)
{
	struct rdma_poll_group *poll_group = poller->poll_group;

	assert(!poller->conns && !poller->claimed && !poller->async_open);
	assert(weft_list_empty(&poller->cqs));
	if (poller->uses_srq)
		rdma_recvs_end(&poller->recvs);
	rdma_resp_bufs_destroy(&poller->resp_bufs);
	rdma_mr_cache_destroy(&poller->mrs);
	rdma_dev_put(poller->dev);
	if (poller->last_id)
		rdma_verbs->destroy_id(poller->last_id);
	rdma_devs_release_removed();
	weft_list_remove(&poller->link);
	free(poller);
	rdma_poll_group_poller_gone(poll_group);
}

static void async_unsubscribed(struct rdma_async_subscriber *async)
{
	struct rdma_poller *poller = container_of(async, struct rdma_poller, async);

	poller->async_open = false;
	if (weft_list_empty(&poller->cqs))
		poller_free(poller);
}

static void poller_cq_closed(struct rdma_cq *cq)
{
	struct rdma_poller_cq *poller_cq = container_of(cq, struct rdma_poller_cq, cq);
	struct rdma_poller *poller = poller_cq->poller;

	weft_list_remove(&poller_cq->link);
	free(poller_cq);
	if (weft_list_empty(&poller->cqs) && !poller->async_open)
		poller_free(poller);
}

void rdma_poller_close(struct rdma_poller *poller)
{
	struct rdma_poller_cq *cq, *next;

	assert(!poller->conns && poller->async_open);
	weft_list_for_each_safe(cq, next, &poller->cqs, link) {
		rdma_async_events_remove(&cq->events);
		rdma_cq_close(&cq->cq);
	}
	rdma_async_events_remove(&poller->srq_events);
	rdma_async_unsubscribe(&poller->async);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void srq_post_failed(struct rdma_recvs *recvs, int rc)
{
	struct rdma_poller *poller = container_of(recvs, struct rdma_poller, recvs);

	weft_error("%s: receives: %s; tried again until it takes them",
		   poller->dev->ctx->device->name, strerror(-rc));
}

static uint32_t receives_max(const struct rdma_dev *dev)
{
	uint32_t most = (uint32_t)dev->attr.max_srq_wr;

	return most < RDMA_RECVS_MAX ? most : RDMA_RECVS_MAX;
}

static int create_shared_receives(struct rdma_poller *poller, struct weft_err *err)
{
	struct rdma_dev *dev = poller->dev;

	poller->uses_srq = dev->attr.max_srq > 0 && dev->attr.max_srq_sge >= 2;
	poller->recvs.failed = srq_post_failed;
	if (!poller->uses_srq)
		return 0;
	return rdma_recvs_init(&poller->recvs, &poller->mrs, poller->poll_group->group->reactor,
			       receives_max(dev), dev->pd, err);
}

static int subscribe_async_events(struct rdma_poller *poller, struct weft_err *err)
{
	int rc;

	poller->async.fatal = poller_device_fatal;
	poller->async.ended = async_unsubscribed;
	rc = rdma_async_subscribe(&poller->async, poller->dev, poller->poll_group->group->reactor,
				  err);
	if (rc < 0)
		return rc;
	poller->async_open = true;
	poller->srq_events.on_event = srq_error;
	if (poller->uses_srq)
		rdma_async_events_add(&poller->srq_events, &poller->async, poller->recvs.srq);
	return 0;
}

int rdma_poller_create(struct rdma_poll_group *poll_group, struct rdma_dev *dev,
		       struct rdma_poller **out, struct weft_err *err)
{
	struct rdma_poller *poller = calloc(1, sizeof(*poller));
	int rc;

	if (!poller)
		return weft_fail(err, -ENOMEM, "out of memory");
	poller->poll_group = poll_group;
	poller->dev = dev;
	weft_list_init(&poller->cqs);
	rdma_mr_cache_init(&poller->mrs, &dev->target);
	rc = rdma_resp_bufs_init(&poller->resp_bufs);
	if (rc < 0) {
		weft_fail(err, rc, "no memory for response buffers");
		goto free_poller;
	}
	rc = create_shared_receives(poller, err);
	if (rc < 0)
		goto end_resp_bufs;
	rc = subscribe_async_events(poller, err);
	if (rc < 0)
		goto end_receives;
	weft_list_push(&poll_group->pollers, &poller->link);
	*out = poller;
	return 0;

end_receives:
	if (poller->uses_srq)
		rdma_recvs_end(&poller->recvs);
end_resp_bufs:
	rdma_resp_bufs_destroy(&poller->resp_bufs);
free_poller:
	rdma_mr_cache_destroy(&poller->mrs);
	free(poller);
	return rc;
}
