/* fuzz_rdma_link.c - a host's RDMA connection from beginning to end, a controller that says
 * anything, and the adapter between them.
 *
 *   input: what the host asks for and what the adapter is like (6 bytes), then a program (program.h)
 *
 * After the program a controller that kept the rules answers what is open, and every order must be
 * done; then the link is closed, and must end. Nothing may be left on the fabric. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "adapter_ops.h"
#include "link_user.h"
#include "must.h"
#include "peer/input.h"
#include "program.h"
#include "rdma_ctrl.h"
#include "transport/rdma/link.h"

enum { SETTLE = 4, SLOTS_MAX = 12 };

static const char *device;

static uint32_t hidden[WEFT_BUFS_CLASSES]; /* buffers that the program took away */

/* --- turns ------------------------------------------------------------------------------------ */

/* A command of the link's leaves. */
void adapter_look(struct ibv_qp *qp)
{
	const struct ibv_send_wr *wr = fabric_next(qp);
	union nvme_sqe sqe;
	struct order *o;

	if (!wr || qp == rdma_ctrl_qp())
		return;
	must(wr->opcode == IBV_WR_SEND && wr->sg_list[0].length >= sizeof(sqe));
	memcpy(&sqe, (const void *)(uintptr_t)wr->sg_list[0].addr, sizeof(sqe));
	o = order_find(le16_to_cpu(sqe.common.cid));
	must(o && order_is_open(o));
	o->left = true;
}

/* True: something moved. */
static bool turn_until_idle(void)
{
	bool moved = false;

	for (unsigned i = 0; i < SETTLE; i++) {
		moved |= adapter_run();
		user_turns(2);
		moved |= rdma_ctrl_hear();
	}
	return moved;
}

/* --- the link --------------------------------------------------------------------------------- */

static void on_ready(struct weft_link *link)
{
	must(rdma_peer.answered || rdma_peer.tainted);
	link->capsule_max = rdma_peer.capsule;
	link->blocks_max = rdma_peer.blocks;
}

/* What the controller did not write nobody promises, nor what it wrote for a command that
 * failed. */
static bool is_strict(const struct order *o)
{
	must(o->left);
	return !rdma_peer.tainted && !adapter_has_failed() &&
	       (order_direction(o) != NVME_DIR_TO_HOST || (o->received == o->len && !o->status));
}

/* Nobody waits for them any more. */
static void give_back(struct weft_link *link)
{
	for (unsigned i = 0; i < WEFT_BUFS_CLASSES; i++) {
		struct weft_pool *pool = &rdma_link_of(link)->bufs.pools[i];

		must(!weft_pool_wanted(pool));
		pool->free -= hidden[i];
		pool->nfree += hidden[i];
		hidden[i] = 0;
		must(pool->nfree == pool->count);
	}
}

static void on_closed(struct weft_link *link, bool expected)
{
	must(rdma_peer.tainted || rdma_peer.ended || adapter_has_failed() || expected);
	give_back(link);
}

static void open_link(uint8_t flags, uint8_t more)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(RPEER_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct weft_link_options options = {
		.depth = rdma_peer.depth,
		.qid = more % 4,
		.cntlid = 1,
		.tos = more & 16 ? 32 : 0,
		.retries = 7,
		.rnr_retries = 7,
		.ack_timeout = more & 32 ? 14 : 0,
		.inline_bytes = more & 64  ? 64 :
				more & 128 ? 1000 :
					     0,
	};

	memcpy(&options.addr, &to, sizeof(to));
	if (user_open(&weft_rdma_link, &options, flags & 4) < 0)
		must(adapter_has_failed());
}

/* What adapters differ in. */
static void set_limits(uint8_t flags, uint8_t limits)
{
	struct ibv_device_attr *attr = &fabric_device(device)->attr;

	if (flags & 16)
		attr->max_sge = limits % 4 + 1;
	if (flags & 32)
		attr->max_mr = limits;
	if (flags & 64)
		attr->max_qp_wr = limits % SLOTS_MAX + 2;
	if (flags & 0x70)
		rdma_peer.tainted = true;
}

