/* hist.c - a histogram of times with fixed memory. */
#include "base/hist.h"

#include <math.h>
#include <string.h>

#define SUB (1u << WEFT_HIST_SUB_BITS)

unsigned weft_hist_index(uint64_t value)
{
	unsigned shift;

	if (value < SUB)
		return (unsigned)value;
	if (value >> WEFT_HIST_TOP_BIT)
		return WEFT_HIST_BUCKETS - 1;
	shift = 63 - (unsigned)__builtin_clzll(value) - WEFT_HIST_SUB_BITS;
	return ((shift + 1) << WEFT_HIST_SUB_BITS) | ((unsigned)(value >> shift) & (SUB - 1));
}

uint64_t weft_hist_low(unsigned index)
{
	if (index < SUB)
		return index;
	return (uint64_t)(SUB | (index & (SUB - 1))) << ((index >> WEFT_HIST_SUB_BITS) - 1);
}

uint64_t weft_hist_high(unsigned index)
{
	return weft_hist_low(index + 1) - 1;
}

/* The adding thread is the only writer: no locked instruction is needed. */
static void store_relaxed(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

static uint64_t load_relaxed(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

void weft_hist_add(struct weft_hist *hist, uint64_t value)
{
	uint64_t *bucket = &hist->bucket[weft_hist_index(value)];

	if (!hist->count || value < hist->min)
		store_relaxed(&hist->min, value);
	if (value > hist->max)
		store_relaxed(&hist->max, value);
	store_relaxed(bucket, *bucket + 1);
	store_relaxed(&hist->sum, hist->sum + value);
	store_relaxed(&hist->count, hist->count + 1);
}

/* The count is that of the buckets as they were read, so that a copy agrees with itself. */
void weft_hist_merge(struct weft_hist *into, const struct weft_hist *from)
{
	uint64_t count = 0, min = load_relaxed(&from->min), max = load_relaxed(&from->max);

	for (unsigned i = 0; i < WEFT_HIST_BUCKETS; i++) {
		uint64_t n = load_relaxed(&from->bucket[i]);

		into->bucket[i] += n;
		count += n;
	}
	if (!count)
		return;
	if (!into->count || min < into->min)
		into->min = min;
	if (max > into->max)
		into->max = max;
	into->sum += load_relaxed(&from->sum);
	into->count += count;
}

void weft_hist_since(const struct weft_hist *now, const struct weft_hist *before,
		     struct weft_hist *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < WEFT_HIST_BUCKETS; i++) {
		uint64_t n = now->bucket[i] - before->bucket[i];

		if (!n)
			continue;
		if (!out->count)
			out->min = weft_hist_low(i);
		out->max = weft_hist_high(i);
		out->bucket[i] = n;
		out->count += n;
	}
	out->sum = now->sum - before->sum;
}

static uint64_t clamp_to_seen(const struct weft_hist *hist, uint64_t value)
{
	return value > hist->max ? hist->max : value < hist->min ? hist->min : value;
}

uint64_t weft_hist_percentile(const struct weft_hist *hist, double percent)
{
	uint64_t rank = (uint64_t)(percent / 100 * (double)hist->count + 0.5), seen = 0;

	if (!hist->count)
		return 0;
	if (rank < 1)
		rank = 1;
	for (unsigned i = 0; i < WEFT_HIST_BUCKETS - 1; i++) {
		seen += hist->bucket[i];
		if (seen >= rank)
			return clamp_to_seen(hist, weft_hist_high(i));
	}
	return hist->max;
}

double weft_hist_mean(const struct weft_hist *hist)
{
	return hist->count ? (double)hist->sum / (double)hist->count : 0;
}

double weft_hist_stdev(const struct weft_hist *hist)
{
	double mean = weft_hist_mean(hist), sum = 0;

	if (!hist->count)
		return 0;
	for (unsigned i = 0; i < WEFT_HIST_BUCKETS; i++) {
		double middle, away;

		if (!hist->bucket[i])
			continue;
		middle = ((double)weft_hist_low(i) + (double)weft_hist_high(i)) / 2;
		away = middle - mean;
		sum += away * away * (double)hist->bucket[i];
	}
	return sqrt(sum / (double)hist->count);
}
