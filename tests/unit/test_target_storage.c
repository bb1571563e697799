/* test_target_storage.c - what commands ask of storage, and what hosts hear when it fails. */
#include "held_case.h"
#include "running.h"

enum { NS_HELD = 9, GROUP = 3, LID_SMART = 2, LID_ENDURANCE_GROUP = 9, DNR = 0x4000 };
enum { DEGRADED = 4, HEALTH_EVENT = 0x020001 }; /* reliability; log page 2, type 1 */
enum { READ_ERROR = 0x281, WRITE_FAULT = 0x280, CAPACITY = 0x81, INTERNAL = 0x06 };
enum { PIECE = 128 << 10, GET_LOG = 0x02, SET_FEATURES = 0x09, WRITE_CACHE = 0x06 };

static int with_held(void **state)
{
	target_ns_add_on(NS_HELD, held_open(), GROUP);
	return 0;
}

static int without_held(void **state)
{
	held_fail(NULL, 0);
	target_ns_remove(NS_HELD);
	return 0;
}

/* One block at the beginning, where there are zeroes; what it came to. */
static void run(struct host *h, struct inflight_io *f, enum weft_op_code op, unsigned flags)
{
	bool pair = op == WEFT_COMPARE_AND_WRITE;

	*f = (struct inflight_io){ .iov = { f->data, pair ? 1024 : 512 } };
	f->cmd = (struct weft_cmd){ .op = op,
				    .ns = h->ns,
				    .flags = flags,
				    .length = op == WEFT_FLUSH ? 0 : 512,
				    .copy_from = 1024,
				    .iov = &f->iov,
				    .iovcnt = 1,
				    .done = on_inflight_done,
				    .user = f };
	assert_int_equal(weft_submit(h->queue, &f->cmd), 0);
	while (!f->done)
		weft_queue_poll(h->queue, -1);
}

/* --- what storage is asked for ---------------------------------------------------------------- */

static void set_write_cache(struct weft_ctrl *ctrl, bool on)
{
	uint8_t sqe[64] = { [0] = SET_FEATURES, [40] = WRITE_CACHE, [44] = on };

	assert_int_equal(weft_admin(ctrl, sqe, NULL, 0, NULL, NULL), 0);
}

/* What is to be durable before the answer is asked for as such, of whatever command: by FUA, or
 * because the host turned the write cache off. */
static void storage_is_asked(void **state)
{
	static const struct {
		const char *name;
		enum weft_op_code op;
		unsigned flags;
		const char *asked, *without_cache;
	} cases[] = {
		{ "read", WEFT_READ, 0, "R", "R" },
		{ "write", WEFT_WRITE, 0, "W", "W!" },
		{ "write, FUA", WEFT_WRITE, WEFT_FUA, "W!", "W!" },
		{ "flush", WEFT_FLUSH, 0, "F", "F" },
		{ "zero", WEFT_ZERO, 0, "Z", "Z!" },
		{ "zero, FUA", WEFT_ZERO, WEFT_FUA, "Z!", "Z!" },
		{ "zero, FUA and DEAC", WEFT_ZERO, WEFT_FUA | WEFT_UNMAP, "Z!", "Z!" },
		{ "trim", WEFT_TRIM, 0, "T", "T" },
		{ "verify", WEFT_VERIFY, 0, "R", "R" },
		{ "compare", WEFT_COMPARE, 0, "R", "R" },
		{ "copy", WEFT_COPY, 0, "RW", "RW!" },
		{ "copy, FUA", WEFT_COPY, WEFT_FUA, "RW!", "RW!" },
		{ "pair", WEFT_COMPARE_AND_WRITE, 0, "RW", "RW!" },
	};
	struct host h = host_open("", NS_HELD);
	struct inflight_io f;

	for (int cache = 1; cache >= 0; cache--) {
		set_write_cache(h.ctrl, cache);
		held_asked();
		for_each_named(i, cases, name) {
			const char *want = cache ? cases[i].asked : cases[i].without_cache;
			const char *asked;

			run(&h, &f, cases[i].op, cases[i].flags);
			asked = held_asked();
			if (f.cmd.rc || strcmp(asked, want))
				fail_msg("%s, write cache %d: %d, storage was asked for %s",
					 cases[i].name, cache, f.cmd.rc, asked);
		}
	}
	host_close(&h);
}

