/* test_target_bulk.c - one host must not hold up another: a reactor's turns are bounded, whatever
 * commands of a few bytes ask it to copy, to clear or to read.
 *
 * One host floods the reactor with such a command; another, on the same reactor, reads a block now
 * and then. What each turn has moved is counted, and how many turns it took until the read was
 * answered. */
#include <stdio.h>

#include "target/takeover/takeover.h"
#include "target/internal.h"
#include "world/stepped.h"
#include "running.h"

#define MIB ((size_t)1 << 20)

enum {
	FLOOD = 100,
	READS = 5,
	READ_TURNS = 2, /* worth of bytes, until another host's read is answered */
	LOOKS = 16,   /* in which a reactor that has nothing to move asks for news of all sockets */
	OPS_MAX = 64, /* that one turn asks of storage */
	PIECE_TURNS = 40,
	TURNS_MAX = 100000,
	BLOCK = 4096,
	MEM = 2,     /* a namespace in memory … */
	INSIDE = 3,  /* … and one on storage that answers inside the call */
	OTHERS = 4,  /* that of the host which waits */
	PASSING = 5, /* one that is removed */
	SLOW = 6,    /* one whose storage answers when the test says so */
};

/* Of a turn: its share, which the last piece may exceed, and what hosts read meanwhile. */
static const size_t turn_max = 3 * MIB + (1 << 20) / 16;

static struct raw_host *flood_admin, *flood, *other;
static uint16_t other_cntlid;
static struct weft_backend *mem;

/* --- what is counted -------------------------------------------------------------------------- */

static size_t moved; /* bytes of memory that were locked, and of the storage inside */
static unsigned ops, reads_answered;

bool __real_weft_guard_try_read(void *guard, const void *at, size_t len);
bool __wrap_weft_guard_try_read(void *guard, const void *at, size_t len);
bool __wrap_weft_guard_try_read(void *guard, const void *at, size_t len)
{
	moved += len;
	ops++;
	return __real_weft_guard_try_read(guard, at, len);
}

bool __real_weft_guard_try_write(void *guard, const void *at, size_t len);
bool __wrap_weft_guard_try_write(void *guard, const void *at, size_t len);
bool __wrap_weft_guard_try_write(void *guard, const void *at, size_t len)
{
	moved += len;
	ops++;
	return __real_weft_guard_try_write(guard, at, len);
}

void __real_weft_req_reply(struct weft_req *req, uint16_t status);
void __wrap_weft_req_reply(struct weft_req *req, uint16_t status);
void __wrap_weft_req_reply(struct weft_req *req, uint16_t status)
{
	reads_answered += req->cmd.common.opcode == nvme_cmd_read && req->qp->sqid;
	__real_weft_req_reply(req, status);
}

static int inside_submit(struct weft_backend *be, struct weft_io *io)
{
	if (io->kind == WEFT_IO_READ || io->kind == WEFT_IO_WRITE)
		moved += io->length;
	if (io->kind == WEFT_IO_READ)
		memset(io->buf, 0, io->length);
	ops++;
	io->done(io, 0);
	return 0;
}

static struct weft_list kept = { &kept, &kept }; /* weft_io.op.link */
static unsigned nkept, let_go;

static int slow_submit(struct weft_backend *be, struct weft_io *io)
{
	weft_list_push(&kept, &io->op.link);
	nkept++;
	return 0;
}

/* On the reactor: as many as @let_go says. */
static void slow_answer(struct weft_msg *msg)
{
	struct weft_list *link;
	struct weft_io *io;

	for (; let_go && (link = weft_list_pop(&kept)); let_go--) {
		io = container_of(link, struct weft_io, op.link);
		nkept--;
		io->done(io, 0);
	}
}

static void close_here(struct weft_backend *be)
{
	free(be->spec);
	free(be);
}

static int inside_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	return 0;
}

static const struct weft_backend_ops inside = { .type = "inside",
						.submit = inside_submit,
						.resize = inside_resize,
						.close = close_here },
				     slow = { .type = "slow",
					      .submit = slow_submit,
					      .resize = inside_resize,
					      .close = close_here };

static struct weft_backend *open_here(const struct weft_backend_ops *of)
{
	struct weft_backend *be = calloc(1, sizeof(*be));

	*be = (struct weft_backend){
		.ops = of,
		.size = 512 * MIB,
		.align = 1,
		.block_min = 512,
		.spec = strdup("null:512M"), /* which a resize writes anew */
	};
	return be;
}

/* --- turns ------------------------------------------------------------------------------------ */

static void bounded_turn(void)
{
	moved = ops = 0;
	stepped_once();
	assert_in_range(moved, 0, turn_max);
	assert_in_range(ops, 0, OPS_MAX);
}

static void bounded_turns(unsigned n)
{
	while (n--)
		bounded_turn();
}

static void until_answered(struct raw_host *raw)
{
	for (unsigned turns = 0; raw->answered < raw->sent; turns++) {
		assert_true(turns < TURNS_MAX);
		bounded_turn();
	}
}

static void send_read(struct raw_host *raw, uint32_t nsid, uint64_t slba, size_t bytes)
{
	union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_read,
				       .nsid = cpu_to_le32(nsid),
				       .slba = cpu_to_le64(slba),
				       .nlb = cpu_to_le16((uint16_t)(bytes / BLOCK - 1)) } };

	raw_host_send(raw, &sqe, NULL, bytes);
}

/* Another host's read, which the flood holds up for no more than its part of a turn. */
static void read_meanwhile(uint32_t nsid, size_t bytes)
{
	unsigned before = reads_answered, turns = 0;
	size_t sum = 0;

	send_read(other, nsid, 0, bytes);
	raw_host_delivered(other);
	for (; reads_answered == before; turns++) {
		assert_true(turns < LOOKS);
		bounded_turn();
		sum += moved;
	}
	assert_in_range(sum, 0, READ_TURNS * turn_max + bytes);
	until_answered(other);
	assert_int_equal(other->last.status, 0);
}

/* --- commands --------------------------------------------------------------------------------- */

struct span {
	size_t at, len; /* bytes */
};

static void send_copy(struct raw_host *raw, uint32_t nsid, const struct span *from, unsigned n,
		      size_t to)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_cmd_copy,
					   .nsid = cpu_to_le32(nsid),
					   .cdw10 = cpu_to_le32((uint32_t)(to / BLOCK)),
					   .cdw12 = cpu_to_le32(n - 1) } };
	struct nvme_copy_range ranges[4] = { 0 };

	for (unsigned i = 0; i < n; i++) {
		ranges[i].slba = cpu_to_le64(from[i].at / BLOCK);
		ranges[i].nlb = cpu_to_le16((uint16_t)(from[i].len / BLOCK - 1));
	}
	raw_host_send(raw, &sqe, ranges, n * sizeof(*ranges));
}

