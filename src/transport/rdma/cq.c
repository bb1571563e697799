/* cq.c - a completion queue on a reactor.
 *
 *   busy:   poll ─▶ wc[] ─▶ process: done() for each            no system call
 *   idle:   arm ─▶ poll once more ─▶ sleep ─▶ the channel's descriptor ─▶ busy
 *
 * Invariant: all completions that poll() took are done() before it polls again. */
#include "transport/rdma/cq.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static struct rdma_cq *cq_of(struct weft_poller *poller)
{
	return container_of(poller, struct rdma_cq, poller);
}

static bool cq_poll(struct weft_poller *poller)
{
	struct rdma_cq *cq = cq_of(poller);

	if (!cq->count)
		cq->count = rdma_verbs->poll_cq(cq->cq, RDMA_CQ_BATCH, cq->wc);
	if (cq->count < 0)
		cq->count = 0;
	return cq->count;
}

static void cq_process(struct weft_poller *poller)
{
	struct rdma_cq *cq = cq_of(poller);
	int count = cq->count;

	for (int i = 0; i < count; i++)
		cq->done(cq, &cq->wc[i]);
	cq->count = 0;
}

/* Once armed it stays so until its event comes. */
static bool cq_arm(struct weft_poller *poller)
{
	struct rdma_cq *cq = cq_of(poller);

	if (!cq->armed)
		cq->armed = !rdma_verbs->req_notify_cq(cq->cq, 0);
	return cq->armed && !cq_poll(poller);
}

static void cq_event_readable(struct rdma_watch *watch)
{
	struct rdma_cq *cq = container_of(watch, struct rdma_cq, watch);
	struct ibv_cq *which;
	void *context;

	while (!rdma_verbs->get_cq_event(cq->channel, &which, &context)) {
		rdma_verbs->ack_cq_events(which, 1);
		cq->armed = false;
	}
}

static void cq_watch_ended(struct rdma_watch *watch)
{
	struct rdma_cq *cq = container_of(watch, struct rdma_cq, watch);

	cq_event_readable(watch); /* an unacknowledged event would block the destroy below */
	rdma_verbs->destroy_cq(cq->cq);
	rdma_verbs->destroy_comp_channel(cq->channel);
	cq->closed(cq);
}

static int cq_create(struct rdma_cq *cq, struct ibv_context *ctx, int entries, unsigned spread)
{
	int vectors = ctx->num_comp_vectors > 0 ? ctx->num_comp_vectors : 1, rc;

	cq->channel = rdma_verbs->create_comp_channel(ctx);
	if (!cq->channel)
		return -errno;
	cq->cq = rdma_verbs->create_cq(ctx, entries, cq, cq->channel,
				       (int)(spread % (unsigned)vectors));
	if (!cq->cq) {
		rc = -errno;
		goto destroy_channel;
	}
	rc = rdma_watch_start(&cq->watch, cq->reactor, cq->channel->fd);
	if (rc == 0)
		return 0;
	rdma_verbs->destroy_cq(cq->cq);
destroy_channel:
	rdma_verbs->destroy_comp_channel(cq->channel);
	return rc;
}

int rdma_cq_open(struct rdma_cq *cq, struct weft_reactor *r, struct ibv_context *ctx, int entries,
		 unsigned spread, struct weft_err *err)
{
	int rc;

	assert(cq->done && cq->closed && entries > 0);
	cq->reactor = r;
	cq->watch.readable = cq_event_readable;
	cq->watch.ended = cq_watch_ended;
	rc = cq_create(cq, ctx, entries, spread);
	if (rc < 0)
		return weft_fail(err, rc, "%s: completion queue: %s", ctx->device->name,
				 strerror(-rc));
	cq->poller = (struct weft_poller){ .poll = cq_poll, .process = cq_process, .arm = cq_arm };
	weft_poller_add(r, &cq->poller);
	return 0;
}

void rdma_cq_close(struct rdma_cq *cq)
{
	weft_poller_remove(&cq->poller);
	rdma_watch_end(&cq->watch);
}

void rdma_cq_drain(struct rdma_cq *cq)
{
	struct ibv_wc wc;

	cq_process(&cq->poller);
	while (rdma_verbs->poll_cq(cq->cq, 1, &wc) > 0)
		cq->done(cq, &wc);
}
