/* test_target_filter.c - a namespace with filters: every command meets them, and what waits in a
 * delay is waited for. The clock is the test's. */
#include "running.h"
#include "world/stepped.h"

enum {
	NSID = 2,
	BLOCK = 512,
	DELAY_MS = 100,
	BEFORE_MS = 90, /* turns move the clock as well, a little */
	READ_ERROR = 0x281,
	WRITE_FAULT = 0x280,
	DEGRADED = 4, /* reliability, in SMART */
};

static struct raw_host *admin, *io;
static uint8_t block[BLOCK]; /* zeroes */

static void connect_host(void)
{
	uint16_t cntlid;

	admin = stepped_admin(STEPPED_NQN, OTHER, 1, &cntlid);
	io = stepped_io(OTHER, 1, cntlid, 1);
}

static int set_up(void **state)
{
	stepped_start();
	connect_host();
	return 0;
}

static int tear_down(void **state)
{
	stepped_stop();
	return 0;
}

static void serve(const char *spec)
{
	stepped_ns_add(NSID, BLOCK, stepped_backend(spec));
	stepped_control();
}

static void gone(void *arg)
{
	*(bool *)arg = true;
}

static void serve_no_more(void)
{
	struct weft_err err;
	bool removed = false;

	assert_int_equal(weft_ns_remove(stepped_subsys, NSID, gone, &removed, &err), 0);
	for (int i = 0; i < 10; i++)
		stepped_control();
	assert_true(removed);
}

/* --- commands --------------------------------------------------------------------------------- */

struct command {
	const char *name;
	uint8_t opcode;
	uint16_t status; /* where storage fails */
	bool in, out;
};

static const struct command commands[] = {
	{ "read", nvme_cmd_read, READ_ERROR, .in = true },
	{ "compare", nvme_cmd_compare, READ_ERROR, .out = true },
	{ "verify", nvme_cmd_verify, READ_ERROR },
	{ "write", nvme_cmd_write, WRITE_FAULT, .out = true },
	{ "zeroes", nvme_cmd_write_zeroes, WRITE_FAULT },
	{ "flush", nvme_cmd_flush, WRITE_FAULT },
};

static void begin(const struct command *command, uint64_t slba)
{
	union nvme_sqe sqe = { .rw = { .opcode = command->opcode,
				       .nsid = cpu_to_le32(NSID),
				       .slba = cpu_to_le64(slba) } };

	raw_host_send(io, &sqe, command->out ? block : NULL,
		      command->in || command->out ? BLOCK : 0);
	for (int i = 0; i < 10; i++)
		stepped_control();
}

static bool answered(void)
{
	return io->answered == io->sent;
}

/* Also of memory, which is otherwise read, compared and verified where it lies. */
static void every_command_waits(void **state)
{
	static const char *const specs[] = { "mem:8M,delay=100ms", "null:8M,delay=100ms" };

	for_each_row(i, specs) {
		serve(specs[i]);
		for_each_named(j, commands, name) {
			begin(&commands[j], 0);
			stepped_later(BEFORE_MS);
			assert_false(answered());
			stepped_later(DELAY_MS - BEFORE_MS);
			assert_true(answered());
			assert_int_equal(raw_host_wait(io), 0);
		}
		serve_no_more();
	}
}

static void every_command_fails(void **state)
{
	static const char *const specs[] = { "mem:8M,error=100%", "null:8M,error=100%" };

	for_each_row(i, specs) {
		serve(specs[i]);
		for_each_named(j, commands, name) {
			begin(&commands[j], 0);
			assert_true(answered());
			assert_int_equal(raw_host_wait(io), commands[j].status);
		}
		serve_no_more();
	}
}

/* --- what the storage below remembers --------------------------------------------------------- */

static void note_sync_failed(void *arg, const struct weft_target_ns_info *info)
{
	if (info->nsid == NSID)
		*(bool *)arg = info->sync_failed;
}

