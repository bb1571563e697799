/* progress.c - a progress bar with rate and time left. */
#include "cli/progress.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

#define COLUMNS_DEFAULT 80
#define COLUMNS_MAX     160
#define BAR_MAX         40
#define BAR_MIN         5

double weft_now_s(void)
{
	return (double)weft_monotonic_ns() / 1e9;
}

bool weft_utf8_locale(void)
{
	setlocale(LC_CTYPE, "");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

void weft_progress_start(struct weft_progress *p, const char *what, uint64_t total, bool quiet)
{
	*p = (struct weft_progress){
		.what = what,
		.total = total,
		.on = !quiet && isatty(STDERR_FILENO),
		.unicode = weft_utf8_locale(),
		.start_s = weft_now_s(),
	};
	p->seen_s = p->start_s;
}

/* Over the last two seconds or so: the mean from the start would hide that it has stopped. */
static void measure(struct weft_progress *p, double now_s)
{
	double passed_s = now_s - p->seen_s, rate, weight;

	if (passed_s <= 0)
		return;
	rate = (double)(p->done - p->seen) / passed_s;
	weight = passed_s / (passed_s + 2);
	p->rate = p->seen_s == p->start_s ? rate : p->rate + weight * (rate - p->rate);
	p->seen = p->done;
	p->seen_s = now_s;
}

/* In UTF-8, eighths of a character are visible. */
static size_t draw_bar(const struct weft_progress *p, unsigned width, char *bar)
{
	static const char *const parts[] = { " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" };
	double share = p->done < p->total ? (double)p->done / (double)p->total : 1;
	unsigned eighths = (unsigned)(share * width * 8);
	size_t at = 0;

	for (unsigned i = 0; i < width; i++) {
		unsigned part = eighths > i * 8 ? eighths - i * 8 : 0;

		if (p->unicode)
			at += (size_t)sprintf(bar + at, "%s", parts[part < 8 ? part : 8]);
		else
			bar[at++] = part >= 8 ? '#' : '.';
	}
	bar[at] = '\0';
	return at;
}

static void draw_left(const struct weft_progress *p, char *text, size_t size)
{
	double left_s = p->rate > 0 ? (double)(p->total - p->done) / p->rate : 1e9;

	if (p->done >= p->total)
		*text = '\0';
	else if (left_s > 359999)
		snprintf(text, size, "stalled");
	else
		snprintf(text, size, "%s left", weft_clock_text((uint64_t)(left_s + 0.5)).s);
}

/* A line that wraps could not be drawn again. */
void weft_status_cut(char *text, unsigned columns)
{
	unsigned taken = 0;

	for (; *text; text++) {
		bool begins = (*text & 0xc0) != 0x80;

		if (begins && taken++ == columns)
			break;
	}
	*text = '\0';
}

/* Columns of a fixed width, so that nothing jumps while the numbers change. */
void weft_progress_line(const struct weft_progress *p, unsigned columns, char *line, size_t size)
{
	struct weft_text done = weft_size_text(p->done), rate = weft_size_text((uint64_t)p->rate);
	char bar[BAR_MAX * 4 + 1] = "", tail[320], left[96] = "";
	unsigned taken;

	if (!p->total) {
		snprintf(line, size, "%s  %s  %s/s", p->what, done.s, rate.s);
		weft_status_cut(line, columns - 1);
		return;
	}
	draw_left(p, left, sizeof(left));
	snprintf(tail, sizeof(tail), "%3u%%  %8s of %s %8s/s  %-10s",
		 (unsigned)((double)p->done * 100 / (double)p->total), done.s,
		 weft_size_text(p->total).s, rate.s, left);
	taken = (unsigned)(strlen(p->what) + strlen(tail)) + 4;
	if (columns > taken + BAR_MIN)
		draw_bar(p, columns - taken < BAR_MAX ? columns - taken : BAR_MAX, bar);
	snprintf(line, size, "%s  %s%s%s", p->what, bar, *bar ? " " : "", tail);
	weft_status_cut(line, columns - 1);
}

static unsigned terminal_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return COLUMNS_DEFAULT;
	return size.ws_col < COLUMNS_MAX ? size.ws_col : COLUMNS_MAX;
}

void weft_status_line(const char *text)
{
	char line[COLUMNS_MAX * 4];

	snprintf(line, sizeof(line), "%s", text);
	weft_status_cut(line, terminal_columns() - 1);
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
}

void weft_progress_show(struct weft_progress *p, uint64_t done)
{
	char line[COLUMNS_MAX * 4];

	p->done = done;
	measure(p, weft_now_s());
	if (!p->on)
		return;
	weft_progress_line(p, terminal_columns(), line, sizeof(line));
	weft_status_line(line);
}

void weft_progress_clear(struct weft_progress *p)
{
	if (p->on)
		weft_status_line("");
}