/* As large as one may be. */
static void send_large_copy(struct raw_host *raw, uint32_t nsid)
{
	struct span from[4];

	for (unsigned i = 0; i < 4; i++)
		from[i] = (struct span){ i * 16 * MIB, 16 * MIB };
	send_copy(raw, nsid, from, 4, 64 * MIB);
}

static void send_range(struct raw_host *raw, uint8_t opcode, uint32_t nsid, struct span what)
{
	union nvme_sqe sqe = { .rw = { .opcode = opcode,
				       .nsid = cpu_to_le32(nsid),
				       .slba = cpu_to_le64(what.at / BLOCK),
				       .nlb = cpu_to_le16((uint16_t)(what.len / BLOCK - 1)) } };

	raw_host_send(raw, &sqe, NULL, 0);
}

static void send_write_zeroes(struct raw_host *raw, uint32_t nsid)
{
	send_range(raw, nvme_cmd_write_zeroes, nsid, (struct span){ 0, 256 * MIB });
}

static void send_verify(struct raw_host *raw, uint32_t nsid)
{
	send_range(raw, nvme_cmd_verify, nsid, (struct span){ 0, 256 * MIB });
}

static void send_trim(struct raw_host *raw, uint32_t nsid, const struct span *what, unsigned n)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_cmd_dsm,
					   .nsid = cpu_to_le32(nsid),
					   .cdw10 = cpu_to_le32(n - 1),
					   .cdw11 = cpu_to_le32(1 << 2) } };
	struct nvme_dsm_range ranges[TGT_DSM_RANGES] = { 0 };

	for (unsigned i = 0; i < n; i++) {
		ranges[i].slba = cpu_to_le64(what[i].at / BLOCK);
		ranges[i].nlb = cpu_to_le32((uint32_t)(what[i].len / BLOCK));
	}
	raw_host_send(raw, &sqe, ranges, n * sizeof(*ranges));
}

/* As many ranges as there may be, each in two extents. */
static void send_deallocate(struct raw_host *raw, uint32_t nsid)
{
	struct span what[TGT_DSM_RANGES];

	for (unsigned i = 0; i < TGT_DSM_RANGES; i++)
		what[i] = (struct span){ (i % 128 * 4 + 1) * MIB, 2 * MIB };
	send_trim(raw, nsid, what, TGT_DSM_RANGES);
}

static void send_compare(struct raw_host *raw, uint32_t nsid)
{
	static const char zeroes[2 * BLOCK];
	union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_compare,
				       .nsid = cpu_to_le32(nsid),
				       .slba = cpu_to_le64(500 * MIB / BLOCK),
				       .nlb = cpu_to_le16(1) } };

	raw_host_send(raw, &sqe, zeroes, sizeof(zeroes));
}

/* --- floods ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*send)(struct raw_host *raw, uint32_t nsid);
	uint32_t nsid;
	bool lasts; /* until another host has read a few times */
} floods[] = {
	{ "Copy", send_large_copy, INSIDE, true },
	{ "Copy, memory", send_large_copy, MEM, true },
	{ "Write Zeroes", send_write_zeroes, INSIDE, false },
	{ "Write Zeroes, memory", send_write_zeroes, MEM, true },
	{ "Deallocate", send_deallocate, INSIDE, true },
	{ "Deallocate, memory", send_deallocate, MEM, true },
	{ "Verify", send_verify, INSIDE, true },
	{ "Verify, memory", send_verify, MEM, false },
	{ "Compare", send_compare, INSIDE, false },
	{ "Compare, memory", send_compare, MEM, false },
};

static uint16_t flood_cntlid;
static unsigned ctrls_before;

static void open_flooder(void)
{
	ctrls_before = stepped_ctrls();
	flood_admin = stepped_admin(STEPPED_NQN, FLOODER, 1, &flood_cntlid);
	flood = stepped_io(FLOODER, 1, flood_cntlid, 1);
}

/* In so many turns of the control reactor and the reactor. */
static void close_flooder_within(unsigned turns_max)
{
	unsigned turns = 0;

	raw_host_close(flood);
	raw_host_close(flood_admin);
	for (; stepped_ctrls() > ctrls_before; turns++) {
		assert_true(turns < turns_max);
		bounded_turn();
	}
}

static void close_flooder(void)
{
	close_flooder_within(TURNS_MAX);
}

/* A socket that nobody reads from does not hold all of it: turns come between. */
static void send_some(struct raw_host *raw, void (*send)(struct raw_host *raw, uint32_t nsid),
		      uint32_t nsid)
{
	for (unsigned n = 0; n < FLOOD; n++) {
		send(raw, nsid);
		if (n % 8 == 7)
			bounded_turn();
	}
}

static void others_read_on(void **state)
{
	for_each_named(i, floods, name) {
		print_message("#   %s\n", floods[i].name);
		open_flooder();
		send_some(flood, floods[i].send, floods[i].nsid);
		for (unsigned n = 0; n < READS; n++)
			read_meanwhile(OTHERS, BLOCK);
		if (floods[i].lasts)
			assert_true(flood->answered < flood->sent);
		else
			until_answered(flood);
		close_flooder();
	}
}

/* Commands in line hold no buffer: who reads from storage finds one. */
static void others_find_buffers(void **state)
{
	static const size_t sizes[] = { 8 << 10, 128 << 10, 1 << 20 };
	struct raw_host *more[3];

	open_flooder();
	for (unsigned q = 0; q < 3; q++)
		more[q] = stepped_io(FLOODER, 1, flood_cntlid, (uint16_t)(2 + q));
	for (unsigned n = 0; n < FLOOD; n++) {
		send_large_copy(flood, INSIDE);
		for (unsigned q = 0; q < 3; q++)
			send_large_copy(more[q], INSIDE);
		if (n % 8 == 7)
			bounded_turn();
	}
	bounded_turns(FLOOD); /* all have had their first piece */
	for_each_row(i, sizes)
		read_meanwhile(INSIDE, sizes[i]);
	for (unsigned q = 0; q < 3; q++)
		raw_host_close(more[q]);
	close_flooder();
}

/* A host that its subsystem names has a share of its own. */
static struct raw_host *open_named(unsigned i, struct raw_host **admin)
{
	uint16_t cntlid;
	char nqn[64];

	snprintf(nqn, sizeof(nqn), "nqn.2026-11.io.weft:named-%u", i);
	assert_int_equal(weft_subsys_allow(stepped_subsys, nqn, NULL), 0);
	*admin = stepped_admin(STEPPED_NQN, nqn, 10 + i, &cntlid);
	return stepped_io(nqn, 10 + i, cntlid, 1);
}

/* Slow storage has them all, and gives one back: their pieces, of several shares, go through it,
 * and take turns all the same. Until then nobody has anything to do. */
