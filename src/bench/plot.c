/* plot.c - the page: a title with the conditions, the result in words, three panels.
 *
 *   title, where and how
 *   latency by percentile     (reads, writes)
 *   throughput over time      (IOPS left, MiB/s right)
 *   p99 over time */
#include "bench/plot.h"

#include "base/cleanup.h"
#include "base/draft.h"
#include "base/plural.h"

enum { WIDTH = 960, HEIGHT = 900, MARGIN = 32, LEFT = 92, RIGHT = WIDTH - 84 };

static void write_op(FILE *out, double y, const char *name, const char *colour,
		     const struct bench_result *r, enum bench_op op)
{
	double iops = r->seconds > 0 ? (double)r->ios[op] / r->seconds : 0;
	const struct weft_hist *h = &r->hist[op];
	char text[400];

	snprintf(text, sizeof(text), "%s IOPS, %s MiB/s; mean %s, p50 %s, p99 %s, p99.9 %s",
		 weft_count_text(iops).s,
		 weft_digits_text(iops * (double)r->config->bs / (1 << 20)).s,
		 weft_time_text(weft_hist_mean(h), true).s,
		 weft_time_text((double)weft_hist_percentile(h, 50), true).s,
		 weft_time_text((double)weft_hist_percentile(h, 99), true).s,
		 weft_time_text((double)weft_hist_percentile(h, 99.9), true).s);
	svg_legend(out, MARGIN, y, colour, name);
	svg_text(out, 110, y, "value", text);
}

static void write_rest(FILE *out, double y, const struct bench_result *r)
{
	char text[400];

	snprintf(text, sizeof(text),
		 "%.1f s, %s, weft %s; host CPU %s per I/O; %s failed, %s reconnect%s", r->seconds,
		 r->when, weft_version(), weft_time_text(bench_result_cpu_us(r) * 1e3, true).s,
		 weft_grouped_text(r->trouble.failed).s, weft_grouped_text(r->reconnects).s,
		 weft_plural(r->reconnects));
	svg_text(out, MARGIN, y, "sub", text);
}

static void write_title(FILE *out, const struct bench_result *r)
{
	char conditions[160], where[128];
	double y = 90;

	bench_result_conditions(r, conditions, sizeof(conditions));
	svg_title(out, MARGIN, 42, WIDTH - 2 * MARGIN, conditions);
	snprintf(where, sizeof(where), "%.120s", r->where);
	svg_text(out, MARGIN, 64, "sub", where);
	if (r->ios[BENCH_READ]) {
		write_op(out, y, "reads", SVG_READ, r, BENCH_READ);
		y += 20;
	}
	if (r->ios[BENCH_WRITE]) {
		write_op(out, y, "writes", SVG_WRITE, r, BENCH_WRITE);
		y += 20;
	}
	write_rest(out, y, r);
}

static struct svg_panel panel(FILE *out, double top, double bottom)
{
	return (struct svg_panel){ .out = out,
				   .x = { .near = LEFT, .far = RIGHT },
				   .y = { .near = bottom, .far = top } };
}

static int draw(FILE *out, const void *result)
{
	const struct bench_result *r = result;
	struct svg_panel latency = panel(out, 188, 466), throughput = panel(out, 546, 704),
			 p99 = panel(out, 756, 858);

	svg_begin(out, WIDTH, HEIGHT);
	write_title(out, r);
	bench_plot_latency(&latency, r);
	bench_plot_throughput(&throughput, r);
	bench_plot_p99(&p99, r);
	svg_end(out);
	return 0;
}

int bench_plot(const struct bench_result *r, const char *path, struct weft_err *err)
{
	_cleanup_(weft_draft_free) struct weft_draft draft = {};
	int rc = weft_draft_locate(&draft, path, true, err);

	if (rc < 0)
		return rc;
	weft_draft_set_mode(&draft, 0666); /* a plot is no secret */
	return weft_draft_write(&draft, draw, r, err);
}
