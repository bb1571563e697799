/* fuzz_link.c - a host's connection from beginning to end, and a controller that says anything.
 *
 *   input: what the host asks for (4 bytes), then operations, one after the other; each a byte and
 *   its arguments. Bit 7 of the byte: then let both take their turns. What is missing at the end of
 *   the input reads as zeroes.
 *
 * After the program a controller that kept the rules answers what is open, and every order must be
 * done; then the link is closed, and must end. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "input.h"
#include "must.h"
#include "order.h"
#include "peer.h"
#include "wire.h"

enum {
	OPS_MAX = 200,
	SETTLE = 4,
	ROUNDS_MAX = 2000,
	SETUP_MS = 1000,
	LINGER_MS = 600, /* longer than the link's */
	SLOTS_MAX = 8,
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weft_reactor *reactor;
static uint64_t now_ns = 1000000000;

static struct weft_link *link_; /* NULL: closed and freed */
static bool is_ready, is_closed, free_inside;
static bool user_closed, late; /* legitimate ends: we closed it; set-up took too long */
static uint64_t opened_ns;

/* --- the input ---------------------------------------------------------------------------- */

/* 16 bits of length; the highest of @flags makes it four times as much. */
static uint32_t length(uint8_t flags)
{
	return u16() * (flags & 0x80 ? 4u : 1u);
}

/* --- turns -------------------------------------------------------------------------------- */

static uint64_t clock_ns(void *arg)
{
	return now_ns;
}

void take_turns(unsigned n)
{
	while (n--)
		weft_reactor_turn(reactor, 0);
}

/* True: the controller heard something. */
static bool settle(void)
{
	bool heard = false;

	for (unsigned i = 0; i < SETTLE; i++) {
		take_turns(1);
		heard |= peer_hear();
	}
	return heard;
}

static void advance(uint64_t ms)
{
	now_ns += ms * 1000000;
	late |= !is_ready && now_ns - opened_ns >= SETUP_MS * UINT64_C(1000000);
}

/* --- the link's user ---------------------------------------------------------------------- */

static void on_ready(struct weft_link *link)
{
	must(link == link_ && !is_ready && !is_closed && !link->closing);
	must(peer.ready || peer.tainted);
	is_ready = true;
	link->capsule_max = peer.capsule;
}

static void on_done(struct weft_link *link, struct weft_slot *slot)
{
	struct order *o = slot->user;
	struct order_form form = { .kind = (uint8_t)(o - orders), .len = o->len, .shape = 9 };
	bool again = o->again;

	must(link == link_ && is_ready && !is_closed);
	order_check_done(o, slot, !peer.tainted);
	if (again && !link->closing)
		order_place(link, &form);
}