static void set_fate(uint8_t fate)
{
	static const enum rdma_cm_event_type fates[] = {
		RDMA_CM_EVENT_ADDR_ERROR,    RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_UNREACHABLE,
		RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_REJECTED,
	};

	if (fate < 0xf0)
		return;
	fabric_path("127.0.0.1", fates[fate % 5], fate & 8 ? -EHOSTUNREACH : 8);
	rdma_peer.tainted = true;
}

static bool begin(void)
{
	static const uint32_t capsules[] = { 0, 256, 4096, 8192 }, blocks[] = { 1, 2, 16, 0 };
	uint8_t flags = u8(), depth = u8(), sizes = u8(), limits = u8(), fate = u8(), more = u8();

	device = flags & 2 ? "iwarp0" : "fake0";
	adapter_begin(device);
	rdma_ctrl_open(flags & 8);
	rdma_peer.depth = depth % SLOTS_MAX + 1;
	rdma_peer.capsule = capsules[sizes % 4];
	rdma_peer.blocks = blocks[sizes / 4 % 4];
	rdma_peer.tainted = flags & 8;
	set_limits(flags, limits);
	set_fate(fate);
	if (fate >= 0xe0 && fate < 0xf0) /* some call fails before there is a link */
		adapter_fail(limits, fate & 3, 1);
	open_link(flags, more);
	return true;
}

/* --- the host's operations -------------------------------------------------------------------- */

static void op_turn(void)
{
	uint8_t how = u8();

	if (how & 32) { /* it was about to sleep */
		weft_reactor_prepare_wait(user.reactor);
		adapter_run();
	}
	user_turns(how % 8 + 1u);
}

/* The bottom of the stack of free buffers is out of the pool's sight. */
static void op_starve(void)
{
	unsigned index = u8() % WEFT_BUFS_CLASSES;
	struct weft_pool *pool;

	if (!user_is_usable())
		return;
	pool = &rdma_link_of(user.link)->bufs.pools[index];
	hidden[index] += pool->nfree;
	pool->free += pool->nfree;
	pool->nfree = 0;
}

static void return_buffer(unsigned index)
{
	struct weft_pool *pool;

	if (!user_is_usable() || !hidden[index])
		return;
	pool = &rdma_link_of(user.link)->bufs.pools[index];
	hidden[index]--;
	pool->free--;
	pool->nfree++;
	if (weft_pool_wanted(pool))
		pool->wake(pool->wake_arg);
}

static void op_feed(void)
{
	return_buffer(u8() % WEFT_BUFS_CLASSES);
}

/* --- the adapter's ---------------------------------------------------------------------------- */

static struct rdma_cm_id *id_of_link(void)
{
	struct rdma_cm_id *id = NULL;

	for (unsigned i = 0; user.link && !user.is_closed && (id = fabric_id(i)); i++)
		if (id->context == user.link)
			break;
	return id;
}

/* The link's (even), or the controller's. */
struct ibv_qp *pick_qp(void)
{
	struct rdma_cm_id *id = id_of_link();

	if (u8() % 2)
		return rdma_ctrl_qp();
	return id ? id->qp : NULL;
}

/* An event for the link, out of the blue, with any private data. */
static void op_event(void)
{
	uint8_t type = u8();
	uint32_t len;
	int status = (int8_t)u8();
	const uint8_t *at = input_take(u8() % 64, &len);
	struct rdma_cm_id *id = id_of_link();
	enum rdma_cm_event_type event = type % (RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);

	if (!id || event == RDMA_CM_EVENT_CONNECT_REQUEST ||
	    (event == RDMA_CM_EVENT_ADDR_RESOLVED && !id->verbs))
		return;
	rdma_peer.tainted = true;
	fabric_event_data(id, event, status, at, (uint8_t)len);
}

static void op_delay(void)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED,  RDMA_CM_EVENT_ROUTE_RESOLVED,
		RDMA_CM_EVENT_ESTABLISHED,    RDMA_CM_EVENT_DISCONNECTED,
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_REJECTED,
	};

	delay_events(types, 6);
}

