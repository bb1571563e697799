#include "cli/passthru.h"

static int run(struct weft_queue *queue, struct weft_cmd *cmd, uint64_t *result,
	       struct weft_err *err)
{
	struct weft_err why = { "" };
	int rc = weft_run(queue, cmd, &why);

	if (result)
		*result = cmd->result;
	if (rc < 0 && cmd->status)
		return cmd->status;
	if (rc < 0)
		*err = why;
	return rc;
}

int weft_passthru_io(struct weft_remote *remote, const union nvme_sqe *sqe, void *buf,
		     uint32_t length, uint64_t *result, struct weft_err *err)
{
	struct iovec iov = { buf, length };
	struct weft_cmd cmd = {
		.op = WEFT_RAW,
		.ns = remote->ns,
		.length = length,
		.iov = &iov,
		.iovcnt = length ? 1 : 0,
		.sqe = sqe,
	};
	struct weft_queue *queue;
	int rc = weft_queue_open(remote->ctrl, &queue, err);

	if (rc < 0)
		return rc;
	rc = run(queue, &cmd, result, err);
	weft_queue_close(queue);
	return rc;
}