static void on_closed(struct weft_link *link)
{
	must(link == link_ && !is_closed);
	must(link->closing && link->rc < 0 && link->err.text[0]);
	must(peer.tainted || peer.shut || peer.termed || user_closed || late);
	is_closed = true;
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

static void open_link(void)
{
	static const uint32_t capsules[] = { 0, 512, 8192, 1 << 20 };
	uint8_t flags = u8();
	struct weft_link_options options = {
		.addr.ss_family = AF_INET,
		.depth = u8() % SLOTS_MAX + 1,
		.hdgst = flags & 1,
		.ddgst = flags & 2,
		.setup_ms = SETUP_MS,
	};

	is_ready = is_closed = user_closed = late = false;
	free_inside = flags & 4;
	opened_ns = now_ns;
	must(!weft_tcp_link.open(&link_, reactor, &options, &ops_of_link, NULL, NULL));
	peer_open(wire_take(), options.hdgst, options.ddgst);
	peer.capsule = capsules[u8() % 4];
	u8();
}

/* --- the host's operations ---------------------------------------------------------------- */

static void op_turn(void)
{
	take_turns(u8() % 8 + 1);
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
	if (is_usable())
		order_place(link_, &form);
}

static void op_close(void)
{
	user_closed = true;
	if (link_ && !is_closed)
		weft_link_close(link_, -ESHUTDOWN, "the program says so");
}

static void op_limit(void)
{
	uint32_t send = u16(), recv = u16();

	wire_limit(send, recv, u8() % 64);
}

/* --- the controller's --------------------------------------------------------------------- */

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

static void op_icresp(void)
{
	uint8_t flags = u8(), cpda = u8();
	uint8_t dgst = (uint8_t)(peer.hdgst | peer.ddgst << 1);
	uint32_t maxh2c = flags & 1 ? u32() : 4096u << (cpda >> 5);

	if (peer.fd >= 0)
		peer_icresp(flags & 2 ? u16() : 0, flags & 4 ? cpda : cpda & 31,
			    flags & 8 ? u8() : dgst, maxh2c);
}

/* What a program may put in the place of the right values. */
enum { WRONG_CID = 1, WRONG_AT = 2, WRONG_LEN = 4 };

static uint16_t cid_or(const struct order *o, uint8_t wrong)
{
	if (o && !(wrong & WRONG_CID))
		return o->cid;
	peer_taint();
	return u16();
}

static void op_resp(void)
{
	struct order *o = pick();
	uint8_t wrong = u8();
	uint16_t status = u8();
	struct nvme_cqe cqe = { .cid = cpu_to_le16(cid_or(o, wrong)) };

	cqe.status = cpu_to_le16((uint16_t)(status << 1));
	if (peer.fd < 0)
		return;
	if (o && !(wrong & WRONG_CID)) {
		o->answered = true;
		o->status = status;
	}
	peer_resp(&cqe);
}

/* The fields of C2HData and R2T. */
static struct nvme_tcp_data fields(const struct order *o, uint8_t wrong, uint32_t at, uint32_t len)
{
	return (struct nvme_tcp_data){
		.cccid = cpu_to_le16(cid_or(o, wrong)),
		.datao = cpu_to_le32(wrong & WRONG_AT ? u32() : at),
		.datal = cpu_to_le32(wrong & WRONG_LEN ? u32() : len),
	};
}

static void check_c2h(const struct order *o, uint8_t wrong, uint32_t len, uint8_t flags)
{
	if (!o || wrong & 7 || order_direction(o) != NVME_DIR_TO_HOST ||
	    len > o->len - o->received ||
	    (flags & NVME_TCP_F_SUCCESS && !(flags & NVME_TCP_F_LAST)))
		peer_taint();
}

static void op_c2h(void)
{
	struct order *o = pick();
	uint8_t wrong = u8(), flags = u8() & (NVME_TCP_F_LAST | NVME_TCP_F_SUCCESS | 0x80);
	uint32_t len = length(flags), at = o ? o->received : 0;
	bool wrong_digest = wrong & 8;
	struct nvme_tcp_data pdu;

	if (wrong & 16 && o) /* the rest of it */
		len = o->len - at;
	flags &= 0x7f;
	pdu = fields(o, wrong, at, len);
	pdu.hdr.flags = flags;
	if (peer.fd < 0)
		return;
	check_c2h(o, wrong, len, flags);
	if (o && !peer.tainted) {
		o->received += len;
		o->corrupt |= wrong_digest && peer.ddgst;
		o->answered |= flags & NVME_TCP_F_SUCCESS;
	}
	peer_c2h(o, &pdu, at, len, wrong_digest);
}

static bool has_open_r2t(const struct order *o)
{
	for (unsigned i = 0; i < o->nr2ts; i++)
		if (o->r2ts[i].left)
			return true;
	return false;
}

static bool is_right_r2t(const struct order *o, uint8_t wrong, uint32_t len)
{
	return o && !(wrong & 7) && len && order_direction(o) == NVME_DIR_TO_CTRL &&
	       len <= o->len - o->asked && !has_open_r2t(o) && !peer_goes_in_capsule(o);
}

static void op_r2t(void)
{
	struct order *o = pick();
	uint8_t wrong = u8();
	uint32_t len = length(wrong), at = o ? o->asked : 0;
	struct nvme_tcp_data pdu;

	if (wrong & 16 && o)
		len = o->len - at;
	pdu = fields(o, wrong, at, len);
	pdu.ttag = cpu_to_le16(u8());
	if (peer.fd < 0 || (o && o->nr2ts == ORDER_R2TS))
		return;
	if (!is_right_r2t(o, wrong, len))
		peer_taint();
	if (o) {
		o->r2ts[o->nr2ts++] = (struct order_r2t){ le16_to_cpu(pdu.ttag),
							  le32_to_cpu(pdu.datao),
							  le32_to_cpu(pdu.datal) };
		o->asked += len;
	}
	peer.raw |= !o || wrong & WRONG_CID;
	peer_r2t(&pdu);
}

static void op_term(void)
{
	uint16_t fes = u8();
	uint32_t more = u8();

	if (peer.fd >= 0)
		peer_term(fes, more);
}

static void op_raw(void)
{
	uint32_t len = u16();

	if (len > (size_t)(input_end - input))
		len = (uint32_t)(input_end - input);
	if (peer.fd >= 0 && len)
		peer_raw(input, len);
	input += len;
}

static void op_spoil(void)
{
	uint16_t at = u16();

	peer_spoil(at & 0x7fff, u8(), at >> 15);
}

static void op_split(void)
{
	peer_split(u16());
}

static void op_pad(void)
{
	peer_pad(u8() % 32);
}

static void op_hear(void)
{
	peer.deaf = u8() % 2;
}

static void op_end(void)
{
	if (u8() % 2 && peer.fd >= 0)
		peer_shut();
	else
		peer_close();
}

/* --- the program -------------------------------------------------------------------------- */

/* seeds.py has the same order. */
static void (*const ops[])(void) = {
	op_turn,  op_icresp, op_submit, op_resp, op_c2h, op_r2t,   op_term,  op_raw,
	op_spoil, op_split,  op_pad,    op_hear, op_end, op_clock, op_close, op_limit,
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

static void run_until_done(void)
{
	unsigned rounds = 0;

	while (is_any_open()) {
		settle();
		must(rounds++ < ROUNDS_MAX);
	}
}

static void answer(struct order *o)
{
	const struct nvme_cqe cqe = { .cid = cpu_to_le16(o->cid) };
	struct nvme_tcp_data pdu = fields(o, 0, o->received, o->len - o->received);
	uint32_t at = o->received;

	must(o->seen && !has_open_r2t(o));
	if (order_direction(o) == NVME_DIR_TO_HOST && o->len > at) {
		o->received = o->len;
		pdu.hdr.flags = NVME_TCP_F_LAST;
		peer_c2h(o, &pdu, at, o->len - at, false);
	}
	o->answered = true;
	peer_resp(&cqe);
}

/* A controller that kept the rules gets every order done. */
static void answer_all(void)
{
	peer.deaf = false;
	run_dry();
	for (unsigned i = 0; i < norders; i++) {
		orders[i].again = false;
		if (order_is_open(&orders[i]) && !orders[i].answered)
			answer(&orders[i]);
	}
	run_until_done();
}

static void finish(void)
{
	wire_limit(0, 0, 0);
	peer_forget();
	if (is_usable() && !peer.tainted && !peer.shut && !peer.termed)
		answer_all();
	peer.deaf = false;
	user_closed = true;
	if (link_ && !is_closed)
		weft_link_close(link_, -ESHUTDOWN, "the end");
	for (unsigned i = 0; i < 16 && !is_closed; i++) {
		settle();
		advance(LINGER_MS / 4);
	}
	must(is_closed);
	settle();
	if (link_)
		weft_link_free(link_);
	link_ = NULL;
	peer_close();
	take_turns(2);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct weft_reactor_options options = { .engine = WEFT_ENGINE_EPOLL,
						.cpu = -1,
						.clock = clock_ns };

	must(!weft_reactor_create(&reactor, &options, NULL));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	input_end = data + size;
	open_link();
	run_program();
	finish();
	orders_forget();
	return 0;
}
