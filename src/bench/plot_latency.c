/* plot_latency.c - latency by percentile: each step to the right is one more nine.
 *
 * A curve ends where less than one I/O is left above it; a dot marks the slowest. */
#include <math.h>

#include "bench/plot.h"

enum { STEPS = 240 };

static const struct {
	double percent;
	const char *label;
} marks[] = {
	{ 50, "50 %" },     { 90, "90 %" },       { 99, "99 %" },
	{ 99.9, "99.9 %" }, { 99.99, "99.99 %" }, { 99.999, "99.999 %" },
};

#define NMARKS (sizeof(marks) / sizeof(marks[0]))

/* 90 → 1, 99 → 2, 99.9 → 3 … */
static double nines(double percent)
{
	return -log10(1 - percent / 100);
}

static double percent(double nine)
{
	return 100 * (1 - pow(10, -nine));
}

static double end_of(const struct weft_hist *hist, const struct svg_axis *x)
{
	return fmin(log10((double)hist->count), x->to);
}

static void draw_curve(const struct svg_panel *p, const struct weft_hist *hist, const char *colour)
{
	double end = end_of(hist, &p->x);

	if (hist->count < 2)
		return;
	fprintf(p->out, "<polyline class=\"curve\" stroke=\"%s\" points=\"", colour);
	for (int i = 0; i <= STEPS; i++) {
		double at = p->x.from + (end - p->x.from) * i / STEPS;
		double value = (double)weft_hist_percentile(hist, percent(at));

		fprintf(p->out, "%.1f,%.1f ", svg_at(&p->x, at), svg_at(&p->y, value));
	}
	fprintf(p->out, "%.1f,%.1f\"/>\n", svg_at(&p->x, end), svg_at(&p->y, (double)hist->max));
	fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n",
		svg_at(&p->x, end), svg_at(&p->y, (double)hist->max), colour);
}

static void draw_marks(const struct svg_panel *p)
{
	for (size_t i = 0; i < NMARKS; i++) {
		double x = svg_at(&p->x, nines(marks[i].percent));

		svg_line(p->out, x, p->y.near, x, p->y.far, "grid");
		svg_text(p->out, x, p->y.near + 18, "middle", marks[i].label);
	}
}

static void draw_legend(const struct svg_panel *p, const struct bench_result *r)
{
	double x = p->x.near + 190, y = p->y.far - 16;

	if (r->hist[BENCH_READ].count)
		x = svg_legend(p->out, x, y, SVG_READ, "reads");
	if (r->hist[BENCH_WRITE].count)
		x = svg_legend(p->out, x, y, SVG_WRITE, "writes");
	fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#666\"/>\n", x + 6, y - 4);
	svg_text(p->out, x + 16, y, "value", "slowest");
}

static void scale(struct svg_panel *p, const struct bench_result *r)
{
	double least = INFINITY, most = 1;

	for (enum bench_op op = BENCH_READ; op <= BENCH_WRITE; op++) {
		if (!r->hist[op].count)
			continue;
		least = fmin(least, (double)weft_hist_percentile(&r->hist[op], 50));
		most = fmax(most, (double)r->hist[op].max);
	}
	p->x.from = nines(50);
	p->x.to = nines(99.999);
	svg_axis_log(&p->y, isinf(least) ? 1 : least, most);
}

void bench_plot_latency(struct svg_panel *p, const struct bench_result *r)
{
	scale(p, r);
	svg_text(p->out, p->x.near, p->y.far - 16, "head", "Latency by percentile");
	draw_legend(p, r);
	draw_marks(p);
	svg_grid(p, weft_time_label);
	draw_curve(p, &r->hist[BENCH_READ], SVG_READ);
	draw_curve(p, &r->hist[BENCH_WRITE], SVG_WRITE);
}
