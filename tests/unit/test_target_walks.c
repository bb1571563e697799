/* test_target_walks.c - one host must not hold up another: a turn looks at a part of a table that a
 * host sizes.
 *
 * A queue has up to 65,535 requests in its table. Each row is something for which the target looks
 * through such a table; what a turn of a reactor has looked at is counted. */
#include <stdio.h>

#include "target/internal.h"
#include "world/stepped.h"
#include "running.h"

enum {
	DEPTH = 4096,
	BUFFERS = 2048, /* for so many of them */
	RECLAIM_MS = 2100,
	DEEP = 1900,    /* commands of one queue that wait for their data */
	TURN_MAX = 512, /* requests that one turn looks at */
	ABORTS = 100,
	NOBODY = 0xfffe, /* a command identifier that no command has */
	OTHERS_TURNS = 20,
	TURNS_MAX = 10000,
	KEY = 101,
	OTHER_KEY = 102,
	IEKEY = 8,
	REPLACE = 2,
	PREEMPT_ABORT = 2,
};

static struct raw_host *admin, *deep, *other_admin, *other;
static uint16_t cntlid, other_cntlid;

/* --- what is counted -------------------------------------------------------------------------- */

static unsigned looked, looked_most, looked_all;

struct weft_req *__real_weft_qpair_req(struct weft_qpair *qp, uint32_t index);
struct weft_req *__wrap_weft_qpair_req(struct weft_qpair *qp, uint32_t index);
struct weft_req *__wrap_weft_qpair_req(struct weft_qpair *qp, uint32_t index)
{
	looked++;
	looked_all++;
	if (looked > looked_most)
		looked_most = looked;
	return __real_weft_qpair_req(qp, index);
}

void __real_weft_reactor_turn(struct weft_reactor *r, int timeout_ms);
void __wrap_weft_reactor_turn(struct weft_reactor *r, int timeout_ms);
void __wrap_weft_reactor_turn(struct weft_reactor *r, int timeout_ms)
{
	looked = 0;
	__real_weft_reactor_turn(r, timeout_ms);
}

/* --- a table of a host ------------------------------------------------------------------------ */

static void open_deep(void)
{
	admin = stepped_admin(STEPPED_NQN, FLOODER, 1, &cntlid);
	deep = stepped_io(FLOODER, 1, cntlid, 1);
	for (unsigned n = 0; n < DEEP; n++) {
		union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_write, .nsid = cpu_to_le32(1) } };

		raw_host_send(deep, &sqe, NULL, 512);
	}
	for (unsigned turns = 0; deep->r2ts < DEEP; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_control();
	}
}

static void close_deep(void)
{
	if (deep)
		raw_host_close(deep);
	raw_host_close(admin);
	for (unsigned turns = 0; stepped_ctrls() > 1; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_control();
	}
}

static void send_abort_of(struct raw_host *raw, uint16_t cid)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_abort_cmd,
					   .cdw10 = cpu_to_le32((uint32_t)cid << 16 | 1) } };

	raw_host_send(raw, &sqe, NULL, 0);
}

static void send_abort(uint16_t cid)
{
	send_abort_of(admin, cid);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void abort_last(void)
{
	send_abort((uint16_t)(deep->cid - 1));
	assert_int_equal(raw_host_wait(admin), 0);
	assert_int_equal(le64_to_cpu(admin->last.result), 0);
}

static void abort_nobody(void)
{
	send_abort(NOBODY);
	assert_int_equal(raw_host_wait(admin), 0);
	assert_int_equal(le64_to_cpu(admin->last.result), 1);
}

static void abort_many(void)
{
	for (unsigned n = 0; n < ABORTS; n++)
		send_abort(NOBODY);
	raw_host_wait(admin);
}

static void preempt_and_abort(void)
{
	raw_host_send_keys(other, 1, nvme_cmd_resv_register, REPLACE | IEKEY, 0, OTHER_KEY);
	assert_int_equal(raw_host_wait(other), 0);
	raw_host_send_keys(other, 1, nvme_cmd_resv_acquire, PREEMPT_ABORT | 1 << 8, OTHER_KEY, KEY);
	assert_int_equal(raw_host_wait(other), 0);
}

static void disconnect(void)
{
	union nvme_sqe sqe = { .connect = { .opcode = NVME_FABRICS_OPCODE,
					    .fctype = NVMF_DISCONNECT } };

	raw_host_send(deep, &sqe, NULL, 0);
	assert_int_equal(raw_host_wait(deep), 0);
	for (unsigned i = 0; i < 10; i++)
		stepped_later(2);
}

static void lose(void)
{
	raw_host_close(deep);
	deep = NULL;
	for (unsigned i = 0; i < 10; i++)
		stepped_later(2);
}

/* Its table was deep once, and there is nothing in it. */
static void an_idle_one_ends(void)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_keep_alive } };
	uint16_t id;
	struct raw_host *idle = stepped_admin(STEPPED_NQN, FLOODER, 1, &id);

	for (unsigned n = 0; n < DEEP; n++)
		raw_host_send(idle, &sqe, NULL, 0);
	stepped_others();
	raw_host_wait(idle);
	looked_most = looked_all = 0;
	raw_host_close(idle);
	for (unsigned i = 0; i < 40; i++)
		stepped_once();
}

/* Another host waits for a buffer, and the target looks who keeps them. */
static void others_wait(void)
{
	struct raw_host *waits = stepped_io(OTHER, 2, other_cntlid, 2);

	for (unsigned n = 0; n < BUFFERS - DEEP + 1; n++) {
		union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_write, .nsid = cpu_to_le32(1) } };

		raw_host_send(waits, &sqe, NULL, 512);
	}
	for (unsigned turns = 0; waits->r2ts < BUFFERS - DEEP; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_control();
	}
	looked_most = looked_all = 0;
	stepped_later(RECLAIM_MS);
	raw_host_close(waits);
	stepped_later(0);
}

