/* live.c - the line that weft bench draws while it runs, and its messages. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/plural.h"
#include "base/units.h"
#include "cli/bench/report.h"
#include "cli/host_options.h"
#include "cli/progress.h"

#define REDRAW_NS UINT64_C(200000000)

/* --- the line --------------------------------------------------------------------------------- */

static void compose_point(const struct bench_live *live, const struct bench_point *p, FILE *line)
{
	double iops = bench_point_iops(p), mib = iops * (double)live->config->bs / (1 << 20);

	fprintf(line, "%5.1f s  %s IOPS  %s MiB/s  p50 %s  p99 %s", p->at_s,
		weft_count_text(iops).s, weft_digits_text(mib).s,
		weft_time_text((double)p->p50_ns, live->utf8).s,
		weft_time_text((double)p->p99_ns, live->utf8).s);
	if (p->failed)
		fprintf(line, "  failed %s", weft_count_text((double)p->failed).s);
	if (p->reconnects)
		fprintf(line, "  reconnects %s", weft_count_text((double)p->reconnects).s);
}

static void compose_line(const struct bench_live *live, const struct bench_progress *p, FILE *line)
{
	if (live->lost)
		fprintf(line, "%5.1f s  reconnecting", p->at_s);
	else if (p->stage == BENCH_READING_BACK)
		fprintf(line, "checking what was written: %s of %s block%s",
			weft_grouped_text(p->read_back).s, weft_grouped_text(p->to_read_back).s,
			weft_plural(p->to_read_back));
	else if (p->stage == BENCH_WARMING_UP)
		fputs("warming up", line);
	else if (p->point)
		compose_point(live, p->point, line);
}

static void draw_line(void *arg, const struct bench_progress *progress)
{
	struct bench_live *live = arg;
	uint64_t now = weft_monotonic_ns();
	char text[256] = "";
	FILE *line;

	weft_path_wait_progress(live->waiting, "I/O", progress->in_flight, progress->answered);
	if (!live->tty || now < live->next_ns)
		return;
	live->next_ns = now + REDRAW_NS;
	line = fmemopen(text, sizeof(text), "w");
	if (!line)
		return;
	compose_line(live, progress, line);
	fclose(line);
	weft_status_line(text);
}

void bench_live_end(struct bench_live *live)
{
	if (live->tty)
		weft_status_line("");
}

/* --- messages --------------------------------------------------------------------------------- */

static void print_loss(void *arg, const struct bench_loss *loss)
{
	struct bench_live *live = arg;

	bench_live_end(live);
	if (loss->seconds < 0)
		fprintf(stderr, "%s: path lost: %s: %s\n", live->command, bench_loss_address(loss),
			loss->why);
	else
		fprintf(stderr, "%s: path back: %s, after %.1f s\n", live->command,
			bench_loss_address(loss), loss->seconds);
}

static void print_state(void *arg, const struct weft_event *event)
{
	struct bench_live *live = arg;

	bench_live_end(live);
	weft_host_print_state(live->command, live->config->uri, event, &live->lost);
}

static void print_late(void *arg, enum weft_state state, const struct weft_err *why)
{
	struct bench_live *live = arg;

	bench_live_end(live);
	fprintf(stderr,
		"%s: waits for the last I/Os; the controller is %s%s%s; Ctrl-C reports without "
		"them\n",
		live->command, weft_state_text(state), why->text[0] ? ": " : "", why->text);
}

void bench_live_init(struct bench_live *live, const char *command,
		     const struct bench_config *config, struct weft_path_wait *waiting,
		     struct bench_observer *observer)
{
	*live = (struct bench_live){ .command = command,
				     .config = config,
				     .tty = isatty(STDERR_FILENO),
				     .utf8 = weft_utf8_locale(),
				     .waiting = waiting };
	observer->arg = live;
	observer->loss = print_loss;
	observer->state = print_state;
	observer->step = draw_line;
	observer->late = print_late;
}
