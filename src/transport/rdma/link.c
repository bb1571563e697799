/* link.c - the host's RDMA connection: how it starts and ends.
 *
 *   ADDRESS ─▶ ROUTE ─▶ CONNECTING ─▶ OPEN ──lost, a fault, closed by its user──▶ CLOSING ─▶ CLOSED
 *      └──────────┴───────────┴─────────────────────────────────────────────────────▲
 *
 * Closing destroys the queue pair at once: from then on the adapter touches none of the caller's
 * memory. After that the reactor only has to forget some descriptors. */
#include "transport/rdma/link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FROM(state) (1u << RDMA_LINK_##state)

/* States that may come before. */
static const unsigned link_edges[] = {
	[RDMA_LINK_ROUTE] = FROM(ADDRESS),
	[RDMA_LINK_CONNECTING] = FROM(ROUTE),
	[RDMA_LINK_OPEN] = FROM(CONNECTING),
	[RDMA_LINK_CLOSING] = FROM(ADDRESS) | FROM(ROUTE) | FROM(CONNECTING) | FROM(OPEN),
	[RDMA_LINK_CLOSED] = FROM(CLOSING),
};

void rdma_link_enter(struct rdma_link *rl, enum rdma_link_state state)
{
	assert_driving(rl->link.reactor);
	assert(link_edges[state] & 1u << rl->state);
	rl->state = state;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void put_all_buffers(struct rdma_link *rl)
{
	for (uint32_t i = 0; i < rl->link.options.depth; i++)
		rdma_link_put_buffer(rl,
				     (struct rdma_link_slot *)(rl->link.slots +
							       i * sizeof(struct rdma_link_slot)));
}

static void finish_close_if_idle(struct rdma_link *rl)
{
	if (rl->has_cq || rl->watching || rl->async_open)
		return;
	if (rl->mr)
		rdma_verbs->dereg_mr(rl->mr);
	rdma_mr_cache_destroy(&rl->mrs);
	rdma_dev_put(rl->dev);
	rdma_verbs->destroy_id(rl->id); /* last: a removed adapter is released with its last id */
	rdma_verbs->destroy_event_channel(rl->channel);
	if (!rl->opened) /* perhaps its adapter was removed, and no event told us */
		rdma_devs_note_removal();
	rdma_devs_release_removed();
	rdma_link_enter(rl, RDMA_LINK_CLOSED);
	rl->link.ops->closed(&rl->link);
}

static void cm_watch_ended(struct rdma_watch *watch)
{
	struct rdma_link *rl = container_of(watch, struct rdma_link, watch);

	rl->watching = false;
	finish_close_if_idle(rl);
}

static void link_cq_closed(struct rdma_cq *cq)
{
	struct rdma_link *rl = container_of(cq, struct rdma_link, cq);

	rl->has_cq = false;
	finish_close_if_idle(rl);
}

static void async_unsubscribed(struct rdma_async_subscriber *async)
{
	struct rdma_link *rl = container_of(async, struct rdma_link, async);

	rl->async_open = false;
	finish_close_if_idle(rl);
}

static void destroy_queue_pair(struct rdma_link *rl)
{
	if (!rl->id->qp)
		return;
	rdma_async_events_remove(&rl->qp_events);
	rdma_verbs->disconnect(rl->id);
	rdma_verbs->destroy_qp(rl->id);
}

static void rdma_link_close(struct weft_link *link)
{
	struct rdma_link *rl = rdma_link_of(link);

	if (rl->state >= RDMA_LINK_CLOSING)
		return;
	rdma_link_enter(rl, RDMA_LINK_CLOSING);
	weft_timer_stop(link->reactor, &rl->timer);
	weft_task_cancel(&rl->flush);
	destroy_queue_pair(rl);
	put_all_buffers(rl);
	weft_task_cancel(&rl->serve_buffer_waiters); /* buffers that came back have deferred it */
	rdma_async_events_remove(&rl->cq_events);
	if (rl->has_cq)
		rdma_cq_close(&rl->cq);
	if (rl->async_open)
		rdma_async_unsubscribe(&rl->async);
	rdma_watch_end(&rl->watch);
}

static void rdma_link_free(struct weft_link *link)
{
	struct rdma_link *rl = rdma_link_of(link);

	assert(rl->state == RDMA_LINK_CLOSED);
	weft_bufs_destroy(&rl->bufs);
	weft_pages_free(rl->pages, rl->pages_size);
	weft_link_destroy(link);
	free(rl);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void cm_channel_readable(struct rdma_watch *watch)
{
	struct rdma_link *rl = container_of(watch, struct rdma_link, watch);
	struct rdma_cm_event *event;

	while (!watch->ending && !rdma_verbs->get_cm_event(rl->channel, &event)) {
		struct rdma_cm_event copy = *event;
		char private[sizeof(struct nvme_rdma_accept)] = { 0 };
		size_t len = event->param.conn.private_data_len;

		/* Copied and acknowledged first: handling the event may destroy its id. */
		if (event->param.conn.private_data)
			memcpy(private, event->param.conn.private_data,
			       len < sizeof(private) ? len : sizeof(private));
		copy.param.conn.private_data = private;
		rdma_verbs->ack_cm_event(event);
		rdma_link_cm_event(rl, &copy);
	}
}

static void setup_expired(struct weft_timer *timer)
{
	struct rdma_link *rl = container_of(timer, struct rdma_link, timer);
	static const char *const waits_for[] = {
		[RDMA_LINK_ADDRESS] = "no adapter found for the address",
		[RDMA_LINK_ROUTE] = "no route found",
		[RDMA_LINK_CONNECTING] = "no answer to the connection request",
	};

	assert(rl->state < RDMA_LINK_OPEN);
	weft_link_close(&rl->link, -ETIMEDOUT, "%s within %u ms", waits_for[rl->state],
			rl->link.options.setup_ms);
}

static void schedule_serve_buffers(void *arg)
{
	struct rdma_link *rl = arg;

	weft_reactor_defer(rl->link.reactor, &rl->serve_buffer_waiters);
}

static void serve_buffer_waiters(struct weft_task *task)
{
	weft_bufs_serve_waiters(&container_of(task, struct rdma_link, serve_buffer_waiters)->bufs);
}

/* Commands first, then completions; a slot always uses the same command capsule. */
static int alloc_capsules(struct rdma_link *rl)
{
	uint32_t depth = rl->link.options.depth;
	size_t capsules = depth * sizeof(struct rdma_link_capsule);

	rl->receives = depth + 1 > RDMA_LINK_RECEIVES_MIN ? depth + 1 : RDMA_LINK_RECEIVES_MIN;
	rl->pages_size = capsules + rl->receives * sizeof(struct nvme_cqe);
	rl->pages = weft_pages_alloc(rl->pages_size);
	if (!rl->pages)
		return -ENOMEM;
	rl->cqes = (struct nvme_cqe *)(rl->pages + capsules);
	for (uint32_t i = 0; i < depth; i++) {
		struct rdma_link_slot *rs =
			(struct rdma_link_slot *)(rl->link.slots +
						  i * sizeof(struct rdma_link_slot));

		rs->capsule = (struct rdma_link_capsule *)rl->pages + i;
		weft_list_init(&rs->link);
	}
	return 0;
}

static int open_channel(struct rdma_link *rl)
{
	int rc;

	rl->channel = rdma_verbs->create_event_channel();
	if (!rl->channel)
		return -errno;
	if (rdma_verbs->create_id(rl->channel, &rl->id, rl, RDMA_PS_TCP) < 0) {
		rc = -errno;
		goto destroy_channel;
	}
	rl->watch.readable = cm_channel_readable;
	rl->watch.ended = cm_watch_ended;
	rc = rdma_watch_start(&rl->watch, rl->link.reactor, rl->channel->fd);
	if (rc < 0)
		goto destroy_id;
	rl->watching = true;
	return 0;

destroy_id:
	rdma_verbs->destroy_id(rl->id);
destroy_channel:
	rdma_verbs->destroy_event_channel(rl->channel);
	return rc;
}

static int rdma_link_init(struct rdma_link *rl, struct weft_reactor *r,
			  const struct weft_link_options *options, const struct weft_link_ops *ops,
			  void *user)
{
	int rc = weft_link_init(&rl->link, &weft_rdma_link, r, options, ops, user);

	if (rc < 0)
		return rc;
	rc = weft_bufs_init(&rl->bufs, RDMA_LINK_BUFS_DIVISOR, WEFT_MDTS_BYTES, false,
			    schedule_serve_buffers, rl);
	if (rc < 0)
		goto destroy_link;
	rc = alloc_capsules(rl);
	if (rc == 0)
		rc = open_channel(rl);
	if (rc == 0)
		return 0;
	weft_pages_free(rl->pages, rl->pages_size);
	weft_bufs_destroy(&rl->bufs);
destroy_link:
	weft_link_destroy(&rl->link);
	return rc;
}

static const char *link_open_text(int rc)
{
	if (rc == -ENOENT || rc == -ENODEV || rc == -EACCES)
		return "the kernel's RDMA connection manager (/dev/infiniband/rdma_cm, module "
		       "rdma_ucm) cannot be used";
	return strerror(-rc);
}

static int rdma_link_open(struct weft_link **link, struct weft_reactor *r,
			  const struct weft_link_options *options, const struct weft_link_ops *ops,
			  void *user, struct weft_err *err)
{
	struct rdma_link *rl = calloc(1, sizeof(*rl));
	int rc = rl ? rdma_link_init(rl, r, options, ops, user) : -ENOMEM;

	if (rc < 0) {
		free(rl);
		return weft_fail(err, rc, "connect: %s", link_open_text(rc));
	}
	weft_task_init(&rl->serve_buffer_waiters, serve_buffer_waiters);
	rl->cq.closed = link_cq_closed;
	rl->async.ended = async_unsubscribed;
	rl->timer.fn = setup_expired;
	rdma_link_io_init(rl);
	weft_timer_set(r, &rl->timer, options->setup_ms);
	*link = &rl->link;
	rdma_link_resolve_addr(rl);
	return 0;
}

const struct weft_link_transport weft_rdma_link = {
	.trtype = NVMF_TRTYPE_RDMA,
	.open = rdma_link_open,
	.takes_dmabuf = true,
	.slot_size = sizeof(struct rdma_link_slot),
	.submit = rdma_link_submit,
	.close = rdma_link_close,
	.free = rdma_link_free,
};
