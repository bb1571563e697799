/* fuzz_link.c - a host's connection from beginning to end, and a controller that says anything.
 *
 *   input: what the host asks for (4 bytes), then a program (program.h)
 *
 * After the program a controller that kept the rules answers what is open, and every order must be
 * done; then the link is closed, and must end. */
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "link_user.h"
#include "must.h"
#include "peer/input.h"
#include "peer/pdu_out.h"
#include "program.h"
#include "socket_wrap.h"
#include "tcp_ctrl.h"
#include "transport/tcp/link.h"

enum { SETTLE = 4, SLOTS_MAX = 8 };

/* --- turns ------------------------------------------------------------------------------------ */

/* Of what the controller has sent. */
static int unread_bytes(void)
{
	int n = 0;

	if (peer.fd >= 0)
		ioctl(peer.fd, SIOCOUTQ, &n);
	return n;
}

/* True: the controller heard something, or the host read something. */
static bool turn_until_idle(void)
{
	int unread = unread_bytes();
	bool heard = false;

	for (unsigned i = 0; i < SETTLE; i++) {
		user_turns(1);
		heard |= tcp_ctrl_hear();
	}
	return heard || unread_bytes() < unread;
}

/* --- the link --------------------------------------------------------------------------------- */

static void on_ready(struct weft_link *link)
{
	must(peer.ready || peer.tainted);
	link->capsule_max = peer.capsule;
}

static bool is_strict(const struct order *o)
{
	return !peer.tainted;
}

static void on_closed(struct weft_link *link, bool expected)
{
	must(peer.tainted || peer.shut || peer.termed || expected);
}

static bool begin(void)
{
	static const uint32_t capsules[] = { 0, 512, 8192, 1 << 20 };
	uint8_t flags = u8();
	struct weft_link_options options = {
		.addr.ss_family = AF_INET,
		.depth = u8() % SLOTS_MAX + 1,
		.hdgst = flags & 1,
		.ddgst = flags & 2,
	};

	must(!user_open(&weft_tcp_link, &options, flags & 4));
	tcp_ctrl_open(socket_wrap_peer(), options.hdgst, options.ddgst);
	peer.capsule = capsules[u8() % 4];
	u8();
	return true;
}

/* --- the host's operations -------------------------------------------------------------------- */

static void op_turn(void)
{
	user_turns(u8() % 8 + 1);
}

static void op_limit(void)
{
	uint32_t send = u16(), recv = u16();

	socket_wrap_limit(send, recv, u8() % 64);
}

/* --- the controller's ------------------------------------------------------------------------- */

static void op_icresp(void)
{
	uint8_t flags = u8(), cpda = u8();
	uint8_t dgst = (uint8_t)(peer.hdgst | peer.ddgst << 1);
	uint32_t maxh2c = flags & 1 ? u32() : 4096u << (cpda >> 5);

	if (peer.fd >= 0)
		tcp_ctrl_icresp(flags & 2 ? u16() : 0, flags & 4 ? cpda : cpda & 31,
				flags & 8 ? u8() : dgst, maxh2c);
}

/* What a program may put in the place of the right values. */
enum { WRONG_CID = 1, WRONG_AT = 2, WRONG_LEN = 4 };

static uint16_t cid_or(const struct order *o, uint8_t wrong)
{
	if (o && !(wrong & WRONG_CID))
		return o->cid;
	tcp_ctrl_taint();
	return u16();
}

static void op_resp(void)
{
	struct order *o = pick_order();
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
	tcp_ctrl_resp(&cqe);
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
		tcp_ctrl_taint();
}

static void op_c2h(void)
{
	struct order *o = pick_order();
	uint8_t wrong = u8(), flags = u8() & (NVME_TCP_F_LAST | NVME_TCP_F_SUCCESS | 0x80);
	uint32_t len = input_length(flags), at = o ? o->received : 0;
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
	tcp_ctrl_c2h(o, &pdu, at, len, wrong_digest);
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
	       len <= o->len - o->asked && !has_open_r2t(o) && !tcp_ctrl_goes_in_capsule(o);
}

static void op_r2t(void)
{
	struct order *o = pick_order();
	uint8_t wrong = u8();
	uint32_t len = input_length(wrong), at = o ? o->asked : 0;
	struct nvme_tcp_data pdu;

	if (wrong & 16 && o)
		len = o->len - at;
	pdu = fields(o, wrong, at, len);
	pdu.ttag = cpu_to_le16(u8());
	if (peer.fd < 0 || (o && o->nr2ts == ORDER_R2TS))
		return;
	if (!is_right_r2t(o, wrong, len))
		tcp_ctrl_taint();
	if (o) {
		o->r2ts[o->nr2ts++] = (struct order_r2t){ le16_to_cpu(pdu.ttag),
							  le32_to_cpu(pdu.datao),
							  le32_to_cpu(pdu.datal) };
		o->asked += len;
	}
	peer.raw |= !o || wrong & WRONG_CID;
	tcp_ctrl_r2t(&pdu);
}

static void op_term(void)
{
	uint16_t fes = u8();
	uint32_t more = u8();

	if (peer.fd >= 0)
		tcp_ctrl_term(fes, more);
}

static void op_raw(void)
{
	uint32_t len;
	const uint8_t *at = input_take(u16(), &len);

	if (peer.fd >= 0 && len)
		tcp_ctrl_raw(at, len);
}

static void op_pad(void)
{
	tcp_ctrl_pad(u8() % 32);
}

static void op_hear(void)
{
	peer.deaf = u8() % 2;
}

static void op_end(void)
{
	if (u8() % 2 && peer.fd >= 0)
		tcp_ctrl_shut();
	else
		tcp_ctrl_close();
}

/* --- the program ------------------------------------------------------------------------------ */

/* seeds.py has the same order. */
static void (*const ops[])(void) = {
	op_turn,  op_icresp, op_submit, op_resp, op_c2h, op_r2t,   op_term,  op_raw,
	op_spoil, op_split,  op_pad,    op_hear, op_end, op_clock, op_close, op_limit,
};

static void answer_order(struct order *o)
{
	const struct nvme_cqe cqe = { .cid = cpu_to_le16(o->cid) };
	struct nvme_tcp_data pdu = fields(o, 0, o->received, o->len - o->received);
	uint32_t at = o->received;

	must(o->seen && !has_open_r2t(o));
	if (order_direction(o) == NVME_DIR_TO_HOST && o->len > at) {
		o->received = o->len;
		pdu.hdr.flags = NVME_TCP_F_LAST;
		tcp_ctrl_c2h(o, &pdu, at, o->len - at, false);
	}
	o->answered = true;
	tcp_ctrl_resp(&cqe);
}

const struct controller controller = {
	.ready = on_ready,
	.is_strict = is_strict,
	.closed = on_closed,
	.answer = answer_order,
};

static void finish(void)
{
	socket_wrap_limit(0, 0, 0);
	tcp_ctrl_forget();
	peer.deaf = false;
	if (user_is_usable() && !peer.tainted && !peer.shut && !peer.termed)
		user_answer_all();
}

static void end(void)
{
	user_end();
	tcp_ctrl_close();
	user_turns(2);
	orders_forget();
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
