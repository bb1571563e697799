/* test_target_held.c - commands that storage has in hand, while the target changes around them.
 *
 * Storage keeps operations until the case lets them go. What must wait for them is looked at while
 * they are held, after the target has answered something else: it had its chance. */
#include "held.h"
#include "host_case.h"

#include <pthread.h>

enum { NS_HELD = 9, GROUP = 3, LID_ANA = 0x0c, INACCESSIBLE = 3, CHANGE = 15, OPTIMIZED = 1 };

static int with_held(void **state)
{
	target_ns_add_on(NS_HELD, held_open(), GROUP);
	return 0;
}

static int without_held(void **state)
{
	held_hold(false);
	held_let_go();
	target_ana_wait(target_ana_start(GROUP, "optimized"));
	target_ns_remove(NS_HELD);
	return 0;
}

/* What @ctrl shows of the group, and how often its log page changed. */
static unsigned shown(struct weft_ctrl *ctrl, uint64_t *count)
{
	struct weft_err err = { "" };
	uint8_t page[1024];
	uint32_t at = 16, group, nsids;

	if (weft_log_page(ctrl, LID_ANA, 0, 0, page, sizeof(page), &err))
		fail_msg("%s", err.text);
	if (count)
		memcpy(count, page, sizeof(*count));
	for (;; at += 32 + 4 * nsids) {
		assert_true(at + 32 < sizeof(page));
		memcpy(&group, page + at, 4);
		memcpy(&nsids, page + at + 4, 4);
		if (group == GROUP)
			return page[at + 16];
	}
}

/* --- a command under way ------------------------------------------------------------------- */

struct flight {
	struct weft_cmd cmd;
	struct iovec iov;
	char data[1024];
	bool done;
};

static void landed(struct weft_cmd *cmd)
{
	((struct flight *)cmd->user)->done = true;
}

static void take_off(struct host *h, struct flight *f, enum weft_op_code op, uint64_t length)
{
	f->iov = (struct iovec){ f->data, length };
	f->cmd = (struct weft_cmd){ .op = op,
				    .ns = h->ns,
				    .length = op == WEFT_COMPARE_AND_WRITE ? length / 2 : length,
				    .iov = &f->iov,
				    .iovcnt = 1,
				    .done = landed,
				    .user = f };
	assert_int_equal(weft_submit(h->queue, &f->cmd), 0);
	weft_queue_poll(h->queue, 0);
}

static void land(struct host *h, struct flight *f)
{
	while (!f->done)
		weft_queue_poll(h->queue, -1);
	assert_int_equal(f->cmd.rc, 0);
}

/* --- ANA ------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	enum weft_op_code op;
	uint64_t length;
} held_ops[] = {
	{ "write", WEFT_WRITE, 512 },
	{ "read", WEFT_READ, 512 },
	{ "compare and write", WEFT_COMPARE_AND_WRITE, 1024 },
	{ "verify", WEFT_VERIFY, 0 },
	{ "zero", WEFT_ZERO, 0 },
};

/* A group is in "change" while a command is at work in it, and what it does is done before the group
 * is told to be out of reach. */
static void ana_waits_for_storage(void **state)
{
	struct host h = host_open("", NS_HELD);
	uint64_t before, during, after;

	for (unsigned i = 0; i < COUNT(held_ops); i++) {
		struct flight f = { .done = false };
		struct target_ana *ana;

		memset(f.data, 0, 512);
		memset(f.data + (held_ops[i].op == WEFT_COMPARE_AND_WRITE ? 512 : 0), 'x', 512);
		held_hold(true);
		take_off(&h, &f, held_ops[i].op, held_ops[i].length ? held_ops[i].length : 512);
		held_wait(1);
		assert_int_equal(shown(h.ctrl, &before), OPTIMIZED);
		ana = target_ana_start(GROUP, "inaccessible");
		while (shown(h.ctrl, &during) == OPTIMIZED)
			;
		assert_int_equal(shown(h.ctrl, NULL), CHANGE);
		assert_true(!target_ana_over(ana) && during > before);
		held_hold(false);
		held_let_go();
		target_ana_wait(ana);
		assert_int_equal(shown(h.ctrl, &after), INACCESSIBLE);
		assert_true(after > during);
		land(&h, &f);
		target_ana_wait(target_ana_start(GROUP, "optimized"));
		assert_int_equal(weft_zero(h.queue, h.ns, 1024, 0, 0, NULL), 0);
	}
	host_close(&h);
}

