/* fuzz_conn.c - connections from beginning to end: hosts, their target and its user, as a program.
 *
 *   input: a program (program.h)
 *
 * After the program every host that kept the rules must have its answers; then all of them close,
 * and nothing may be left: no queue pair, no controller, no buffer (world_end). */
#include <string.h>

#include "forms.h"
#include "host.h"
#include "input.h"
#include "outgoing.h"
#include "program.h"
#include "target_ops.h"
#include "world.h"

enum {
	HOSTS = 8,
	SETTLE = 16, /* while one socket talks, a reactor looks at the others every eighth turn */
	CAPSULE_MAX = 8 << 10,
};

static struct host hosts[HOSTS];

/* --- the input -------------------------------------------------------------------------------- */

static struct host *pick(void)
{
	return &hosts[u8() % HOSTS];
}

/* --- everybody's turn ------------------------------------------------------------------------- */

/* True: somebody heard something. */
static bool settle(void)
{
	bool heard = false;

	for (unsigned i = 0; i < SETTLE; i += 2) {
		world_turn(2);
		for (unsigned j = 0; j < HOSTS; j++)
			heard |= host_hear(&hosts[j]);
	}
	return heard;
}

static void op_turn(void)
{
	turn_some(u8());
}

/* --- connections ------------------------------------------------------------------------------ */

/* DGST 1:0, MAXR2T 3:2, HPDA 7:4 */
static void greet(struct host *h, uint8_t options)
{
	host_icreq(h, options & 3, (options >> 4) * 2 + (options >> 7), options >> 2 & 3);
}

/* Every other one goes to the other reactor. */
static bool open_host(struct host *h)
{
	int fd = h->fd < 0 ? world_connect((unsigned)(h - hosts) % WORLD_GROUPS) : -1;

	if (fd >= 0)
		host_open(h, fd);
	return fd >= 0;
}

static void op_open(void)
{
	struct host *h = pick();
	uint8_t options = u8();

	if (open_host(h) && options != 0xff)
		greet(h, options);
}

static void op_icreq(void)
{
	struct host *h = pick();
	uint8_t options = u8();

	if (h->fd >= 0)
		greet(h, options);
}

static void connect_host(struct host *h, const struct form_connect *c)
{
	struct nvmf_connect_data data;
	union nvme_sqe sqe;

	form_connect(c, &sqe, &data);
	sqe.connect.sgl.length = cpu_to_le32(sizeof(data));
	sqe.connect.sgl.type = c->in_capsule ? NVME_SGL_IN_CAPSULE : NVME_SGL_TRANSPORT;
	host_command(h, &sqe, &data, c->in_capsule ? sizeof(data) : 0, 0);
}

/* The controller that another host was given, or one that nobody was. */
static uint16_t cntlid_of(uint8_t which)
{
	return which < HOSTS ? hosts[which].cntlid : NVME_CNTLID_DYNAMIC;
}

static void op_connect(void)
{
	struct host *h = pick();
	struct form_connect c;

	form_read_connect(&c, cntlid_of);
	if (h->fd >= 0)
		connect_host(h, &c);
}

static void enable(struct host *h)
{
	union nvme_sqe sqe;

	form_enable(&sqe);
	host_command(h, &sqe, NULL, 0, 0);
}

static struct host *free_host(void)
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
				  .in_capsule = true };
	struct host *admin = free_host(), *io;

	if (!open_host(admin))
		return;
	greet(admin, icreq);
	connect_host(admin, &c);
	settle();
	enable(admin);
	settle();
	io = free_host();
	if (c.subsys == 2 || !open_host(io))
		return;
	greet(io, icreq);
	c.qid = options >> 6;
	c.sqsize = sqsize;
	c.cntlid = admin->cntlid;
	connect_host(io, &c);
	settle();
}

static void op_close(void)
{
	struct host *h = pick();
	uint8_t how = u8();

	if (h->fd >= 0 && how % 2) {
		h->tainted = true; /* it will not be heard any more */
		host_shut(h);
	} else {
		host_close(h);
	}
}

static void op_hear(void)
{
	struct host *h = pick();

	h->deaf = u8() % 2;
}

static void op_term(void)
{
	struct host *h = pick();
	uint16_t fes = u8();

	if (h->fd >= 0)
		host_term(h, fes);
}

static void op_raw(void)
{
	struct host *h = pick();
	uint32_t len;
	const uint8_t *at = input_take(u16(), &len);

	if (h->fd >= 0 && len)
		host_raw(h, at, len);
}

/* --- commands --------------------------------------------------------------------------------- */

enum { CMD_PAD = 1 << 5 };

/* Where the data is; in the capsule if it fits there. Returns the bytes in the capsule. */
static uint32_t place_data(union nvme_sqe *sqe, uint8_t flags, uint32_t len)
{
	struct nvme_sgl *sgl = &sqe->common.sgl;
	bool inside = flags & CMD_IN_CAPSULE && len <= CAPSULE_MAX;

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
	struct host *h = pick();
	uint8_t flags;
	union nvme_sqe sqe;
	uint32_t given, len = form_read(&sqe, &flags);
	const uint8_t *at;

	len = place_data(&sqe, flags, len);
	at = input_take(flags & CMD_DATA ? u8() : 0, &given);
	memset(data, 0, len);
	memcpy(data, at, given < len ? given : len);
	if (h->fd >= 0)
		host_command(h, &sqe, data, len, flags & CMD_PAD ? 3 : 0);
}

/* What R2Ts asked for: one whole, one in part, or all of them. */
static void op_data(void)
{
	struct host *h = pick();
	uint8_t which = u8(), fill = u8();
	uint16_t part = u16();

	if (h->fd < 0)
		return;
	if (which == 0xff)
		while (h->nr2ts)
			host_data(h, 0, 0, fill);
	else if (h->nr2ts)
		host_data(h, which % h->nr2ts, part, fill);
}

/* --- the program ------------------------------------------------------------------------------ */

/* seeds.py has the same order. */
static void (*const ops[])(void) = {
	op_turn,   op_open,  op_session, op_icreq, op_connect, op_command, op_data,
	op_raw,    op_spoil, op_split,   op_hear,  op_close,   op_clock,   op_ns,
	op_subsys, op_slow,  op_starve,  op_feed,  op_term,    op_look,    op_stop,
};

static void create(void)
{
	world_create();
	for (unsigned i = 0; i < HOSTS; i++)
		hosts[i].fd = -1;
}

static bool begin(void)
{
	return true;
}

static void finish(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		hosts[i].deaf = false;
	run_dry();
	for (unsigned i = 0; i < HOSTS; i++)
		host_check_settled(&hosts[i]);
}

static void end(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		host_close(&hosts[i]);
	outgoing_forget();
	world_end();
}

const struct program program = {
	.create = create,
	.begin = begin,
	PROGRAM_OPS(ops),
	.ops_max = 300,
	.settle = settle,
	.finish = finish,
	.end = end,
};
