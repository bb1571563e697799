/* test_bench.c - the parts of weft bench that need no target: what may be found in a block and how
 * it is named, which generations count, which I/O comes next and when, and how a run ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/verify.h"
#include "bench/ledger.h"
#include "bench/path_loss.h"
#include "bench/pace.h"
#include "bench/plan.h"
#include "bench/plot.h"
#include "bench/stamp.h"
#include "running.h"

/* --- blocks ----------------------------------------------------------------------------------- */

#define RUN    UINT64_C(77)
#define BLOCK  512
#define OFFSET UINT64_C(1048576)
#define BLOCKS 4

static unsigned char data[BLOCKS * BLOCK];

static void write_block(unsigned i, uint64_t run, uint64_t offset, uint32_t generation)
{
	bench_stamp_fill(data + i * BLOCK, BLOCK, run, offset, generation);
}

/* One I/O of four blocks, all of @generation. */
static void write_all(uint32_t generation)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		write_block(i, RUN, OFFSET + i * BLOCK, generation);
}

static void nothing(void)
{
}

static void flip_body(void)
{
	data[BLOCK + 300] ^= 1;
}

static void flip_magic(void)
{
	data[BLOCK] ^= 0x80;
}

static void flip_generation(void)
{
	data[BLOCK + 24] ^= 1;
}

static void flip_sum(void)
{
	data[36] ^= 1;
}

static void half_old(void)
{
	unsigned char old[BLOCK];

	bench_stamp_fill(old, BLOCK, RUN, OFFSET, 4);
	memcpy(data + 256, old + 256, 256);
}

static void half_zero(void)
{
	memset(data + 256, 0, 256);
}

static void one_old(void)
{
	write_block(2, RUN, OFFSET + 2 * BLOCK, 4);
}

static void one_zero(void)
{
	memset(data + 3 * BLOCK, 0, BLOCK);
}

static void all_old(void)
{
	write_all(4);
}

static void all_zero(void)
{
	memset(data, 0, sizeof(data));
}

static void neighbour(void)
{
	memcpy(data, data + BLOCK, BLOCK);
}

static void the_one_before(void)
{
	memcpy(data + BLOCK, data, BLOCK);
}

static void other_run(void)
{
	write_block(1, RUN + 1, OFFSET + BLOCK, 5);
}

static void noise(void)
{
	memset(data, 0x5a, sizeof(data));
}

static void from_the_future(void)
{
	write_all(9);
}

/* The I/O has generation 5 in all blocks; then something happens to it. */
static const struct {
	const char *name;
	void (*happens)(void);
	uint32_t low, high;
	enum bench_finding found;
	uint32_t block; /* in which it is told of */
} judge_cases[] = {
	{ "as written", nothing, 5, 5, BENCH_FINE, 0 },
	{ "outcome of two writes not known", nothing, 3, 6, BENCH_FINE, 0 },
	{ "never written, but it is there", nothing, 0, 5, BENCH_FINE, 0 },
	{ "bit flipped in the body", flip_body, 5, 5, BENCH_CORRUPT, 1 },
	{ "bit flipped in the magic", flip_magic, 5, 5, BENCH_CORRUPT, 1 },
	{ "bit flipped in the generation", flip_generation, 5, 5, BENCH_CORRUPT, 1 },
	{ "bit flipped in the sum", flip_sum, 5, 5, BENCH_CORRUPT, 0 },
	{ "half of the block before", half_old, 5, 5, BENCH_TORN, 0 },
	{ "half of the block before, outcome not known", half_old, 4, 5, BENCH_TORN, 0 },
	{ "half zeroes", half_zero, 5, 5, BENCH_TORN, 0 },
	{ "one block of four is old", one_old, 5, 5, BENCH_TORN, 2 },
	{ "one block of four is zeroes", one_zero, 5, 5, BENCH_TORN, 3 },
	{ "one old block, outcome not known", one_old, 4, 5, BENCH_FINE, 0 },
	{ "all of it is old", all_old, 5, 5, BENCH_LOST, 0 },
	{ "all of it is old, nothing flushed", all_old, 4, 5, BENCH_FINE, 0 },
	{ "zeroes", all_zero, 5, 5, BENCH_EMPTY, 0 },
	{ "zeroes, where nothing had to be", all_zero, 0, 5, BENCH_FINE, 0 },
	{ "the block beside it", neighbour, 5, 5, BENCH_MISPLACED, 0 },
	{ "the block beside it, where nothing had to be", neighbour, 0, 5, BENCH_MISPLACED, 0 },
	{ "the block before it", the_one_before, 5, 5, BENCH_MISPLACED, 1 },
	{ "of another run", other_run, 5, 5, BENCH_FOREIGN, 1 },
	{ "of another run, where nothing had to be", other_run, 0, 5, BENCH_FINE, 0 },
	{ "noise", noise, 5, 5, BENCH_FOREIGN, 0 },
	{ "noise, where nothing had to be", noise, 0, 5, BENCH_FINE, 0 },
	{ "a generation that was never sent", from_the_future, 5, 6, BENCH_FOREIGN, 0 },
	{ "what an earlier run left", nothing, 0, BENCH_ANY_GENERATION, BENCH_FINE, 0 },
	{ "what an earlier run left, flipped", flip_body, 0, BENCH_ANY_GENERATION, BENCH_CORRUPT,
	  1 },
};

