/* test_cli.c - tables for what commands show and take apart: sizes, times, the progress bar, runs
 * of zeroes, hexdumps, counters, what is waited for, the path of a connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/print.h"
#include "cli/cp/internal.h"
#include "cli/hexdump.h"
#include "cli/id/id.h"
#include "cli/progress.h"
#include "cli/path_wait.h"
#include "running.h"

/* --- sizes and times -------------------------------------------------------------------------- */

static const struct {
	uint64_t bytes;
	const char *text;
} size_cases[] = {
	{ 0, "0 bytes" },
	{ 1, "1 byte" },
	{ 1023, "1023 bytes" },
	{ 1024, "1 KiB" },
	{ 1536, "1.5 KiB" },
	{ 10240, "10 KiB" },
	{ 102501, "100 KiB" },
	{ (1 << 20) - 1, "1.0 MiB" },
	{ UINT64_C(5) << 30, "5 GiB" },
	{ UINT64_C(1288490188), "1.2 GiB" },
	{ UINT64_C(1) << 40, "1 TiB" },
	{ UINT64_MAX, "16 EiB" },
};

static void size_text(void **state)
{
	for_each_named(i, size_cases, text)
		assert_string_equal(weft_size_text(size_cases[i].bytes).s, size_cases[i].text);
}

static void clock_text(void **state)
{
	assert_string_equal(weft_clock_text(7).s, "0:07");
	assert_string_equal(weft_clock_text(754).s, "12:34");
	assert_string_equal(weft_clock_text(3723).s, "1:02:03");
}

static const struct {
	const char *text;
	int rc;
	uint32_t ms;
} ms_cases[] = {
	{ "5s", 0, 5000 },
	{ "500ms", 0, 500 },
	{ "2m", 0, 120000 },
	{ "10", 0, 10000 },
	{ "0", 0, 0 },
	{ "", -EINVAL, 0 },
	{ "s", -EINVAL, 0 },
	{ "-1s", -EINVAL, 0 },
	{ "1h", -EINVAL, 0 },
	{ "1 s", -EINVAL, 0 },
	{ "1.5s", -EINVAL, 0 },
	{ "86400s", 0, 86400000 },
	{ "86401s", -EINVAL, 0 },
	{ "99999999999999999999ms", -EINVAL, 0 },
};

static void ms_parse(void **state)
{
	for_each_named(i, ms_cases, text) {
		uint32_t ms = 12345;
		int rc = weft_ms_parse(ms_cases[i].text, &ms);

		if (rc != ms_cases[i].rc || (!rc && ms != ms_cases[i].ms))
			fail_msg("\"%s\": rc %d, %u ms", ms_cases[i].text, rc, ms);
	}
}

/* --- the bar ---------------------------------------------------------------------------------- */

static void progress_line(void **state)
{
	struct weft_progress p = {
		.what = "copying", .total = 4 << 20, .done = 1 << 20, .rate = 1 << 20
	};
	char line[512];

	weft_progress_line(&p, 80, line, sizeof(line));
	assert_string_equal(line, "copying  #####..................  25%     1 MiB of 4 MiB    "
				  "1 MiB/s  0:03 left ");
	p.unicode = true;
	weft_progress_line(&p, 40, line, sizeof(line));
	assert_string_equal(line, "copying   25%     1 MiB of 4 MiB    1 M");
	p.rate = 0;
	weft_progress_line(&p, 80, line, sizeof(line));
	assert_non_null(strstr(line, "stalled"));
	p.total = 0;
	weft_progress_line(&p, 80, line, sizeof(line));
	assert_string_equal(line, "copying  1 MiB  0 bytes/s");
	weft_progress_line(&p, 16, line, sizeof(line));
	assert_string_equal(line, "copying  1 MiB ");
}

/* By characters, never inside one. */
static void status_cut(void **state)
{
	char line[] = "p50 41 µs  p99";

	weft_status_cut(line, 20);
	assert_string_equal(line, "p50 41 µs  p99");
	weft_status_cut(line, 8);
	assert_string_equal(line, "p50 41 µ");
	weft_status_cut(line, 0);
	assert_string_equal(line, "");
}

static void exact_text(void **state)
{
	assert_string_equal(weft_exact_text(0).s, "0 bytes");
	assert_string_equal(weft_exact_text(512).s, "512 bytes");
	assert_string_equal(weft_exact_text(1 << 20).s, "1 MiB (1048576 bytes)");
	assert_string_equal(weft_exact_text(UINT64_MAX).s, "16 EiB (18446744073709551615 bytes)");
}