/* Dataset Management of ranges of @nlb blocks each. */
static void deallocate(struct host *h, const uint32_t *nlb, unsigned n)
{
	uint32_t sqe[16] = { 0x09, NS_HELD, [10] = n - 1, [11] = 1 << 2 };
	struct {
		uint32_t attributes, nlb;
		uint64_t slba;
	} ranges[4] = { 0 };
	struct iovec iov = { ranges, n * sizeof(ranges[0]) };
	struct weft_cmd cmd = {
		.op = WEFT_RAW, .sqe = sqe, .length = iov.iov_len, .iov = &iov, .iovcnt = 1
	};

	for (unsigned i = 0; i < n; i++)
		ranges[i].nlb = nlb[i];
	assert_int_equal(weft_run(h->queue, &cmd, NULL), 0);
}

/* A range of no blocks is none, whichever it is. */
static void storage_is_asked_for_ranges(void **state)
{
	static const struct {
		const char *asked;
		unsigned n;
		uint32_t nlb[4];
	} cases[] = {
		{ "", 1, { 0 } },
		{ "T", 1, { 1 } },
		{ "T", 2, { 0, 1 } },
		{ "T", 2, { 1, 0 } },
		{ "TT", 4, { 0, 1, 0, 2 } },
		{ "", 4, { 0 } },
		{ "TTTT", 4, { 1, 2, 3, 4 } },
	};
	struct host h = host_open("", NS_HELD);

	held_asked();
	for_each_row(i, cases) {
		deallocate(&h, cases[i].nlb, cases[i].n);
		assert_string_equal(held_asked(), cases[i].asked);
	}
	host_close(&h);
}

/* --- several pieces --------------------------------------------------------------------------- */

static int compare(struct host *h, char *data, unsigned length)
{
	struct iovec iov = { data, length };
	struct weft_cmd cmd = {
		.op = WEFT_COMPARE, .ns = h->ns, .length = length, .iov = &iov, .iovcnt = 1
	};

	return weft_run(h->queue, &cmd, NULL);
}

/* A difference is found in whatever piece of a Compare it is, be it the last byte. */
static void compare_looks_at_every_piece(void **state)
{
	static const struct {
		unsigned length, at;
	} cases[] = {
		{ PIECE, PIECE - 1 },
		{ 2 * PIECE, 0 },
		{ 2 * PIECE, PIECE },
		{ 2 * PIECE, 2 * PIECE - 1 },
		{ 3 * PIECE, 2 * PIECE - 1 },
		{ 3 * PIECE, 2 * PIECE },
		{ 3 * PIECE, 3 * PIECE - 1 },
		{ 2 * PIECE + 512, 2 * PIECE },
		{ 2 * PIECE + 512, 2 * PIECE + 511 },
	};
	static char data[3 * PIECE];
	struct host h = host_open("", NS_HELD);

	for_each_row(i, cases) {
		unsigned len = cases[i].length, at = cases[i].at;

		assert_int_equal(compare(&h, data, len), 0);
		data[at] = 1;
		if (compare(&h, data, len) != -EILSEQ)
			fail_msg("Compare of %u bytes did not see byte %u", len, at);
		data[at] = 0;
	}
	host_close(&h);
}

/* --- storage that fails ----------------------------------------------------------------------- */

static uint64_t smart(struct weft_ctrl *ctrl, unsigned at)
{
	uint8_t page[512];
	uint64_t value;

	assert_int_equal(weft_log_page(ctrl, LID_SMART, 0xffffffff, 0, page, sizeof(page), NULL),
			 0);
	memcpy(&value, page + at, sizeof(value));
	return value;
}

