/* connect.c - Connect: a connection becomes a queue of a controller (NVMe base 2.0, 6.3). */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "proto/uri.h"
#include "target/internal.h"

/* Which parameter was wrong: in the command, or in its data. */
static uint16_t bad_sqe(struct weft_req *req, size_t offset)
{
	req->cqe.result = cpu_to_le64(offset);
	return SC_COMMAND(CONNECT_INVALID_PARAM) | SC_DNR;
}

static uint16_t bad_data(struct weft_req *req, size_t offset)
{
	req->cqe.result = cpu_to_le64(offset | 1u << 16);
	return SC_COMMAND(CONNECT_INVALID_PARAM) | SC_DNR;
}

#define BAD_SQE(req, field)  bad_sqe(req, offsetof(struct nvmf_connect_cmd, field))
#define BAD_DATA(req, field) bad_data(req, offsetof(struct nvmf_connect_data, field))

/* An NQN is UTF-8 (NVMe base 2.0, 4.5), and one that cannot be shown is none that an administrator
 * could allow. It may be empty: spdk_nvme_perf, unless told its name, is a host without one, and
 * goes wherever any host may. */
static bool nqn_is_valid(const char *text, size_t size)
{
	return memchr(text, '\0', size) && strlen(text) <= WEFT_NQN_MAX &&
	       weft_utf8_printable(text);
}

static bool all_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

static uint16_t check_connect_params(struct weft_req *req, struct weft_target *t,
				     const struct nvmf_connect_data *data)
{
	const struct nvmf_connect_cmd *cmd = &req->cmd.connect;
	uint32_t entries = le16_to_cpu(cmd->sqsize) + 1u;

	if (le16_to_cpu(cmd->recfmt))
		return SC_COMMAND(CONNECT_FORMAT) | SC_DNR;
	if (entries < 2 || entries > t->depth_max)
		return BAD_SQE(req, sqsize);
	if (!nqn_is_valid(data->subsysnqn, sizeof(data->subsysnqn)))
		return BAD_DATA(req, subsysnqn);
	if (!nqn_is_valid(data->hostnqn, sizeof(data->hostnqn)))
		return BAD_DATA(req, hostnqn);
	if (all_zero(data->hostid, sizeof(data->hostid)))
		return BAD_DATA(req, hostid);
	if (t->stopped)
		return SC_COMMAND(CONNECT_CTRL_BUSY);
	return 0;
}

static uint16_t reject_unlisted_host(struct weft_req *req, const struct weft_subsys *s,
				     const struct nvmf_connect_data *data)
{
	char peer[WEFT_URI_MAX];

	weft_uri_format(req->qp->transport->trtype, &req->qp->peer, peer, sizeof(peer));
	weft_peer_log(WEFT_LOG_WARN, "%s: host %s at %s is not allowed", s->nqn,
		      tgt_host_name(data->hostnqn), peer);
	return SC_COMMAND(CONNECT_INVALID_HOST) | SC_DNR;
}

/* All checks that need no controller. */
static uint16_t check_connect(struct weft_req *req, struct weft_target *t,
			      const struct nvmf_connect_data *data, struct weft_subsys **out)
{
	uint16_t sc = check_connect_params(req, t, data);
	struct weft_subsys *s = sc ? NULL : tgt_subsys_find_any(t, data->subsysnqn);

	if (sc)
		return sc;
	if (!s || s->removing)
		return BAD_DATA(req, subsysnqn);
	if (!le16_to_cpu(req->cmd.connect.qid) && !tgt_host_allowed(s, data->hostnqn))
		return reject_unlisted_host(req, s, data);
	*out = s;
	return 0;
}

/* --- admin queue: a new controller ------------------------------------------------------------ */

static uint16_t connect_admin(struct weft_req *req, struct weft_subsys *s,
			      const struct nvmf_connect_data *data, struct tgt_ctrl **out)
{
	uint32_t kato_ms = le32_to_cpu(req->cmd.connect.kato);
	struct tgt_ctrl *ctrl;
	uint16_t sc;

	if (s->discovery && kato_ms > TGT_DISCOVERY_KATO_MAX_MS)
		return BAD_SQE(req, kato);
	if (le16_to_cpu(data->cntlid) != NVME_CNTLID_DYNAMIC)
		return BAD_DATA(req, cntlid);
	sc = tgt_admit(s, tgt_tenant_find(s, data->hostnqn, &req->qp->peer), data->hostnqn,
		       &req->qp->peer);
	if (sc)
		return sc;
	ctrl = tgt_ctrl_create(s);
	if (!ctrl)
		return SC_COMMAND(CONNECT_CTRL_BUSY);
	tgt_ctrl_set_host(ctrl, data->hostnqn, data->hostid);
	ctrl->trtype = req->qp->transport->trtype;
	ctrl->peer = req->qp->peer;
	ctrl->local = req->qp->local;
	if (tgt_flow_join(ctrl) < 0) {
		tgt_ctrl_free(ctrl);
		return SC_COMMAND(CONNECT_CTRL_BUSY);
	}
	ctrl->portid = tgt_listener_portid(s->target, ctrl->trtype, &ctrl->local);
	tgt_ana_ctrl_init(ctrl);
	tgt_ctrl_set_kato(ctrl, kato_ms);
	*out = ctrl;
	return 0;
}

/* --- I/O queues ------------------------------------------------------------------------------- */

static bool qid_taken(const struct tgt_ctrl *ctrl, uint16_t qid)
{
	struct tgt_queue *queue;

	weft_list_for_each(queue, &ctrl->queues, link)
		if (queue->qid == qid && tgt_queue_has_id(queue))
			return true;
	return false;
}

