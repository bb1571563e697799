/* test_target_late.c - no write lands late.
 *
 * Some answers tell a host that what it has sent is over, and that it may write again, by another
 * way: Connect, after a connection was lost; Cross-Controller Reset; CSTS.RDY 0, after CC.EN was
 * cleared; Disconnect; an Abort that has aborted. From the moment in which the target gives such an
 * answer, no write that it was for may reach storage, or end there: it could overwrite a newer one.
 *
 * Each act is a row of one table, and where the old write is meanwhile a row of another. */
#include <stdio.h>

#include "target/internal.h"
#include "world/stepped.h"
#include "running.h"

enum {
	SLOW = 2, /* the namespace whose storage answers when the test says so */
	BLOCK = 512,
	OTHERS = 32 << 20, /* where another host writes; old writes come before */
	LARGE = 1 << 20,   /* as much as a host may owe before its next writes are parked */
	LINE = 8,          /* commands, of which storage has fewer at a time */
	HOST_ID = 1,
	TURNS = 6,
	LATE_TURNS = 6,
	TURNS_MAX = 2000,
	STEP_MS = 2,
	CSTS = NVME_REG_CSTS,
};

static struct raw_host *admin, *queue, *second_admin, *third, *pair_admin, *pair;
static uint16_t cntlid, second_cntlid, pair_cntlid;

/* --- answers, and what storage is asked for --------------------------------------------------- */

static bool armed;        /* the act has begun */
static bool granted;      /* the host may write again */
static unsigned answered; /* of the act */

static bool is_connect(const struct weft_req *req)
{
	return req->cmd.common.opcode == NVME_FABRICS_OPCODE &&
	       req->cmd.connect.fctype == NVMF_CONNECT;
}

static bool is_disconnect(const struct weft_req *req)
{
	return req->cmd.common.opcode == NVME_FABRICS_OPCODE &&
	       req->cmd.connect.fctype == NVMF_DISCONNECT;
}

static bool is_csts(const struct weft_req *req)
{
	return req->cmd.common.opcode == NVME_FABRICS_OPCODE &&
	       req->cmd.connect.fctype == NVMF_PROPERTY_GET &&
	       le32_to_cpu(req->cmd.property.offset) == CSTS;
}

static bool is_abort(const struct weft_req *req)
{
	return !req->qp->sqid && req->cmd.common.opcode == nvme_admin_abort_cmd;
}

static bool is_reset(const struct weft_req *req)
{
	return !req->qp->sqid && req->cmd.common.opcode == NVME_ADMIN_CROSS_CTRL_RESET;
}

static bool grants(const struct weft_req *req)
{
	uint64_t result = le64_to_cpu(req->cqe.result);

	return is_connect(req) || is_disconnect(req) || (is_abort(req) && !result) ||
	       (is_csts(req) && !(result & 1)) || (is_reset(req) && result & NVME_CCR_IRS);
}

void __real_weft_req_reply(struct weft_req *req, uint16_t status);
void __wrap_weft_req_reply(struct weft_req *req, uint16_t status);
void __wrap_weft_req_reply(struct weft_req *req, uint16_t status)
{
	if (armed && (is_connect(req) || is_disconnect(req) || is_abort(req) || is_csts(req) ||
		      is_reset(req))) {
		answered++;
		granted |= !status && grants(req);
	}
	__real_weft_req_reply(req, status);
}

static struct weft_list kept = { &kept, &kept }; /* weft_io.op.link */
static unsigned nkept;
static bool keeps;

/* Old writes go one behind the other; of some acts the last one alone is over. */
static uint64_t old_from, old_next;

static bool is_old(const struct weft_io *io)
{
	return weft_io_changes(io) && io->offset >= old_from && io->offset < OTHERS;
}

static bool storage_has_old(void)
{
	struct weft_io *io;

	weft_list_for_each(io, &kept, op.link)
		if (is_old(io))
			return true;
	return false;
}

static void assert_may_change(const struct weft_io *io)
{
	assert_false(granted && is_old(io));
}

static void io_ends(struct weft_io *io)
{
	assert_may_change(io);
	if (io->kind == WEFT_IO_READ)
		memset(io->buf, 0, io->length);
	io->done(io, 0);
}

static int slow_submit(struct weft_backend *be, struct weft_io *io)
{
	assert_may_change(io);
	if (!keeps) {
		io_ends(io);
		return 0;
	}
	weft_list_push(&kept, &io->op.link);
	nkept++;
	return 0;
}

