/* fuzz_queue.c - a program's I/O over a queue whose target has moods, and whose the control reactor
 * comes and goes.
 *
 *   input: what is agreed (3 bytes), then a program (program.h)
 *
 *   lanes: a range of the disk each, one command at a time ─▶ weft_submit ─▶ queue ─▶ peer/mini_target.c
 *
 * Every command ends once. One that ends well has done what it says: the disk holds what was
 * written, and what was read is what the disk holds. Copy and Compare and Write were done once
 * then, and never more often. After the program, with a target in a good mood, all end. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "fake_ctrl.h"
#include "host/queue/op_desc.h"
#include "must.h"
#include "peer/input.h"
#include "peer/mini_target.h"
#include "program.h"
#include "socket_wrap.h"

enum {
	RANGES = 4,
	LANE_BLOCKS = DISK_BLOCKS / RANGES,
	ROUNDS_MAX = 4000,
	WAIT_MS = 20, /* of a turn that would have slept */
	ROUND_MS = 50,
};

int __real_weft_reactor_create(struct weft_reactor **r, const struct weft_reactor_options *options,
			       struct weft_err *err);
void __real_weft_reactor_turn(struct weft_reactor *r, int wait_ms);
int __wrap_weft_reactor_create(struct weft_reactor **r, const struct weft_reactor_options *options,
			       struct weft_err *err);
void __wrap_weft_reactor_turn(struct weft_reactor *r, int wait_ms);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);

static struct weft_queue *queue;
static struct weft_ns ns;

static struct io_range {
	struct weft_cmd cmd;
	struct iovec iov[3];
	uint8_t data[2 * LANE_BLOCKS * DISK_BLOCK]; /* Compare and Write has twice its length */
	bool out;
} ranges[RANGES];

/* --- everybody else's turn -------------------------------------------------------------------- */

static void publish(enum host_path_state state)
{
	struct host_path *p = fake_ctrl_path;
	struct weft_ctrl *c = fake_ctrl;
	struct weft_list *link = c->queues.next;

	p->state = state;
	p->pub.state = host_path_public_state(p);
	p->assoc.generation += state == HOST_PATH_LIVE;
	p->pub.generation = p->assoc.generation;
	p->pub.ended_generation = p->assoc.generation - (state == HOST_PATH_LIVE);
	c->pub = p->pub;
	weft_mutex_lock(&c->lock);
	for (; link != &c->queues; link = link->next)
		host_queue_post_update(container_of(link, struct weft_queue, ctrl_link));
	weft_mutex_unlock(&c->lock);
}

/* A lost association is announced in one turn, and there again in the next. */
static void control(void)
{
	fake_ctrl_turn(0);
	while (fake_ctrl_answer())
		;
	if (fake_ctrl_path->state == HOST_PATH_RESETTING) {
		fake_ctrl_broken = false;
		publish(HOST_PATH_LIVE);
	} else if (fake_ctrl_broken && host_path_is_connected(fake_ctrl_path)) {
		publish(HOST_PATH_RESETTING);
	}
}

static void other_reactors(void)
{
	int fd = socket_wrap_peer();

	if (fd >= 0)
		mini_target_accept(fd, fake_ctrl_path->config.options.hdgst,
				   fake_ctrl_path->config.options.ddgst);
	mini_target_serve();
	control();
}

int __wrap_weft_reactor_create(struct weft_reactor **r, const struct weft_reactor_options *options,
			       struct weft_err *err)
{
	struct weft_reactor_options with_clock = *options;

	with_clock.clock = fake_ctrl_clock;
	return __real_weft_reactor_create(r, &with_clock, err);
}

/* Who would sleep lets the others do something, and time pass. */
void __wrap_weft_reactor_turn(struct weft_reactor *r, int wait_ms)
{
	__real_weft_reactor_turn(r, 0);
	if (!wait_ms)
		return;
	other_reactors();
	fake_ctrl_turn(WAIT_MS);
}

/* Whoever waits for the control reactor. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
	control();
	return pthread_mutex_lock(lock);
}

/* True: a command ended. */
static bool turn_until_idle(void)
{
	bool ended = false;

	for (int i = 0; i < 3; i++) {
		ended |= weft_queue_poll(queue, 0) > 0;
		other_reactors();
	}
	return ended;
}

/* --- lanes ------------------------------------------------------------------------------------ */

static uint8_t *blocks_of(const struct weft_cmd *cmd)
{
	return disk[cmd->offset / DISK_BLOCK];
}

