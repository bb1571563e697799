/* io_job.c - many commands at once, and a model of what the namespace holds. */
#include "io_job.h"

#include <poll.h>

enum { GAP = 0xa7 };

atomic_bool io_job_more;

static unsigned next_random(struct io_range *range, unsigned below)
{
	range->seed = range->seed * 1103515245 + 12345;
	return (range->seed >> 8) % below;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* @len bytes in up to PARTS pieces, a gap behind each. */
static void split_into_iov(struct io_range *range, uint64_t len)
{
	uint8_t *at = range->memory;
	int n = 0;

	for (; len; n++) {
		uint64_t part = n == PARTS - 1 ? len : next_random(range, (unsigned)len) + 1;

		range->iov[n] = (struct iovec){ at, part };
		at[part] = GAP;
		at += part + 1;
		len -= part;
	}
	range->cmd.iov = range->iov;
	range->cmd.iovcnt = n;
}

static uint8_t *model_at(struct io_range *range)
{
	return range->model + (range->cmd.offset - range->base);
}

/* The model's bytes into the memory. */
static void copy_model_to_iov(struct io_range *range)
{
	const uint8_t *from = model_at(range);

	for (int i = 0; i < range->cmd.iovcnt; i++) {
		memcpy(range->iov[i].iov_base, from, range->iov[i].iov_len);
		from += range->iov[i].iov_len;
	}
}

static void check_memory(struct io_range *range)
{
	const uint8_t *from = model_at(range);

	for (int i = 0; i < range->cmd.iovcnt; i++) {
		const uint8_t *part = range->iov[i].iov_base;

		need(!memcmp(part, from, range->iov[i].iov_len));
		need(part[range->iov[i].iov_len] == GAP);
		from += range->iov[i].iov_len;
	}
}

/* --- a range ----------------------------------------------------------------------------------- */

static void on_io_done(struct weft_cmd *cmd);

static void prepare(struct io_range *range)
{
	static const enum weft_op_code ops[] = { WEFT_READ, WEFT_READ,    WEFT_WRITE, WEFT_WRITE,
						 WEFT_ZERO, WEFT_COMPARE, WEFT_FLUSH, WEFT_VERIFY };
	uint64_t blocks = range->size / BLOCK, first = next_random(range, (unsigned)blocks);
	uint64_t count = next_random(range, (unsigned)(blocks - first)) + 1;
	struct weft_cmd *cmd = &range->cmd;

	*cmd = (struct weft_cmd){ .op = ops[next_random(range, COUNT(ops))],
				  .ns = range->job->ns,
				  .offset = range->base + first * BLOCK,
				  .length = count * BLOCK,
				  .done = on_io_done,
				  .user = range };
	range->differs = false;
	split_into_iov(range, cmd->length);
	if (cmd->op == WEFT_WRITE)
		for (uint64_t i = 0; i < cmd->length; i++)
			model_at(range)[i] = (uint8_t)next_random(range, 256);
	if (cmd->op == WEFT_ZERO)
		memset(model_at(range), 0, cmd->length);
	if (cmd->op == WEFT_WRITE || cmd->op == WEFT_COMPARE)
		copy_model_to_iov(range);
	if (cmd->op == WEFT_COMPARE && next_random(range, 2)) {
		range->differs = true;
		*(uint8_t *)range->iov[0].iov_base ^= 1;
	}
}

static void submit_next(struct io_range *range)
{
	int rc;

	if (!range->left && !atomic_load(&io_job_more)) {
		range->job->busy--;
		return;
	}
	range->left -= range->left != 0;
	prepare(range);
	need(!range->out);
	range->out = true;
	rc = weft_submit(range->job->queue, &range->cmd);
	need(rc == 0);
}

static void on_io_done(struct weft_cmd *cmd)
{
	struct io_range *range = cmd->user;
	struct weft_err text = { "" };

	need(cmd == &range->cmd && range->out);
	range->out = false;
	if (cmd->rc != (range->differs ? -EILSEQ : 0)) {
		weft_cmd_text(cmd, &text);
		fprintf(stderr, "%s\n", text.text);
		abort();
	}
	if (cmd->op == WEFT_READ)
		check_memory(range);
	submit_next(range);
}

/* --- a job ----------------------------------------------------------------------------------- */

void io_job_init(struct io_job *job, struct weft_ctrl *ctrl, struct weft_ns *ns, unsigned index)
{
	uint64_t at = index * (WIDE_BYTES + (uint64_t)RANGES * RANGE_BYTES);
	struct weft_err err = { "" };

	memset(job, 0, sizeof(*job));
	job->ctrl = ctrl;
	job->ns = ns;
	job->busy = RANGES;
	need(weft_queue_open(ctrl, &job->queue, &err) == 0);
	for (unsigned i = 0; i < RANGES; i++) {
		struct io_range *range = &job->ranges[i];

		range->job = job;
		range->base = at;
		range->size = i ? RANGE_BYTES : WIDE_BYTES;
		range->model = calloc(1, range->size);
		range->memory = malloc(range->size + PARTS);
		need(range->model && range->memory);
		range->left = COMMANDS;
		range->seed = index * 1000 + i;
		at += range->size;
		need(weft_zero(job->queue, ns, range->size, range->base, 0, &err) == 0);
	}
	need(at <= NS_BYTES);
}

void io_job_end(struct io_job *job)
{
	need(weft_queue_pending(job->queue) == 0);
	weft_queue_close(job->queue);
	for (unsigned i = 0; i < RANGES; i++) {
		need(!job->ranges[i].out && !job->ranges[i].left);
		free(job->ranges[i].model);
		free(job->ranges[i].memory);
	}
}

static void wait_by_fd(struct weft_queue *queue)
{
	struct pollfd pollfd = { .fd = weft_queue_fd(queue), .events = POLLIN };

	need(pollfd.fd >= 0);
	need(poll(&pollfd, 1, -1) == 1);
	weft_queue_poll(queue, 0);
}

void *io_job_run(void *arg)
{
	struct io_job *job = arg;

	for (unsigned i = 0; i < RANGES; i++)
		submit_next(&job->ranges[i]);
	if (job->by_fd)
		weft_queue_fd(job->queue);
	weft_queue_poll(job->queue, 0);
	while (job->busy) {
		if (job->by_fd)
			wait_by_fd(job->queue);
		else
			weft_queue_poll(job->queue, -1);
	}
	return NULL;
}
