/* fuzz_conn.c - connections from beginning to end: hosts, their target and its user, as a program.
 *
 *   input: a program (program.h)
 *
 * After the program every host that kept the rules must have its answers; then all of them close,
 * and nothing may be left: no queue pair, no controller, no buffer (world_end). */
#include <string.h>

#include "peer/commands.h"
#include "peer/input.h"
#include "peer/pdu_out.h"
#include "peer/tcp_host.h"
#include "program.h"
#include "target_ops.h"
#include "world/world.h"

enum {
	HOSTS = 8,
	SETTLE = 16, /* while one socket talks, a reactor looks at the others every eighth turn */
	CAPSULE_MAX = 16 << 10,
};

static struct tcp_host hosts[HOSTS];

/* --- the input -------------------------------------------------------------------------------- */

static struct tcp_host *pick_host(void)
{
	return &hosts[u8() % HOSTS];
}

/* --- what was tried --------------------------------------------------------------------------- */

/* Lengths that the code does not tell apart are worth keeping all the same: each for every kind of
 * queue, and for every number of R2Ts that fetch it. The fuzzer takes these for coverage. */
enum { CONNECT, FABRICS, ADMIN, IO, QUEUES };
enum { WAYS = 5 }; /* not fetched, or by up to 4 R2Ts */

__attribute__((
	section("__libfuzzer_extra_counters"))) static uint8_t tried[QUEUES][WAYS][FORM_LENGTHS];

static unsigned queue_of(const struct tcp_host *h, const union nvme_sqe *sqe)
{
	if (sqe->common.opcode == NVME_FABRICS_OPCODE)
		return sqe->connect.fctype == NVMF_CONNECT ? CONNECT : FABRICS;
	return h->qid ? IO : ADMIN;
}

static void note_length(const struct tcp_host *h, const union nvme_sqe *sqe, uint32_t len,
			bool inside)
{
	uint32_t r2ts = h->maxr2t < WAYS ? h->maxr2t : WAYS - 1;

	tried[queue_of(h, sqe)][inside || !form_is_to_ctrl(sqe) ? 0 : r2ts][form_length_class(len)] =
		1;
}

/* --- everybody's turn ------------------------------------------------------------------------- */

/* True: somebody heard something. */
static bool turn_until_idle(void)
{
	bool heard = false;

	for (unsigned i = 0; i < SETTLE; i += 2) {
		world_turn(2);
		for (unsigned j = 0; j < HOSTS; j++)
			heard |= tcp_host_hear(&hosts[j]);
	}
	return heard;
}

static void op_turn(void)
{
	turn_some(u8());
}

/* --- connections ------------------------------------------------------------------------------ */

/* DGST 1:0, MAXR2T 3:2, HPDA 7:4 */
static void send_icreq(struct tcp_host *h, uint8_t options)
{
	tcp_host_icreq(h, options & 3, (options >> 4) * 2 + (options >> 7), options >> 2 & 3);
}

/* Every other one goes to the other reactor. */
static bool open_host(struct tcp_host *h)
{
	int fd = h->fd < 0 ? world_connect((unsigned)(h - hosts) % WORLD_GROUPS) : -1;

	if (fd >= 0)
		tcp_host_open(h, fd);
	return fd >= 0;
}

static void op_open(void)
{
	struct tcp_host *h = pick_host();
	uint8_t options = u8();

	if (open_host(h) && options != 0xff)
		send_icreq(h, options);
}

/* 0xff: each of them by itself, as large as it may be. */
static void op_icreq(void)
{
	struct tcp_host *h = pick_host();
	uint8_t options = u8(), dgst, hpda;

	if (options != 0xff && h->fd >= 0) {
		send_icreq(h, options);
	} else if (options == 0xff) {
		dgst = u8();
		hpda = u8();
		if (h->fd >= 0)
			tcp_host_icreq(h, dgst & 3, hpda, u32());
	}
}

