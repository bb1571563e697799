/* report_text.c - the result as a table of 80 columns, and what was wrong, a line each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "base/units.h"
#include "cli/bench/report.h"
#include "cli/progress.h"

static const char *const op_names[BENCH_OPS] = { "read", "write", "flush" };
static const double percentiles[] = { 50, 90, 99, 99.9, 99.99, 99.999 };

#define NPERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

enum { WIDE = 11, NARROW = 10 };

static void print_time(double ns, int width, bool utf8)
{
	weft_print_right(stdout, weft_time_text(ns, utf8).s, width);
}

/* A row of both tables: an operation, or reads and writes together. */
struct row {
	const char *name;
	uint64_t ios;
	bool bytes;
	const struct weft_hist *hist;
};

static void print_rates(const struct bench_result *r, const struct row *row, bool utf8)
{
	double iops = r->seconds > 0 ? (double)row->ios / r->seconds : 0;
	double mib = iops * (double)r->config->bs / (1 << 20);

	printf("  %-6s", row->name);
	weft_print_right(stdout, weft_grouped_text((uint64_t)(iops + 0.5)).s, WIDE);
	weft_print_right(stdout, row->bytes ? weft_digits_text(mib).s : "", WIDE);
	weft_print_right(stdout, weft_grouped_text(row->ios).s, WIDE + 4);
	print_time((double)row->hist->min, WIDE, utf8);
	print_time(weft_hist_mean(row->hist), WIDE, utf8);
	print_time(weft_hist_stdev(row->hist), WIDE, utf8);
	putchar('\n');
}

static void print_latency(const struct row *row, bool utf8)
{
	printf("  %-6s", row->name);
	for (size_t i = 0; i < NPERCENTILES; i++)
		print_time((double)weft_hist_percentile(row->hist, percentiles[i]), NARROW, utf8);
	print_time((double)row->hist->max, NARROW, utf8);
	putchar('\n');
}

static unsigned make_rows(const struct bench_result *r, struct weft_hist *both, struct row *rows)
{
	unsigned n = 0;

	for (enum bench_op op = 0; op < BENCH_OPS; op++) {
		if (r->hist[op].count)
			rows[n++] = (struct row){ op_names[op], r->ios[op], op != BENCH_FLUSH,
						  &r->hist[op] };
	}
	if (!r->hist[BENCH_READ].count || !r->hist[BENCH_WRITE].count)
		return n;
	weft_hist_merge(both, &r->hist[BENCH_READ]);
	weft_hist_merge(both, &r->hist[BENCH_WRITE]);
	rows[n++] = (struct row){ "both", r->ios[BENCH_READ] + r->ios[BENCH_WRITE], true, both };
	return n;
}

static void print_heads(const char *const *heads, size_t count, const int *widths)
{
	printf("\n  %-6s", "");
	for (size_t i = 0; i < count; i++)
		weft_print_right(stdout, heads[i], widths[i]);
	putchar('\n');
}

static void print_tables(const struct bench_result *r, bool utf8)
{
	static const char *const rates[] = { "IOPS", "MiB/s", "I/Os", "min", "mean", "stdev" };
	static const int rate_widths[] = { WIDE, WIDE, WIDE + 4, WIDE, WIDE, WIDE };
	static const char *const ranks[] = { "p50",    "p90",     "p99", "p99.9",
					     "p99.99", "p99.999", "max" };
	static const int rank_widths[] = { NARROW, NARROW, NARROW, NARROW, NARROW, NARROW, NARROW };

	struct weft_hist both = {};
	struct row rows[BENCH_OPS + 1];
	unsigned n = make_rows(r, &both, rows);

	print_heads(rates, 6, rate_widths);
	for (unsigned i = 0; i < n; i++)
		print_rates(r, &rows[i], utf8);
	print_heads(ranks, 7, rank_widths);
	for (unsigned i = 0; i < n; i++)
		print_latency(&rows[i], utf8);
}

static void print_cpu(const struct bench_result *r, bool utf8)
{
	double cpu = bench_result_cpu_us(r), all = r->user_s + r->system_s;
	double user = all > 0 ? cpu * r->user_s / all : 0;

	printf("\n  CPU %s per I/O", weft_time_text(cpu * 1e3, utf8).s);
	printf(" (user %s, system", weft_time_text(user * 1e3, utf8).s);
	printf(" %s)", weft_time_text((cpu - user) * 1e3, utf8).s);
	printf("   failed %s", weft_grouped_text(r->trouble.failed).s);
	printf("   reconnects %s\n", weft_grouped_text(r->reconnects).s);
}