static void op_fail(void)
{
	struct ibv_qp *qp = pick_qp();
	uint8_t status = u8();

	if (!qp)
		return;
	rdma_peer.tainted = true;
	if (status == 0xff)
		fabric_time_out(qp);
	else if (status == 0xfe)
		fabric_cut(qp);
	else
		adapter_fail_next(qp, status & 0x80, status & 0x7f);
}

static void op_device(void)
{
	uint8_t how = u8();

	rdma_peer.tainted = true;
	if (how % 2 == 0)
		adapter_remove();
	else
		adapter_restore();
}

/* --- the controller's ------------------------------------------------------------------------- */

static void op_accept(void)
{
	uint8_t how = u8();
	uint32_t len = 0;
	const uint8_t *at = how & 1 ? input_take(how >> 1, &len) : NULL;

	rdma_ctrl_accept(at, (uint8_t)len);
}

static void op_reject(void)
{
	uint32_t len;
	const uint8_t *at = input_take(u8() % 64, &len);

	rdma_ctrl_reject(at, (uint8_t)len);
}

static void op_read(void)
{
	struct order *o = pick_order();
	uint32_t len = u32();

	if (o)
		rdma_ctrl_read(o, len);
}

static void op_write(void)
{
	struct order *o = pick_order();
	uint32_t len = u32();

	if (o)
		rdma_ctrl_write(o, len);
}

enum { WRONG_CID = 1, INVALIDATES = 2, TOO_EARLY = 4 };

static void op_resp(void)
{
	struct order *o = pick_order();
	uint8_t wrong = u8();
	uint16_t status = u8();
	bool right = o && (o->seen || wrong & TOO_EARLY) && !(wrong & WRONG_CID);
	struct nvme_cqe cqe = { .cid = cpu_to_le16(right ? o->cid : u16()),
				.status = cpu_to_le16((uint16_t)(status << 1)) };

	if (!right || !o->seen)
		rdma_peer.tainted = true;
	if (wrong & INVALIDATES)
		adapter_lose_keys();
	if (rdma_ctrl_resp(&cqe, wrong & INVALIDATES && right ? rdma_ctrl_key(o) : 0) && right) {
		o->answered = true;
		o->status = status;
	}
}

static void op_raw(void)
{
	uint32_t len;
	const uint8_t *at = input_take(u8() % 65, &len);

	rdma_ctrl_raw(at, len);
}

static void op_end(void)
{
	if (u8() % 2)
		rdma_ctrl_disconnect();
	else
		rdma_ctrl_close();
}

/* --- the program ------------------------------------------------------------------------------ */

/* seeds_rdma.py has the same order. */
static void (*const ops[])(void) = {
	op_turn,  op_step,   op_part,  op_accept, op_reject, op_submit, op_read,
	op_write, op_resp,   op_raw,   op_end,    op_event,  op_delay,  op_fault,
	op_fail,  op_device, op_clock, op_close,  op_starve, op_feed,
};
static void answer_order(struct order *o)
{
	const struct nvme_cqe cqe = { .cid = cpu_to_le16(o->cid) };

	must(o->seen);
	rdma_ctrl_read(o, UINT32_MAX);
	rdma_ctrl_write(o, UINT32_MAX);
	o->answered = rdma_ctrl_resp(&cqe, 0);
}

const struct controller controller = {
	.ready = on_ready,
	.is_strict = is_strict,
	.closed = on_closed,
	.answer = answer_order,
};

static void feed_all(void)
{
	for (unsigned i = 0; i < WEFT_BUFS_CLASSES && user_is_usable(); i++)
		while (hidden[i])
			return_buffer(i);
}

static void finish(void)
{
	adapter_mend();
	fabric_deliver();
	feed_all();
	if (user_is_usable() && rdma_peer.up && !rdma_peer.ended && !rdma_peer.tainted &&
	    !adapter_has_failed())
		user_answer_all();
}

static void end(void)
{
	user_end();
	rdma_ctrl_close();
	user_turns(2);
	orders_forget();
	adapter_end();
}

const struct program program = {
	.create = user_create,
	.begin = begin,
	PROGRAM_OPS(ops),
	.ops_max = 200,
	.settle = turn_until_idle,
	.finish = finish,
	.end = end,
};