static void judge_table(void **state)
{
	for_each_named(i, judge_cases, name) {
		const struct bench_verify_case c = {
			.data = data,
			.length = sizeof(data),
			.offset = OFFSET,
			.run = RUN,
			.block_size = BLOCK,
			.low = judge_cases[i].low,
			.high = judge_cases[i].high,
		};
		struct bench_verify_result v;

		write_all(5);
		judge_cases[i].happens();
		bench_verify(&c, &v);
		if (v.what != judge_cases[i].found)
			fail_msg("%s: %s: %s", judge_cases[i].name, bench_finding_text(v.what),
				 v.text);
		if (v.what != BENCH_FINE && v.offset != OFFSET + judge_cases[i].block * BLOCK)
			fail_msg("%s: in block %u", judge_cases[i].name,
				 (unsigned)(v.offset - OFFSET) / BLOCK);
	}
}

static void every_bit_counts(void **state)
{
	struct bench_stamp_view view;

	for (unsigned bit = 0; bit < 8 * BLOCK; bit++) {
		write_all(5);
		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		bench_stamp_look(data, BLOCK, RUN, &view);
		assert_int_not_equal(view.what, BENCH_STAMP_GOOD);
		assert_int_not_equal(view.what, BENCH_STAMP_OTHER);
		assert_int_equal(bench_stamp_differs(data, BLOCK, RUN, OFFSET, 5), bit / 8);
	}
}

static void unstamped_blocks_are_counted(void **state)
{
	const struct bench_verify_case c = { data, sizeof(data), OFFSET, RUN, BLOCK, 0, 5 };
	struct bench_verify_result v;

	write_all(5);
	one_zero();
	bench_verify(&c, &v);
	assert_int_equal(v.what, BENCH_FINE);
	assert_int_equal(v.unstamped, 1);
}

/* --- the ledger ------------------------------------------------------------------------------- */

/* Steps on chunk 0: w write and complete, s send only, f flush, r the connection is lost and made
 * again, F a flush during which it is. Then low and high. */