static void buffers_come_late(void **state)
{
	struct weft_reactor *reactor = stepped_target->poll_groups[0]->reactor;
	struct weft_msg msg = { .fn = slow_answer };
	struct raw_host *readers[2], *named[5], *admins[5];
	size_t sum = 0;

	open_flooder();
	for_each_row(i, named)
		named[i] = open_named((unsigned)i, &admins[i]);
	for (unsigned q = 0; q < 2; q++) {
		readers[q] = stepped_io(FLOODER, 1, flood_cntlid, (uint16_t)(2 + q));
		for (unsigned n = 0; n < 64; n++)
			send_read(readers[q], SLOW, 0, 128 << 10);
	}
	for (unsigned turns = 0; nkept < 128; turns++) {
		assert_true(turns < TURNS_MAX);
		bounded_turn();
	}
	for (unsigned n = 0; n < FLOOD; n++)
		send_large_copy(flood, INSIDE);
	raw_host_delivered(flood);
	for_each_row(i, named) {
		for (unsigned n = 0; n < FLOOD / 4; n++)
			send_large_copy(named[i], INSIDE);
		raw_host_delivered(named[i]);
	}
	for (unsigned turns = 0; turns < FLOOD; turns++) {
		bounded_turn();
		assert_int_equal(moved, 0);
	}
	assert_false(weft_reactor_busy(reactor));
	let_go = 1;
	weft_reactor_post(reactor, &msg);
	for (unsigned turns = 0; sum < 100 * MIB; turns++) {
		assert_true(turns < TURNS_MAX);
		bounded_turn();
		sum += moved;
	}
	assert_int_equal(nkept, 127);
	let_go = 127;
	weft_reactor_post(reactor, &msg);
	for (unsigned q = 0; q < 2; q++) {
		until_answered(readers[q]);
		raw_host_close(readers[q]);
	}
	for_each_row(i, named) {
		raw_host_close(named[i]);
		raw_host_close(admins[i]);
	}
	close_flooder();
}

static uint16_t status_of(const struct raw_host *raw)
{
	return le16_to_cpu(raw->last.status) >> 1;
}

static void gone(void *arg)
{
	*(bool *)arg = true;
}

static void remove_it(void)
{
	struct weft_err err = { "" };
	bool removed = false;

	assert_int_equal(weft_ns_remove(stepped_subsys, PASSING, gone, &removed, &err), 0);
	for (unsigned turns = 0; !removed; turns++) {
		assert_true(turns < PIECE_TURNS);
		bounded_turn();
	}
}

/* --- buffers, among hosts --------------------------------------------------------------------- */

enum { POOL = 128, PIECE = 128 << 10 }; /* buffers of a size that there are, of hosts */

static void let_one_go(void)
{
	struct weft_msg msg = { .fn = slow_answer };

	let_go = 1;
	weft_reactor_post(stepped_target->poll_groups[0]->reactor, &msg);
	bounded_turns(4);
}

static void let_all_go(struct raw_host *raw)
{
	struct weft_msg msg = { .fn = slow_answer };

	for (unsigned turns = 0; raw->answered < raw->sent; turns++) {
		assert_true(turns < TURNS_MAX);
		let_go = nkept;
		weft_reactor_post(stepped_target->poll_groups[0]->reactor, &msg);
		bounded_turns(2);
	}
}

static bool storage_has(uint64_t offset)
{
	struct weft_io *io;

	weft_list_for_each(io, &kept, op.link)
		if (io->offset == offset)
			return true;
	return false;
}

/* Hundreds of reads of one host wait for a buffer: another host's read waits for one of them, not
 * for all that came before it. */
static void readers_take_turns_at_buffers(void **state)
{
	struct raw_host *readers[4];

	open_flooder();
	for_each_row(q, readers) {
		readers[q] = stepped_io(FLOODER, 1, flood_cntlid, (uint16_t)(2 + q));
		for (unsigned n = 0; n < STEPPED_DEPTH - 1; n++)
			send_read(readers[q], SLOW, 0, PIECE);
		raw_host_delivered(readers[q]);
	}
	bounded_turns(2 * LOOKS);
	assert_int_equal(nkept, POOL);
	send_read(other, SLOW, 7, PIECE);
	raw_host_delivered(other);
	bounded_turns(LOOKS);
	for (unsigned came_back = 0; !storage_has(7 * BLOCK); came_back++) {
		assert_true(came_back < 2);
		let_one_go();
	}
	let_all_go(other);
	for_each_row(q, readers) {
		let_all_go(readers[q]);
		raw_host_close(readers[q]);
	}
	close_flooder();
}

static void send_write(struct raw_host *raw, uint64_t slba)
{
	union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_write,
				       .nsid = cpu_to_le32(SLOW),
				       .slba = cpu_to_le64(slba),
				       .nlb = cpu_to_le16(PIECE / BLOCK - 1) } };

	raw_host_send(raw, &sqe, NULL, PIECE);
}

/* The same for the buffers that writes are received into: a connection of a host that owes data
 * goes, and another host is asked for its own before all that waited. */
static void writers_take_turns_at_buffers(void **state)
{
	const unsigned each = MIB / PIECE, full = POOL / each;
	struct raw_host *writers[24], *late;
	unsigned asked = 0;

	open_flooder();
	late = stepped_io(OTHER, 2, other_cntlid, 2);
	for_each_row(q, writers) {
		writers[q] = stepped_io(FLOODER, 1, flood_cntlid, (uint16_t)(2 + q));
		for (unsigned n = 0; n < each; n++)
			send_write(writers[q], 0);
		raw_host_delivered(writers[q]);
		bounded_turns(4);
	}
	send_write(late, 7);
	raw_host_delivered(late);
	bounded_turns(LOOKS);
	assert_int_equal(late->r2ts, 0);
	raw_host_close(writers[0]);
	bounded_turns(LOOKS);
	assert_int_equal(late->r2ts, 1);
	for (unsigned q = full; q < COUNT(writers); q++)
		asked += writers[q]->r2ts;
	assert_int_equal(asked, each - 1);
	for (unsigned q = 1; q < COUNT(writers); q++)
		raw_host_close(writers[q]);
	raw_host_close(late);
	close_flooder();
}

enum { FAR = 500 * (1 << 20) / BLOCK };

static void send_long_read(struct raw_host *raw, uint32_t nsid)
{
	send_read(raw, nsid, FAR, PIECE);
}

/* In the capsule, and more than a small buffer holds. */
static void send_zeroes(struct raw_host *raw, uint8_t opcode, uint8_t fuse, uint32_t nsid)
{
	static const char zeroes[3 * BLOCK];
	union nvme_sqe sqe = { .rw = { .opcode = opcode,
				       .flags = fuse,
				       .nsid = cpu_to_le32(nsid),
				       .slba = cpu_to_le64(FAR),
				       .nlb = cpu_to_le16(COUNT(zeroes) / BLOCK - 1) } };

	raw_host_send(raw, &sqe, zeroes, sizeof(zeroes));
}

static void send_long_compare(struct raw_host *raw, uint32_t nsid)
{
	send_zeroes(raw, nvme_cmd_compare, 0, nsid);
}

static void send_unaligned_write(struct raw_host *raw, uint32_t nsid)
{
	send_zeroes(raw, nvme_cmd_write, 0, nsid);
}

