/* command.c - which reactor runs a command, and the way to the control reactor and back.
 *
 *   I/O command ─▶ io/, on the queue's reactor
 *   admin, fabrics ─▶ its data or a buffer ─▶ control reactor (control_queue.c): admin/, fabrics.c
 *       ─▶ back to the queue's reactor ─▶ reply */
#include <string.h>

#include "target/admin/admin.h"
#include "target/io/io.h"

void tgt_post_reactor(struct weft_req *req, void (*fn)(struct weft_msg *msg))
{
	req->msg.fn = fn;
	weft_reactor_post(req->qp->group->reactor, &req->msg);
}

static void reply_on_reactor(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);

	assert_on(req->qp->group->reactor);
	weft_req_reply(req, tgt_req(req)->status);
}

void tgt_control_reply(struct weft_req *req, uint16_t status)
{
	struct tgt_queue *queue = tgt_queue(req);

	assert_on(req->qp->group->control);
	if (status && queue)
		tgt_ctrl_log_error(queue->ctrl, req, status);
	tgt_req(req)->status = status;
	tgt_post_reactor(req, reply_on_reactor);
}

static void run_on_control(struct weft_msg *msg)
{
	struct weft_req *req = container_of(msg, struct weft_req, msg);

	assert_on(req->qp->group->control);
	if (!req->qp->owner)
		tgt_connect(req);
	else if (req->cmd.common.opcode == NVME_FABRICS_OPCODE)
		tgt_fabrics(req);
	else
		tgt_admin(req);
}

static void send_to_control(struct weft_req *req, uint16_t sc)
{
	if (sc) {
		weft_req_reply(req, sc);
		return;
	}
	if (nvme_cmd_direction(&req->cmd) == NVME_DIR_TO_HOST && req->data)
		memset(req->data, 0, req->data_len);
	tgt_post_control(req, run_on_control);
}

/* How many bytes of data the command has at most. An SGL may describe more (SGLS, oversize): there
 * is no buffer for the rest, and it is not fetched. */
static uint32_t admin_data_max(const struct weft_req *req)
{
	const struct tgt_command_info *info;

	if (req->cmd.common.opcode == NVME_FABRICS_OPCODE)
		return req->cmd.connect.fctype == NVMF_CONNECT ? sizeof(struct nvmf_connect_data) :
								 0;
	info = tgt_command_find(tgt_admin_commands, req->cmd.common.opcode);
	return info ? info->data_max : 0;
}

static void fetch_and_send_to_control(struct weft_req *req)
{
	enum nvme_direction dir = nvme_cmd_direction(&req->cmd);
	uint32_t len = weft_req_sgl_len(req), most = admin_data_max(req);
	uint16_t sc;

	if (dir == NVME_DIR_NONE || !len || !most) {
		req->data = NULL;
		send_to_control(req, 0);
		return;
	}
	sc = len > weft_bufs_largest(req->qp->in) ? SC_GENERIC(INVALID_FIELD) | SC_DNR :
						    weft_req_check_sgl(req, len);
	if (len > most)
		len = most;
	if (sc)
		weft_req_reply(req, sc);
	else if (dir == NVME_DIR_TO_HOST)
		weft_req_get_buffer(req, len, send_to_control);
	else
		weft_req_fetch(req, len, send_to_control);
}

/* On a fabric there are no PRPs (NVMe base 2.0, 3.3.2.1.1). */
static bool uses_sgl(const struct weft_req *req)
{
	return req->cmd.common.flags >> 6 == 1;
}

static bool is_connect(const struct weft_req *req)
{
	return req->cmd.common.opcode == NVME_FABRICS_OPCODE &&
	       req->cmd.connect.fctype == NVMF_CONNECT;
}

static void dispatch_command(struct weft_req *req)
{
	struct tgt_queue *queue = tgt_queue(req);

	if (!uses_sgl(req)) {
		weft_req_reply(req, SC_GENERIC(INVALID_FIELD) | SC_DNR);
		return;
	}
	if (!queue && !is_connect(req)) {
		weft_req_reply(req, SC_GENERIC(CMD_SEQ_ERROR) | SC_DNR);
		return;
	}
	if (!queue || !queue->qid || req->cmd.common.opcode == NVME_FABRICS_OPCODE) {
		fetch_and_send_to_control(req);
		return;
	}
	if (queue->io_state != TGT_QUEUE_IO_OPEN) {
		weft_req_reply(req, SC_GENERIC(ABORT_QUEUE));
		return;
	}
	if (!atomic_load_explicit(&queue->ctrl->traffic, memory_order_relaxed))
		atomic_store_explicit(&queue->ctrl->traffic, true, memory_order_relaxed);
	tgt_io_command(req);
}

const struct tgt_command_info *tgt_command_find(const struct tgt_command_info *table,
						uint8_t opcode)
{
	for (; table->execute; table++)
		if (table->opcode == opcode)
			return table;
	return NULL;
}

const struct weft_qpair_ops tgt_qpair_ops = {
	.req_priv = sizeof(struct tgt_req),
	.req_zeroed = offsetof(struct tgt_req, self),
	.command = dispatch_command,
	.released = tgt_ns_leave,
	.awaited_since = tgt_ns_awaited_since,
	.closing = tgt_queue_closing,
	.closing_req = tgt_io_bulk_closing,
	.closed = tgt_queue_closed,
};