static uint16_t connect_io(struct weft_req *req, struct weft_subsys *s,
			   const struct nvmf_connect_data *data, struct tgt_ctrl **out)
{
	struct tgt_ctrl *ctrl = tgt_ctrl_find(s, le16_to_cpu(data->cntlid));
	uint16_t qid = le16_to_cpu(req->cmd.connect.qid);

	if (!ctrl)
		return BAD_DATA(req, cntlid);
	if (strcmp(ctrl->hostnqn, data->hostnqn))
		return BAD_DATA(req, hostnqn);
	if (memcmp(ctrl->hostid, data->hostid, sizeof(ctrl->hostid)))
		return BAD_DATA(req, hostid);
	if (s->discovery || qid > ctrl->io_queues)
		return BAD_SQE(req, qid);
	if (!(ctrl->csts & TGT_CSTS_RDY) || ctrl->resetting || qid_taken(ctrl, qid))
		return SC_GENERIC(CMD_SEQ_ERROR) | SC_DNR;
	*out = ctrl;
	return tgt_admit(s, ctrl->flow->tenant, ctrl->hostnqn, &req->qp->peer);
}

/* --- both ------------------------------------------------------------------------------------- */

static void connect_done_on_reactor(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);
	const struct nvmf_connect_cmd *cmd = &req->cmd.connect;
	struct tgt_queue *queue = tgt_req(req)->queue;

	assert_on(req->qp->group->reactor);
	assert(!req->qp->owner);
	req->qp->owner = queue;
	if (!queue->ctrl->subsys->discovery)
		weft_qpair_admit(req->qp, tgt_flow_buf_queues(queue->ctrl, req->qp->group),
				 tgt_flow_walks(queue->ctrl, req->qp->group),
				 &tgt_tenant_local(queue->ctrl, req->qp->group)->rx_quota);
	weft_qpair_start(req->qp, le16_to_cpu(cmd->qid), le16_to_cpu(cmd->sqsize) + 1u,
			 !(cmd->cattr & NVMF_CATTR_NO_SQ_FLOW));
	weft_req_reply(req, 0);
}

static void connect_attach_queue(struct weft_req *req, struct tgt_queue *queue,
				 struct tgt_ctrl *ctrl)
{
	char peer[WEFT_URI_MAX];

	queue->ctrl = ctrl;
	queue->qp = req->qp;
	queue->qid = le16_to_cpu(req->cmd.connect.qid);
	queue->depth = le16_to_cpu(req->cmd.connect.sqsize) + 1u;
	weft_list_init(&queue->resv_changes);
	weft_list_init(&queue->ending_link);
	weft_list_init(&queue->drain_waits);
	assert(!ctrl->dying && !qid_taken(ctrl, queue->qid));
	weft_list_push(&ctrl->queues, &queue->link);
	tgt_admission_add_queue(queue);
	if (!queue->qid) {
		assert(!ctrl->admin);
		ctrl->admin = queue;
		weft_uri_format(ctrl->trtype, &ctrl->peer, peer, sizeof(peer));
		weft_peer_log(WEFT_LOG_INFO, "%s: host %s at %s connected as controller %u",
			      ctrl->subsys->nqn, tgt_host_name(ctrl->hostnqn), peer, ctrl->cntlid);
	}
	req->cqe.result = cpu_to_le64(ctrl->cntlid);
	tgt_req(req)->queue = queue;
	tgt_post_reactor(req, connect_done_on_reactor);
}

static uint16_t try_connect(struct weft_req *req, struct weft_target *t)
{
	struct nvmf_connect_data data;
	struct tgt_queue *queue;
	struct weft_subsys *s;
	struct tgt_ctrl *ctrl;
	uint16_t sc;

	assert(req->data_len >= sizeof(data));
	memcpy(&data, req->data, sizeof(data));
	sc = check_connect(req, t, &data, &s);
	if (sc)
		return sc;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return SC_COMMAND(CONNECT_CTRL_BUSY);
	sc = le16_to_cpu(req->cmd.connect.qid) ? connect_io(req, s, &data, &ctrl) :
						 connect_admin(req, s, &data, &ctrl);
	if (sc)
		free(queue);
	else
		connect_attach_queue(req, queue, ctrl);
	return sc;
}

static void refuse_connect(struct weft_req *req, uint16_t sc)
{
	char peer[WEFT_URI_MAX];

	weft_uri_format(req->qp->transport->trtype, &req->qp->peer, peer, sizeof(peer));
	weft_peer_log(WEFT_LOG_DEBUG, "%s: refused: %s (NVMe status %#x)", peer,
		      weft_status_text(sc), sc & 0x7ff);
	tgt_control_reply(req, sc);
}

static void connect_now(struct weft_req *req)
{
	uint16_t sc = try_connect(req, req->qp->group->user);

	if (sc)
		refuse_connect(req, sc);
}

void tgt_connect(struct weft_req *req)
{
	struct weft_target *t = req->qp->group->user;
	uint16_t sc = SC_GENERIC(SGL_INVALID_DATA) | SC_DNR;
	struct nvmf_connect_data data;
	struct weft_subsys *s;

	assert_on_control(t);
	if (req->data_len >= sizeof(data)) {
		memcpy(&data, req->data, sizeof(data)); /* in a capsule it may be unaligned */
		sc = check_connect(req, t, &data, &s);
	}
	if (sc)
		refuse_connect(req, sc);
	/* These cannot have left a write behind. */
	else if (le16_to_cpu(req->cmd.connect.qid) || s->discovery)
		connect_now(req);
	else
		tgt_stale_wait(t, req, connect_now);
}