/* The pool of their buffers is empty: storage has all of them. */
static const struct {
	const char *name;
	void (*send)(struct raw_host *raw, uint32_t nsid);
} buffered[] = {
	{ "Verify", send_verify },
	{ "Read", send_long_read },
	{ "Compare", send_long_compare },
	{ "Write that storage wants aligned", send_unaligned_write },
};

/* --- turns among them ------------------------------------------------------------------------- */

/* One piece each: a short command does not wait for long ones that came before it. */
static void short_ones_come_through(void **state)
{
	const struct span from = { 0, BLOCK };
	unsigned before = 0;

	open_flooder();
	for (unsigned n = 0; n < FLOOD; n++)
		send_large_copy(flood, INSIDE);
	raw_host_delivered(flood);
	bounded_turns(10);
	before = flood->answered;
	send_copy(other, INSIDE, &from, 1, 64 * MIB);
	for (unsigned turns = 0; other->answered < other->sent; turns++) {
		assert_true(turns < FLOOD);
		bounded_turn();
	}
	assert_int_equal(other->last.status, 0);
	assert_int_equal(flood->answered, before);
	close_flooder();
}

/* … nor does a long one wait for short ones of the same host that come again and again. */
static void long_ones_get_on(void **state)
{
	const struct span from = { 0, 512 << 10 }, large = { 0, 8 * MIB };
	struct raw_host *raw;
	unsigned turns = 0;

	open_flooder();
	raw = stepped_io(FLOODER, 1, flood_cntlid, 2);
	send_copy(raw, INSIDE, &large, 1, 64 * MIB);
	for (; raw->answered < raw->sent; turns++) {
		assert_true(turns < 64 * FLOOD);
		while (flood->sent - flood->answered < FLOOD)
			send_copy(flood, INSIDE, &from, 1, 64 * MIB);
		bounded_turn();
	}
	assert_int_equal(raw->last.status, 0);
	assert_true(flood->answered > FLOOD);
	raw_host_close(raw);
	close_flooder();
}

/* Hosts take turns, however many queues one of them has in line: what another one asks for waits
 * for a piece of the flood before each of its own. */
static void hosts_take_turns(void **state)
{
	const struct span from = { 0, 16 * MIB };
	const unsigned pieces = 16 * MIB / (128 << 10);
	struct raw_host *more[8];
	unsigned turns = 0;

	open_flooder();
	for_each_row(q, more)
		more[q] = stepped_io(FLOODER, 1, flood_cntlid, (uint16_t)(2 + q));
	for_each_row(q, more)
		send_some(more[q], send_deallocate, MEM);
	bounded_turns(10);
	send_copy(other, INSIDE, &from, 1, 64 * MIB);
	raw_host_delivered(other);
	for (; other->answered < other->sent; turns++) {
		assert_true(turns < 2 * pieces + LOOKS);
		bounded_turn();
	}
	assert_int_equal(other->last.status, 0);
	for_each_row(q, more)
		raw_host_close(more[q]);
	close_flooder();
}

/* --- how much one command is ------------------------------------------------------------------ */

/* All of a namespace 256 times: what goes beyond the limit stays. */
static void a_deallocate_has_a_limit(void **state)
{
	struct span all[TGT_DSM_RANGES];
	size_t sum = 0;

	for (unsigned i = 0; i < TGT_DSM_RANGES; i++)
		all[i] = (struct span){ 0, 512 * MIB };
	open_flooder();
	send_trim(flood, MEM, all, TGT_DSM_RANGES);
	for (unsigned turns = 0; flood->answered < flood->sent; turns++) {
		assert_true(turns < TURNS_MAX);
		bounded_turn();
		sum += moved;
	}
	assert_int_equal(flood->last.status, 0);
	assert_int_equal(sum, (size_t)TGT_DSM_BLOCKS * BLOCK);
	close_flooder();
}

/* --- what they do is right -------------------------------------------------------------------- */

static char *at(size_t offset)
{
	return mem->ops->map(mem, offset);
}

static char byte_of(size_t offset)
{
	return (char)(offset / BLOCK * 31 + offset % 251 + 1);
}

static void fill(struct span what)
{
	for (size_t i = 0; i < what.len; i++)
		*at(what.at + i) = byte_of(what.at + i);
}

/* The first byte of it that is not what was at @from; its end: there is none. */
static size_t differs(struct span what, size_t from)
{
	for (size_t i = 0; i < what.len; i++)
		if (*at(what.at + i) != byte_of(from + i))
			return what.at + i;
	return what.at + what.len;
}

static void assert_is(struct span what, size_t from)
{
	assert_int_equal(differs(what, from), what.at + what.len);
}

static void assert_zeroes(struct span what)
{
	for (size_t i = 0; i < what.len; i++)
		if (*at(what.at + i))
			fail_msg("byte %zu", what.at + i);
}

/* Several at once, whose pieces come in turn, between reads of what they do not touch. */
static void interleaved(void **state)
{
	const struct span from[] = { { 20 * MIB, 3 * MIB },
				     { 1 * MIB, BLOCK },
				     { 5 * MIB, 2 * MIB + BLOCK } },
			  cleared = { 40 * MIB + BLOCK, 9 * MIB }, freed = { 53 * MIB, 2 * MIB };
	size_t to[] = { 100 * MIB, 120 * MIB + BLOCK };

	fill((struct span){ 0, 56 * MIB });
	fill((struct span){ 99 * MIB, 28 * MIB });
	open_flooder();
	send_copy(flood, MEM, from, 3, to[0]);
	send_copy(other, MEM, from, 3, to[1]);
	send_range(flood, nvme_cmd_write_zeroes, MEM, cleared);
	send_trim(flood, MEM, &freed, 1);
	for (unsigned n = 0; flood->answered < flood->sent; n++) {
		assert_true(n < TURNS_MAX);
		send_read(other, MEM, 99 * MIB / BLOCK + n % 256, BLOCK);
		bounded_turns(3);
	}
	until_answered(other);
	for (unsigned i = 0; i < 2; i++) {
		size_t end = to[i];

		for (unsigned k = 0; k < 3; end += from[k++].len)
			assert_is((struct span){ end, from[k].len }, from[k].at);
		assert_is((struct span){ to[i] - BLOCK, BLOCK }, to[i] - BLOCK);
		assert_is((struct span){ end, BLOCK }, end);
	}
	assert_zeroes(cleared);
	assert_zeroes(freed);
	close_flooder();
}

/* --- in the middle of it ---------------------------------------------------------------------- */

static const struct span first = { 0, 16 << 20 }, second = { 16 << 20, 16 << 20 };

static void begin_copy(uint32_t nsid)
{
	open_flooder();
	send_copy(flood, nsid, &first, 1, second.at);
	raw_host_delivered(flood);
	bounded_turns(8);
	assert_true(moved && flood->answered < flood->sent);
}

