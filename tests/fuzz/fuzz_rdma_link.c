/* fuzz_rdma_link.c - a host's RDMA connection from beginning to end, a controller that says anything,
 * and the adapter between them.
 *
 *   input: what the host asks for and what the adapter is like (6 bytes), then operations, one after
 *   the other; each a byte and its arguments. Bit 7 of the byte: then let both take their turns. What
 *   is missing at the end of the input reads as zeroes.
 *
 * After the program a controller that kept the rules answers what is open, and every order must be
 * done; then the link is closed, and must end. Nothing may be left on the fabric. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "input.h"
#include "must.h"
#include "rdma_peer.h"
#include "transport/rdma/link.h"

enum {
	OPS_MAX = 200,
	SETTLE = 4,
	ROUNDS_MAX = 1000,
	SETUP_MS = 1000,
	SLOTS_MAX = 12,
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weft_reactor *reactor;
static uint64_t now_ns = 1000000000;
static const char *device;

static struct weft_link *link_; /* NULL: closed and freed */
static bool is_ready, is_closed, free_inside;
static bool user_closed, late; /* legitimate ends: we closed it; set-up took too long */
static uint64_t opened_ns;
static uint32_t hidden[WEFT_BUFS_CLASSES]; /* buffers that the program took away */

/* --- the input ---------------------------------------------------------------------------------- */

/* Up to @want bytes; *@len says how many there are. */
static const uint8_t *bytes(size_t want, uint8_t *len)
{
	const uint8_t *at = input;

	*len = (uint8_t)(want < (size_t)(input_end - input) ? want : (size_t)(input_end - input));
	input += *len;
	return at;
}

/* 16 bits of length; the highest of @flags makes it four times as much. */
static uint32_t length(uint8_t flags)
{
	return u16() * (flags & 0x80 ? 4u : 1u);
}

/* --- turns ---------------------------------------------------------------------------------------- */

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

static void take_turns(unsigned n)
{
	while (n--)
		weft_reactor_turn(reactor, 0);
}

/* A command of the link's leaves. */
static void look(struct ibv_qp *qp)
{
	const struct ibv_send_wr *wr = fabric_next(qp);
	union nvme_sqe sqe;
	struct order *o;

	if (!wr || qp == rdma_peer_qp())
		return;
	must(wr->opcode == IBV_WR_SEND && wr->sg_list[0].length >= sizeof(sqe));
	memcpy(&sqe, (const void *)(uintptr_t)wr->sg_list[0].addr, sizeof(sqe));
	o = order_find(le16_to_cpu(sqe.common.cid));
	must(o && order_is_open(o));
	o->left = true;
}

/* True: something moved. */
static bool settle(void)
{
	bool moved = false;

	for (unsigned i = 0; i < SETTLE; i++) {
		moved |= adapter_run(look);
		take_turns(2);
		moved |= rdma_peer_hear();
	}
	return moved;
}

static void advance(uint64_t ms)
{
	now_ns += ms * 1000000;
	late |= !is_ready && now_ns - opened_ns >= SETUP_MS * UINT64_C(1000000);
}

/* --- the link's user ------------------------------------------------------------------------------ */

static void on_ready(struct weft_link *link)
{
	must(link == link_ && !is_ready && !is_closed && !link->closing);
	must(rdma_peer.answered || rdma_peer.tainted);
	is_ready = true;
	link->capsule_max = rdma_peer.capsule;
	link->blocks_max = rdma_peer.blocks;
}

/* What the controller did not write nobody promises. */
static bool is_strict(const struct order *o)
{
	return !rdma_peer.tainted && !adapter_has_failed() &&
	       (order_direction(o) != NVME_DIR_TO_HOST || o->received == o->len);
}

static void on_done(struct weft_link *link, struct weft_slot *slot)
{
	struct order *o = slot->user;
	struct order_form form = { .kind = (uint8_t)(o - orders), .len = o->len, .shape = 9 };
	bool again = o->again;

	must(link == link_ && is_ready && !is_closed);
	must(o->left);
	order_check_done(o, slot, is_strict(o));
	if (again && !link->closing)
		order_place(link, &form);
}

