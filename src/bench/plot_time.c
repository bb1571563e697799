/* plot_time.c - throughput, stacked, and below it p99, both over time. Many points are drawn as few
 * columns: throughput as their mean, p99 as the worst of them. */
#include <math.h>

#include "bench/plot.h"

enum { COLUMNS_MAX = 300 };

struct columns {
	unsigned count;
	double at[COLUMNS_MAX + 1]; /* bounds */
	double read[COLUMNS_MAX], write[COLUMNS_MAX], p99[COLUMNS_MAX];
};

static void fill_column(struct columns *c, const struct bench_series *s, unsigned i)
{
	size_t from = s->count * i / c->count, to = s->count * (i + 1) / c->count;
	double seconds = 0;

	c->read[i] = c->write[i] = c->p99[i] = 0;
	for (size_t n = from; n < to; n++) {
		const struct bench_point *p = &s->points[n];

		c->read[i] += (double)p->ios[BENCH_READ];
		c->write[i] += (double)p->ios[BENCH_WRITE];
		c->p99[i] = fmax(c->p99[i], (double)p->p99_ns);
		seconds += p->seconds;
	}
	c->read[i] /= fmax(seconds, 1e-9);
	c->write[i] /= fmax(seconds, 1e-9);
	c->at[i + 1] = s->points[to - 1].at_s;
}

static void make_columns(struct columns *c, const struct bench_series *s)
{
	c->count = s->count < COLUMNS_MAX ? (unsigned)s->count : COLUMNS_MAX;
	c->at[0] = 0;
	for (unsigned i = 0; i < c->count; i++)
		fill_column(c, s, i);
}

static double middle(const struct columns *c, unsigned i)
{
	return (c->at[i] + c->at[i + 1]) / 2;
}

/* To the end of the run, which may be a little behind the last point. */
static void scale_time(struct svg_axis *x, const struct columns *c, const struct bench_result *r)
{
	x->from = 0;
	x->to = fmax(c->at[c->count], r->seconds);
	if (x->to <= 0)
		x->to = 1;
}

static void draw_time(const struct svg_panel *p, bool labels)
{
	double ticks[SVG_TICKS];
	unsigned n = svg_ticks(&p->x, ticks);

	for (unsigned i = 0; i < n; i++) {
		double x = svg_at(&p->x, ticks[i]);
		char text[32];

		svg_line(p->out, x, p->y.near, x, p->y.far, "grid");
		snprintf(text, sizeof(text), "%.6g s", ticks[i]);
		if (labels)
			svg_text(p->out, x, p->y.near + 18, "middle", text);
	}
}

static bool in_run(const struct svg_panel *p, const struct bench_loss *loss)
{
	return loss->at_s >= p->x.from && loss->at_s <= p->x.to;
}

static bool any_in_run(const struct svg_panel *p, const struct bench_losses *l)
{
	unsigned i = 0;

	while (i < l->count && !in_run(p, &l->at[i]))
		i++;
	return i < l->count;
}

static void draw_losses(const struct svg_panel *p, const struct bench_losses *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		double x = svg_at(&p->x, l->at[i].at_s);

		if (in_run(p, &l->at[i]))
			svg_line(p->out, x, p->y.near, x, p->y.far, "loss");
	}
}

/* Where paths were lost, and connections made again. */
static void draw_events(const struct svg_panel *p, const struct bench_result *r)
{
	const struct bench_series *s = &r->series;
	uint64_t before = 0;

	draw_losses(p, &r->losses);
	for (size_t i = 0; i < s->count; i++) {
		double x = svg_at(&p->x, s->points[i].at_s - s->points[i].seconds / 2);

		if (s->points[i].reconnects > before)
			svg_line(p->out, x, p->y.near, x, p->y.far, "mark");
		before = s->points[i].reconnects;
	}
}

/* --- throughput ------------------------------------------------------------------------------- */

static double top_of(const struct columns *c, unsigned i, bool with_read)
{
	return c->write[i] + (with_read ? c->read[i] : 0);
}

/* The top of the writes, or of both, from the middle of the first column to that of the last. */
static void put_top(const struct svg_panel *p, const struct columns *c, bool both, bool backwards)
{
	for (unsigned i = 0; i < c->count; i++) {
		unsigned n = backwards ? c->count - 1 - i : i;

		fprintf(p->out, "%.1f,%.1f ", svg_at(&p->x, middle(c, n)),
			svg_at(&p->y, top_of(c, n, both)));
	}
}

static void put_bottom(const struct svg_panel *p, const struct columns *c)
{
	if (c->count)
		fprintf(p->out, "%.1f,%.1f %.1f,%.1f", svg_at(&p->x, middle(c, c->count - 1)),
			p->y.near, svg_at(&p->x, middle(c, 0)), p->y.near);
}

