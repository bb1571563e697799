/* chart_text.c - charts of characters: the latency histogram, and throughput over time. Blocks if
 * the terminal has them, ASCII if not. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/bench/report.h"
#include "cli/progress.h"

enum {
	ROWS_MAX = 14,
	BAR = 44, /* columns */
	SPARK = 60,
};

/* Rows of the histogram: round bounds, as fine as there is room for. */
static const double fine[] = { 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 0 };
static const double middling[] = { 1, 1.5, 2, 3, 5, 7, 0 };
static const double usual[] = { 1, 2, 5, 0 };
static const double coarse[] = { 1, 0 };
static const double *const scales[] = { fine, middling, usual, coarse };

struct rows {
	double from[ROWS_MAX];
	unsigned count;
	uint64_t in[ROWS_MAX];
};

/* Bound number @i above @decade. */
static double bound(const double *scale, double decade, unsigned i)
{
	unsigned steps = 0;

	while (scale[steps])
		steps++;
	return decade * pow(10, i / steps) * scale[i % steps];
}

/* From the last bound that is not above @low to the last that is not above @high; false: that makes
 * too many rows. */
static bool try_scale(struct rows *rows, const double *scale, double low, double high)
{
	double decade = pow(10, floor(log10(low)));
	unsigned i = 0;

	while (bound(scale, decade, i + 1) <= low)
		i++;
	rows->count = 0;
	do {
		if (rows->count == ROWS_MAX)
			return false;
		rows->from[rows->count++] = bound(scale, decade, i++);
	} while (bound(scale, decade, i) <= high);
	return true;
}

/* The fastest thousandth shares the first row with the others in it. */
static void choose_rows(struct rows *rows, const struct weft_hist *hist)
{
	double low = fmax((double)weft_hist_percentile(hist, 0.1), 1), high = (double)hist->max;

	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		if (try_scale(rows, scales[i], low, high))
			return;
	}
}

static void fill_rows(struct rows *rows, const struct weft_hist *hist)
{
	unsigned row = 0;

	for (unsigned b = 0; b < WEFT_HIST_BUCKETS; b++) {
		while (row + 1 < rows->count && (double)weft_hist_low(b) >= rows->from[row + 1])
			row++;
		rows->in[row] += hist->bucket[b];
	}
}

/* @share of BAR columns; never empty for what is there. */
static void print_bar(double share, bool utf8)
{
	static const char *const eighths[] = { "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" };
	int parts = (int)(share * BAR * 8 + 0.5);

	if (!parts)
		parts = 1;
	fputs("  ", stdout);
	for (; parts > 0; parts -= 8) {
		if (utf8)
			fputs(eighths[parts >= 8 ? 7 : parts - 1], stdout);
		else
			putchar(parts >= 4 ? '#' : '.');
	}
}

static void print_rows(const struct rows *rows, uint64_t count, bool utf8)
{
	uint64_t most = 1;

	for (unsigned i = 0; i < rows->count; i++)
		most = rows->in[i] > most ? rows->in[i] : most;
	for (unsigned i = 0; i < rows->count; i++) {
		double share = 100 * (double)rows->in[i] / (double)count;

		struct weft_text from = utf8 ? weft_time_label(rows->from[i]) :
					       weft_time_label_ascii(rows->from[i]);

		weft_print_right(stdout, from.s, 10);
		printf("  %8.4f %%", share);
		if (rows->in[i])
			print_bar((double)rows->in[i] / (double)most, utf8);
		putchar('\n');
	}
}

static void print_latencies(const struct bench_result *r, bool utf8)
{
	static struct weft_hist all; /* large */
	struct rows rows = {};

	memset(&all, 0, sizeof(all));
	weft_hist_merge(&all, &r->hist[BENCH_READ]);
	weft_hist_merge(&all, &r->hist[BENCH_WRITE]);
	if (!all.count)
		return;
	choose_rows(&rows, &all);
	fill_rows(&rows, &all);
	printf("\n  latency from\n");
	print_rows(&rows, all.count, utf8);
}

/* --- throughput ------------------------------------------------------------------------------- */

/* Several points in one column, if there are many. */
static double column(const struct bench_series *s, unsigned at, unsigned columns)
{
	size_t from = s->count * at / columns, to = s->count * (at + 1) / columns;
	double ios = 0, seconds = 0;

	for (size_t i = from; i < to; i++) {
		ios += bench_point_iops(&s->points[i]) * s->points[i].seconds;
		seconds += s->points[i].seconds;
	}
	return seconds > 0 ? ios / seconds : 0;
}

static void print_spark(double share, bool utf8)
{
	static const char *const heights[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };

	if (utf8)
		fputs(heights[(int)(share * 7 + 0.5)], stdout);
	else
		putchar('0' + (int)(share * 9 + 0.5));
}

static void print_throughput(const struct bench_result *r, bool utf8)
{
	const struct bench_series *s = &r->series;
	unsigned columns = s->count < SPARK ? (unsigned)s->count : SPARK;
	double values[SPARK], least = INFINITY, most = 0;

	if (columns < 2)
		return;
	for (unsigned i = 0; i < columns; i++) {
		values[i] = column(s, i, columns);
		least = fmin(least, values[i]);
		most = fmax(most, values[i]);
	}
	printf("\n  IOPS over time, %s", weft_count_text(least).s);
	printf(" to %s%s\n  ", weft_count_text(most).s, utf8 ? "" : " (0 is none, 9 the most)");
	for (unsigned i = 0; i < columns; i++)
		print_spark(most > 0 ? values[i] / most : 0, utf8);
	putchar('\n');
}

void bench_chart_text(const struct bench_result *r)
{
	bool utf8 = weft_utf8_locale();

	print_latencies(r, utf8);
	print_throughput(r, utf8);
}