static uint64_t media_errors(struct weft_ctrl *ctrl)
{
	return smart(ctrl, 160);
}

static uint64_t error_log_entries(struct weft_ctrl *ctrl)
{
	return smart(ctrl, 176);
}

/* What could not be read is a read error, also where a Compare or a Copy needed it; what could not
 * be changed or made durable, a write fault. */
static void host_hears_of_errors(void **state)
{
	static const struct {
		const char *name;
		enum weft_op_code op;
		unsigned flags;
		const char *failing;
		int rc;
		unsigned status;
		unsigned entries; /* of the error log */
	} cases[] = {
		{ "read", WEFT_READ, 0, "R", -EIO, READ_ERROR, 1 },
		{ "read: the medium", WEFT_READ, 0, "R", -ENODATA, READ_ERROR | DNR, 1 },
		{ "read: the device", WEFT_READ, 0, "R", -ENODEV, READ_ERROR, 1 },
		{ "read: no memory", WEFT_READ, 0, "R", -ENOMEM, INTERNAL, 1 },
		{ "write", WEFT_WRITE, 0, "W", -EIO, WRITE_FAULT, 1 },
		{ "write, FUA", WEFT_WRITE, WEFT_FUA, "W", -EIO, WRITE_FAULT, 1 },
		{ "write: the file", WEFT_WRITE, 0, "W", -ESTALE, WRITE_FAULT, 1 },
		{ "write: full", WEFT_WRITE, 0, "W", -ENOSPC, CAPACITY | DNR, 1 },
		{ "zero", WEFT_ZERO, 0, "Z", -EIO, WRITE_FAULT, 1 },
		{ "zero: full", WEFT_ZERO, 0, "Z", -ENOSPC, CAPACITY | DNR, 1 },
		{ "trim", WEFT_TRIM, 0, "T", -EIO, WRITE_FAULT, 1 },
		{ "flush", WEFT_FLUSH, 0, "F", -EIO, WRITE_FAULT, 1 },
		{ "flush: for good", WEFT_FLUSH, 0, "F", -ENOTRECOVERABLE, WRITE_FAULT | DNR, 1 },
		{ "verify", WEFT_VERIFY, 0, "R", -EIO, READ_ERROR, 1 },
		{ "compare", WEFT_COMPARE, 0, "R", -EIO, READ_ERROR, 1 },
		{ "copy: its read", WEFT_COPY, 0, "R", -EIO, READ_ERROR, 1 },
		{ "copy: its write", WEFT_COPY, 0, "W", -EIO, WRITE_FAULT, 1 },
		{ "pair: its compare", WEFT_COMPARE_AND_WRITE, 0, "R", -EIO, READ_ERROR, 2 },
		{ "pair: its write", WEFT_COMPARE_AND_WRITE, 0, "W", -EIO, WRITE_FAULT, 1 },
	};
	struct host h = host_open("", NS_HELD);
	struct inflight_io f;

	for_each_named(i, cases, name) {
		uint64_t media = media_errors(h.ctrl), entries = error_log_entries(h.ctrl);
		bool is_media = (cases[i].status & 0x700) == 0x200;

		held_fail(cases[i].failing, cases[i].rc);
		run(&h, &f, cases[i].op, cases[i].flags);
		if (f.cmd.status != cases[i].status)
			fail_msg("%s: status %#x", cases[i].name, f.cmd.status);
		if (f.cmd.rc != (cases[i].rc == -ENOSPC ? -ENOSPC : -EIO))
			fail_msg("%s: %d", cases[i].name, f.cmd.rc);
		if (media_errors(h.ctrl) != media + is_media)
			fail_msg("%s: SMART counts it otherwise", cases[i].name);
		if (error_log_entries(h.ctrl) != entries + cases[i].entries)
			fail_msg("%s: error log", cases[i].name);
		held_fail(NULL, 0);
		run(&h, &f, cases[i].op, cases[i].flags);
		if (f.cmd.rc)
			fail_msg("%s: %d when storage works again", cases[i].name, f.cmd.rc);
	}
	host_close(&h);
}