static bool is_zero(const uint8_t *at, uint64_t len)
{
	return !at[0] && !memcmp(at, at + 1, len - 1);
}

/* It says that it did what it was told. */
static void check_done(const struct io_range *range, const struct weft_cmd *cmd, uint64_t deeds)
{
	if (mini_target_lied)
		return;
	switch (cmd->op) {
	case WEFT_READ:
	case WEFT_WRITE:
	case WEFT_COMPARE:
		must(!memcmp(range->data, blocks_of(cmd), cmd->length));
		break;
	case WEFT_ZERO:
	case WEFT_TRIM:
		must(is_zero(blocks_of(cmd), cmd->length));
		break;
	case WEFT_COMPARE_AND_WRITE:
		must(!memcmp(range->data + cmd->length, blocks_of(cmd), cmd->length));
		must(deeds == cmd->length / DISK_BLOCK);
		break;
	case WEFT_COPY:
		must(deeds == cmd->length / DISK_BLOCK);
		break;
	default:
		break;
	}
}

/* Blocks that something was done to which must not be done twice; none is there twice. */
static uint64_t count_deeds(const struct weft_cmd *cmd)
{
	const unsigned *deeds = mini_target_writes + cmd->offset / DISK_BLOCK;
	uint64_t n = 0;

	for (uint64_t i = 0; i < cmd->length / DISK_BLOCK; i++) {
		must(deeds[i] <= 1);
		n += deeds[i];
	}
	return n;
}

static void on_io_done(struct weft_cmd *cmd)
{
	struct io_range *range = cmd->user;
	struct weft_err text = { "" };
	uint64_t deeds;

	must(range->out && cmd == &range->cmd);
	range->out = false;
	weft_cmd_text(cmd, &text);
	must(text.text[0] && cmd->rc <= 0);
	deeds = cmd->op == WEFT_FLUSH ? 0 : count_deeds(cmd);
	must(cmd->rc != -ENOTCONN || !deeds);
	if (cmd->rc)
		return;
	must(!(cmd->status & 0x7ff));
	check_done(range, cmd, deeds);
}

/* The lane's memory in three parts, @cut bytes in each of the first two. */
static void cut(struct io_range *range, uint32_t len, uint32_t at)
{
	if (at > len / 2)
		at = len / 2;
	range->iov[0] = (struct iovec){ range->data, at };
	range->iov[1] = (struct iovec){ range->data + at, at };
	range->iov[2] = (struct iovec){ range->data + 2 * at, len - 2 * at };
}

static void submit_io(struct io_range *range, enum weft_op_code op, uint8_t first, uint8_t count,
		      uint8_t fill)
{
	uint64_t lane_at = (uint64_t)(range - ranges) * LANE_BLOCKS;
	unsigned times = op == WEFT_COMPARE_AND_WRITE ? 2 : 1;
	int rc;

	first %= LANE_BLOCKS;
	count = count % (LANE_BLOCKS - first) + 1;
	range->cmd = (struct weft_cmd){ .op = op,
					.ns = &ns,
					.offset = (lane_at + first) * DISK_BLOCK,
					.length = count * UINT64_C(512),
					.copy_from = lane_at * DISK_BLOCK,
					.iov = range->iov,
					.iovcnt = 3,
					.done = on_io_done,
					.user = range };
	cut(range, times * (uint32_t)range->cmd.length, u16());
	memset(range->data, fill, sizeof(range->data));
	if (fill % 8 && (times == 2 || op == WEFT_COMPARE)) /* it is equal, mostly */
		memcpy(range->data, blocks_of(&range->cmd), range->cmd.length);
	memset(mini_target_writes + lane_at, 0, LANE_BLOCKS * sizeof(mini_target_writes[0]));
	range->out = true;
	rc = weft_submit(queue, &range->cmd);
	must(rc == 0 || (rc == -ENOTCONN && fake_ctrl_path->state == HOST_PATH_DEAD) ||
	     (op == WEFT_COMPARE_AND_WRITE && (rc == -EMSGSIZE || rc == -EOPNOTSUPP)));
	if (rc < 0)
		range->out = false;
}

static void op_submit(void)
{
	static const enum weft_op_code ops[] = { WEFT_READ, WEFT_WRITE, WEFT_ZERO, WEFT_FLUSH };
	uint8_t which = u8(), first = u8(), count = u8(), fill = u8();
	struct io_range *range = &ranges[which % RANGES];

	if (!range->out)
		submit_io(range, ops[which >> 6], first, count, fill);
}