/* A command in line is under way: a target that stands still has done it. */
static void a_freeze_waits(void **state)
{
	struct stepped_end frozen = { false, 0 };
	unsigned turns = 0, answered;
	size_t end;

	fill(first);
	begin_copy(MEM);
	weft_target_freeze(stepped_target, 1000, stepped_ended, &frozen);
	for (; !frozen.over; turns++) {
		assert_true(turns < TURNS_MAX);
		bounded_turn();
	}
	end = differs(second, first.at);
	bounded_turns(100);
	answered = flood->answered;
	if (!frozen.rc)
		weft_target_thaw(stepped_target);
	bounded_turns(10);
	assert_int_equal(frozen.rc, 0);
	assert_int_equal(end, second.at + second.len);
	assert_int_equal(answered, flood->sent);
	assert_int_equal(flood->last.status, 0);
	close_flooder();
}

/* --- those who wait for the namespace, not for the command ------------------------------------ */

enum { REGISTER = 0, IGNORE_KEY = 1 << 3, ACQUIRE = 0, PREEMPT_ABORT = 2, CLEAR = 1 };

static void answered_within_pieces(struct raw_host *raw)
{
	for (unsigned turns = 0; raw->answered < raw->sent; turns++) {
		assert_true(turns < PIECE_TURNS);
		bounded_turn();
	}
}

static const struct {
	const char *name;
	void (*send)(struct raw_host *raw, uint32_t nsid);
	const char *spec; /* NULL: storage that answers inside the call */
} longs[] = {
	{ "Copy", send_large_copy, NULL },
	{ "Copy, memory", send_large_copy, "mem:512M" },
	{ "Write Zeroes, memory", send_write_zeroes, "mem:512M" },
	{ "Deallocate, memory", send_deallocate, "mem:512M" },
	{ "Verify", send_verify, NULL },
};

/* A command in the middle of its work, in a namespace of its own. */
static void begin_long(size_t i)
{
	const char *spec = longs[i].spec;

	print_message("#   %s\n", longs[i].name);
	stepped_ns_add(PASSING, BLOCK, spec ? stepped_backend(spec) : open_here(&inside));
	open_flooder();
	longs[i].send(flood, PASSING);
	raw_host_delivered(flood);
	bounded_turns(4);
	assert_true(flood->answered < flood->sent);
}

/* --- what ends them --------------------------------------------------------------------------- */

static void wait_for(const struct stepped_end *end)
{
	for (unsigned turns = 0; !end->over; turns++) {
		assert_true(turns < PIECE_TURNS);
		bounded_turn();
	}
	assert_int_equal(end->rc, 0);
}

static void shrink(void)
{
	struct stepped_end end = { false, 0 };
	struct weft_err err = { "" };

	assert_int_equal(weft_ns_resize(stepped_subsys, PASSING, 4 * MIB, true, stepped_ended, &end,
					&err),
			 0);
	wait_for(&end);
}

static void set_ana(enum weft_ana_state state)
{
	struct weft_ana_rule rule = { .group = 1, .state = state, .hostnqn = FLOODER };
	struct stepped_end end = { false, 0 };
	struct weft_err err = { "" };

	assert_int_equal(weft_ana_set(stepped_subsys, &rule, 1, true, stepped_ended, &end, &err),
			 0);
	wait_for(&end);
}

static void cut_off(void)
{
	set_ana(WEFT_ANA_INACCESSIBLE);
}

static void let_in(void)
{
	set_ana(WEFT_ANA_OPTIMIZED);
	remove_it();
}

static void change_reservation(struct raw_host *raw, uint8_t opcode, uint32_t cdw10, uint64_t crkey,
			       uint64_t key)
{
	unsigned before = raw->answered;

	raw_host_send_keys(raw, PASSING, opcode, cdw10, crkey, key);
	for (unsigned turns = 0; raw->answered == before; turns++) {
		assert_true(turns < PIECE_TURNS);
		bounded_turn();
	}
	assert_int_equal(status_of(raw), 0);
}

static void reserve(void)
{
	change_reservation(other, nvme_cmd_resv_register, REGISTER | IGNORE_KEY, 0, 2);
	change_reservation(other, nvme_cmd_resv_acquire, ACQUIRE | NVME_RESERVATION_RTYPE_EA << 8,
			   2, 0);
}

/* It would outlast the namespace. */
static void unreserve(void)
{
	change_reservation(other, nvme_cmd_resv_release, CLEAR, 2, 0);
	remove_it();
}

/* Nobody has reserved it: nothing but the abort keeps the rest from being done. */
static void preempt_and_abort(void)
{
	change_reservation(flood, nvme_cmd_resv_register, REGISTER | IGNORE_KEY, 0, 1);
	change_reservation(other, nvme_cmd_resv_register, REGISTER | IGNORE_KEY, 0, 2);
	change_reservation(other, nvme_cmd_resv_acquire,
			   PREEMPT_ABORT | NVME_RESERVATION_RTYPE_WE << 8, 2, 1);
}

static uint64_t send_abort(uint16_t cid)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_abort_cmd,
					   .cdw10 = cpu_to_le32(1 | (uint32_t)cid << 16) } };

	raw_host_send(flood_admin, &sqe, NULL, 0);
	answered_within_pieces(flood_admin);
	assert_int_equal(status_of(flood_admin), 0);
	return le64_to_cpu(flood_admin->last.result);
}

static void abort_it(void)
{
	assert_int_equal(send_abort((uint16_t)(flood->cid - 1)), 0);
}

static const struct {
	const char *name;
	void (*act)(void); /* and it is done when this returns */
	uint16_t status;
	void (*undo)(void);
	uint16_t afterwards; /* of a command that meets it when it is done; 0: the same */
} enders[] = {
	{ "removal", remove_it, SC_GENERIC(INVALID_NS) | SC_DNR, NULL },
	{ "shrink", shrink, SC_GENERIC(LBA_RANGE) | SC_DNR, remove_it },
	{ "ANA", cut_off, SC_PATH(ANA_TRANSITION), let_in, SC_PATH(ANA_INACCESSIBLE) },
	{ "reservation", reserve, SC_GENERIC(RESERVATION_CONFLICT) | SC_DNR, unreserve },
	{ "Preempt and Abort", preempt_and_abort, SC_GENERIC(CMD_ABORTED_PREMEPT), unreserve },
	{ "Abort", abort_it, SC_GENERIC(ABORT_REQ), remove_it },
};

/* A command in the middle of its work meets what has changed as one that comes anew; and who makes
 * the change waits for a piece of it at most. */
static void changes_wait_for_a_piece(void **state)
{
	for_each_named(e, enders, name) {
		print_message("# %s\n", enders[e].name);
		for (size_t i = 0; i < COUNT(longs); i++) {
			begin_long(i);
			enders[e].act();
			answered_within_pieces(flood);
			assert_int_equal(status_of(flood), enders[e].status);
			if (enders[e].undo)
				enders[e].undo();
			close_flooder();
		}
	}
}