/* Reads lie on top of the writes. */
static void draw_area(const struct svg_panel *p, const struct columns *c, bool reads,
		      const char *colour)
{
	fprintf(p->out, "<polygon fill=\"%s\" fill-opacity=\"0.2\" points=\"", colour);
	put_top(p, c, reads, false);
	if (reads)
		put_top(p, c, false, true);
	else
		put_bottom(p, c);
	fprintf(p->out, "\"/>\n<polyline class=\"curve\" stroke=\"%s\" points=\"", colour);
	put_top(p, c, reads, false);
	fputs("\"/>\n", p->out);
}

/* The same in MiB/s, at round values of its own. */
static void draw_right_axis(const struct svg_panel *p, uint64_t bs)
{
	double factor = (double)bs / (1 << 20), ticks[SVG_TICKS];
	struct svg_axis mib = p->y;
	unsigned n;

	mib.to = p->y.to * factor;
	n = svg_ticks(&mib, ticks);
	for (unsigned i = 0; i < n; i++) {
		double y = svg_at(&mib, ticks[i]);

		svg_line(p->out, p->x.far, y, p->x.far + 5, y, "frame");
		svg_text(p->out, p->x.far + 9, y + 4, "", weft_count_label(ticks[i]).s);
	}
}

/* Returns where the next one goes. */
static double mark(FILE *out, double x, double y, const char *style, const char *what)
{
	svg_line(out, x, y - 4, x + 16, y - 4, style);
	svg_text(out, x + 22, y, "value", what);
	return x + 96;
}

static void head_throughput(const struct svg_panel *p, const struct bench_result *r)
{
	double x = p->x.near + 190, y = p->y.far - 16;

	svg_text(p->out, p->x.near, y, "head", "Throughput");
	svg_text(p->out, p->x.near - 8, y, "right", "IOPS");
	svg_text(p->out, p->x.far + 9, y, "", "MiB/s");
	if (r->ios[BENCH_READ])
		x = svg_legend(p->out, x, y, SVG_READ,
			       r->ios[BENCH_WRITE] ? "reads, on top of the writes" : "reads");
	if (r->ios[BENCH_WRITE])
		x = svg_legend(p->out, x, y, SVG_WRITE, "writes");
	if (any_in_run(p, &r->losses))
		x = mark(p->out, x, y, "loss", "path lost");
	if (r->reconnects)
		mark(p->out, x, y, "mark", "reconnect");
}

void bench_plot_throughput(struct svg_panel *p, const struct bench_result *r)
{
	struct columns c;
	double most = 0;

	make_columns(&c, &r->series);
	for (unsigned i = 0; i < c.count; i++)
		most = fmax(most, top_of(&c, i, true));
	scale_time(&p->x, &c, r);
	svg_axis_linear(&p->y, most);
	head_throughput(p, r);
	draw_time(p, false);
	svg_grid(p, weft_count_label);
	draw_right_axis(p, r->config->bs);
	draw_events(p, r);
	if (r->ios[BENCH_READ])
		draw_area(p, &c, true, SVG_READ);
	if (r->ios[BENCH_WRITE])
		draw_area(p, &c, false, SVG_WRITE);
}

/* --- p99 -------------------------------------------------------------------------------------- */

/* A step in which nothing completed has no latency: the line has a gap there. */
static void draw_p99(const struct svg_panel *p, const struct columns *c)
{
	bool pen_down = false;

	fprintf(p->out, "<path class=\"curve\" stroke=\"" SVG_P99 "\" d=\"");
	for (unsigned i = 0; i < c->count; i++) {
		if (c->p99[i] > 0)
			fprintf(p->out, "%c%.1f,%.1f ", pen_down ? 'L' : 'M',
				svg_at(&p->x, middle(c, i)), svg_at(&p->y, c->p99[i]));
		pen_down = c->p99[i] > 0;
	}
	fputs("\"/>\n", p->out);
}

void bench_plot_p99(struct svg_panel *p, const struct bench_result *r)
{
	double least = INFINITY, most = 1;
	struct columns c;

	make_columns(&c, &r->series);
	for (unsigned i = 0; i < c.count; i++) {
		if (c.p99[i] > 0)
			least = fmin(least, c.p99[i]);
		most = fmax(most, c.p99[i]);
	}
	scale_time(&p->x, &c, r);
	svg_axis_log(&p->y, isinf(least) ? 1 : least, most);
	svg_text(p->out, p->x.near, p->y.far - 16, "head", "99th percentile of latency");
	draw_time(p, true);
	svg_grid(p, weft_time_label);
	draw_events(p, r);
	draw_p99(p, &c);
}