/* Nobody waits for them any more. */
static void give_back(struct weft_link *link)
{
	for (unsigned i = 0; i < WEFT_BUFS_CLASSES; i++) {
		struct weft_pool *pool = &rdma_link_of(link)->bufs.pools[i];

		must(weft_list_empty(&pool->waiters));
		pool->free -= hidden[i];
		pool->nfree += hidden[i];
		hidden[i] = 0;
		must(pool->nfree == pool->count);
	}
}

static void on_closed(struct weft_link *link)
{
	must(link == link_ && !is_closed);
	must(link->closing && link->rc < 0 && link->err.text[0]);
	must(rdma_peer.tainted || rdma_peer.ended || adapter_has_failed() || user_closed || late);
	is_closed = true;
	give_back(link);
	orders_void();
	if (!free_inside)
		return;
	weft_link_free(link);
	link_ = NULL;
}

static const struct weft_link_ops ops_of_link = {
	.ready = on_ready,
	.done = on_done,
	.closed = on_closed,
};

static bool is_usable(void)
{
	return link_ && is_ready && !link_->closing;
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
		.setup_ms = SETUP_MS,
		.tos = more & 16 ? 32 : 0,
		.retries = 7,
		.rnr_retries = 7,
		.ack_timeout = more & 32 ? 14 : 0,
		.inline_bytes = more & 64  ? 64 :
				more & 128 ? 1000 :
					     0,
	};

	memcpy(&options.addr, &to, sizeof(to));
	is_ready = is_closed = user_closed = late = false;
	free_inside = flags & 4;
	opened_ns = now_ns;
	if (weft_rdma_link.open(&link_, reactor, &options, &ops_of_link, NULL, NULL) < 0) {
		must(adapter_has_failed());
		link_ = NULL;
		is_closed = true;
	}
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

static void begin(void)
{
	static const uint32_t capsules[] = { 0, 256, 4096, 8192 }, blocks[] = { 1, 2, 16, 0 };
	uint8_t flags = u8(), depth = u8(), sizes = u8(), limits = u8(), fate = u8(), more = u8();

	device = flags & 2 ? "iwarp0" : "fake0";
	adapter_begin(device);
	rdma_peer_open(flags & 8);
	rdma_peer.depth = depth % SLOTS_MAX + 1;
	rdma_peer.capsule = capsules[sizes % 4];
	rdma_peer.blocks = blocks[sizes / 4 % 4];
	rdma_peer.tainted = flags & 8;
	set_limits(flags, limits);
	set_fate(fate);
	if (fate >= 0xe0 && fate < 0xf0) /* some call fails before there is a link */
		adapter_fail(limits, fate & 3, 1);
	open_link(flags, more);
}

/* --- the host's operations ------------------------------------------------------------------------ */

static void op_turn(void)
{
	uint8_t how = u8();

	if (how & 32) { /* it was about to sleep */
		weft_reactor_doze(reactor);
		adapter_run(look);
	}
	take_turns(how % 8 + 1u);
}

static void op_clock(void)
{
	advance(u16());
}

static void op_submit(void)
{
	struct order_form form = { .kind = u8() };
	uint8_t flags = u8();

	form.again = flags & 1;
	form.len = length(flags);
	form.shape = u8();
	form.skip = flags & 2 ? u8() : 0;
	form.tail = flags & 4 ? u8() : 0;
	form.known = flags & 8 ? u8() : 0;
	if (is_usable())
		order_place(link_, &form);
}

static void op_close(void)
{
	user_closed = true;
	if (link_ && !is_closed)
		weft_link_close(link_, -ESHUTDOWN, "the program says so");
}

/* The bottom of the stack of free buffers is out of the pool's sight. */
static void op_starve(void)
{
	unsigned index = u8() % WEFT_BUFS_CLASSES;
	struct weft_pool *pool;

	if (!is_usable())
		return;
	pool = &rdma_link_of(link_)->bufs.pools[index];
	hidden[index] += pool->nfree;
	pool->free += pool->nfree;
	pool->nfree = 0;
}