/* Storage keeps all buffers of a size, for another host. */
static void take_buffers(struct raw_host *readers[2])
{
	for (unsigned q = 0; q < 2; q++) {
		readers[q] = stepped_io(OTHER, 2, other_cntlid, (uint16_t)(2 + q));
		for (unsigned n = 0; n < POOL / 2; n++)
			send_read(readers[q], SLOW, 0, PIECE);
		raw_host_delivered(readers[q]);
	}
	bounded_turns(2 * LOOKS);
	assert_int_equal(nkept, POOL);
}

static void give_buffers_back(struct raw_host *readers[2])
{
	for (unsigned q = 0; q < 2; q++) {
		let_all_go(readers[q]);
		raw_host_close(readers[q]);
	}
}

/* A command that wants a buffer, of a namespace whose storage wants data aligned, and there is
 * none. */
static void begin_without_a_buffer(size_t i, struct raw_host *readers[2])
{
	struct weft_backend *be = open_here(&inside);

	print_message("#   %s\n", buffered[i].name);
	be->align = BLOCK;
	stepped_ns_add(PASSING, BLOCK, be);
	open_flooder();
	take_buffers(readers);
	buffered[i].send(flood, PASSING);
	raw_host_delivered(flood);
	bounded_turns(LOOKS);
	assert_int_equal(flood->answered, flood->sent - 1);
}

static void end_without_a_buffer(size_t e, size_t i)
{
	uint16_t status = enders[e].afterwards ? enders[e].afterwards : enders[e].status;
	struct raw_host *readers[2];

	begin_without_a_buffer(i, readers);
	enders[e].act();
	assert_int_equal(nkept, POOL);
	give_buffers_back(readers);
	until_answered(flood);
	assert_int_equal(status_of(flood), status);
	if (enders[e].undo)
		enders[e].undo();
	close_flooder();
}

/* A command that waits for its buffer is not at work in its namespace: nobody waits for it, and it
 * meets what has changed. */
static void changes_wait_for_no_buffer(void **state)
{
	for_each_named(e, enders, name) {
		print_message("# %s\n", enders[e].name);
		for (size_t i = 0; i < COUNT(buffered); i++)
			end_without_a_buffer(e, i);
	}
}

static void send_half(struct raw_host *raw, uint8_t opcode, uint8_t fuse)
{
	static const char zeroes[BLOCK];
	union nvme_sqe sqe = { .rw = { .opcode = opcode,
				       .flags = fuse,
				       .nsid = cpu_to_le32(PASSING),
				       .slba = cpu_to_le64(500 * MIB / BLOCK) } };

	raw_host_send(raw, &sqe, zeroes, sizeof(zeroes));
}

/* A fused pair has the namespace for itself, and the command goes on. */
static void a_pair_waits_for_a_piece(void **state)
{
	for_each_named(i, longs, name) {
		begin_long(i);
		for (unsigned n = 0; n < 3; n++) {
			send_half(other, nvme_cmd_compare, NVME_FUSE_FIRST);
			send_half(other, nvme_cmd_write, NVME_FUSE_SECOND);
			raw_host_delivered(other);
			answered_within_pieces(other);
			assert_int_equal(status_of(other), 0);
		}
		assert_true(flood->answered < flood->sent);
		until_answered(flood);
		assert_int_equal(status_of(flood), 0);
		remove_it();
		close_flooder();
	}
}

static bool held;

static void note_quiesced(struct tgt_ns_quiesce *quiesce)
{
	held = true;
}

static void quiesce_passing(struct tgt_ns_quiesce *quiesce)
{
	held = false;
	*quiesce = (struct tgt_ns_quiesce){ .ns = tgt_ns_find(stepped_subsys, PASSING),
					    .level = NS_QUIESCE_ALL,
					    .reactor = stepped_target->control,
					    .quiesced = note_quiesced };
	tgt_ns_quiesce_begin(quiesce, stepped_target);
	for (unsigned turns = 0; !held; turns++) {
		assert_true(turns < PIECE_TURNS);
		bounded_turn();
	}
	for (unsigned turns = 0; turns < PIECE_TURNS; turns++) {
		bounded_turn();
		assert_int_equal(ops, 0);
	}
}

/* While somebody has the namespace for itself, the command waits, and can be aborted. */
static void a_hold_is_waited_for(void **state)
{
	struct tgt_ns_quiesce quiesce;

	for_each_named(i, longs, name) {
		begin_long(i);
		quiesce_passing(&quiesce);
		tgt_ns_quiesce_end(quiesce.ns, stepped_target);
		bounded_turns(LOOKS);
		assert_true(flood->answered < flood->sent);
		quiesce_passing(&quiesce);
		abort_it();
		answered_within_pieces(flood);
		assert_int_equal(status_of(flood), SC_GENERIC(ABORT_REQ));
		tgt_ns_quiesce_end(quiesce.ns, stepped_target);
		bounded_turns(LOOKS);
		remove_it();
		close_flooder();
	}
}

/* A buffer that comes while the namespace is quiesced is kept: the command does not wait for
 * another one afterwards, and so not for the next quiesce either. */
static void a_quiesce_costs_no_buffer(void **state)
{
	struct raw_host *readers[2];
	struct tgt_ns_quiesce quiesce;

	for (size_t i = 1; i < COUNT(buffered); i++) { /* Verify, the first, is bulk work */
		begin_without_a_buffer(i, readers);
		quiesce_passing(&quiesce);
		let_one_go();
		send_read(other, SLOW, 7, PIECE);
		raw_host_delivered(other);
		bounded_turns(LOOKS);
		assert_false(storage_has(7 * BLOCK));
		assert_int_equal(flood->answered, flood->sent - 1);
		tgt_ns_quiesce_end(quiesce.ns, stepped_target);
		until_answered(flood);
		assert_int_equal(status_of(flood), 0);
		let_all_go(other);
		give_buffers_back(readers);
		remove_it();
		close_flooder();
	}
}

static void send_long_pair(struct raw_host *raw, uint32_t nsid)
{
	send_zeroes(raw, nvme_cmd_compare, NVME_FUSE_FIRST, nsid);
	send_zeroes(raw, nvme_cmd_write, NVME_FUSE_SECOND, nsid);
}

/* A fused pair finds a buffer whatever others keep, also if storage wants its Write aligned. */
static void a_pair_waits_for_no_buffer(void **state)
{
	struct weft_backend *be = open_here(&inside);
	struct raw_host *readers[2];

	be->align = BLOCK;
	stepped_ns_add(PASSING, BLOCK, be);
	open_flooder();
	take_buffers(readers);
	send_long_pair(flood, PASSING);
	until_answered(flood);
	assert_int_equal(status_of(flood), 0);
	assert_int_equal(nkept, POOL);
	give_buffers_back(readers);
	remove_it();
	close_flooder();
}

