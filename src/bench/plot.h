/* plot.h - the panels of the plot, and the few strokes that they need: text, lines, axes. */
#ifndef WEFT_BENCH_PLOT_H
#define WEFT_BENCH_PLOT_H

#include <stdio.h>

#include "base/units.h"
#include "bench/bench.h"

/* Readable for the colour-blind, and on paper (Okabe and Ito's palette). */
#define SVG_READ  "#0072B2"
#define SVG_WRITE "#D55E00"
#define SVG_P99   "#7B3F98"
#define SVG_MARK  "#8A6D00"
#define SVG_LOSS  "#B00020"
#define SVG_TICKS 16

/* Values from @from to @to lie on pixels from @near to @far. */
struct svg_axis {
	double from, to, near, far;
	bool log;
};

struct svg_panel {
	FILE *out;
	struct svg_axis x, y;
};

double svg_at(const struct svg_axis *axis, double value);
/* An axis from 0 to @most, or over @least to @most logarithmically, with round ends. */
void svg_axis_linear(struct svg_axis *axis, double most);
void svg_axis_log(struct svg_axis *axis, double least, double most);
/* Round values on the axis, at most SVG_TICKS. */
unsigned svg_ticks(const struct svg_axis *axis, double *ticks);

void svg_begin(FILE *out, int width, int height);
void svg_end(FILE *out);
/* @style: one of the classes in svg.c. @text is escaped. */
void svg_text(FILE *out, double x, double y, const char *style, const char *text);
/* As large as fits into @width. */
void svg_title(FILE *out, double x, double y, double width, const char *text);
void svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *style);
/* A short stroke in @colour and a word, as in a legend; returns where the next may begin. */
double svg_legend(FILE *out, double x, double y, const char *colour, const char *word);

/* Frame and horizontal grid of a panel, with the values of y as @label makes them. */
void svg_grid(const struct svg_panel *panel, struct weft_text (*label)(double value));

/* --- the panels ------------------------------------------------------------------------------- */

/* Latency by percentile. The panel's pixels are set, its values are not. */
void bench_plot_latency(struct svg_panel *panel, const struct bench_result *result);
/* Throughput and p99 over time, one above the other. */
void bench_plot_throughput(struct svg_panel *panel, const struct bench_result *result);
void bench_plot_p99(struct svg_panel *panel, const struct bench_result *result);

#endif