static void let_go_on_reactor(struct weft_msg *msg)
{
	struct weft_list *link;

	while ((link = weft_list_pop(&kept))) {
		nkept--;
		io_ends(container_of(link, struct weft_io, op.link));
	}
}

static void let_go(void)
{
	static struct weft_msg msg = { .fn = let_go_on_reactor };

	keeps = false;
	weft_reactor_post(stepped_target->poll_groups[0]->reactor, &msg);
	stepped_later(STEP_MS);
}

static void slow_close(struct weft_backend *be)
{
	free(be->spec);
	free(be);
}

static struct weft_backend *open_slow(void)
{
	static const struct weft_backend_ops ops = { .type = "slow",
						     .submit = slow_submit,
						     .close = slow_close };
	struct weft_backend *be = calloc(1, sizeof(*be));

	*be = (struct weft_backend){ .ops = &ops,
				     .size = 64 << 20,
				     .align = 1,
				     .block_min = BLOCK,
				     .spec = strdup("null:64M") };
	return be;
}

/* --- the old write ---------------------------------------------------------------------------- */

static char bytes[LARGE];

static void send_write(struct raw_host *raw, uint8_t opcode, const void *data, size_t len)
{
	union nvme_sqe sqe = { .rw = { .opcode = opcode,
				       .nsid = cpu_to_le32(SLOW),
				       .slba = cpu_to_le64(old_next / BLOCK),
				       .nlb = cpu_to_le16((uint16_t)(len / BLOCK - 1)) } };

	old_next += len;
	raw_host_send(raw, &sqe, data, opcode == nvme_cmd_write_zeroes ? 0 : len);
}

static void until_kept(unsigned n)
{
	for (unsigned turns = 0; nkept < n; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_control();
	}
}

static void storage_has_it(void)
{
	send_write(queue, nvme_cmd_write, bytes, BLOCK);
	until_kept(1);
}

static void it_owes_its_data(void)
{
	send_write(queue, nvme_cmd_write, NULL, BLOCK);
	for (unsigned turns = 0; !queue->r2ts; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_control();
	}
}

static void data_comes_late(void)
{
	raw_host_send_data(queue, bytes, BLOCK);
}

static void it_is_parked(void)
{
	send_write(queue, nvme_cmd_write, NULL, LARGE);
	send_write(queue, nvme_cmd_write, NULL, BLOCK);
	for (unsigned turns = 0; queue->r2ts < 1; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_control();
	}
}

static void it_is_in_line(void)
{
	for (unsigned n = 0; n < LINE; n++)
		send_write(queue, nvme_cmd_write_zeroes, NULL, BLOCK);
	until_kept(1);
	assert_in_range(nkept, 1, LINE - 1);
}

static void send_half(struct raw_host *raw, uint8_t opcode, uint8_t fuse)
{
	uint64_t at = raw == pair ? OTHERS : 0;

	union nvme_sqe sqe = { .rw = { .opcode = opcode,
				       .flags = fuse,
				       .slba = cpu_to_le64(at / BLOCK),
				       .nsid = cpu_to_le32(SLOW) } };

	raw_host_send(raw, &sqe, bytes, BLOCK);
}

/* Another host's pair has the namespace. */
static void it_waits_for_a_pair(void)
{
	send_half(pair, nvme_cmd_compare, NVME_FUSE_FIRST);
	send_half(pair, nvme_cmd_write, NVME_FUSE_SECOND);
	until_kept(1);
	send_write(queue, nvme_cmd_write, bytes, BLOCK);
	stepped_control();
	assert_int_equal(nkept, 1);
}

/* The host's own pair, of which storage has the first half. */
static void it_is_a_pair(void)
{
	send_half(queue, nvme_cmd_compare, NVME_FUSE_FIRST);
	send_half(queue, nvme_cmd_write, NVME_FUSE_SECOND);
	until_kept(1);
}

static void it_is_half_a_pair(void)
{
	send_half(queue, nvme_cmd_compare, NVME_FUSE_FIRST);
	stepped_control();
}

static void second_half_comes(void)
{
	send_half(queue, nvme_cmd_write, NVME_FUSE_SECOND);
}

/* More than the queue has room for: the target receives no more, and sees no end of the connection
 * either. */
static void nothing_is_received(void)
{
	for (unsigned n = 0; n < STEPPED_DEPTH + LINE; n++)
		send_write(queue, nvme_cmd_write, bytes, BLOCK);
	until_kept(STEPPED_DEPTH - 1);
	stepped_control();
}

static void it_was_not_sent(void)
{
}

static void it_comes_behind(void)
{
	send_write(queue, nvme_cmd_write, bytes, BLOCK);
}