static void expect_warnings(struct weft_ctrl *ctrl, unsigned warnings)
{
	/* Of group 1, 512 bytes. */
	uint8_t sqe[64] = { [0] = GET_LOG, [40] = LID_ENDURANCE_GROUP, [42] = 127, [46] = 1 };
	uint8_t group[512];

	assert_int_equal(smart(ctrl, 0) & 0xff, warnings);
	assert_int_equal(weft_admin(ctrl, sqe, group, sizeof(group), NULL, NULL), 0);
	assert_int_equal(group[0], warnings);
}

static struct weft_event next_trouble(struct weft_ctrl *ctrl)
{
	struct weft_event event;

	do
		while (!weft_ctrl_next_event(ctrl, &event))
			usleep(1000);
	while (event.kind != WEFT_EVENT_ERROR);
	return event;
}

/* What was written may be lost, and nothing is durable any more: less reliable, but not read-only.
 * It is told once, to all controllers, and is over when the storage was opened anew. */
static void failed_sync_is_a_warning(void **state)
{
	static const int errors[] = { -EIO, -ENOSPC };
	struct weft_event event;
	struct inflight_io f;

	for (unsigned i = 0; i < 2; i++) {
		struct host h = host_open("", NS_HELD);
		struct weft_ctrl *other = connect_with("");

		held_fail("F", errors[i]);
		run(&h, &f, WEFT_FLUSH, 0);
		expect_warnings(h.ctrl, 0); /* it may have been anything */
		held_sync_failed();
		run(&h, &f, WEFT_FLUSH, 0);
		expect_warnings(other, DEGRADED);
		assert_int_equal(next_trouble(h.ctrl).result, HEALTH_EVENT);
		assert_int_equal(next_trouble(other).result, HEALTH_EVENT);
		for (unsigned n = 0; n < 4; n++) {
			run(&h, &f, WEFT_FLUSH, 0);
			expect_warnings(h.ctrl, DEGRADED);
		}
		without_held(state);
		expect_warnings(h.ctrl, 0);
		while (weft_ctrl_next_event(h.ctrl, &event))
			assert_int_not_equal(event.kind, WEFT_EVENT_ERROR);
		with_held(state);
		weft_disconnect(other);
		host_close(&h);
	}
}

/* Its status and the words for it reach the user, after one try. */
static void user_is_told(void **state)
{
	struct host h = host_open("", NS_HELD);
	struct weft_err err = { "" }, full = { "" };
	char data[512] = "";

	held_asked();
	held_fail("R", -EIO);
	assert_int_equal(weft_read(h.queue, h.ns, data, 512, 4096, &err), -EIO);
	assert_string_equal(err.text, "Read of 512 bytes at 4096: unrecovered read error (NVMe "
				      "status 0x281)");
	assert_string_equal(held_asked(), "R");
	held_fail("W", -ENOSPC);
	assert_int_equal(weft_write(h.queue, h.ns, data, 512, 0, 0, &full), -ENOSPC);
	assert_string_equal(full.text, "Write of 512 bytes at 0: capacity exceeded (NVMe status "
				       "0x81)");
	assert_string_equal(held_asked(), "W");
	host_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(storage_is_asked, with_held, without_held),
		cmocka_unit_test_setup_teardown(storage_is_asked_for_ranges, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(compare_looks_at_every_piece, with_held,
						without_held),
		cmocka_unit_test_setup_teardown(host_hears_of_errors, with_held, without_held),
		cmocka_unit_test_setup_teardown(failed_sync_is_a_warning, with_held, without_held),
		cmocka_unit_test_setup_teardown(user_is_told, with_held, without_held),
	};

	return cmocka_run_group_tests(tests, start_target, end_target);
}