static void feed(unsigned index)
{
	struct weft_pool *pool;

	if (!is_usable() || !hidden[index])
		return;
	pool = &rdma_link_of(link_)->bufs.pools[index];
	hidden[index]--;
	pool->free--;
	pool->nfree++;
	if (!weft_list_empty(&pool->waiters))
		pool->woken(pool->woken_arg);
}

static void op_feed(void)
{
	feed(u8() % WEFT_BUFS_CLASSES);
}

/* --- the adapter's ---------------------------------------------------------------------------------- */

static struct rdma_cm_id *id_of_link(void)
{
	struct rdma_cm_id *id = NULL;

	for (unsigned i = 0; link_ && !is_closed && (id = fabric_id(i)); i++)
		if (id->context == link_)
			break;
	return id;
}

/* The link's (even), or the controller's. */
static struct ibv_qp *pick_qp(void)
{
	struct rdma_cm_id *id = id_of_link();

	if (u8() % 2)
		return rdma_peer_qp();
	return id ? id->qp : NULL;
}

static bool step(struct ibv_qp *qp)
{
	look(qp);
	return fabric_step(qp);
}

static void op_step(void)
{
	struct ibv_qp *qp = pick_qp();

	for (unsigned n = u8() % 8 + 1u; qp && n && step(qp); n--)
		;
}

static void op_part(void)
{
	struct ibv_qp *qp = pick_qp();
	uint32_t len = u16();

	if (qp)
		fabric_part(qp, len);
}

/* An event for the link, out of the blue, with any private data. */
static void op_event(void)
{
	uint8_t type = u8(), len;
	int status = (int8_t)u8();
	const uint8_t *at = bytes(u8() % 64, &len);
	struct rdma_cm_id *id = id_of_link();
	enum rdma_cm_event_type event = type % (RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);

	if (!id || event == RDMA_CM_EVENT_CONNECT_REQUEST ||
	    (event == RDMA_CM_EVENT_ADDR_RESOLVED && !id->verbs))
		return;
	rdma_peer.tainted = true;
	fabric_event_data(id, event, status, at, len);
}

static void op_delay(void)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED,  RDMA_CM_EVENT_ROUTE_RESOLVED,
		RDMA_CM_EVENT_ESTABLISHED,    RDMA_CM_EVENT_DISCONNECTED,
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_REJECTED,
	};
	uint8_t what = u8();

	if (what & 0x80)
		fabric_deliver();
	else
		fabric_delay(types[what % 6], what & 0x40);
}

