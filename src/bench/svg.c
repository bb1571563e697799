/* svg.c - the few strokes that a plot needs: text, lines, axes. */
#include "bench/plot.h"

#include <math.h>
#include <string.h>

enum { TICK_PX = 18 }; /* for a tick's label, at least */

/* The background is explicit: a dark viewer must not put black on black. */
static const char style[] =
	"<style>\n"
	"text { font-family: Inter, 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans',"
	" sans-serif; font-size: 12px; fill: #444; }\n"
	".title { font-weight: 600; fill: #111; }\n"
	".sub { font-size: 13px; fill: #555; }\n"
	".head { font-size: 14px; font-weight: 600; fill: #111; }\n"
	".value { font-size: 13px; fill: #111; }\n"
	".right { text-anchor: end; }\n"
	".middle { text-anchor: middle; }\n"
	".grid { stroke: #e4e4e4; stroke-width: 1; }\n"
	".frame { stroke: #9a9a9a; stroke-width: 1; }\n"
	".mark { stroke: " SVG_MARK
	"; stroke-width: 1.2; stroke-opacity: 0.6; stroke-dasharray: 4 3; }\n"
	".loss { stroke: " SVG_LOSS "; stroke-width: 1.4; stroke-opacity: 0.8; }\n"
	".curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; stroke-linecap: round; }\n"
	"</style>\n";

void svg_begin(FILE *out, int width, int height)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\">\n%s<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
		width, height, width, height, style, width, height);
}

void svg_end(FILE *out)
{
	fputs("</svg>\n", out);
}

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

void svg_text(FILE *out, double x, double y, const char *class, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
	put_escaped(out, text);
	fputs("</text>\n", out);
}

/* Nobody knows the font's widths here: these are on the safe side. */
#define TITLE_EM  0.66
#define LETTER_PX 7

void svg_title(FILE *out, double x, double y, double width, const char *text)
{
	double size = fmin(21, width / (TITLE_EM * (double)strlen(text)));

	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"title\" style=\"font-size: %.1fpx\">", x,
		y, size);
	put_escaped(out, text);
	fputs("</text>\n", out);
}

void svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *class)
{
	fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1,
		y1, x2, y2, class);
}

double svg_legend(FILE *out, double x, double y, const char *colour, const char *word)
{
	fprintf(out,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"16\" height=\"4\" rx=\"2\" fill=\"%s\"/>\n", x,
		y - 6, colour);
	svg_text(out, x + 22, y, "value", word);
	return x + 22 + LETTER_PX * (double)strlen(word) + 18;
}

/* --- axes ------------------------------------------------------------------------------------- */

double svg_at(const struct svg_axis *axis, double value)
{
	double part;

	if (axis->log)
		part = log(fmax(value, axis->from) / axis->from) / log(axis->to / axis->from);
	else
		part = (value - axis->from) / (axis->to - axis->from);
	return axis->near + fmin(part, 1) * (axis->far - axis->near);
}

/* 1, 2 or 5 times a power of ten: the largest that is not above @value. */
static double round_down(double value)
{
	double power = pow(10, floor(log10(value) + 1e-9)), rest = value / power + 1e-9;

	return power * (rest >= 5 ? 5 : rest >= 2 ? 2 : 1);
}

static double round_up(double value)
{
	double down = round_down(value);

	if (down >= value * (1 - 1e-9))
		return down;
	return round_down(down * 2.5 + down * 1e-6);
}

static double linear_step(const struct svg_axis *axis)
{
	return round_up((axis->to - axis->from) / 5);
}

void svg_axis_linear(struct svg_axis *axis, double most)
{
	axis->from = 0;
	axis->to = most > 0 ? most : 1;
	axis->to = ceil(axis->to / linear_step(axis) - 1e-9) * linear_step(axis);
}

/* Whether there is room for powers of ten only. */
static bool is_coarse(const struct svg_axis *axis)
{
	double decade_px = fabs(axis->far - axis->near) / log10(axis->to / axis->from);

	return decade_px < 3 * TICK_PX;
}

/* The ends are ticks: no value lies above the last one. */
void svg_axis_log(struct svg_axis *axis, double least, double most)
{
	axis->log = true;
	axis->from = round_down(fmax(least, 1));
	axis->to = round_up(fmax(most, axis->from * 1.01));
	if (!is_coarse(axis))
		return;
	axis->from = pow(10, floor(log10(axis->from) + 1e-9));
	axis->to = pow(10, ceil(log10(axis->to) - 1e-9));
}

/* 1, 2, 5 where there is room for them, else only 1. */
static unsigned log_ticks(const struct svg_axis *axis, double *ticks)
{
	bool coarse = is_coarse(axis);
	unsigned n = 0;
	double tick = round_down(axis->from);

	for (; tick <= axis->to * 1.001 && n < SVG_TICKS; tick = round_up(tick * 1.5)) {
		bool decade = fabs(log10(tick) - round(log10(tick))) < 1e-6;

		if (decade || !coarse)
			ticks[n++] = tick;
	}
	return n;
}

unsigned svg_ticks(const struct svg_axis *axis, double *ticks)
{
	double step;
	unsigned n = 0;

	if (axis->log)
		return log_ticks(axis, ticks);
	step = linear_step(axis);
	for (double tick = axis->from; tick <= axis->to + step / 1e6 && n < SVG_TICKS; tick += step)
		ticks[n++] = tick;
	return n;
}

void svg_grid(const struct svg_panel *p, struct weft_text (*label)(double value))
{
	double ticks[SVG_TICKS];
	unsigned n = svg_ticks(&p->y, ticks);

	for (unsigned i = 0; i < n; i++) {
		double y = svg_at(&p->y, ticks[i]);

		svg_line(p->out, p->x.near, y, p->x.far, y, "grid");
		svg_text(p->out, p->x.near - 8, y + 4, "right", label(ticks[i]).s);
	}
	svg_line(p->out, p->x.near, p->y.near, p->x.far, p->y.near, "frame");
}