/* The connection is gone, its write is not. */
static void ana_waits_for_a_lost_connection(void **state)
{
	struct host lost = host_open("?reconnect_delay=1ms", NS_HELD),
		    other = host_open("", NS_HELD);
	struct flight f = { .data = "late" };
	struct target_ana *ana;

	held_hold(true);
	take_off(&lost, &f, WEFT_WRITE, 512);
	held_wait(1);
	weft_ctrl_reset(lost.ctrl);
	ana = target_ana_start(GROUP, "inaccessible");
	while (shown(other.ctrl, NULL) == OPTIMIZED)
		;
	assert_int_equal(shown(other.ctrl, NULL), CHANGE);
	assert_false(target_ana_over(ana));
	assert_string_equal(held_bytes(), "");
	held_hold(false);
	held_let_go();
	target_ana_wait(ana);
	assert_string_equal(held_bytes(), "late");
	target_ana_wait(target_ana_start(GROUP, "optimized"));
	land(&lost, &f);
	host_close(&lost);
	host_close(&other);
}

/* One that comes in between lets nobody in where the others stop to. */
static void ana_of_a_new_controller(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct flight f = { .done = false };
	struct weft_ctrl *young;
	struct target_ana *ana;

	held_hold(true);
	take_off(&h, &f, WEFT_WRITE, 512);
	held_wait(1);
	ana = target_ana_start(GROUP, "inaccessible");
	while (shown(h.ctrl, NULL) == OPTIMIZED)
		;
	young = connect_with("");
	assert_int_equal(shown(young, NULL), CHANGE);
	held_hold(false);
	held_let_go();
	target_ana_wait(ana);
	assert_int_equal(shown(young, NULL), INACCESSIBLE);
	land(&h, &f);
	weft_disconnect(young);
	host_close(&h);
}

/* The second waits for the first, and both end. */
static void ana_in_line(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct flight f = { .done = false };
	struct target_ana *first, *second;

	held_hold(true);
	take_off(&h, &f, WEFT_WRITE, 512);
	held_wait(1);
	first = target_ana_start(GROUP, "inaccessible");
	second = target_ana_start(GROUP, "non-optimized");
	while (shown(h.ctrl, NULL) == OPTIMIZED)
		;
	assert_true(!target_ana_over(first) && !target_ana_over(second));
	held_hold(false);
	held_let_go();
	target_ana_wait(first);
	target_ana_wait(second);
	assert_int_equal(shown(h.ctrl, NULL), 2);
	land(&h, &f);
	host_close(&h);
}

/* Groups that nobody works in do not wait for those in which somebody does. */
static void ana_of_another_group(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct flight f = { .done = false };

	held_hold(true);
	take_off(&h, &f, WEFT_WRITE, 512);
	held_wait(1);
	target_ana_wait(target_ana_start(1, "inaccessible"));
	target_ana_wait(target_ana_start(1, "optimized"));
	held_hold(false);
	held_let_go();
	land(&h, &f);
	host_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ana_waits_for_storage, with_held, without_held),
		cmocka_unit_test_setup_teardown(ana_waits_for_a_lost_connection, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(ana_of_a_new_controller, with_held, without_held),
		cmocka_unit_test_setup_teardown(ana_in_line, with_held, without_held),
		cmocka_unit_test_setup_teardown(ana_of_another_group, with_held, without_held),
	};

	return cmocka_run_group_tests(tests, start_target, end_target);
}