static void op_submit_other(void)
{
	static const enum weft_op_code ops[] = { WEFT_COPY, WEFT_COMPARE_AND_WRITE, WEFT_COMPARE,
						 WEFT_TRIM, WEFT_VERIFY };
	uint8_t which = u8(), first = u8(), count = u8(), fill = u8();
	struct io_range *range = &ranges[which % RANGES];

	if (!range->out)
		submit_io(range, ops[(which >> 2) % 5], first, count, fill);
}

/* --- what happens ----------------------------------------------------------------------------- */

static void op_poll(void)
{
	weft_queue_poll(queue, 0);
}

static void op_others(void)
{
	other_reactors();
}

static void op_clock(void)
{
	fake_ctrl_turn(u16());
}

static void op_mood(void)
{
	uint8_t reaction = u8();

	mini_target_react(reaction % REACTIONS, u16());
}

static void op_release(void)
{
	mini_target_release();
}

static void op_hang_up(void)
{
	mini_target_hang_up();
}

static void op_reset(void)
{
	if (host_path_is_connected(fake_ctrl_path))
		publish(HOST_PATH_RESETTING);
}

static void op_dead(void)
{
	if (u8() == 0xdd)
		publish(HOST_PATH_DEAD);
}

static void op_limit(void)
{
	uint16_t send = u16(), recv = u16();

	socket_wrap_limit(send, recv, u8() % 64);
}

/* seeds_host.py has the same order. */
static void (*const ops[])(void) = {
	op_submit,  op_poll,  op_others, op_clock, op_mood,         op_release,
	op_hang_up, op_reset, op_dead,   op_limit, op_submit_other,
};

/* A target in a good mood. */
static void finish(void)
{
	unsigned rounds = 0;

	mini_target_forget();
	socket_wrap_limit(0, 0, 0);
	while (weft_queue_pending(queue)) {
		mini_target_release();
		turn_until_idle();
		fake_ctrl_turn(ROUND_MS);
		must(rounds++ < ROUNDS_MAX);
	}
	for (int i = 0; i < RANGES; i++)
		must(!ranges[i].out);
	weft_queue_close(queue);
}

static void negotiate(void)
{
	uint8_t flags = u8(), depth = u8(), capsule = u8();
	struct host_traits *t = &fake_ctrl_path->pub.traits;

	weft_options_init(&fake_ctrl_path->config.options);
	fake_ctrl_path->config.addr.ss_family = AF_INET;
	fake_ctrl_path->config.options.hdgst = flags & 1;
	fake_ctrl_path->config.options.ddgst = flags & 2;
	*t = (struct host_traits){ .transfer_max = flags & 4 ? 4096 : 16384,
				   .zero_max = 8192,
				   .verify_max = 8192,
				   .trim_blocks = 16,
				   .queues = 1,
				   .depth = depth % (DISK_CIDS - 1) + 1,
				   .capsule_max = capsule % 4 * 1024u,
				   .oncs = UINT16_MAX,
				   .fuses = 1,
				   .disconnects = flags & 8 };
	memset(disk, 0x11, sizeof(disk));
	mini_target_lied = false;
	if (flags & 16)
		op_mood(); /* of the first Connect */
	publish(HOST_PATH_LIVE);
}

static void create(void)
{
	fake_ctrl_create();
	ns.ctrl = fake_ctrl;
	ns.nsid = 1;
	ns.block_shift = 9;
	ns.size = sizeof(disk);
	ns.copy_max = 4096;
	ns.access[0] = HOST_ACCESS_OPTIMIZED;
}

static bool begin(void)
{
	struct weft_err err = { "" };
	struct host_ns_record *at;
	int rc;

	weft_mutex_lock(&fake_ctrl->lock);
	at = host_ns_record_get(fake_ctrl, ns.nsid);
	weft_mutex_unlock(&fake_ctrl->lock);
	must(at);
	ns.dirty = &at->dirty;
	negotiate();
	rc = weft_queue_open(fake_ctrl, &queue, &err);
	must(rc == 0 ? !err.text[0] : rc < 0 && err.text[0]);
	return rc == 0;
}

static void end(void)
{
	mini_target_hang_up();
	mini_target_forget();
	fake_ctrl_lose();
	fake_ctrl_reset();
	weft_closep(&(int){ socket_wrap_peer() }); /* of a queue that tried once more by itself */
}

const struct program program = {
	.create = create,
	.begin = begin,
	PROGRAM_OPS(ops),
	.ops_max = 200,
	.settle = turn_until_idle,
	.finish = finish,
	.end = end,
};
