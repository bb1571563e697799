/* passthru.c - a command as it is, and what became of its data.
 *
 * A controller may say success and send less than was asked for, or nothing. The rest is zeroes,
 * which look like an answer: a disk without errors, a namespace without a reservation. Whoever
 * shows more than the bytes asks weft_passthru_check() first. */
#include "cli/passthru.h"

#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "cli/opcodes.h"

int weft_passthru_admin(struct weft_ctrl *ctrl, struct weft_passthru *it, struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = weft_admin_moved(ctrl, it->sqe, it->buf, it->length, &it->result, &it->moved,
				  &why);

	if (rc < 0)
		*err = why;
	return rc;
}

static int run_passthru(struct weft_queue *queue, struct weft_cmd *cmd, struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = weft_run(queue, cmd, &why);

	if (rc < 0 && cmd->status)
		return cmd->status;
	if (rc < 0)
		*err = why;
	return rc;
}

int weft_passthru_io(struct weft_remote *remote, struct weft_passthru *it, struct weft_err *err)
{
	struct iovec iov = { it->buf, it->length };
	struct weft_cmd cmd = {
		.op = WEFT_RAW,
		.ns = remote->ns,
		.length = it->length,
		.iov = &iov,
		.iovcnt = it->length ? 1 : 0,
		.sqe = it->sqe,
	};
	struct weft_queue *queue;
	int rc = weft_queue_open(remote->ctrl, &queue, err);

	if (rc < 0)
		return rc;
	rc = run_passthru(queue, &cmd, err);
	it->result = cmd.result;
	it->moved = cmd.moved;
	weft_queue_close(queue);
	return rc;
}

int weft_passthru_check(const struct weft_passthru *it, bool admin, uint32_t needed,
			struct weft_err *err)
{
	bool sent = nvme_cmd_direction(it->sqe) == NVME_DIR_TO_HOST;

	if (it->moved >= needed)
		return 0;
	return weft_fail(err, -EPROTO,
			 "%s: the controller says success, but %s only %" PRIu32 " of %" PRIu32
			 " bytes of data",
			 weft_opcode_text(admin, it->sqe->common.opcode), sent ? "sent" : "took",
			 it->moved, needed);
}
