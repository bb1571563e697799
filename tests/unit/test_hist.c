/* test_hist.c - histograms: buckets without gaps, percentiles against a sorted list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/hist.h"
#include "running.h"

static uint64_t random_state = 1;

static uint64_t random_u64(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return random_state >> 20;
}

static struct weft_hist *new_hist(void)
{
	struct weft_hist *hist = calloc(1, sizeof(*hist));

	assert_non_null(hist);
	return hist;
}

static void buckets_have_no_gaps(void **state)
{
	assert_int_equal(weft_hist_low(0), 0);
	for (unsigned i = 0; i < WEFT_HIST_BUCKETS - 1; i++) {
		assert_int_equal(weft_hist_index(weft_hist_low(i)), i);
		assert_int_equal(weft_hist_index(weft_hist_high(i)), i);
		assert_int_equal(weft_hist_high(i) + 1, weft_hist_low(i + 1));
	}
	assert_int_equal(weft_hist_high(WEFT_HIST_BUCKETS - 1) + 1, UINT64_C(1)
									    << WEFT_HIST_TOP_BIT);
}

static void buckets_are_narrow(void **state)
{
	for (unsigned i = 1; i < WEFT_HIST_BUCKETS; i++) {
		double low = (double)weft_hist_low(i), high = (double)weft_hist_high(i);

		assert_true((high - low) / low < 1.0 / 128);
	}
}

static const struct {
	uint64_t value;
	unsigned index;
} index_cases[] = {
	{ 0, 0 },
	{ 127, 127 },
	{ 128, 128 },
	{ 255, 255 },
	{ 256, 256 },
	{ 257, 256 },
	{ 258, 257 },
	{ 511, 383 },
	{ 512, 384 },
	{ (UINT64_C(1) << 42) - 1, WEFT_HIST_BUCKETS - 1 },
	{ UINT64_C(1) << 42, WEFT_HIST_BUCKETS - 1 },
	{ UINT64_MAX, WEFT_HIST_BUCKETS - 1 },
};

static void index_table(void **state)
{
	for_each_row(i, index_cases)
		assert_int_equal(weft_hist_index(index_cases[i].value), index_cases[i].index);
}

static void an_empty_one_says_zero(void **state)
{
	struct weft_hist *hist = new_hist();

	assert_int_equal(weft_hist_percentile(hist, 50), 0);
	assert_true(weft_hist_mean(hist) == 0);
	assert_true(weft_hist_stdev(hist) == 0);
	free(hist);
}

static void one_value_is_every_percentile(void **state)
{
	struct weft_hist *hist = new_hist();

	weft_hist_add(hist, 123457);
	assert_int_equal(weft_hist_percentile(hist, 0), 123457);
	assert_int_equal(weft_hist_percentile(hist, 50), 123457);
	assert_int_equal(weft_hist_percentile(hist, 100), 123457);
	assert_int_equal(hist->min, 123457);
	assert_int_equal(hist->max, 123457);
	free(hist);
}

/* Small values are exact: the ranks can be counted by hand. */
static const struct {
	double percent;
	uint64_t value;
} rank_cases[] = {
	{ 0, 1 }, { 1, 1 }, { 50, 50 }, { 90, 90 }, { 99, 99 }, { 99.9, 100 }, { 100, 100 },
};

static void ranks_table(void **state)
{
	struct weft_hist *hist = new_hist();

	for (uint64_t v = 100; v >= 1; v--)
		weft_hist_add(hist, v);
	for_each_row(i, rank_cases)
		assert_int_equal(weft_hist_percentile(hist, rank_cases[i].percent),
				 rank_cases[i].value);
	free(hist);
}

static void what_is_too_long_keeps_its_maximum(void **state)
{
	struct weft_hist *hist = new_hist();

	weft_hist_add(hist, 5);
	weft_hist_add(hist, UINT64_C(1) << 50);
	assert_int_equal(hist->max, UINT64_C(1) << 50);
	assert_int_equal(weft_hist_percentile(hist, 100), UINT64_C(1) << 50);
	assert_int_equal(weft_hist_percentile(hist, 50), 5);
	free(hist);
}

/* --- against a sorted list -------------------------------------------------------------------- */

#define VALUES 20000

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void close_to(double got, double wanted, double part)
{
	if (fabs(got - wanted) > wanted * part)
		fail_msg("got %f, wanted %f", got, wanted);
}

static void percentiles_are_those_of_the_list(void **state)
{
	static const double percents[] = { 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100 };
	uint64_t *values = malloc(VALUES * sizeof(*values));
	struct weft_hist *hist = new_hist();
	double sum = 0, squares = 0;

	for (int i = 0; i < VALUES; i++) {
		values[i] = 1000 + random_u64() % (UINT64_C(1) << (10 + random_u64() % 20));
		weft_hist_add(hist, values[i]);
		sum += (double)values[i];
	}
	qsort(values, VALUES, sizeof(*values), compare);
	for (size_t i = 0; i < COUNT(percents); i++) {
		size_t rank = (size_t)(percents[i] / 100 * VALUES + 0.5);

		close_to((double)weft_hist_percentile(hist, percents[i]),
			 (double)values[rank ? rank - 1 : 0], 1.0 / 128);
	}
	for (int i = 0; i < VALUES; i++)
		squares += pow((double)values[i] - sum / VALUES, 2);
	assert_int_equal(hist->min, values[0]);
	assert_int_equal(hist->max, values[VALUES - 1]);
	close_to(weft_hist_mean(hist), sum / VALUES, 1e-9);
	close_to(weft_hist_stdev(hist), sqrt(squares / VALUES), 0.01);
	free(values);
	free(hist);
}

static void merged_is_as_if_added_to_one(void **state)
{
	struct weft_hist *all = new_hist(), *merged = new_hist();
	struct weft_hist *parts[3] = { new_hist(), new_hist(), new_hist() };

	for (int i = 0; i < 3000; i++) {
		uint64_t value = random_u64() % 1000000;

		weft_hist_add(all, value);
		weft_hist_add(parts[i % 2], value); /* one stays empty */
	}
	for (int i = 2; i >= 0; i--)
		weft_hist_merge(merged, parts[i]);
	assert_memory_equal(all, merged, sizeof(*all));
	for (int i = 0; i < 3; i++)
		free(parts[i]);
	free(all);
	free(merged);
}

static void since_is_the_difference(void **state)
{
	struct weft_hist *now = new_hist(), *before = new_hist(), *step = new_hist();

	for (uint64_t v = 1; v <= 100; v++)
		weft_hist_add(now, v);
	*before = *now;
	for (uint64_t v = 201; v <= 210; v++)
		weft_hist_add(now, v);
	weft_hist_since(now, before, step);
	assert_int_equal(step->count, 10);
	assert_int_equal(step->min, 201);
	assert_int_equal(step->max, 210);
	assert_int_equal(weft_hist_percentile(step, 50), 205);
	assert_true(weft_hist_mean(step) == 205.5);
	weft_hist_since(now, now, step);
	assert_int_equal(step->count, 0);
	free(now);
	free(before);
	free(step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_have_no_gaps),
		cmocka_unit_test(buckets_are_narrow),
		cmocka_unit_test(index_table),
		cmocka_unit_test(an_empty_one_says_zero),
		cmocka_unit_test(one_value_is_every_percentile),
		cmocka_unit_test(ranks_table),
		cmocka_unit_test(what_is_too_long_keeps_its_maximum),
		cmocka_unit_test(percentiles_are_those_of_the_list),
		cmocka_unit_test(merged_is_as_if_added_to_one),
		cmocka_unit_test(since_is_the_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