static const struct {
	const char *steps;
	bool volatile_cache;
	uint32_t low, high;
} ledger_cases[] = {
	{ "", true, 0, 0 },       { "s", true, 0, 1 },     { "w", true, 1, 1 },
	{ "ws", true, 1, 2 },     { "wss", true, 1, 3 },   { "wssw", true, 4, 4 },
	{ "wr", true, 0, 1 },                            /* it may be lost */
	{ "wr", false, 1, 1 },                           /* it may not */
	{ "wfr", true, 1, 1 },                           /* it was flushed */
	{ "wfwr", true, 1, 2 },                          /* the second was not */
	{ "wfwfr", true, 2, 2 },                         /* both were */
	{ "wfwwr", true, 1, 3 },                         /* back to what was flushed */
	{ "wrf", true, 0, 1 },                           /* it was lost before the flush */
	{ "wF", true, 0, 1 },                            /* whether before or after is not known */
	{ "wfrrr", true, 1, 1 },                         /* durable stays durable */
	{ "wfrwr", true, 1, 2 },                         /* also across later losses */
	{ "wfrwfr", true, 2, 2 }, { "wrw", true, 2, 2 }, /* acknowledged on this connection */
	{ "wrwr", true, 0, 2 },   { "wrwfr", true, 2, 2 }, { "wFwfs", true, 2, 3 },
};

static void play(struct bench_ledger *ledger, const char *steps, uint32_t *epoch)
{
	for (; *steps; steps++) {
		uint64_t seq = ledger->seq;

		if (*steps == 'w')
			bench_ledger_ack(ledger, 0, bench_ledger_send(ledger, 0), *epoch);
		else if (*steps == 's')
			bench_ledger_send(ledger, 0);
		else if (*steps == 'f')
			bench_ledger_flushed(ledger, seq, *epoch);
		else
			++*epoch; /* r, and F: a flush that crosses epochs is not told of */
	}
}

static void ledger_table(void **state)
{
	for_each_named(i, ledger_cases, steps) {
		struct bench_ledger ledger;
		uint32_t epoch = 0, low;

		assert_int_equal(bench_ledger_init(&ledger, 4, ledger_cases[i].volatile_cache), 0);
		play(&ledger, ledger_cases[i].steps, &epoch);
		low = bench_ledger_low(&ledger, 0, epoch);
		if (low != ledger_cases[i].low || ledger.chunks[0].high != ledger_cases[i].high)
			fail_msg("\"%s\": %u to %u", ledger_cases[i].steps, low,
				 ledger.chunks[0].high);
		bench_ledger_free(&ledger);
	}
}

/* A flush counts for what had completed when it was sent. */
static void a_flush_covers_what_was_before_it(void **state)
{
	struct bench_ledger ledger;
	uint64_t seq;

	assert_int_equal(bench_ledger_init(&ledger, 4, true), 0);
	bench_ledger_ack(&ledger, 0, bench_ledger_send(&ledger, 0), 0);
	seq = ledger.seq;
	bench_ledger_ack(&ledger, 1, bench_ledger_send(&ledger, 1), 0);
	bench_ledger_flushed(&ledger, seq, 0);
	assert_int_equal(bench_ledger_low(&ledger, 0, 1), 1);
	assert_int_equal(bench_ledger_low(&ledger, 1, 1), 0);
	assert_int_equal(ledger.nwritten, 2);
	bench_ledger_free(&ledger);
}

/* --- the plan --------------------------------------------------------------------------------- */

static void shares_cover_the_region(void **state)
{
	struct bench_plan plan = {};
	uint64_t next = 0;

	for (unsigned i = 0; i < 7; i++) {
		bench_plan_share(&plan, 100, i, 7);
		assert_int_equal(plan.first, next);
		next += plan.chunks;
	}
	assert_int_equal(next, 100);
}

static void in_order_wraps(void **state)
{
	struct bench_plan plan = { .read_pct = 100, .chunks = 3 };
	struct bench_next_io step;

	for (uint64_t i = 0; i < 10; i++) {
		assert_true(bench_plan_next(&plan, &step));
		assert_int_equal(step.chunk, i % 3);
		assert_false(step.write);
	}
}

static void the_mix_is_kept(void **state)
{
	struct bench_plan plan = { .random = true, .read_pct = 70, .chunks = 1000, .rng = 1 };
	unsigned writes = 0, low = 0;
	struct bench_next_io step;

	for (int i = 0; i < 100000; i++) {
		assert_true(bench_plan_next(&plan, &step));
		assert_true(step.chunk < 1000);
		writes += step.write;
		low += step.chunk < 500;
	}
	assert_in_range(writes, 29000, 31000);
	assert_in_range(low, 49000, 51000);
}