static void connect_host(struct tcp_host *h, const struct form_connect *c)
{
	static char capsule[CAPSULE_MAX];
	uint32_t len = sizeof(h->connect);
	union nvme_sqe sqe;
	bool inside;

	form_connect(c, &sqe, &h->connect);
	memcpy(capsule, &h->connect, sizeof(h->connect));
	form_take_length(&len);
	inside = c->in_capsule && len <= tcp_host_capsule_max(h);
	note_length(h, &sqe, len, inside);
	sqe.connect.sgl.length = cpu_to_le32(len);
	sqe.connect.sgl.type = inside ? NVME_SGL_IN_CAPSULE : NVME_SGL_TRANSPORT;
	tcp_host_command(h, &sqe, capsule, inside ? len : 0, 0);
}

/* The controller that another host was given, or one that nobody was. */
static uint16_t cntlid_of(uint8_t which)
{
	return which < HOSTS ? hosts[which].cntlid : NVME_CNTLID_DYNAMIC;
}

static void op_connect(void)
{
	struct tcp_host *h = pick_host();
	struct form_connect c;

	form_read_connect(&c, cntlid_of);
	if (h->fd >= 0)
		connect_host(h, &c);
}

static void enable(struct tcp_host *h)
{
	union nvme_sqe sqe;

	form_enable(&sqe);
	tcp_host_command(h, &sqe, NULL, 0, 0);
}

static struct tcp_host *free_host(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (hosts[i].fd < 0)
			return &hosts[i];
	return &hosts[0];
}

/* An enabled controller with one I/O queue, as most programs begin. */
static void op_session(void)
{
	uint8_t icreq = u8(), options = u8(), sqsize = u8();
	struct form_connect c = { .sqsize = 31,
				  .cntlid = NVME_CNTLID_DYNAMIC,
				  .subsys = options & 3,
				  .no_flow = options & 8,
				  .stranger = options & 16,
				  .other_id = options & 16,
				  .in_capsule = true };
	struct tcp_host *admin = free_host(), *io;

	if (!open_host(admin))
		return;
	send_icreq(admin, icreq);
	connect_host(admin, &c);
	turn_until_idle();
	enable(admin);
	turn_until_idle();
	io = free_host();
	if (c.subsys == 2 || !open_host(io))
		return;
	send_icreq(io, icreq);
	c.qid = options >> 6;
	c.sqsize = sqsize;
	c.cntlid = admin->cntlid;
	connect_host(io, &c);
	turn_until_idle();
}

/* A connection up to its Connect, of any length: all that somebody unknown can do. */
static void op_arrive(void)
{
	struct tcp_host *h = free_host();
	uint8_t icreq = u8();
	struct form_connect c;

	form_read_connect(&c, cntlid_of);
	op_length();
	if (!open_host(h))
		return;
	send_icreq(h, icreq);
	connect_host(h, &c);
}

static void op_close(void)
{
	struct tcp_host *h = pick_host();
	uint8_t how = u8();

	if (h->fd >= 0 && how % 2) {
		h->tainted = true; /* it will not be heard any more */
		tcp_host_shut(h);
	} else {
		tcp_host_close(h);
	}
}

static void op_hear(void)
{
	struct tcp_host *h = pick_host();

	h->deaf = u8() % 2;
}

static void op_term(void)
{
	struct tcp_host *h = pick_host();
	uint16_t fes = u8();

	if (h->fd >= 0)
		tcp_host_term(h, fes);
}

static void op_raw(void)
{
	struct tcp_host *h = pick_host();
	uint32_t len;
	const uint8_t *at = input_take(u16(), &len);

	if (h->fd >= 0 && len)
		tcp_host_raw(h, at, len);
}

/* --- commands --------------------------------------------------------------------------------- */

enum { CMD_PAD = 1 << 5 };