static void op_fault(void)
{
	uint8_t entry = u8(), how = u8();

	adapter_fail(entry, how % 16, how / 16 % 4 + 1u);
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

/* --- the controller's ------------------------------------------------------------------------------- */

/* The n-th order that is not yet answered; NULL: there is none. */
static struct order *pick(void)
{
	unsigned n = 0, which = u8();

	for (unsigned i = 0; i < norders; i++)
		n += order_is_open(&orders[i]) && !orders[i].answered;
	which = n ? which % n : 0;
	for (unsigned i = 0; n && i < norders; i++)
		if (order_is_open(&orders[i]) && !orders[i].answered && !which--)
			return &orders[i];
	return NULL;
}

static void op_accept(void)
{
	uint8_t how = u8(), len;
	const uint8_t *at = how & 1 ? bytes(how >> 1, &len) : NULL;

	rdma_peer_accept(at, at ? len : 0);
}

static void op_reject(void)
{
	uint8_t len;
	const uint8_t *at = bytes(u8() % 64, &len);

	rdma_peer_reject(at, len);
}

static void op_read(void)
{
	struct order *o = pick();
	uint32_t len = u32();

	if (o)
		rdma_peer_read(o, len);
}

static void op_write(void)
{
	struct order *o = pick();
	uint32_t len = u32();

	if (o)
		rdma_peer_write(o, len);
}

enum { WRONG_CID = 1, INVALIDATES = 2, TOO_EARLY = 4 };

static void op_resp(void)
{
	struct order *o = pick();
	uint8_t wrong = u8();
	uint16_t status = u8();
	bool right = o && (o->seen || wrong & TOO_EARLY) && !(wrong & WRONG_CID);
	struct nvme_cqe cqe = { .cid = cpu_to_le16(right ? o->cid : u16()),
				.status = cpu_to_le16((uint16_t)(status << 1)) };

	if (!right || !o->seen)
		rdma_peer.tainted = true;
	if (wrong & INVALIDATES)
		adapter_lose_keys();
	if (right) {
		o->answered = true;
		o->status = status;
	}
	rdma_peer_resp(&cqe, wrong & INVALIDATES && right ? rdma_peer_key(o) : 0);
}

static void op_raw(void)
{
	uint8_t len;
	const uint8_t *at = bytes(u8() % 65, &len);

	rdma_peer_raw(at, len);
}

static void op_end(void)
{
	if (u8() % 2)
		rdma_peer_disconnect();
	else
		rdma_peer_close();
}

/* --- the program -------------------------------------------------------------------------------------- */

/* seeds_rdma.py has the same order. */
static void (*const ops[])(void) = {
	op_turn,  op_step,   op_part,  op_accept, op_reject, op_submit, op_read,
	op_write, op_resp,   op_raw,   op_end,    op_event,  op_delay,  op_fault,
	op_fail,  op_device, op_clock, op_close,  op_starve, op_feed,
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static void run_program(void)
{
	for (unsigned i = 0; i < OPS_MAX && input < input_end; i++) {
		uint8_t op = u8();

		ops[(op & 0x7f) % OPS]();
		if (op & 0x80)
			settle();
	}
}

static bool is_any_open(void)
{
	for (unsigned i = 0; i < norders; i++)
		if (order_is_open(&orders[i]))
			return true;
	return false;
}

/* Until nobody has anything to say. */
static void run_dry(void)
{
	unsigned rounds = 0;

	while (settle())
		must(rounds++ < ROUNDS_MAX);
}

static void answer(struct order *o)
{
	const struct nvme_cqe cqe = { .cid = cpu_to_le16(o->cid) };

	must(o->seen);
	rdma_peer_read(o, UINT32_MAX);
	rdma_peer_write(o, UINT32_MAX);
	o->answered = true;
	rdma_peer_resp(&cqe, 0);
}

/* A controller that kept the rules gets every order done. */
static void answer_all(void)
{
	unsigned rounds = 0;

	for (unsigned i = 0; i < norders; i++)
		orders[i].again = false;
	run_dry();
	for (; is_any_open(); run_dry()) {
		must(rounds++ < ROUNDS_MAX);
		for (unsigned i = 0; i < norders; i++)
			if (order_is_open(&orders[i]) && orders[i].seen && !orders[i].answered)
				answer(&orders[i]);
	}
}

static void feed_all(void)
{
	for (unsigned i = 0; i < WEFT_BUFS_CLASSES && is_usable(); i++)
		while (hidden[i])
			feed(i);
}

static void finish(void)
{
	adapter_mend();
	fabric_deliver();
	feed_all();
	if (is_usable() && rdma_peer.up && !rdma_peer.ended && !rdma_peer.tainted &&
	    !adapter_has_failed())
		answer_all();
	user_closed = true;
	if (link_ && !is_closed)
		weft_link_close(link_, -ESHUTDOWN, "the end");
	for (unsigned i = 0; i < 16 && !is_closed; i++)
		settle();
	must(is_closed);
	settle();
	if (link_)
		weft_link_free(link_);
	link_ = NULL;
	rdma_peer_close();
	take_turns(2);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = clock_ns };

	weft_log_set_level(WEFT_LOG_ERROR);
	must(!weft_reactor_create(&reactor, &options, NULL));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	input_end = data + size;
	begin();
	run_program();
	finish();
	orders_forget();
	adapter_end();
	return 0;
}