static void a_seed_repeats(void **state)
{
	struct bench_plan a = { .random = true, .read_pct = 50, .chunks = 99, .rng = 5 }, b = a;
	struct bench_next_io x, y;

	for (int i = 0; i < 1000; i++) {
		bench_plan_next(&a, &x);
		bench_plan_next(&b, &y);
		assert_true(x.chunk == y.chunk && x.write == y.write);
	}
}

/* With a ledger, what is in flight is left alone, and only what was written is read. */
static void two_never_meet(void **state)
{
	struct bench_ledger ledger;
	struct bench_plan plan = { .random = true, .read_pct = 50, .chunks = 8, .rng = 3 };
	struct bench_next_io step;

	assert_int_equal(bench_ledger_init(&ledger, 8, false), 0);
	plan.ledger = &ledger;
	for (int i = 0; i < 8;) {
		if (!bench_plan_next(&plan, &step))
			continue; /* a read, and all that was written is in flight */
		assert_false(ledger.chunks[step.chunk].busy);
		assert_true(step.write || ledger.chunks[step.chunk].high);
		if (step.write)
			bench_ledger_send(&ledger, step.chunk);
		ledger.chunks[step.chunk].busy = 1;
		i++;
	}
	for (int i = 0; i < 100; i++)
		assert_false(bench_plan_next(&plan, &step));
	bench_ledger_free(&ledger);
}

static void in_order_waits_for_its_turn(void **state)
{
	struct bench_ledger ledger;
	struct bench_plan plan = { .read_pct = 100, .chunks = 2 };
	struct bench_next_io step;

	assert_int_equal(bench_ledger_init(&ledger, 2, false), 0);
	plan.ledger = &ledger;
	assert_true(bench_plan_next(&plan, &step));
	assert_true(step.write); /* nothing is there to be read yet */
	ledger.chunks[1].busy = 1;
	assert_false(bench_plan_next(&plan, &step));
	ledger.chunks[1].busy = 0;
	assert_true(bench_plan_next(&plan, &step));
	assert_int_equal(step.chunk, 1);
	bench_ledger_free(&ledger);
}

/* --- pace, numbers ---------------------------------------------------------------------------- */

static void jobs_take_turns(void **state)
{
	struct bench_pace pace;

	bench_pace_init(&pace, 1000, 0, 0, 1);
	assert_int_equal(bench_pace_due(&pace, 5), 5); /* no rate: now */
	bench_pace_init(&pace, 1000, 1000000, 1, 4);   /* the second of four: every 4 µs */
	assert_int_equal(bench_pace_due(&pace, 5), 2000);
	bench_pace_take(&pace);
	assert_int_equal(bench_pace_due(&pace, 5), 6000);
	bench_pace_take(&pace);
	assert_int_equal(bench_pace_due(&pace, 1000000), 10000); /* late, but due when it was due */
}

static const struct {
	const char *text;
	int rc;
	uint64_t ns;
} time_cases[] = {
	{ "10", 0, UINT64_C(10000000000) },
	{ "10s", 0, UINT64_C(10000000000) },
	{ "0", 0, 0 },
	{ "1.5", 0, UINT64_C(1500000000) },
	{ "500ms", 0, UINT64_C(500000000) },
	{ "20us", 0, 20000 },
	{ "2m", 0, UINT64_C(120000000000) },
	{ "1h", 0, UINT64_C(3600000000000) },
	{ "", -EINVAL, 0 },
	{ "s", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "1 s", -EINVAL, 0 },
	{ "1..5", -EINVAL, 0 },
	{ "1e3", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "inf", -EINVAL, 0 },
	{ "10d", -EINVAL, 0 },
	{ "99999999999999h", -EINVAL, 0 },
};