static uint8_t smart_warnings(void)
{
	union nvme_sqe sqe = { .common = { .opcode = nvme_admin_get_log_page,
					   .nsid = cpu_to_le32(0xffffffff),
					   .cdw10 = cpu_to_le32(2 | 127 << 16) } };

	raw_host_send(admin, &sqe, NULL, 512);
	assert_int_equal(raw_host_wait(admin), 0);
	assert_int_equal(admin->data_len, 512);
	return admin->data[0];
}

static void a_failed_sync_shows(void **state)
{
	static const struct weft_target_visitor visitor = { .ns = note_sync_failed };
	struct weft_backend *be = stepped_backend("null:8M,delay=100ms,error=0%");
	bool failed;

	stepped_ns_add(NSID, BLOCK, be);
	for (int i = 0; i < 2; i++) {
		failed = !i;
		weft_target_visit(stepped_target, &visitor, &failed);
		assert_int_equal(failed, i);
		assert_int_equal(smart_warnings(), i ? DEGRADED : 0);
		atomic_store(&weft_backend_storage(be)->sync_failed, true);
	}
}

/* --- what waits is waited for ----------------------------------------------------------------- */

/* Its storage is closed when the delay is over, and not before. */
static void a_removal_waits(void **state)
{
	struct weft_err err;
	bool removed = false;

	serve("mem:8M,delay=100ms,error=flush:1/1");
	begin(&commands[3], 0);
	assert_int_equal(weft_ns_remove(stepped_subsys, NSID, gone, &removed, &err), 0);
	stepped_later(BEFORE_MS);
	assert_false(removed);
	stepped_later(DELAY_MS - BEFORE_MS);
	assert_int_equal(raw_host_wait(io), 0);
	for (int i = 0; i < 10; i++)
		stepped_control();
	assert_true(removed);
}

/* What is cut off was written before, not after. */
static void a_resize_waits(void **state)
{
	struct stepped_end end = { false };
	struct weft_err err;

	serve("mem:8M,delay=write:100ms");
	memset(block, 7, sizeof(block));
	begin(&commands[3], (8 << 20) / BLOCK - 1);
	memset(block, 0, sizeof(block));
	assert_int_equal(weft_ns_resize(stepped_subsys, NSID, 4 << 20, true, stepped_ended, &end,
					&err),
			 0);
	stepped_later(BEFORE_MS);
	assert_false(end.over);
	stepped_later(DELAY_MS - BEFORE_MS);
	assert_int_equal(raw_host_wait(io), 0);
	assert_true(end.over);
	assert_int_equal(end.rc, 0);
	end.over = false;
	assert_int_equal(weft_ns_resize(stepped_subsys, NSID, 8 << 20, false, stepped_ended, &end,
					&err),
			 0);
	for (int i = 0; i < 10; i++)
		stepped_control();
	assert_true(end.over);
	begin(&commands[1], (8 << 20) / BLOCK - 1);
	assert_int_equal(raw_host_wait(io), 0);
}

/* The queue is gone when storage has given its command back. */
static void a_lost_connection_waits(void **state)
{
	unsigned ctrls = stepped_ctrls();

	serve("mem:8M,delay=100ms");
	for_each_named(i, commands, name) {
		begin(&commands[i], 0);
		raw_host_close(io);
		raw_host_close(admin);
		stepped_later(BEFORE_MS);
		connect_host();
		stepped_later(DELAY_MS);
		assert_int_equal(stepped_ctrls(), ctrls);
	}
}

/* Nothing is left when the target has stopped, in tear_down(). */
static void a_stop_waits(void **state)
{
	serve("mem:8M,delay=5ms,error=50%");
	for_each_named(i, commands, name)
		begin(&commands[i], i);
	assert_false(answered());
}

#define with_target(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_target(every_command_waits), with_target(every_command_fails),
		with_target(a_failed_sync_shows), with_target(a_removal_waits),
		with_target(a_resize_waits),      with_target(a_lost_connection_waits),
		with_target(a_stop_waits),
	};

	return cmocka_run_group_tests_name("filters of a target", tests, NULL, NULL);
}
