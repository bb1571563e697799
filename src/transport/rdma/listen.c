/* listen.c - RDMA listeners. The control reactor gets connection requests, rejects invalid ones,
 * and sends the others to the reactor that was chosen.
 *
 *   listening ──the adapter of its address goes──▶ away ──every second──▶ listening again
 *
 * The private data of a request is copied before the event is acknowledged, which frees it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/uri.h"
#include "transport/rdma/rdma.h"

enum { BACKLOG = 1024, RETRY_MS = 1000 };

struct rdma_listener {
	struct weft_listener l; /* first */
	struct rdma_cm_channel *channel;
	struct rdma_cm_id *id; /* NULL: away */
	struct rdma_watch watch;
	struct weft_timer retry_timer;
};

void rdma_cm_channel_put(struct rdma_cm_channel *channel)
{
	unsigned refs = atomic_fetch_sub(&channel->refs, 1);

	assert(refs);
	if (refs > 1)
		return;
	rdma_verbs->destroy_event_channel(channel->channel);
	free(channel);
}

static int channel_create(struct rdma_cm_channel **out)
{
	struct rdma_cm_channel *channel = calloc(1, sizeof(*channel));
	int rc;

	if (!channel)
		return -ENOMEM;
	channel->channel = rdma_verbs->create_event_channel();
	if (!channel->channel) {
		rc = -errno;
		free(channel);
		return rc;
	}
	atomic_init(&channel->refs, 1);
	*out = channel;
	return 0;
}

void rdma_target_reject(struct rdma_cm_id *id, enum nvme_rdma_status sts)
{
	const struct nvme_rdma_reject reject = { .sts = cpu_to_le16((uint16_t)sts) };

	rdma_verbs->reject(id, &reject, sizeof(reject));
}

static void log_refusal(const struct rdma_cm_id *id, enum nvme_rdma_status sts)
{
	char peer[WEFT_URI_MAX];

	weft_uri_format(NVMF_TRTYPE_RDMA, &id->route.addr.dst_storage, peer, sizeof(peer));
	weft_peer_log(WEFT_LOG_WARN, "%s: connection refused: %s", peer,
		      nvme_rdma_status_text((uint16_t)sts));
}

/* --- requests --------------------------------------------------------------------------------- */

static struct rdma_conn_request *parse_request(struct rdma_listener *rl,
					       const struct rdma_cm_event *event,
					       enum nvme_rdma_status *sts)
{
	const struct rdma_conn_param *param = &event->param.conn;
	struct rdma_conn_request *conn_req = calloc(1, sizeof(*conn_req));

	if (!conn_req) {
		*sts = NVME_RDMA_NO_RESOURCES;
		return NULL;
	}
	*sts = nvme_rdma_check_request(param->private_data, param->private_data_len, 65535,
				       &conn_req->request);
	conn_req->id = event->id;
	conn_req->ops = rl->l.ops->qpair;
	conn_req->initiator_depth = param->initiator_depth;
	return conn_req;
}

static void on_connect_request(struct rdma_listener *rl, struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	enum nvme_rdma_status sts;
	struct rdma_conn_request *conn_req = parse_request(rl, event, &sts);

	rdma_verbs->ack_cm_event(event);
	if (!sts) {
		conn_req->group = rl->l.ops->choose_group(&rl->l);
		sts = conn_req->group ? NVME_RDMA_OK : NVME_RDMA_NO_RESOURCES;
	}
	if (sts) {
		log_refusal(id, sts);
		rdma_target_reject(id, sts);
		rdma_verbs->destroy_id(id);
		free(conn_req);
		return;
	}
	conn_req->channel = rl->channel;
	atomic_fetch_add(&rl->channel->refs, 1);
	conn_req->msg.fn = rdma_conn_accept;
	weft_reactor_post(conn_req->group->reactor, &conn_req->msg);
}

/* --- listening -------------------------------------------------------------------------------- */

static int listen_at_address(struct rdma_listener *rl, const struct sockaddr_storage *addr)
{
	struct sockaddr_storage at = *addr;
	int on = 1, rc;

	assert_on(rl->l.control);
	assert(!rl->id);
	if (rdma_verbs->create_id(rl->channel->channel, &rl->id, rl, RDMA_PS_TCP) < 0)
		return -errno;
	rdma_verbs->set_option(rl->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on));
	if (addr->ss_family == AF_INET6)
		rdma_verbs->set_option(rl->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on,
				       sizeof(on));
	if (!rdma_verbs->bind_addr(rl->id, (struct sockaddr *)&at) &&
	    !rdma_verbs->listen(rl->id, BACKLOG))
		return 0;
	rc = -errno;
	rdma_verbs->destroy_id(rl->id);
	rl->id = NULL;
	return rc;
}