static void send_half_to_fetch(struct raw_host *raw, uint8_t opcode, uint8_t fuse)
{
	union nvme_sqe sqe = { .rw = { .opcode = opcode,
				       .flags = fuse,
				       .nsid = cpu_to_le32(PASSING),
				       .nlb = cpu_to_le16(7) } };

	raw_host_send(raw, &sqe, NULL, (size_t)8 * BLOCK);
}

/* One buffer is left to receive data into, and a pair needs two: it does not keep one and wait for
 * the other, for many pairs would do that for ever. */
static void a_pair_does_not_wait_with_a_buffer(void **state)
{
	const unsigned each = MIB / PIECE;
	struct raw_host *writers[POOL / (MIB / PIECE)];

	stepped_ns_add(PASSING, BLOCK, open_here(&inside));
	open_flooder();
	for_each_row(q, writers) {
		writers[q] = stepped_io(FLOODER, 1, flood_cntlid, (uint16_t)(2 + q));
		for (unsigned n = 0; n < each - !q; n++)
			send_write(writers[q], 0);
		raw_host_delivered(writers[q]);
		bounded_turns(4);
	}
	send_half_to_fetch(other, nvme_cmd_compare, NVME_FUSE_FIRST);
	send_half_to_fetch(other, nvme_cmd_write, NVME_FUSE_SECOND);
	raw_host_delivered(other);
	until_answered(other);
	assert_int_equal(status_of(other), SC_GENERIC(FUSED_FAIL)); /* the Write's */
	assert_int_equal(other->r2ts, 0);
	send_write(writers[0], 0);
	raw_host_delivered(writers[0]);
	bounded_turns(LOOKS);
	assert_int_equal(writers[0]->r2ts, each);
	for_each_row(q, writers)
		raw_host_close(writers[q]);
	remove_it();
	close_flooder();
}

/* Preempt and Abort ends a command that waits while the namespace is quiesced: afterwards it is not
 * carried out, though nobody has reserved the namespace. */
static void preempted_while_quiesced(void (*send)(struct raw_host *raw, uint32_t nsid),
				     uint16_t status)
{
	struct tgt_ns_quiesce quiesce;
	unsigned before;

	stepped_ns_add(PASSING, BLOCK, open_here(&inside));
	open_flooder();
	quiesce_passing(&quiesce);
	before = flood->answered;
	send(flood, PASSING);
	raw_host_delivered(flood);
	bounded_turns(LOOKS);
	preempt_and_abort();
	assert_int_equal(flood->answered, before + 1); /* the Register, by preempt_and_abort() */
	tgt_ns_quiesce_end(quiesce.ns, stepped_target);
	until_answered(flood);
	assert_int_equal(status_of(flood), status);
	unreserve();
	close_flooder();
}

static void a_preempted_write_does_not_outwait_a_quiesce(void **state)
{
	preempted_while_quiesced(send_unaligned_write, SC_GENERIC(CMD_ABORTED_PREMEPT));
}

static void a_preempted_pair_does_not_outwait_a_quiesce(void **state)
{
	/* The Write has that status; the Compare is answered after it. */
	preempted_while_quiesced(send_long_pair, SC_GENERIC(FUSED_FAIL));
}

/* --- storage that answers when the test says so ----------------------------------------------- */

enum {
	PIECES_EACH = 4,           /* that one who takes turns with others has in storage */
	FEW_OPS = 2 * PIECES_EACH, /* of which a Copy reads, and writes */
	PAIR_OPS = 2,              /* that a fused pair asks of it */
};

static const struct {
	const char *name;
	void (*send)(struct raw_host *raw, uint32_t nsid);
} slows[] = {
	{ "Copy", send_large_copy },
	{ "Write Zeroes", send_write_zeroes },
	{ "Deallocate", send_deallocate },
	{ "Verify", send_verify },
};

static struct raw_host *more[3];

/* Hundreds of them through several queues: storage has a few pieces, and keeps them. */
static void begin_slow(size_t i)
{
	print_message("#   %s\n", slows[i].name);
	stepped_ns_add(PASSING, BLOCK, open_here(&slow));
	open_flooder();
	for_each_row(q, more)
		more[q] = stepped_io(FLOODER, 1, flood_cntlid, (uint16_t)(2 + q));
	send_some(flood, slows[i].send, PASSING);
	for_each_row(q, more)
		send_some(more[q], slows[i].send, PASSING);
	bounded_turns(FLOOD);
	assert_int_equal(nkept, PIECES_EACH);
	assert_false(weft_reactor_busy(stepped_target->poll_groups[0]->reactor));
}

static void end_slow(void)
{
	for_each_row(q, more)
		raw_host_close(more[q]);
	raw_host_close(flood);
	raw_host_close(flood_admin);
	for (unsigned came_back = 0; stepped_ctrls() > ctrls_before; came_back++) {
		assert_true(came_back < PIECES_EACH + LOOKS);
		let_one_go();
	}
	assert_int_equal(nkept, 0);
}

/* Another host's read of another namespace: a few pieces are before it, and it finds a buffer. */
static void a_read_waits_for_few_pieces(void **state)
{
	for_each_named(i, slows, name) {
		begin_slow(i);
		send_read(other, SLOW, 7, PIECE);
		raw_host_delivered(other);
		bounded_turns(LOOKS);
		assert_int_equal(nkept, PIECES_EACH + 1);
		for (unsigned came_back = 0; other->answered < other->sent; came_back++) {
			assert_true(came_back <= PIECES_EACH);
			let_one_go();
		}
		end_slow();
		remove_it();
	}
}

/* … and a host's bulk command waits for one of its own share, not for all of them. */
static void a_short_one_waits_for_few_pieces(void **state)
{
	for_each_named(i, slows, name) {
		begin_slow(i);
		send_range(other, nvme_cmd_verify, SLOW, (struct span){ 7 * BLOCK, BLOCK });
		raw_host_delivered(other);
		bounded_turns(LOOKS);
		for (unsigned came_back = 0; other->answered < other->sent; came_back++) {
			assert_true(came_back < 2 * FEW_OPS);
			let_one_go();
		}
		assert_int_equal(status_of(other), 0);
		end_slow();
		remove_it();
	}
}

/* Storage has a few before each of the two operations of a fused pair, and before it begins. */
static void a_pair_waits_for_few_pieces(void **state)
{
	for_each_named(i, slows, name) {
		begin_slow(i);
		send_half(other, nvme_cmd_compare, NVME_FUSE_FIRST);
		send_half(other, nvme_cmd_write, NVME_FUSE_SECOND);
		raw_host_delivered(other);
		bounded_turns(LOOKS);
		for (unsigned came_back = 0; other->answered < other->sent; came_back++) {
			assert_true(came_back < (1 + PAIR_OPS) * FEW_OPS + PAIR_OPS);
			let_one_go();
		}
		end_slow();
		remove_it();
	}
}

static void over_within_few_pieces(const bool *over)
{
	bounded_turns(LOOKS);
	for (unsigned came_back = 0; !*over; came_back++) {
		assert_true(came_back < FEW_OPS);
		let_one_go();
		bounded_turns(LOOKS);
	}
}