/* What a queue over RDMA should never have to do, where it had to: the first two while
 * measuring. */
static void print_rdma(const struct bench_result *r)
{
	const struct {
		const char *name;
		uint64_t count;
	} items[] = {
		{ "registrations", r->registrations }, { "bytes copied", r->copied_bytes },
		{ "flushed", r->counters.flushed },    { "not acknowledged", r->counters.retried },
		{ "no receive", r->counters.rnr },
	};
	const char *between = "  RDMA: ";

	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		if (!items[i].count || strcmp(r->path.transport, "rdma"))
			continue;
		printf("%s%s %s", between, items[i].name, weft_grouped_text(items[i].count).s);
		between = ", ";
	}
	if (*between == ',')
		putchar('\n');
}

static void print_stalls(const struct bench_result *r, bool utf8)
{
	if (!r->stalls.stalls)
		return;
	printf("  stalls %s", weft_grouped_text(r->stalls.stalls).s);
	printf(", the longest %s", weft_time_text((double)r->stalls.longest_ns, utf8).s);
	printf("   I/Os sent again on another path %s\n", weft_grouped_text(r->stalls.switches).s);
}

static void print_verify(const struct bench_result *r)
{
	if (!r->config->verify)
		return;
	printf("  verified %s block%s", weft_grouped_text(r->checked).s, weft_plural(r->checked));
	printf(": %s wrong", weft_grouped_text(bench_errors_bad_blocks(&r->trouble)).s);
	if (r->unstamped)
		printf(", %s not of this run", weft_grouped_text(r->unstamped).s);
	if (r->trouble.unchecked)
		printf(", %s could not be read", weft_grouped_text(r->trouble.unchecked).s);
	printf("   (--seed %" PRIu64 ")\n", r->config->seed);
}

static void print_stopped(const struct bench_result *r)
{
	printf("  stopped by the user");
	if (r->left)
		printf(", with %s I/O%s in flight", weft_grouped_text(r->left).s,
		       weft_plural(r->left));
	printf("\n");
}

static void print_remarks(const struct bench_result *r)
{
	if (r->unstarted > (r->ios[BENCH_READ] + r->ios[BENCH_WRITE]) / 1000)
		printf("  the rate was not reached: %s due I/O%s had not begun at the end;\n"
		       "  the latencies include how long they had waited by then\n",
		       weft_grouped_text(r->unstarted).s, weft_plural(r->unstarted));
	if (r->stopped)
		print_stopped(r);
}

void bench_report_text(const struct bench_result *r)
{
	bool utf8 = weft_utf8_locale();
	char conditions[160], seconds[32];

	bench_result_conditions(r, conditions, sizeof(conditions));
	snprintf(seconds, sizeof(seconds), "%.1f s", r->seconds);
	printf("%s\n  %s, %s\n", r->where, conditions, seconds);
	print_tables(r, utf8);
	bench_chart_text(r);
	print_cpu(r, utf8);
	print_rdma(r);
	print_stalls(r, utf8);
	print_verify(r);
	print_remarks(r);
}

/* The last line has all there is to tell of I/Os that failed in one way. */
static bool kinds_are_summed_up(const struct bench_result *r)
{
	struct weft_err why = { "" };

	return r->trouble.nkinds == 1 && !bench_result_fine(r, &why) &&
	       strstr(why.text, r->trouble.kinds[0].first.text);
}

void bench_report_problems(const struct bench_result *r, const char *command)
{
	const struct bench_errors *t = &r->trouble;
	uint64_t bad = bench_errors_bad_blocks(t);

	for (unsigned i = 0; i < t->nproblems; i++)
		fprintf(stderr, "%s: %s at %" PRIu64 ": %s\n", command,
			bench_finding_text(t->problems[i].what), t->problems[i].offset,
			t->problems[i].text);
	if (bad > t->nproblems)
		fprintf(stderr, "%s: ... and %" PRIu64 " more\n", command, bad - t->nproblems);
	if (kinds_are_summed_up(r))
		return;
	for (unsigned i = 0; i < t->nkinds; i++)
		fprintf(stderr, "%s: %" PRIu64 " I/O%s failed%s: %s\n", command, t->kinds[i].count,
			weft_plural(t->kinds[i].count),
			t->kinds[i].count == 1 ? "" : ", the first of them",
			t->kinds[i].first.text);
}