static const struct {
	const char *name;
	void (*begin)(void);
	void (*late)(void); /* when the act has begun; of an Abort, when it is over */
	bool storage_has_it;
} stages[] = {
	{ "storage has it", storage_has_it, NULL, true },
	{ "it owes its data", it_owes_its_data, NULL, false },
	{ "it owes its data, which comes late", it_owes_its_data, data_comes_late, false },
	{ "it is parked", it_is_parked, NULL, false },
	{ "it is in line", it_is_in_line, NULL, true },
	{ "it waits for a pair", it_waits_for_a_pair, NULL, false },
	{ "it is a pair", it_is_a_pair, NULL, true },
	{ "it is half a pair", it_is_half_a_pair, second_half_comes, false },
	{ "it comes behind", it_was_not_sent, it_comes_behind, false },
	{ "nothing is received any more", nothing_is_received, NULL, true },
};

/* --- the acts --------------------------------------------------------------------------------- */

static void connect_again(void)
{
	const struct nvmf_connect_data data = stepped_connect_data(STEPPED_NQN, FLOODER, HOST_ID,
								   NVME_CNTLID_DYNAMIC);

	third = raw_host_open();
	raw_host_wait(third);
	raw_host_connect_send(third, &data, 0, 0);
}

static void lose_and_connect(void)
{
	raw_host_close(queue);
	raw_host_close(admin);
	queue = admin = NULL;
	connect_again();
}

/* The controller lives on. */
static void lose_queue_and_connect(void)
{
	raw_host_close(queue);
	queue = NULL;
	connect_again();
}

static void reset_by_another(void)
{
	const struct tgt_ctrl *ctrl = tgt_ctrl_find(stepped_subsys, cntlid);
	union nvme_sqe sqe = { .ccr = { .opcode = NVME_ADMIN_CROSS_CTRL_RESET,
					.ciu = ctrl->ciu,
					.icid = cpu_to_le16(cntlid),
					.cirn = cpu_to_le64(ctrl->cirn) } };

	raw_host_send(second_admin, &sqe, NULL, 0);
}

static void ask_for_csts(void)
{
	union nvme_sqe sqe = { .property = { .opcode = NVME_FABRICS_OPCODE,
					     .fctype = NVMF_PROPERTY_GET,
					     .offset = cpu_to_le32(CSTS) } };

	if (admin->answered == admin->sent)
		raw_host_send(admin, &sqe, NULL, 0);
}

static void disable(void)
{
	union nvme_sqe sqe = { .property = { .opcode = NVME_FABRICS_OPCODE,
					     .fctype = NVMF_PROPERTY_SET,
					     .offset = cpu_to_le32(NVME_REG_CC) } };

	raw_host_send(admin, &sqe, NULL, 0);
}

static void disconnect(void)
{
	union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
					    .fctype = NVMF_DISCONNECT } };

	raw_host_send(queue, &sqe, NULL, 0);
}

/* The last one that was sent. */
static void abort_it(void)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_abort_cmd,
					   .cdw10 = cpu_to_le32((queue->cid - 1u) << 16 | 1) } };

	raw_host_send(admin, &sqe, NULL, 0);
}

static const struct {
	const char *name;
	void (*begin)(void);
	void (*ask)(void); /* again and again */
	bool of_one;       /* of one command, which may be out of its reach */
	bool of_queue;     /* the host's connection may go on, and what comes by it counts */
} acts[] = {
	{ "Connect, after an association was lost", lose_and_connect, NULL, false, false },
	{ "Connect, after an I/O connection was lost", lose_queue_and_connect, NULL, false, false },
	{ "Cross-Controller Reset", reset_by_another, NULL, false, false },
	{ "CC.EN cleared", disable, ask_for_csts, false, false },
	{ "Disconnect", disconnect, NULL, false, true },
	{ "Abort", abort_it, NULL, true, true },
};

/* --- each of them, in each stage -------------------------------------------------------------- */

static void open_all(void)
{
	admin = stepped_admin(STEPPED_NQN, FLOODER, HOST_ID, &cntlid);
	queue = stepped_io(FLOODER, HOST_ID, cntlid, 1);
	second_admin = stepped_admin(STEPPED_NQN, FLOODER, HOST_ID, &second_cntlid);
	pair_admin = stepped_admin(STEPPED_NQN, OTHER, 2, &pair_cntlid);
	pair = stepped_io(OTHER, 2, pair_cntlid, 1);
	keeps = true;
	armed = granted = false;
	answered = 0;
	old_from = old_next = 0;
}