static void lose_adapter(struct rdma_listener *rl, const char *why)
{
	char text[WEFT_URI_MAX];

	if (!rl->id)
		return;
	rdma_verbs->destroy_id(rl->id);
	rl->id = NULL;
	rdma_devs_release_removed();
	weft_uri_format(NVMF_TRTYPE_RDMA, &rl->l.addr, text, sizeof(text));
	weft_error("%s: %s; nobody can connect there until it is back", text, why);
	weft_timer_set(rl->l.control, &rl->retry_timer, RETRY_MS);
}

static void retry_listen(struct weft_timer *timer)
{
	struct rdma_listener *rl = container_of(timer, struct rdma_listener, retry_timer);
	char text[WEFT_URI_MAX];

	if (listen_at_address(rl, &rl->l.addr) < 0) {
		weft_timer_set(rl->l.control, &rl->retry_timer, RETRY_MS);
		return;
	}
	weft_uri_format(NVMF_TRTYPE_RDMA, &rl->l.addr, text, sizeof(text));
	weft_info("listening on %s again", text);
}

static void cm_channel_readable(struct rdma_watch *watch)
{
	struct rdma_listener *rl = container_of(watch, struct rdma_listener, watch);
	struct rdma_cm_event *event;

	while (!rdma_verbs->get_cm_event(rl->channel->channel, &event)) {
		enum rdma_cm_event_type type = event->event;
		bool ours = event->id == rl->id;

		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			on_connect_request(rl, event);
			continue;
		}
		rdma_verbs->ack_cm_event(event);
		if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			rdma_devs_note_removal();
		if (ours && type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			lose_adapter(rl, "the adapter was removed");
		if (ours && type == RDMA_CM_EVENT_ADDR_CHANGE)
			lose_adapter(rl, "its address moved to another adapter");
	}
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void listener_free(struct rdma_listener *rl)
{
	weft_timer_stop(rl->l.control, &rl->retry_timer);
	if (rl->id)
		rdma_verbs->destroy_id(rl->id);
	if (rl->channel)
		rdma_cm_channel_put(rl->channel);
	free(rl);
}

static void listener_watch_ended(struct rdma_watch *watch)
{
	struct rdma_listener *rl = container_of(watch, struct rdma_listener, watch);

	rl->l.ops->closed(&rl->l);
	listener_free(rl);
}

static int listener_open(struct rdma_listener *rl, const struct sockaddr_storage *addr)
{
	int rc = channel_create(&rl->channel);

	if (rc == 0)
		rc = listen_at_address(rl, addr);
	if (rc < 0)
		return rc;
	rl->retry_timer.fn = retry_listen;
	rl->l.addr = rl->id->route.addr.src_storage;
	rl->watch.readable = cm_channel_readable;
	rl->watch.ended = listener_watch_ended;
	return rdma_watch_start(&rl->watch, rl->l.control, rl->channel->channel->fd);
}

static const char *listen_text(int rc)
{
	switch (rc) {
	case -ENODEV:
	case -EADDRNOTAVAIL:
		return "no RDMA adapter has this address; `rdma link` lists them";
	case -ENOENT:
	case -EACCES:
		return "the kernel's RDMA connection manager (/dev/infiniband/rdma_cm, module "
		       "rdma_ucm) cannot be used";
	default:
		return strerror(-rc);
	}
}

int rdma_target_listen(struct weft_listener **l, struct weft_reactor *control,
		       const struct sockaddr_storage *addr, const struct weft_listener_ops *ops,
		       void *user, struct weft_err *err)
{
	struct rdma_listener *rl = calloc(1, sizeof(*rl));
	int rc;

	if (!rl)
		return weft_fail(err, -ENOMEM, "out of memory");
	rl->l = (struct weft_listener){
		.transport = &weft_rdma, .ops = ops, .control = control, .user = user
	};
	rc = listener_open(rl, addr);
	if (rc < 0) {
		listener_free(rl);
		weft_fail(err, rc, "%s", listen_text(rc));
		return rc == -EADDRNOTAVAIL ? -ENODEV : rc;
	}
	*l = &rl->l;
	return 0;
}

void rdma_target_unlisten(struct weft_listener *l)
{
	assert_on(l->control);
	rdma_watch_end(&container_of(l, struct rdma_listener, l)->watch);
}
