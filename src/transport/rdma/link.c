/* link.c - a host's connection: its beginning and its end.
 *
 *   ADDRESS ─▶ ROUTE ─▶ CONNECTING ─▶ OPEN ──lost, a fault, closed by its user──▶ CLOSING ─▶ CLOSED
 *      └──────────┴───────────┴─────────────────────────────────────────────────────▲
 *
 * To close is to destroy the queue pair, at once: from then on the adapter touches none of the
 * caller's memory. What follows is only that the reactor forgets some descriptors. */
#include "transport/rdma/link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- the end ---------------------------------------------------------------------------------- */

static void let_go_of_all(struct rdma_link *rl)
{
	for (uint32_t i = 0; i < rl->link.options.depth; i++)
		rdma_link_let_go(rl, (struct rdma_slot *)(rl->link.slots +
							  i * sizeof(struct rdma_slot)));
}

static void finish(struct rdma_link *rl)
{
	if (rl->has_cq || rl->watching || rl->hears)
		return;
	if (rl->mr)
		rdma_verbs->dereg_mr(rl->mr);
	rdma_keys_end(&rl->keys);
	rdma_dev_put(rl->dev);
	rdma_verbs->destroy_id(
		rl->id); /* after all that: a removed adapter goes with its last id */
	rdma_verbs->destroy_event_channel(rl->channel);
	if (!rl->opened) /* perhaps for want of an adapter, whose removal nobody told us of */
		rdma_devs_removed();
	rdma_devs_sweep();
	rl->state = RLINK_CLOSED;
	rl->link.ops->closed(&rl->link);
}

static void watch_ended(struct rdma_watch *watch)
{
	struct rdma_link *rl = container_of(watch, struct rdma_link, watch);

	rl->watching = false;
	finish(rl);
}

static void cq_closed(struct rdma_cq *cq)
{
	struct rdma_link *rl = container_of(cq, struct rdma_link, cq);

	rl->has_cq = false;
	finish(rl);
}

static void ear_ended(struct rdma_ear *ear)
{
	struct rdma_link *rl = container_of(ear, struct rdma_link, ear);

	rl->hears = false;
	finish(rl);
}

static void drop_queue_pair(struct rdma_link *rl)
{
	if (!rl->id->qp)
		return;
	rdma_news_end(&rl->qp_news);
	rdma_verbs->disconnect(rl->id);
	rdma_verbs->destroy_qp(rl->id);
}

static void link_close(struct weft_link *link)
{
	struct rdma_link *rl = rdma_link_of(link);

	if (rl->state >= RLINK_CLOSING)
		return;
	rl->state = RLINK_CLOSING;
	weft_timer_stop(link->reactor, &rl->timer);
	weft_task_cancel(&rl->flush);
	drop_queue_pair(rl);
	let_go_of_all(rl);
	weft_task_cancel(&rl->serve); /* buffers that came back have woken it */
	rdma_news_end(&rl->cq_news);
	if (rl->has_cq)
		rdma_cq_close(&rl->cq);
	if (rl->hears)
		rdma_ear_end(&rl->ear);
	rdma_watch_end(&rl->watch);
}