static void times_table(void **state)
{
	for_each_named(i, time_cases, text) {
		uint64_t ns = 0;

		if (weft_ns_parse(time_cases[i].text, &ns) != time_cases[i].rc ||
		    ns != time_cases[i].ns)
			fail_msg("\"%s\": %llu", time_cases[i].text, (unsigned long long)ns);
	}
}

static void counts_are_decimal(void **state)
{
	uint64_t count;

	assert_int_equal(weft_count_parse("10k", &count), 0);
	assert_int_equal(count, 10000);
	assert_int_equal(weft_count_parse("1.5M", &count), 0);
	assert_int_equal(count, 1500000);
	assert_int_equal(weft_count_parse("10G", &count), -EINVAL);
}

static const struct {
	double ns;
	const char *text;
} text_cases[] = {
	{ 0, "0 ns" },        { 812, "812 ns" },    { 999.6, "1.00 us" },  { 41234, "41.2 us" },
	{ 99960, "100 us" },  { 999400, "999 us" }, { 999600, "1.00 ms" }, { 1234567, "1.23 ms" },
	{ 2.05e9, "2.05 s" }, { 123.4e9, "123 s" },
};

static void times_have_three_digits(void **state)
{
	for_each_named(i, text_cases, text)
		assert_string_equal(weft_time_text(text_cases[i].ns, false).s, text_cases[i].text);
	assert_string_equal(weft_time_text(41234, true).s, "41.2 µs");
}

static void numbers_for_people(void **state)
{
	assert_string_equal(weft_count_text(812).s, "812");
	assert_string_equal(weft_count_text(70123).s, "70.1k");
	assert_string_equal(weft_count_text(1234567).s, "1.23M");
	assert_string_equal(weft_grouped_text(0).s, "0");
	assert_string_equal(weft_grouped_text(999).s, "999");
	assert_string_equal(weft_grouped_text(1000).s, "1,000");
	assert_string_equal(weft_grouped_text(1234567).s, "1,234,567");
	assert_string_equal(weft_unit_size_text(4096).s, "4 KiB");
	assert_string_equal(weft_unit_size_text(512).s, "512 B");
}

/* --- how it ends ------------------------------------------------------------------------------ */

static void one_is_enough(void **state)
{
	static const struct {
		const char *name;
		uint64_t ios, failed, left;
		bool fine;
	} cases[] = {
		{ "all went well", 1, 0, 0, true },
		{ "one failed", 1, 1, 0, false },
		{ "one was left", 1, 0, 1, false },
		{ "nothing was done", 0, 0, 0, false },
	};
	static const struct bench_config config;

	for_each_named(i, cases, name) {
		struct bench_result *r = calloc(1, sizeof(*r));
		struct weft_err err = { "" };

		assert_non_null(r);
		r->config = &config;
		r->ios[BENCH_READ] = cases[i].ios;
		r->trouble.failed = cases[i].failed;
		r->left = cases[i].left;
		assert_int_equal(bench_result_fine(r, &err), cases[i].fine);
		free(r);
	}
}

/* --- losses ----------------------------------------------------------------------------------- */

/* One after the other. @news: of the loss with this number, 0: none. */
static const struct {
	const char *path;
	bool access, lost;
	const char *why;
	double at_s;
	unsigned news;
} noted[] = {
	{ "a", false, false, "", 1, 0 },
	{ "a", false, true, "reset", 2, 1 },
	{ "a", false, true, "refused", 3, 0 },
	{ "b", false, true, "silent", 4, 2 },
	{ "a", false, false, "", 5, 1 },
	{ "a", true, true, "change (ANA group 1)", 6, 3 },
	{ "a", true, true, "inaccessible (ANA group 1)", 7, 0 },
	{ "a", false, true, "reset", 8, 4 },
	{ "a", true, false, "", 9, 3 },
	{ "b", false, false, "", 10, 2 },
};

