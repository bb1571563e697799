/* io_job.c - many commands at once, and a model of what the namespace holds. */
#include "io_job.h"

#include <poll.h>

enum { GAP = 0xa7 };

atomic_bool crew_more;

static unsigned draw(struct lane *lane, unsigned below)
{
	lane->seed = lane->seed * 1103515245 + 12345;
	return (lane->seed >> 8) % below;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* @len bytes in up to PARTS pieces, a gap behind each. */
static void cut(struct lane *lane, uint64_t len)
{
	uint8_t *at = lane->memory;
	int n = 0;

	for (; len; n++) {
		uint64_t part = n == PARTS - 1 ? len : draw(lane, (unsigned)len) + 1;

		lane->iov[n] = (struct iovec){ at, part };
		at[part] = GAP;
		at += part + 1;
		len -= part;
	}
	lane->cmd.iov = lane->iov;
	lane->cmd.iovcnt = n;
}

static uint8_t *modelled(struct lane *lane)
{
	return lane->model + (lane->cmd.offset - lane->base);
}

/* The model's bytes into the memory. */
static void put(struct lane *lane)
{
	const uint8_t *from = modelled(lane);

	for (int i = 0; i < lane->cmd.iovcnt; i++) {
		memcpy(lane->iov[i].iov_base, from, lane->iov[i].iov_len);
		from += lane->iov[i].iov_len;
	}
}

static void check_memory(struct lane *lane)
{
	const uint8_t *from = modelled(lane);

	for (int i = 0; i < lane->cmd.iovcnt; i++) {
		const uint8_t *part = lane->iov[i].iov_base;

		need(!memcmp(part, from, lane->iov[i].iov_len));
		need(part[lane->iov[i].iov_len] == GAP);
		from += lane->iov[i].iov_len;
	}
}

/* --- a lane ----------------------------------------------------------------------------------- */

static void finished(struct weft_cmd *cmd);

static void prepare(struct lane *lane)
{
	static const enum weft_op_code ops[] = { WEFT_READ, WEFT_READ,    WEFT_WRITE, WEFT_WRITE,
						 WEFT_ZERO, WEFT_COMPARE, WEFT_FLUSH, WEFT_VERIFY };
	uint64_t blocks = lane->size / BLOCK, first = draw(lane, (unsigned)blocks);
	uint64_t count = draw(lane, (unsigned)(blocks - first)) + 1;
	struct weft_cmd *cmd = &lane->cmd;

	*cmd = (struct weft_cmd){ .op = ops[draw(lane, COUNT(ops))],
				  .ns = lane->crew->ns,
				  .offset = lane->base + first * BLOCK,
				  .length = count * BLOCK,
				  .done = finished,
				  .user = lane };
	lane->differs = false;
	cut(lane, cmd->length);
	if (cmd->op == WEFT_WRITE)
		for (uint64_t i = 0; i < cmd->length; i++)
			modelled(lane)[i] = (uint8_t)draw(lane, 256);
	if (cmd->op == WEFT_ZERO)
		memset(modelled(lane), 0, cmd->length);
	if (cmd->op == WEFT_WRITE || cmd->op == WEFT_COMPARE)
		put(lane);
	if (cmd->op == WEFT_COMPARE && draw(lane, 2)) {
		lane->differs = true;
		*(uint8_t *)lane->iov[0].iov_base ^= 1;
	}
}

static void go_on(struct lane *lane)
{
	int rc;

	if (!lane->left && !atomic_load(&crew_more)) {
		lane->crew->busy--;
		return;
	}
	lane->left -= lane->left != 0;
	prepare(lane);
	need(!lane->out);
	lane->out = true;
	rc = weft_submit(lane->crew->queue, &lane->cmd);
	need(rc == 0);
}

static void finished(struct weft_cmd *cmd)
{
	struct lane *lane = cmd->user;
	struct weft_err text = { "" };

	need(cmd == &lane->cmd && lane->out);
	lane->out = false;
	if (cmd->rc != (lane->differs ? -EILSEQ : 0)) {
		weft_cmd_text(cmd, &text);
		fprintf(stderr, "%s\n", text.text);
		abort();
	}
	if (cmd->op == WEFT_READ)
		check_memory(lane);
	go_on(lane);
}

/* --- a crew ----------------------------------------------------------------------------------- */

void crew_init(struct crew *crew, struct weft_ctrl *ctrl, struct weft_ns *ns, unsigned index)
{
	uint64_t at = index * (WIDE_BYTES + (uint64_t)LANES * LANE_BYTES);
	struct weft_err err = { "" };

	memset(crew, 0, sizeof(*crew));
	crew->ctrl = ctrl;
	crew->ns = ns;
	crew->busy = LANES;
	need(weft_queue_open(ctrl, &crew->queue, &err) == 0);
	for (unsigned i = 0; i < LANES; i++) {
		struct lane *lane = &crew->lanes[i];

		lane->crew = crew;
		lane->base = at;
		lane->size = i ? LANE_BYTES : WIDE_BYTES;
		lane->model = calloc(1, lane->size);
		lane->memory = malloc(lane->size + PARTS);
		need(lane->model && lane->memory);
		lane->left = COMMANDS;
		lane->seed = index * 1000 + i;
		at += lane->size;
		need(weft_zero(crew->queue, ns, lane->size, lane->base, 0, &err) == 0);
	}
	need(at <= NS_BYTES);
}

void crew_end(struct crew *crew)
{
	need(weft_queue_pending(crew->queue) == 0);
	weft_queue_close(crew->queue);
	for (unsigned i = 0; i < LANES; i++) {
		need(!crew->lanes[i].out && !crew->lanes[i].left);
		free(crew->lanes[i].model);
		free(crew->lanes[i].memory);
	}
}

static void wait_by_fd(struct weft_queue *queue)
{
	struct pollfd pollfd = { .fd = weft_queue_fd(queue), .events = POLLIN };

	need(pollfd.fd >= 0);
	need(poll(&pollfd, 1, -1) == 1);
	weft_queue_poll(queue, 0);
}

void *crew_run(void *arg)
{
	struct crew *crew = arg;

	for (unsigned i = 0; i < LANES; i++)
		go_on(&crew->lanes[i]);
	if (crew->by_fd)
		weft_queue_fd(crew->queue);
	weft_queue_poll(crew->queue, 0);
	while (crew->busy) {
		if (crew->by_fd)
			wait_by_fd(crew->queue);
		else
			weft_queue_poll(crew->queue, -1);
	}
	return NULL;
}
