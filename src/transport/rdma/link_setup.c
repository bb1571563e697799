/* link_setup.c - sets up the host's RDMA connection: address, adapter, route, connection. Each step
 * is an event, and every rejection becomes a sentence. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "transport/rdma/link.h"
#include "transport/rdma/path.h"

static void fail_setup(struct rdma_link *rl, int rc, const char *what)
{
	weft_link_close(&rl->link, rc, "%s: %s", what, strerror(-rc));
}

/* --- the adapter ------------------------------------------------------------------------------ */

static void set_options(struct rdma_link *rl)
{
	const struct weft_link_options *o = &rl->link.options;
	uint8_t tos = (uint8_t)o->tos, timeout = (uint8_t)o->ack_timeout;

	if (tos)
		rdma_verbs->set_option(rl->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
				       sizeof(tos));
	if (timeout)
		rdma_verbs->set_option(rl->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
				       sizeof(timeout));
}

static const char *address_text(int rc)
{
	return rc == -ENODEV || rc == -EADDRNOTAVAIL || rc == -ENETUNREACH || rc == -EHOSTUNREACH ?
		       "no RDMA adapter leads to this address; `rdma link` lists those there are" :
		       strerror(-rc);
}

void rdma_link_resolve_addr(struct rdma_link *rl)
{
	struct sockaddr_storage to = rl->link.options.addr;

	set_options(rl);
	if (rdma_verbs->resolve_addr(rl->id, NULL, (struct sockaddr *)&to,
				     (int)rl->link.options.setup_ms) < 0)
		weft_link_close(&rl->link, -errno, "address: %s", address_text(-errno));
}

static void link_device_fatal(struct rdma_async_subscriber *async)
{
	struct rdma_link *rl = container_of(async, struct rdma_link, async);

	weft_link_close(&rl->link, -ENODEV, "the adapter failed");
}

static int use_adapter(struct rdma_link *rl, struct weft_err *err)
{
	int rc;

	assert(!rl->dev && !rl->async_open);
	rc = rdma_dev_get(rl->id->verbs, &rl->dev, err);
	if (rc < 0)
		return rc;
	rdma_mr_cache_init(&rl->mrs, &rl->dev->host);
	rl->async.fatal = link_device_fatal;
	rc = rdma_async_subscribe(&rl->async, rl->dev, rl->link.reactor, err);
	rl->async_open = rc == 0;
	return rc;
}

static void address_found(struct rdma_link *rl)
{
	struct weft_err err = { "" };
	int rc = use_adapter(rl, &err);

	if (rc < 0) {
		weft_link_close(&rl->link, rc, "%s", err.text);
		return;
	}
	rdma_link_enter(rl, RDMA_LINK_ROUTE);
	if (rdma_verbs->resolve_route(rl->id, (int)rl->link.options.setup_ms) < 0)
		fail_setup(rl, -errno, "route");
}

/* --- the queue pair --------------------------------------------------------------------------- */

static int create_queue_pair(struct rdma_link *rl)
{
	uint32_t depth = rl->link.options.depth;
	uint32_t sges = (uint32_t)rl->dev->attr.max_sge;
	struct ibv_qp_init_attr attr = {
		.send_cq = rl->cq.cq,
		.recv_cq = rl->cq.cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = depth + 1,
			.max_recv_wr = rl->receives,
			.max_send_sge = sges < RDMA_LINK_SGES ? sges : RDMA_LINK_SGES,
			.max_recv_sge = 1,
			.max_inline_data = rl->link.options.inline_bytes,
		},
	};
	int rc;

	rl->sges = attr.cap.max_send_sge;
	rl->inline_max = rl->link.options.inline_bytes;
	rc = rdma_verbs->create_qp(rl->id, rl->dev->pd, &attr);
	if (rc < 0 && errno == EINVAL && rl->inline_max) { /* more than this adapter does */
		rl->inline_max = attr.cap.max_inline_data = 0;
		rc = rdma_verbs->create_qp(rl->id, rl->dev->pd, &attr);
	}
	return rc < 0 ? -errno : 0;
}

static void qp_error(struct rdma_async_events *events, enum ibv_event_type type)
{
	struct rdma_link *rl = container_of(events, struct rdma_link, qp_events);

	weft_link_close(&rl->link, -ECONNRESET, "connection lost: %s", ibv_event_type_str(type));
}

static void cq_error(struct rdma_async_events *events, enum ibv_event_type type)
{
	struct rdma_link *rl = container_of(events, struct rdma_link, cq_events);

	weft_link_close(&rl->link, -EIO, "connection lost: %s", ibv_event_type_str(type));
}

