/* hist.h - a histogram of times: any 64-bit value, fixed memory, every bucket under 0.8 % wide.
 *
 *   values      0 ... 255      256 ... 511     512 ... 1023      …      2^41 ... 2^42 - 1
 *   bucket      1 wide         2 wide          4 wide            …      2^34 wide
 *
 * Each power of two is cut into 128 equal buckets; nanoseconds reach beyond an hour, and what is
 * longer counts in the last one (its maximum is still exact).
 *
 * One thread adds. Others may merge from it at any time and get what it was a moment ago: the
 * counters are relaxed atomics, which cost the adding thread nothing. */
#ifndef WEFT_BASE_HIST_H
#define WEFT_BASE_HIST_H

#include <stdint.h>

enum {
	WEFT_HIST_SUB_BITS = 7,
	WEFT_HIST_TOP_BIT = 42,
	WEFT_HIST_BUCKETS = (WEFT_HIST_TOP_BIT - WEFT_HIST_SUB_BITS + 1) << WEFT_HIST_SUB_BITS,
};

/* Starts from {}. */
struct weft_hist {
	uint64_t bucket[WEFT_HIST_BUCKETS];
	uint64_t count, sum;
	uint64_t min, max; /* exact; meaningless while @count is 0 */
};

unsigned weft_hist_index(uint64_t value);
/* The smallest and the largest value that falls into a bucket. */
uint64_t weft_hist_low(unsigned index);
uint64_t weft_hist_high(unsigned index);

void weft_hist_add(struct weft_hist *hist, uint64_t value);
/* Adds all of @from, which another thread may be adding to. */
void weft_hist_merge(struct weft_hist *into, const struct weft_hist *from);
/* @out: what is in @now and was not yet in @before. Its minimum and maximum are buckets' bounds. */
void weft_hist_since(const struct weft_hist *now, const struct weft_hist *before,
		     struct weft_hist *out);

/* The value that @percent of all values do not exceed, rounded up within its bucket; 0: empty. */
uint64_t weft_hist_percentile(const struct weft_hist *hist, double percent);
double weft_hist_mean(const struct weft_hist *hist);
double weft_hist_stdev(const struct weft_hist *hist); /* from the middles of the buckets */

#endif
