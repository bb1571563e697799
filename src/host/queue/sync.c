/* sync.c - weft_run(), weft_read() and the like: one command at a time; and weft_cmd_text(). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/queue/cmd.h"

/* --- in words --------------------------------------------------------------------------------- */

static bool outcome_is_unknown(const struct weft_cmd *cmd)
{
	return cmd->rc == -ECONNRESET && host_cmd_may_write(cmd);
}

static bool resend_is_disabled(const struct weft_cmd *cmd)
{
	return outcome_is_unknown(cmd) && host_cmd_is_idempotent(cmd) && cmd->ns &&
	       cmd->ns->ctrl->config.options.resend == WEFT_RESEND_NEVER;
}

/* Of several paths, the one that it was sent to last. A command that was not sent failed because
 * the last of them was lost. */
static struct weft_err loss_of(const struct weft_cmd *cmd)
{
	const struct cmd_priv *p = (const struct cmd_priv *)cmd->priv;
	struct weft_ctrl *ctrl = cmd->ns->ctrl;
	const struct host_path *path;
	struct weft_err why;

	weft_mutex_lock(&ctrl->lock);
	path = cmd->rc == -ECONNRESET && p->pq < HOST_PATHS_MAX ? ctrl->paths[p->pq] : NULL;
	why = ctrl->pub.why;
	if (path && path->pub.why.text[0])
		host_path_why(path, &why);
	weft_mutex_unlock(&ctrl->lock);
	return why;
}

static void text_of_loss(const struct weft_cmd *cmd, char *text, size_t size)
{
	struct weft_err why = { "" };

	if (cmd->ns)
		why = loss_of(cmd);
	snprintf(text, size, "the connection was lost%s%.280s%s%s", why.text[0] ? ": " : "",
		 why.text, resend_is_disabled(cmd) ? "; it is not sent again (resend=never)" : "",
		 outcome_is_unknown(cmd) ? "; whether it was carried out is not known" : "");
}

static void text_of_no_path(const struct weft_cmd *cmd, char *text, size_t size)
{
	struct weft_ctrl *ctrl = cmd->ns->ctrl;
	uint32_t ms = ctrl->config.options.fast_io_fail_ms;

	weft_mutex_lock(&ctrl->lock);
	if (ms)
		snprintf(text, size, "no path could be used for %u %s (fast_io_fail): %.280s",
			 ms % 1000 ? ms : ms / 1000, ms % 1000 ? "ms" : "s",
			 cmd->ns->io_error.text);
	else
		snprintf(text, size, "no path can be used: %.280s", cmd->ns->io_error.text);
	weft_mutex_unlock(&ctrl->lock);
}

static void text_of_no_queue(const struct weft_cmd *cmd, char *text, size_t size)
{
	struct weft_ctrl *ctrl = cmd->ns->ctrl;

	weft_mutex_lock(&ctrl->lock);
	snprintf(text, size, "%.*s", (int)size - 1, ctrl->no_queue.text);
	weft_mutex_unlock(&ctrl->lock);
}

static void text_of_errno(const struct weft_cmd *cmd, char *text, size_t size)
{
	static const struct {
		int rc;
		const char *text;
	} texts[] = {
		{ -ETIMEDOUT, "no answer in time" },
		{ -ERANGE, "beyond the end of the namespace" },
		{ -EINVAL, "not a multiple of the block size, or not enough memory for it" },
		{ -ESTALE, "another namespace has taken its place" },
		{ -ENODEV, "the namespace is gone" },
		{ -EROFS, "the namespace is read-only" },
		{ -EOPNOTSUPP, "the controller does not support it" },
		{ -EMSGSIZE, "more than the controller takes at once" },
		{ -ENOTRECOVERABLE,
		  "the path to a controller is gone, and writes that it had completed were lost "
		  "before they were flushed" },
		{ -EBADMSG, "the data came with a wrong digest, again and again" },
	};

	if (cmd->rc == -EIO && cmd->ns) {
		text_of_no_path(cmd, text, size);
		return;
	}
	if (cmd->rc == -EUSERS && cmd->ns) {
		text_of_no_queue(cmd, text, size);
		return;
	}
	if (cmd->rc == -ENOTCONN || cmd->rc == -ECONNRESET) {
		text_of_loss(cmd, text, size);
		return;
	}
	if (cmd->rc == -EOPNOTSUPP && cmd->iov && !host_memory_is_plain(cmd->iov, cmd->iovcnt)) {
		snprintf(text, size, "this connection does not reach a device's memory");
		return;
	}
	snprintf(text, size, "%s", strerror(-cmd->rc));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].rc == cmd->rc)
			snprintf(text, size, "%s", texts[i].text);
}