/* --- zeroes ----------------------------------------------------------------------------------- */

#define GRAIN 16

/* A letter is a grain: '.' of zeroes, 'x' with something in its last byte; @tail bytes follow. */
static const struct {
	const char *grains;
	size_t tail, run;
	bool zero;
} zero_cases[] = {
	{ ".", 0, 16, true },    { "x", 0, 16, false }, { "..", 0, 32, true },
	{ "xx", 0, 32, false },  { ".x", 0, 16, true }, { "x.", 0, 16, false },
	{ "..x.", 0, 32, true }, { "", 5, 5, true },    { "..", 3, 35, true },
	{ "xx", 3, 32, false },
};

static void zero_run(void **state)
{
	for_each_named(i, zero_cases, grains) {
		size_t grains = strlen(zero_cases[i].grains),
		       length = grains * GRAIN + zero_cases[i].tail;
		char *buf = calloc(1, length);
		bool zero;

		for (size_t g = 0; g < grains; g++)
			buf[g * GRAIN + GRAIN - 1] = zero_cases[i].grains[g] == 'x';
		assert_int_equal(weft_zero_run(buf, length, GRAIN, &zero), zero_cases[i].run);
		assert_int_equal(zero, zero_cases[i].zero);
		free(buf);
	}
}

/* --- hexdumps --------------------------------------------------------------------------------- */

static void hexdump(void **state)
{
	static const char bytes[] = "0123456789abcdef0123456789abcdef0123456789abcdef!";
	char *text = NULL;
	size_t size;
	struct weft_hexdump dump = { .out = open_memstream(&text, &size), .offset = 256 };

	weft_hexdump(&dump, bytes, 32);
	weft_hexdump(&dump, bytes + 32, 17);
	weft_hexdump_end(&dump);
	fclose(dump.out);
	assert_string_equal(
		text,
		"00000100  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n"
		"*\n"
		"00000130  21                                                |!|\n"
		"00000131\n");
	free(text);
}

/* --- counters --------------------------------------------------------------------------------- */

static void counters_json(void **state)
{
	const struct weft_queue_stats stats = { .posted = 1,
						.copied_bytes = 2,
						.registrations = 3 };
	json_auto_t *tcp = weft_counters_json(&stats, false);
	json_auto_t *rdma = weft_counters_json(&stats, true);

	assert_int_equal(json_object_size(tcp), 3);
	assert_int_equal(json_integer_value(json_object_get(tcp, "copied_bytes")), 2);
	assert_null(json_object_get(tcp, "registrations"));
	assert_int_equal(json_object_size(rdma), 8);
	assert_int_equal(json_integer_value(json_object_get(rdma, "registrations")), 3);
}

/* --- without a path --------------------------------------------------------------------------- */

/* In this order, for one wait after the other. */
static const struct {
	double at_s;
	bool usable, due;
} looks[] = {
	{ 100, true, false }, /* all is well */
	{ 101, false, false },   { 101.9, false, false }, { 102, false, true },
	{ 103, false, false },   { 111.9, false, false }, { 112, false, true },
	{ 121.9, false, false }, { 122, false, true },    { 123, true, true },    /* it goes on */
	{ 124, true, false },    { 125, false, false },   { 125.9, true, false }, /* no news */
	{ 126, false, false },   { 126.9, false, false }, { 127, false, true },
};

static void waiting_due(void **state)
{
	struct weft_path_wait w = { .command = "weft test" };

	for_each_row(i, looks) {
		assert_int_equal(weft_path_wait_due(&w, looks[i].usable, looks[i].at_s),
				 looks[i].due);
		if (looks[i].usable && looks[i].due) /* as weft_path_wait_poll() does */
			w.told = false, w.since_s = 0;
	}
}

/* Likewise. */
static const struct {
	double at_s;
	unsigned in_flight;
	unsigned long long answered;
	bool due;
} answers[] = {
	{ 100, 0, 0, false },   { 105, 0, 0, false }, /* nothing is asked */
	{ 106, 1, 0, false },   { 106.9, 1, 0, false }, { 107, 1, 0, true },
	{ 108, 1, 0, false },   { 117, 1, 0, true },    { 118, 1, 1, false }, /* one answer */
	{ 119.5, 1, 1, false }, /* told of a moment ago */
	{ 128, 1, 1, true },    { 139, 1, 2, false },   { 139.9, 1, 3, false },
	{ 140.8, 4, 4, false }, { 141.7, 4, 4, false }, { 141.8, 4, 4, true },
};

