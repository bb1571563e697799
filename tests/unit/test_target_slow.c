/* test_target_slow.c - hosts that take their time over TCP: what they hold up, and for how long.
 *
 * A host asks for more of a memory namespace than sockets hold and does not read it. The rest stays
 * with the target, which sends it out of the namespace's own memory. */
#include <errno.h>
#include <sys/socket.h>

#include "world/stepped.h"

#define SLOW "nqn.2026-11.io.weft:host-that-is-slow"

enum {
	READS = 64,
	READ_BYTES = 1 << 20, /* all of the namespace */
	STEP_MS = 2000,
	LIMIT_STEPS = 7, /* 10 s, and what it takes to notice */
};

static struct raw_host *admin, *io, *other;

static int set_up(void **state)
{
	uint16_t cntlid;

	stepped_start();
	other = stepped_admin(STEPPED_NQN, OTHER, 2, &cntlid);
	admin = stepped_admin(STEPPED_NQN, SLOW, 1, &cntlid);
	io = stepped_io(SLOW, 1, cntlid, 1);
	io->stalls = true;
	for (unsigned i = 0; i < READS; i++) {
		union nvme_sqe sqe = { .rw = { .opcode = nvme_cmd_read,
					       .nsid = cpu_to_le32(1),
					       .nlb = cpu_to_le16(READ_BYTES / 512 - 1) } };

		raw_host_send(io, &sqe, NULL, READ_BYTES);
	}
	stepped_control();
	return 0;
}

static int tear_down(void **state)
{
	stepped_stop();
	return 0;
}

static void removed(void *arg)
{
	*(bool *)arg = true;
}

static void remove_ns(bool *over)
{
	struct weft_err err = { "" };

	*over = false;
	assert_int_equal(weft_ns_remove(stepped_subsys, 1, removed, over, &err), 0);
	for (int i = 0; i < 10; i++)
		stepped_control();
}

static void check_alive(struct raw_host *raw)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_keep_alive } };

	raw_host_send(raw, &sqe, NULL, 0);
	assert_int_equal(raw_host_wait(raw), 0);
}

/* What had come before is still to be read; then there is no more. */
static bool has_ended(const struct raw_host *raw)
{
	static char bytes[1 << 20];
	ssize_t got;

	do
		got = recv(raw->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (got > 0);
	return !got || errno == ECONNRESET;
}

/* Nobody waits for what it keeps. */
static void may_take_its_time(void **state)
{
	for (int i = 0; i < 30; i++)
		stepped_later(STEP_MS);
	io->stalls = false;
	assert_int_equal(raw_host_wait(io), 0);
}

static void removal_waits_for_a_reader(void **state)
{
	bool over;

	remove_ns(&over);
	for (int i = 0; i < 4; i++)
		stepped_later(STEP_MS);
	assert_false(over);
	io->stalls = false;
	assert_int_equal(raw_host_wait(io), 0);
	stepped_control();
	stepped_control(); /* its storage is closed */
	assert_true(over);
}

static void removal_does_not_wait_for_ever(void **state)
{
	bool over;

	remove_ns(&over);
	assert_false(over); /* or this tests nothing */
	for (int i = 0; i < LIMIT_STEPS && !over; i++)
		stepped_later(STEP_MS);
	assert_true(over);
	assert_true(has_ended(io));
	check_alive(admin); /* its other connections are as they were */
	check_alive(other);
}

/* Whole answers leave all the time, and there are many. */
static void removal_does_not_wait_for_who_reads_a_little(void **state)
{
	static char bytes[4 * READ_BYTES];
	bool over;

	remove_ns(&over);
	for (int i = 0; i < LIMIT_STEPS && !over; i++) {
		assert_true(recv(io->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0);
		stepped_later(STEP_MS);
	}
	assert_true(over);
	assert_true(has_ended(io));
}

/* Connections go first then. */
static void the_end_of_a_subsystem_waits_for_no_reader(void **state)
{
	bool over, all = false;

	remove_ns(&over);
	assert_false(over); /* or this tests nothing */
	weft_subsys_remove(stepped_subsys, removed, &all);
	for (int i = 0; i < 100 && !(over && all); i++)
		stepped_control();
	assert_true(over && all);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(may_take_its_time),
		CASE(removal_waits_for_a_reader),
		CASE(removal_does_not_wait_for_ever),
		CASE(removal_does_not_wait_for_who_reads_a_little),
		CASE(the_end_of_a_subsystem_waits_for_no_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