static void link_free(struct weft_link *link)
{
	struct rdma_link *rl = rdma_link_of(link);

	assert(rl->state == RLINK_CLOSED);
	weft_bufs_destroy(&rl->bufs);
	weft_pages_free(rl->pages, rl->pages_size);
	weft_link_destroy(link);
	free(rl);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void readable(struct rdma_watch *watch)
{
	struct rdma_link *rl = container_of(watch, struct rdma_link, watch);
	struct rdma_cm_event *event;

	while (!watch->ending && !rdma_verbs->get_cm_event(rl->channel, &event)) {
		struct rdma_cm_event copy = *event;
		char private[sizeof(struct nvme_rdma_accept)] = { 0 };
		size_t len = event->param.conn.private_data_len;

		/* Acknowledged first: what it leads to may be the end of its id. */
		if (event->param.conn.private_data)
			memcpy(private, event->param.conn.private_data,
			       len < sizeof(private) ? len : sizeof(private));
		copy.param.conn.private_data = private;
		rdma_verbs->ack_cm_event(event);
		rdma_link_event(rl, &copy);
	}
}

static void setup_over(struct weft_timer *timer)
{
	struct rdma_link *rl = container_of(timer, struct rdma_link, timer);
	static const char *const waits_for[] = {
		[RLINK_ADDRESS] = "no adapter found for the address",
		[RLINK_ROUTE] = "no route found",
		[RLINK_CONNECTING] = "no answer to the connection request",
	};

	weft_link_close(&rl->link, -ETIMEDOUT, "%s within %u ms", waits_for[rl->state],
			rl->link.options.setup_ms);
}

static void wake_serve(void *arg)
{
	struct rdma_link *rl = arg;

	weft_reactor_defer(rl->link.reactor, &rl->serve);
}

static void serve(struct weft_task *task)
{
	weft_bufs_serve(&container_of(task, struct rdma_link, serve)->bufs);
}

/* Commands first, then completions; each command's place is its slot's for ever. */
static int make_pages(struct rdma_link *rl)
{
	uint32_t depth = rl->link.options.depth;
	size_t capsules = depth * sizeof(struct link_capsule);

	rl->receives = depth + 1 > LINK_RECEIVES_MIN ? depth + 1 : LINK_RECEIVES_MIN;
	rl->pages_size = capsules + rl->receives * sizeof(struct nvme_cqe);
	rl->pages = weft_pages_alloc(rl->pages_size);
	if (!rl->pages)
		return -ENOMEM;
	rl->cqes = (struct nvme_cqe *)(rl->pages + capsules);
	for (uint32_t i = 0; i < depth; i++) {
		struct rdma_slot *rs = (struct rdma_slot *)(rl->link.slots +
							    i * sizeof(struct rdma_slot));

		rs->capsule = (struct link_capsule *)rl->pages + i;
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
	rl->watch.readable = readable;
	rl->watch.ended = watch_ended;
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

static int prepare(struct rdma_link *rl, struct weft_reactor *r,
		   const struct weft_link_options *options, const struct weft_link_ops *ops,
		   void *user)
{
	int rc = weft_link_init(&rl->link, &weft_rdma_link, r, options, ops, user);

	if (rc < 0)
		return rc;
	rc = weft_bufs_init(&rl->bufs, LINK_BUFS_SHARE, WEFT_MDTS_BYTES, false, wake_serve, rl);
	if (rc < 0)
		goto destroy_link;
	rc = make_pages(rl);
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

static const char *open_text(int rc)
{
	if (rc == -ENOENT || rc == -ENODEV || rc == -EACCES)
		return "the kernel's RDMA connection manager (/dev/infiniband/rdma_cm, module "
		       "rdma_ucm) cannot be used";
	return strerror(-rc);
}

static int link_open(struct weft_link **link, struct weft_reactor *r,
		     const struct weft_link_options *options, const struct weft_link_ops *ops,
		     void *user, struct weft_err *err)
{
	struct rdma_link *rl = calloc(1, sizeof(*rl));
	int rc = rl ? prepare(rl, r, options, ops, user) : -ENOMEM;

	if (rc < 0) {
		free(rl);
		return weft_fail(err, rc, "connect: %s", open_text(rc));
	}
	weft_task_init(&rl->serve, serve);
	rl->cq.closed = cq_closed;
	rl->ear.ended = ear_ended;
	rl->timer.fn = setup_over;
	rdma_link_io_init(rl);
	weft_timer_set(r, &rl->timer, options->setup_ms);
	*link = &rl->link;
	rdma_link_start(rl);
	return 0;
}

const struct weft_link_transport weft_rdma_link = {
	.trtype = NVMF_TRTYPE_RDMA,
	.open = link_open,
	.takes_dmabuf = true,
	.slot_size = sizeof(struct rdma_slot),
	.submit = rdma_link_submit,
	.close = link_close,
	.free = link_free,
};