static void a_removal_waits_for_few_pieces(void **state)
{
	struct weft_err err = { "" };

	for_each_named(i, slows, name) {
		bool removed = false;

		begin_slow(i);
		assert_int_equal(weft_ns_remove(stepped_subsys, PASSING, gone, &removed, &err), 0);
		over_within_few_pieces(&removed);
		end_slow();
	}
}

static void a_resize_waits_for_few_pieces(void **state)
{
	struct weft_err err = { "" };

	for_each_named(i, slows, name) {
		struct stepped_end end = { false, 0 };

		begin_slow(i);
		assert_int_equal(weft_ns_resize(stepped_subsys, PASSING, 256 * MIB, true,
						stepped_ended, &end, &err),
				 0);
		over_within_few_pieces(&end.over);
		assert_int_equal(end.rc, 0);
		end_slow();
		remove_it();
	}
}

/* Commands of a connection that is lost end, also if no piece of its host ever comes back. */
static void a_loss_waits_for_no_piece(void **state)
{
	for_each_named(i, slows, name) {
		struct raw_host *admin, *lost;
		unsigned ctrls, turns = 0;
		uint16_t cntlid;

		begin_slow(i);
		ctrls = stepped_ctrls();
		admin = stepped_admin(STEPPED_NQN, FLOODER, 1, &cntlid);
		lost = stepped_io(FLOODER, 1, cntlid, 1);
		send_some(lost, slows[i].send, PASSING);
		bounded_turns(LOOKS);
		raw_host_close(lost);
		raw_host_close(admin);
		for (; stepped_ctrls() > ctrls; turns++) {
			assert_true(turns < FLOOD);
			bounded_turn();
		}
		assert_int_equal(nkept, PIECES_EACH);
		end_slow();
		remove_it();
	}
}

/* The number of the first range that was not copied whole. */
static void a_copy_says_how_far_it_got(void **state)
{
	size_t sum = 0;

	open_flooder();
	send_large_copy(flood, MEM);
	raw_host_delivered(flood);
	for (unsigned turns = 0; sum < 2 * 40 * MIB; turns++) {
		assert_true(turns < TURNS_MAX);
		bounded_turn();
		sum += moved;
	}
	abort_it();
	answered_within_pieces(flood);
	assert_int_equal(status_of(flood), SC_GENERIC(ABORT_REQ));
	assert_int_equal(le64_to_cpu(flood->last.result), 2);
	close_flooder();
}

/* The piece that storage has ends by itself: the Abort says that it did not abort the command,
 * which ends after that. */
static void an_abort_while_storage_works(void **state)
{
	struct weft_msg msg = { .fn = slow_answer };

	open_flooder();
	send_verify(flood, SLOW);
	for (unsigned turns = 0; nkept < 1; turns++) {
		assert_true(turns < PIECE_TURNS);
		bounded_turn();
	}
	assert_int_equal(send_abort((uint16_t)(flood->cid - 1)), 1);
	bounded_turns(10);
	assert_true(flood->answered < flood->sent);
	let_go = 1;
	weft_reactor_post(stepped_target->poll_groups[0]->reactor, &msg);
	answered_within_pieces(flood);
	assert_int_equal(status_of(flood), SC_GENERIC(ABORT_REQ));
	assert_int_equal(nkept, 0);
	close_flooder();
}

/* The rest of a command whose connection is gone is for nobody: it ends at its next turn. */
static void a_loss_ends_them(void **state)
{
	for_each_named(i, longs, name) {
		begin_long(i);
		send_some(flood, longs[i].send, PASSING);
		bounded_turns(10);
		close_flooder_within(FLOOD);
		remove_it();
	}
}

/* Nor is that of a command whose queue goes in a reset. */
static void a_reset_ends_them(void **state)
{
	union nvme_sqe disable = { .property = { .opcode = NVME_FABRICS_OPCODE,
						 .fctype = NVMF_PROPERTY_SET,
						 .offset = cpu_to_le32(NVME_REG_CC),
						 .value = cpu_to_le64(0x460000) } };
	unsigned turns = 0;

	open_flooder();
	for (unsigned n = 0; n < FLOOD; n++)
		send_large_copy(flood, INSIDE);
	raw_host_delivered(flood);
	bounded_turns(10);
	raw_host_send(flood_admin, &disable, NULL, 0);
	for (; flood_admin->answered < flood_admin->sent; turns++) {
		assert_true(turns < FLOOD);
		bounded_turn();
	}
	close_flooder();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_read_on),
		cmocka_unit_test(others_find_buffers),
		cmocka_unit_test(buffers_come_late),
		cmocka_unit_test(readers_take_turns_at_buffers),
		cmocka_unit_test(writers_take_turns_at_buffers),
		cmocka_unit_test(short_ones_come_through),
		cmocka_unit_test(long_ones_get_on),
		cmocka_unit_test(hosts_take_turns),
		cmocka_unit_test(a_deallocate_has_a_limit),
		cmocka_unit_test(interleaved),
		cmocka_unit_test(a_freeze_waits),
		cmocka_unit_test(changes_wait_for_a_piece),
		cmocka_unit_test(changes_wait_for_no_buffer),
		cmocka_unit_test(a_pair_waits_for_a_piece),
		cmocka_unit_test(a_hold_is_waited_for),
		cmocka_unit_test(a_quiesce_costs_no_buffer),
		cmocka_unit_test(a_pair_waits_for_no_buffer),
		cmocka_unit_test(a_pair_does_not_wait_with_a_buffer),
		cmocka_unit_test(a_preempted_write_does_not_outwait_a_quiesce),
		cmocka_unit_test(a_preempted_pair_does_not_outwait_a_quiesce),
		cmocka_unit_test(a_read_waits_for_few_pieces),
		cmocka_unit_test(a_short_one_waits_for_few_pieces),
		cmocka_unit_test(a_pair_waits_for_few_pieces),
		cmocka_unit_test(a_removal_waits_for_few_pieces),
		cmocka_unit_test(a_resize_waits_for_few_pieces),
		cmocka_unit_test(a_loss_waits_for_no_piece),
		cmocka_unit_test(a_copy_says_how_far_it_got),
		cmocka_unit_test(an_abort_while_storage_works),
		cmocka_unit_test(a_loss_ends_them),
		cmocka_unit_test(a_reset_ends_them),
	};
	int rc;

	stepped_start();
	mem = stepped_backend("mem:512M");
	stepped_ns_add(MEM, BLOCK, mem);
	stepped_ns_add(INSIDE, BLOCK, open_here(&inside));
	stepped_ns_add(SLOW, BLOCK, open_here(&slow));
	stepped_ns_add(OTHERS, BLOCK, stepped_backend("mem:1M"));
	stepped_admin(STEPPED_NQN, OTHER, 2, &other_cntlid);
	other = stepped_io(OTHER, 2, other_cntlid, 1);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	stepped_stop();
	return rc;
}