static const struct {
	const char *why;
	double at_s, seconds;
} losses_kept[] = { { "reset", 2, 3 },
		    { "silent", 4, 6 },
		    { "inaccessible (ANA group 1)", 6, 3 },
		    { "reset", 8, -1 } };

static void losses_are_noted(void **state)
{
	static struct bench_losses losses;

	for_each_named(i, noted, why) {
		const struct bench_loss *loss = bench_loss_note(&losses, noted[i].path,
								noted[i].access, noted[i].lost,
								noted[i].why, noted[i].at_s);

		assert_int_equal(loss ? loss - losses.at + 1 : 0, noted[i].news);
	}
	assert_int_equal(losses.count, sizeof(losses_kept) / sizeof(losses_kept[0]));
	for_each_named(i, losses_kept, why) {
		assert_string_equal(losses.at[i].why, losses_kept[i].why);
		assert_true(losses.at[i].at_s == losses_kept[i].at_s);
		assert_true(losses.at[i].seconds == losses_kept[i].seconds);
	}
}

static void losses_have_a_limit(void **state)
{
	static struct bench_losses losses;
	char path[16];

	for (unsigned i = 0; i < BENCH_LOSSES_MAX + 2; i++) {
		snprintf(path, sizeof(path), "%u", i);
		assert_int_equal(!bench_loss_note(&losses, path, false, true, "", 0),
				 i >= BENCH_LOSSES_MAX);
	}
	assert_int_equal(losses.more, 2);
}

/* --- the plot --------------------------------------------------------------------------------- */

/* A run of 2.2 s whose rest after the last point was too short to be one of its own. */
static const struct marked {
	const char *what;
	double at_s;
	unsigned lines; /* in the panel, and in its legend */
} marked[] = {
	{ "between two points", 0.5, 2 }, { "at the last point", 2, 2 },
	{ "in the rest", 2.1, 2 },        { "at the end", 2.2, 2 },
	{ "in the warm-up", -0.1, 0 },    { "behind the end", 2.3, 0 },
};

static unsigned times_in(const char *text, const char *part)
{
	unsigned times = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		times++;
	return times;
}

static void a_loss_is_marked_where_it_was(void **state)
{
	struct bench_point points[] = { { .at_s = 1, .seconds = 1 }, { .at_s = 2, .seconds = 1 } };
	static struct bench_config config = { .bs = 4096 };
	static struct bench_result result = { .seconds = 2.2 };

	result.config = &config;
	result.series.points = points;
	result.series.count = 2;
	for_each_named(i, marked, what) {
		struct svg_panel panel = { .x = { .far = 100 }, .y = { .near = 100 } };
		char *drawn = NULL;
		size_t len;

		result.losses = (struct bench_losses){ .at = { { .at_s = marked[i].at_s } },
						       .count = 1 };
		panel.out = open_memstream(&drawn, &len);
		assert_non_null(panel.out);
		bench_plot_throughput(&panel, &result);
		fclose(panel.out);
		assert_int_equal(times_in(drawn, "class=\"loss\""), marked[i].lines);
		free(drawn);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge_table),
		cmocka_unit_test(losses_are_noted),
		cmocka_unit_test(losses_have_a_limit),
		cmocka_unit_test(a_loss_is_marked_where_it_was),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(unstamped_blocks_are_counted),
		cmocka_unit_test(ledger_table),
		cmocka_unit_test(a_flush_covers_what_was_before_it),
		cmocka_unit_test(shares_cover_the_region),
		cmocka_unit_test(in_order_wraps),
		cmocka_unit_test(the_mix_is_kept),
		cmocka_unit_test(a_seed_repeats),
		cmocka_unit_test(two_never_meet),
		cmocka_unit_test(in_order_waits_for_its_turn),
		cmocka_unit_test(jobs_take_turns),
		cmocka_unit_test(times_table),
		cmocka_unit_test(counts_are_decimal),
		cmocka_unit_test(times_have_three_digits),
		cmocka_unit_test(numbers_for_people),
		cmocka_unit_test(one_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