static void close_all(void)
{
	struct raw_host *all[] = { admin, queue, second_admin, third, pair_admin, pair };

	for (size_t i = 0; i < COUNT(all); i++)
		if (all[i])
			raw_host_close(all[i]);
	admin = queue = second_admin = third = pair_admin = pair = NULL;
	for (unsigned turns = 0; stepped_ctrls(); turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_later(STEP_MS);
	}
}

/* So many turns, or until the act is answered. */
static void turns_pass(unsigned turns, void (*ask)(void))
{
	while (turns-- && !granted) {
		if (ask)
			ask();
		stepped_later(STEP_MS);
	}
}

/* What comes late comes so many turns behind the act. */
static void no_write_lands_late(size_t act, size_t stage, unsigned after)
{
	void (*late)(void) = acts[act].of_queue ? stages[stage].late : NULL;
	bool waits = !acts[act].of_one && stages[stage].storage_has_it;

	open_all();
	stages[stage].begin();
	armed = true;
	if (acts[act].of_one && old_next)
		old_from = old_next - BLOCK;
	acts[act].begin();
	if (after)
		stepped_others();
	for (unsigned turn = 1; turn < after; turn++)
		stepped_once();
	if (late && !acts[act].of_one && !granted) {
		late();
		stepped_others();
	}
	turns_pass(TURNS, acts[act].ask);
	if (granted && waits)
		fail_msg("%s was answered, and storage has it", acts[act].name);
	if (!granted && acts[act].of_queue && !acts[act].of_one && !waits && !storage_has_old())
		fail_msg("%s waits for more than storage", acts[act].name);
	let_go();
	if (!acts[act].of_one)
		turns_pass(TURNS_MAX, acts[act].ask);
	assert_true(answered && (granted || acts[act].of_one));
	if (late && acts[act].of_one)
		late();
	for (unsigned turns = 0; turns < TURNS; turns++)
		stepped_later(STEP_MS);
	assert_int_equal(nkept, 0);
	granted = armed = false;
	close_all();
}

/* The target ends the old association while the host's Connect is on its way. A Connect that was
 * answered before has nothing to do with it. */
static void connect_meets_an_end(size_t stage, unsigned after)
{
	open_all();
	stages[stage].begin();
	armed = true;
	connect_again();
	stepped_others();
	for (unsigned turn = 0; turn < after; turn++)
		stepped_once();
	armed = !granted;
	granted = false;
	tgt_ctrl_kill(tgt_ctrl_find(stepped_subsys, cntlid), "as after its keep-alive time");
	turns_pass(TURNS, NULL);
	if (granted && stages[stage].storage_has_it)
		fail_msg("Connect was answered, and storage has it");
	let_go();
	for (unsigned turns = 0; turns < TURNS; turns++)
		stepped_later(STEP_MS);
	granted = armed = false;
	close_all();
}

static void no_write_is_later_than_its_end(void **state)
{
	for_each_named(stage, stages, name)
		for (unsigned after = 0; after < LATE_TURNS; after++)
			connect_meets_an_end(stage, after);
}

static void no_write_is_late(void **state)
{
	for_each_named(act, acts, name) {
		print_message("#   %s\n", acts[act].name);
		for_each_named(stage, stages, name)
			for (unsigned after = 0; after < (acts[act].of_queue && !acts[act].of_one &&
									  stages[stage].late ?
								  LATE_TURNS :
								  1);
			     after++)
				no_write_lands_late(act, stage, after);
	}
}

/* A queue is looked through once, however many Disconnects come. */
static void only_the_first_disconnect_counts(void **state)
{
	unsigned before;

	open_all();
	storage_has_it();
	before = queue->answered;
	for (unsigned n = 0; n < 3; n++)
		disconnect();
	for (unsigned turns = 0; turns < TURNS; turns++)
		stepped_later(STEP_MS);
	assert_int_equal(queue->answered, before + 2);
	assert_int_equal(le16_to_cpu(queue->last.status) >> 1, SC_GENERIC(ABORT_QUEUE));
	let_go();
	for (unsigned turns = 0; turns < TURNS; turns++)
		stepped_later(STEP_MS);
	assert_int_equal(queue->answered, before + 4); /* the write, and the first */
	assert_int_equal(queue->last.status, 0);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_write_is_late),
		cmocka_unit_test(no_write_is_later_than_its_end),
		cmocka_unit_test(only_the_first_disconnect_counts),
	};
	int rc;

	stepped_start();
	stepped_ns_add(SLOW, BLOCK, open_slow());
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	stepped_stop();
	return rc;
}