static const struct {
	const char *name;
	void (*walk)(void);
	unsigned looks; /* at requests, at least */
} rows[] = {
	{ "Abort", abort_last, DEEP },
	{ "Abort, nobody", abort_nobody, DEEP },
	{ "Abort, many", abort_many, ABORTS *DEEP },
	{ "Preempt and Abort", preempt_and_abort, DEEP },
	{ "reclaim", others_wait, DEEP },
	{ "Disconnect, and the end", disconnect, 2 * DEEP },
	{ "a connection is lost", lose, DEEP },
	{ "an idle one is lost", an_idle_one_ends, DEEP },
};

static void register_victim(void)
{
	struct raw_host *victim = stepped_io(FLOODER, 1, cntlid, 2);

	raw_host_send_keys(victim, 1, nvme_cmd_resv_register, REPLACE | IEKEY, 0, KEY);
	assert_int_equal(raw_host_wait(victim), 0);
	raw_host_close(victim);
}

static void a_turn_looks_at_a_part(void **state)
{
	for_each_named(i, rows, name) {
		print_message("#   %s\n", rows[i].name);
		open_deep();
		register_victim();
		looked_most = looked_all = 0;
		rows[i].walk();
		assert_true(looked_all >= rows[i].looks); /* or this tests nothing */
		assert_in_range(looked_most, 0, TURN_MAX);
		close_deep();
	}
}

/* Another host's Abort waits for a part of a turn of a flood of them. */
static void others_abort_meanwhile(void **state)
{
	unsigned turns = 0;

	open_deep();
	for (unsigned n = 0; n < ABORTS; n++)
		send_abort(NOBODY);
	for (unsigned i = 0; i < 10; i++)
		stepped_once();
	send_abort_of(other_admin, NOBODY);
	for (; other_admin->answered < other_admin->sent; turns++) {
		assert_true(turns < OTHERS_TURNS);
		stepped_once();
	}
	assert_true(admin->answered < admin->sent); /* or this tests nothing */
	raw_host_wait(admin);
	close_deep();
}

/* The queue goes while Aborts look through it: they came when it had been lost already. And so does
 * the host that asked. */
static void a_queue_goes_meanwhile(void **state)
{
	open_deep();
	raw_host_close(deep);
	deep = NULL;
	for (looked_all = 0; !looked_all;)
		stepped_once();
	for (unsigned n = 0; n < ABORTS; n++)
		send_abort(NOBODY);
	for (unsigned turns = 0; admin->answered < admin->sent; turns++) {
		assert_true(turns < TURNS_MAX);
		stepped_once();
	}
	assert_in_range(looked_all, DEEP, ABORTS * DEEP / 2); /* or this tests nothing */
	close_deep();
	open_deep();
	for (unsigned n = 0; n < ABORTS; n++)
		send_abort(NOBODY);
	for (unsigned i = 0; i < 10; i++)
		stepped_once();
	close_deep();
}

/* --- what a table leaves ---------------------------------------------------------------------- */

enum { SLOTS_KEPT = 1024, A_WHILE_MS = 1100 };

static size_t discarded;

void __real_weft_pages_discard(void *pages, size_t size);
void __wrap_weft_pages_discard(void *pages, size_t size);
void __wrap_weft_pages_discard(void *pages, size_t size)
{
	discarded += size;
	__real_weft_pages_discard(pages, size);
}

static size_t slot_size(void)
{
	return stepped_target->poll_groups[0]
		->slots[weft_transport_index(weft_transport_find(NVMF_TRTYPE_TCP))]
		.size;
}

/* Who asks for a look while one is under way gets another one: it may have passed who keeps it. */
static void a_look_asked_for_meanwhile(void **state)
{
	struct weft_poll_group *group = stepped_target->poll_groups[0];
	struct weft_reclaim *reclaim = &group->reclaim;

	for (unsigned asks = 0; asks < 2; asks++) {
		weft_timer_stop(group->reactor, &reclaim->timer);
		reclaim->timer.fn(&reclaim->timer);
		if (asks)
			weft_poll_group_start_reclaim(group);
		stepped_others();
		assert_false(reclaim->walking);
		assert_int_equal(weft_heap_has(&reclaim->timer.node), asks);
	}
	weft_timer_stop(group->reactor, &reclaim->timer);
}

/* The host is still there, and the commands of a queue have ended: the memory of their slots is given
 * back. */
static void a_burst_leaves_no_memory(void **state)
{
	for (unsigned times = 0; times < 2; times++) {
		open_deep();
		stepped_later(A_WHILE_MS);
		for (unsigned i = 0; i < 10; i++)
			stepped_later(2);
		discarded = 0;
		raw_host_close(deep);
		deep = NULL;
		stepped_later(0);
		stepped_later(A_WHILE_MS);
		for (unsigned i = 0; i < 10; i++)
			stepped_later(2);
		assert_in_range(discarded / slot_size(), DEEP - SLOTS_KEPT, DEEP);
		close_deep();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_looks_at_a_part),
		cmocka_unit_test(others_abort_meanwhile),
		cmocka_unit_test(a_queue_goes_meanwhile),
		cmocka_unit_test(a_look_asked_for_meanwhile),
		cmocka_unit_test(a_burst_leaves_no_memory),
	};
	int rc;

	stepped_depth = DEPTH;
	stepped_start();
	other_admin = stepped_admin(STEPPED_NQN, OTHER, 2, &other_cntlid);
	other = stepped_io(OTHER, 2, other_cntlid, 1);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	stepped_stop();
	return rc;
}