static void text_of_range(const struct weft_cmd *cmd, const struct host_op_desc *desc, char *text,
			  size_t size)
{
	if (desc->shape == SHAPE_NONE || desc->shape == SHAPE_RAW)
		snprintf(text, size, "%s", desc->name);
	else
		snprintf(text, size, "%s of %llu bytes at %llu", desc->name,
			 (unsigned long long)cmd->length, (unsigned long long)cmd->offset);
}

void weft_cmd_text(const struct weft_cmd *cmd, struct weft_err *text)
{
	const struct host_op_desc *desc = host_op_desc(cmd->op);
	char range[128] = "unknown operation", why[416];

	if (desc)
		text_of_range(cmd, desc, range, sizeof(range));
	if (!cmd->rc)
		snprintf(why, sizeof(why), "done");
	else if (cmd->rc == -ENODEV && cmd->status && cmd->ns)
		snprintf(why, sizeof(why), "the namespace is gone (NVMe status 0x%x)",
			 cmd->status & 0x7ff);
	else if (cmd->status)
		snprintf(why, sizeof(why), "%s (NVMe status 0x%x)%s",
			 weft_io_status_text(cmd->status), cmd->status & 0x7ff,
			 outcome_is_unknown(cmd) ?
				 "; it was sent before, and whether it was carried out then "
				 "is not known" :
				 "");
	else
		text_of_errno(cmd, why, sizeof(why));
	snprintf(text->text, sizeof(text->text), "%s: %s", range, why);
}

/* --- one at a time ---------------------------------------------------------------------------- */

static void note_done(struct weft_cmd *cmd)
{
	*(bool *)cmd->user = true;
}

int weft_run(struct weft_queue *queue, struct weft_cmd *cmd, struct weft_err *err)
{
	struct weft_err text = { "" };
	bool done = false;

	cmd->done = note_done;
	cmd->user = &done;
	cmd->status = 0;
	cmd->rc = weft_submit(queue, cmd);
	if (cmd->rc < 0)
		done = true;
	while (!done)
		weft_queue_poll(queue, -1);
	if (cmd->rc < 0) {
		weft_cmd_text(cmd, &text);
		weft_fail(err, cmd->rc, "%s", text.text);
	}
	return cmd->rc;
}

static int run_range_sync(struct weft_queue *queue, enum weft_op_code op, struct weft_ns *ns,
			  uint64_t length, uint64_t offset, unsigned flags, struct iovec *iov,
			  struct weft_err *err)
{
	struct weft_cmd cmd = {
		.op = op,
		.flags = flags,
		.ns = ns,
		.offset = offset,
		.length = length,
		.iov = iov,
		.iovcnt = iov ? 1 : 0,
	};

	return weft_run(queue, &cmd, err);
}

int weft_read(struct weft_queue *queue, struct weft_ns *ns, void *buf, size_t length,
	      uint64_t offset, struct weft_err *err)
{
	struct iovec iov = { buf, length };

	return run_range_sync(queue, WEFT_READ, ns, length, offset, 0, &iov, err);
}

int weft_write(struct weft_queue *queue, struct weft_ns *ns, const void *buf, size_t length,
	       uint64_t offset, unsigned flags, struct weft_err *err)
{
	struct iovec iov = { (void *)buf, length };

	return run_range_sync(queue, WEFT_WRITE, ns, length, offset, flags, &iov, err);
}

int weft_flush(struct weft_queue *queue, struct weft_ns *ns, struct weft_err *err)
{
	return run_range_sync(queue, WEFT_FLUSH, ns, 0, 0, 0, NULL, err);
}

int weft_zero(struct weft_queue *queue, struct weft_ns *ns, uint64_t length, uint64_t offset,
	      unsigned flags, struct weft_err *err)
{
	return run_range_sync(queue, WEFT_ZERO, ns, length, offset, flags, NULL, err);
}

int weft_trim(struct weft_queue *queue, struct weft_ns *ns, uint64_t length, uint64_t offset,
	      struct weft_err *err)
{
	return run_range_sync(queue, WEFT_TRIM, ns, length, offset, 0, NULL, err);
}