/* Where the data is; in the capsule if it fits there. Returns the bytes in the capsule. */
static uint32_t place_data(const struct tcp_host *h, union nvme_sqe *sqe, uint8_t flags,
			   uint32_t len)
{
	struct nvme_sgl *sgl = &sqe->common.sgl;
	bool inside;

	form_take_length(&len);
	inside = flags & CMD_IN_CAPSULE && len <= tcp_host_capsule_max(h);
	note_length(h, sqe, len, inside);
	sgl->type = inside && form_is_to_ctrl(sqe) ? NVME_SGL_IN_CAPSULE : NVME_SGL_TRANSPORT;
	sgl->length = cpu_to_le32(len);
	if (flags & CMD_SGL) {
		sgl->type = u8();
		sgl->length = cpu_to_le32(u32());
		sgl->addr = cpu_to_le64(u8());
	}
	return inside && form_is_to_ctrl(sqe) ? len : 0;
}

static void op_command(void)
{
	static uint8_t data[CAPSULE_MAX];
	struct tcp_host *h = pick_host();
	uint8_t flags;
	union nvme_sqe sqe;
	uint32_t given, len = form_read(&sqe, &flags);
	const uint8_t *at;

	len = place_data(h, &sqe, flags, len);
	at = input_take(flags & CMD_DATA ? u8() : 0, &given);
	memset(data, 0, len);
	memcpy(data, at, given < len ? given : len);
	if (h->fd >= 0)
		tcp_host_command(h, &sqe, data, len, flags & CMD_PAD ? 3 : 0);
}

/* What R2Ts asked for: one whole, one in part, or all of them. */
static void op_data(void)
{
	struct tcp_host *h = pick_host();
	uint8_t which = u8(), fill = u8();
	uint16_t part = u16();

	if (h->fd < 0)
		return;
	if (which == 0xff)
		while (h->nr2ts)
			tcp_host_data(h, 0, 0, fill);
	else if (h->nr2ts)
		tcp_host_data(h, which % h->nr2ts, part, fill);
}

/* Data with other fields than an R2T has, or without an R2T. */
static void op_stray(void)
{
	enum { TAG = 1, CID = 2, AT = 4, LEN = 8, LAST = 16 };
	struct tcp_host *h = pick_host();
	uint8_t which = u8(), wrong = u8();
	struct tcp_host_r2t as = { 0 };

	if (h->nr2ts)
		as = h->r2ts[which % h->nr2ts];
	if (wrong & TAG)
		as.ttag = u16();
	if (wrong & CID)
		as.cccid = u16();
	if (wrong & AT)
		as.offset += form_length(u8());
	if (wrong & LEN)
		as.left = form_length(u8());
	if (h->fd >= 0)
		tcp_host_stray(h, &as, !(wrong & LAST));
}

/* --- the program ------------------------------------------------------------------------------ */

/* seeds.py has the same order. */
static void (*const ops[])(void) = {
	op_turn,   op_open,  op_session,  op_icreq,  op_connect, op_command, op_data,
	op_raw,    op_spoil, op_split,    op_hear,   op_close,   op_clock,   op_ns,
	op_subsys, op_slow,  op_starve,   op_feed,   op_term,    op_look,    op_stop,
	op_length, op_stray, op_takeover, op_arrive,
};

static void harness_create(void)
{
	world_create();
	for (unsigned i = 0; i < HOSTS; i++)
		hosts[i].fd = -1;
}

static bool harness_begin(void)
{
	return true;
}

static void harness_finish(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		hosts[i].deaf = false;
	run_dry();
	for (unsigned i = 0; i < HOSTS; i++)
		tcp_host_check_settled(&hosts[i]);
}

static void harness_end(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		tcp_host_close(&hosts[i]);
	outgoing_forget();
	form_forget_length();
	world_end();
}

const struct program program = {
	.create = harness_create,
	.begin = harness_begin,
	PROGRAM_OPS(ops),
	.ops_max = 300,
	.settle = turn_until_idle,
	.finish = harness_finish,
	.end = harness_end,
};