static void waiting_silent(void **state)
{
	struct weft_path_wait w = { .command = "weft test" };

	for_each_row(i, answers) {
		weft_path_wait_progress(&w, "Read", answers[i].in_flight, answers[i].answered);
		assert_int_equal(weft_path_wait_silent(&w, answers[i].at_s), answers[i].due);
	}
}

#define AT "nvme+tcp://127.0.0.1:4420"

static const struct {
	enum weft_state state;
	const char *why;
	struct weft_ns_path through;
	bool usable;
	const char *text;
} paths_seen[] = {
	{ WEFT_LIVE, "", { 0, WEFT_ACCESS_OPTIMIZED, 1 }, true, "optimized (ANA group 1)" },
	{ WEFT_LIVE, "", { 0, WEFT_ACCESS_NON_OPTIMIZED, 0 }, true, "non-optimized" },
	{ WEFT_LIVE, "", { 0, WEFT_ACCESS_INACCESSIBLE, 7 }, false, "inaccessible (ANA group 7)" },
	{ WEFT_LIVE, "it was reset", { 0, WEFT_ACCESS_UNKNOWN, 0 }, false, "unknown" },
	{ WEFT_RECONNECTING,
	  "refused",
	  { 0, WEFT_ACCESS_UNKNOWN, 0 },
	  false,
	  "reconnecting: refused" },
	{ WEFT_RESETTING, "", { 0, WEFT_ACCESS_UNKNOWN, 0 }, false, "resetting" },
};

static void waiting_why(void **state)
{
	for_each_named(i, paths_seen, text) {
		struct weft_path_wait_paths p = { .count = 1, .through = &paths_seen[i].through };
		char text[256], want[256];

		p.paths[0] = (struct weft_path_info){ .address = AT, .state = paths_seen[i].state };
		strcpy(p.paths[0].why.text, paths_seen[i].why);
		weft_path_wait_why(&p, text, sizeof(text));
		snprintf(want, sizeof(want), "127.0.0.1:4420 %s", paths_seen[i].text);
		assert_string_equal(text, want);
		assert_int_equal(weft_path_wait_usable(&p), paths_seen[i].usable);
		p.through = NULL;
		assert_int_equal(weft_path_wait_usable(&p), paths_seen[i].state == WEFT_LIVE);
	}
}

/* --- the path of a connection ----------------------------------------------------------------- */

#define ADAPTER .transport = "rdma", .local = "192.0.2.1", .device = "mlx5_0", .port = 1

static const struct {
	struct weft_path path;
	const char *kind, *warning; /* NULL: there is none */
} path_cases[] = {
	{ { .transport = "tcp", .local = "192.0.2.1" }, NULL, NULL },
	{ { ADAPTER, .kind = "iWARP" }, "iWARP", NULL },
	{ { ADAPTER, .kind = "RoCE v2", .mtu = 4096, .port_mtu = 4096 }, "RoCE v2", NULL },
	{ { ADAPTER, .kind = "RoCE v2", .mtu = 1024 }, "RoCE v2", NULL },
	{ { ADAPTER, .kind = "RoCE v2", .mtu = 1024, .port_mtu = 4096 },
	  "RoCE v2",
	  "warning: this port would do 4096: give both ends, and the switches between them, the "
	  "same MTU" },
};

static void assert_member(json_t *object, const char *key, const char *text)
{
	const char *found = json_string_value(json_object_get(object, key));

	assert_int_equal(!found, !text);
	if (text)
		assert_string_equal(found, text);
}

static void path_json(void **state)
{
	for_each_named(i, path_cases, kind) {
		json_t *json = weft_id_path_json(&path_cases[i].path);

		assert_member(json, "transport", path_cases[i].path.transport);
		assert_member(json, "local", "192.0.2.1");
		assert_member(json, "kind", path_cases[i].kind);
		assert_member(json, "warning", path_cases[i].warning);
		json_decref(json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_text),   cmocka_unit_test(clock_text),
		cmocka_unit_test(ms_parse),    cmocka_unit_test(progress_line),
		cmocka_unit_test(status_cut),  cmocka_unit_test(exact_text),
		cmocka_unit_test(zero_run),    cmocka_unit_test(hexdump),
		cmocka_unit_test(waiting_due), cmocka_unit_test(waiting_silent),
		cmocka_unit_test(waiting_why), cmocka_unit_test(counters_json),
		cmocka_unit_test(path_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