static int create_queue_resources(struct rdma_link *rl, struct weft_err *err)
{
	uint32_t entries = rl->link.options.depth + 1 + rl->receives;
	int rc;

	assert(rl->async_open && !rl->has_cq && !rl->mr);
	if (entries > (uint32_t)rl->dev->attr.max_cqe ||
	    rl->receives > (uint32_t)rl->dev->attr.max_qp_wr)
		return weft_fail(err, -EINVAL, "%s takes at most %d commands at a time: use depth=",
				 rl->dev->ctx->device->name, rl->dev->attr.max_qp_wr - 1);
	rl->cq.done = rdma_link_wc_done;
	rc = rdma_cq_open(&rl->cq, rl->link.reactor, rl->dev->ctx, (int)entries,
			  rl->link.options.qid, err);
	if (rc < 0)
		return rc;
	rl->has_cq = true;
	rl->cq_events.on_event = cq_error;
	rdma_async_events_add(&rl->cq_events, &rl->async, rl->cq.cq);
	rl->mr = rdma_verbs->reg_mr(rl->dev->pd, rl->pages, rl->pages_size, IBV_ACCESS_LOCAL_WRITE);
	if (!rl->mr)
		return weft_fail(err, -errno, "%s does not register memory: %s%s",
				 rl->dev->ctx->device->name, strerror(errno),
				 errno == ENOMEM ? "; see ulimit -l (LimitMEMLOCK)" : "");
	rc = create_queue_pair(rl);
	if (rc == 0) {
		rl->qp_events.on_event = qp_error;
		rdma_async_events_add(&rl->qp_events, &rl->async, rl->id->qp);
		rc = rdma_link_post_receives(rl);
	}
	return rc < 0 ? weft_fail(err, rc, "queue pair: %s", strerror(-rc)) : 0;
}

static uint8_t at_most_255(int value)
{
	return (uint8_t)(value < 255 ? value : 255);
}

static int request_connection(struct rdma_link *rl)
{
	const struct weft_link_options *o = &rl->link.options;
	const struct nvme_rdma_request request = {
		.qid = cpu_to_le16(o->qid),
		.hrqsize = cpu_to_le16((uint16_t)rl->receives),
		.hsqsize = cpu_to_le16((uint16_t)o->depth),
		.cntlid = cpu_to_le16(o->cntlid),
	};
	struct rdma_conn_param param = {
		.private_data = &request,
		.private_data_len = sizeof(request),
		.responder_resources = at_most_255(rl->dev->attr.max_qp_rd_atom),
		.flow_control = 1,
		.retry_count = (uint8_t)o->retries,
		.rnr_retry_count = (uint8_t)o->rnr_retries,
	};

	return rdma_verbs->connect(rl->id, &param) < 0 ? -errno : 0;
}

static void route_found(struct rdma_link *rl)
{
	struct weft_err err = { "" };
	int rc = create_queue_resources(rl, &err);

	if (rc < 0) {
		weft_link_close(&rl->link, rc, "%s", err.text);
		return;
	}
	rdma_link_enter(rl, RDMA_LINK_CONNECTING);
	rc = request_connection(rl);
	if (rc < 0)
		fail_setup(rl, rc, "connect");
}

/* --- the answer ------------------------------------------------------------------------------- */

static void link_established(struct rdma_link *rl, const struct rdma_conn_param *param)
{
	const struct nvme_rdma_accept *answer = param->private_data;

	if (param->private_data_len >= sizeof(*answer) && le16_to_cpu(answer->recfmt)) {
		weft_link_close(&rl->link, -EPROTO, "connect: the target answers in format %u",
				le16_to_cpu(answer->recfmt));
		return;
	}
	weft_timer_stop(rl->link.reactor, &rl->timer);
	rdma_link_enter(rl, RDMA_LINK_OPEN);
	rl->opened = true;
	rdma_query_path(rl->id, &rl->link.path);
	rl->link.ops->ready(&rl->link);
}

/* 28: InfiniBand's "consumer reject", by who listens; iWARP says ECONNREFUSED for both. */
static void link_rejected(struct rdma_link *rl, const struct rdma_cm_event *event)
{
	const struct nvme_rdma_reject *reject = event->param.conn.private_data;
	uint16_t sts = le16_to_cpu(reject->sts);

	if (event->param.conn.private_data_len >= sizeof(*reject) && sts)
		weft_link_close(&rl->link, -ECONNREFUSED, "connect: refused: %s (status %#x)",
				nvme_rdma_status_text(sts), sts);
	else
		weft_link_close(&rl->link, -ECONNREFUSED,
				"connect: nobody listens there for RDMA (reason %d)",
				event->status);
}

static int negative_errno(int status)
{
	return status < 0 ? status : status > 0 ? -status : -EIO;
}

void rdma_link_cm_event(struct rdma_link *rl, const struct rdma_cm_event *event)
{
	int rc = negative_errno(event->status);

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rl->state == RDMA_LINK_ADDRESS)
			address_found(rl);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (rl->state == RDMA_LINK_ROUTE)
			route_found(rl);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (rl->state == RDMA_LINK_CONNECTING)
			link_established(rl, &event->param.conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		weft_link_close(&rl->link, rc, "address: %s", address_text(rc));
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		fail_setup(rl, rc, "no route");
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		weft_link_close(&rl->link, -EHOSTUNREACH,
				"connect: no answer from the other end (status %d)", event->status);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		fail_setup(rl, rc, "connect");
		break;
	case RDMA_CM_EVENT_REJECTED:
		link_rejected(rl, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* On iWARP it may just have vanished: the adapter's TCP has given up. */
		rl->link.peer_closed = rl->dev && !rl->dev->iwarp;
		weft_link_close(&rl->link, -ECONNRESET, "the controller closed the connection");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		rdma_devs_note_removal();
		weft_link_close(&rl->link, -ENODEV, "the adapter was removed");
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		weft_link_close(&rl->link, -EADDRNOTAVAIL, "our address moved to another adapter");
		break;
	default: /* TIMEWAIT_EXIT */
		break;
	}
}
