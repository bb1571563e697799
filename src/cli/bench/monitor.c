/* monitor.c - the main thread while jobs run: time series, live line, Ctrl-C. */
#include "base/clock.h"
#include "cli/bench/monitor.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/echo.h"
#include "base/plural.h"
#include "base/units.h"
#include "cli/host_options.h"
#include "cli/progress.h"

#define COMMAND "weft bench"
#define SECOND  UINT64_C(1000000000)
#define LIVE_NS (SECOND / 5)
#define LATE_NS (3 * SECOND) /* after the end, until the user is told what the run waits for */

struct monitor {
	const struct bench_load *load;
	struct bench_job *jobs;
	struct bench_result *result;
	struct rusage before;
	bool measuring, loaded, told_late, saw_stop, tty, utf8;
	bool lost; /* the connection */
	struct bench_loss_watch *losses;
	uint64_t next_ns, live_ns;
};

atomic_int bench_stop;

static void on_signal(int sig)
{
	static weft_echo last;

	if (!weft_is_echo_now(&last) && ++bench_stop > 1)
		signal(sig, SIG_DFL);
}

void bench_catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static bool all_reached(const struct monitor *w, enum bench_phase phase)
{
	for (unsigned i = 0; i < w->load->config->jobs; i++) {
		if (__atomic_load_n(&w->jobs[i].phase, __ATOMIC_ACQUIRE) < phase)
			return false;
	}
	return true;
}

/* --- the live line ---------------------------------------------------------------------------- */

static void compose_read_back(const struct monitor *w, FILE *line)
{
	uint64_t done = 0, all = 0;

	for (unsigned i = 0; i < w->load->config->jobs; i++) {
		done += __atomic_load_n(&w->jobs[i].swept, __ATOMIC_RELAXED);
		all += w->jobs[i].ledger.nwritten;
	}
	fprintf(line, "checking what was written: %s of %s block%s", weft_grouped_text(done).s,
		weft_grouped_text(all).s, weft_plural(all));
}

static void compose_point(const struct monitor *w, const struct bench_point *p, FILE *line)
{
	double iops = bench_point_iops(p), mib = iops * (double)w->load->config->bs / (1 << 20);

	fprintf(line, "%5.1f s  %s IOPS  %s MiB/s  p50 %s  p99 %s", p->at_s,
		weft_count_text(iops).s, weft_digits_text(mib).s,
		weft_time_text((double)p->p50_ns, w->utf8).s,
		weft_time_text((double)p->p99_ns, w->utf8).s);
	if (p->failed)
		fprintf(line, "  failed %s", weft_count_text((double)p->failed).s);
	if (p->reconnects)
		fprintf(line, "  reconnects %s", weft_count_text((double)p->reconnects).s);
}

static void compose_live_line(const struct monitor *w, uint64_t now, FILE *line)
{
	const struct bench_series *series = &w->result->series;

	if (w->lost)
		fprintf(line, "%5.1f s  reconnecting",
			now > w->load->measure_ns ? (double)(now - w->load->measure_ns) / 1e9 : 0);
	else if (w->loaded && w->load->config->verify)
		compose_read_back(w, line);
	else if (!w->measuring)
		fputs("warming up", line);
	else if (series->count)
		compose_point(w, &series->points[series->count - 1], line);
}

static void draw_live_line(struct monitor *w, uint64_t now)
{
	char text[256] = "";
	FILE *line;

	if (!w->tty || now < w->live_ns)
		return;
	w->live_ns = now + LIVE_NS;
	line = fmemopen(text, sizeof(text), "w");
	if (!line)
		return;
	compose_live_line(w, now, line);
	fclose(line);
	weft_status_line(text);
}

static void clear_live_line(const struct monitor *w)
{
	if (w->tty)
		weft_status_line("");
}

/* --- the connection --------------------------------------------------------------------------- */

static void print_loss(const struct monitor *w, const struct bench_loss *loss)
{
	if (!loss || loss->alone)
		return;
	clear_live_line(w);
	if (loss->seconds < 0)
		fprintf(stderr, COMMAND ": path lost: %s: %s\n", bench_loss_address(loss),
			loss->why);
	else
		fprintf(stderr, COMMAND ": path back: %s, after %.1f s\n", bench_loss_address(loss),
			loss->seconds);
}

static void print_events(struct monitor *w)
{
	struct weft_event event;

	while (weft_ctrl_next_event(w->load->ctrl, &event)) {
		print_loss(w, bench_loss_event(w->losses, &event, weft_monotonic_ns()));
		if (event.kind != WEFT_EVENT_STATE)
			continue;
		clear_live_line(w);
		weft_host_print_state(COMMAND, w->load->config->uri, &event, &w->lost);
	}
}

static void print_access(struct monitor *w, uint64_t now)
{
	struct bench_access seen;

	bench_access_sample(w->losses, now, &seen);
	for (unsigned i = 0; i < seen.count; i++)
		print_loss(w, bench_access_note(w->losses, &seen, i));
}

/* The last I/Os do not end: say why, once, before the user thinks that it hangs. */
static void print_late(struct monitor *w, uint64_t now)
{
	struct weft_err why = {};
	enum weft_state state;

	if (w->told_late || (!bench_stop && now < w->load->until_ns + LATE_NS))
		return;
	state = weft_ctrl_state(w->load->ctrl, &why);
	if (state == WEFT_LIVE)
		return;
	clear_live_line(w);
	fprintf(stderr,
		COMMAND ": waits for the last I/Os; the controller is %s%s%s; Ctrl-C reports "
			"without them\n",
		weft_state_text(state), why.text[0] ? ": " : "", why.text);
	w->told_late = true;
}

/* Ctrl-C when the load has ended anyway can only mean the waiting. */
static void handle_stop(struct monitor *w, uint64_t now)
{
	if (!bench_stop || w->saw_stop)
		return;
	w->saw_stop = true;
	if (now >= w->load->until_ns && bench_stop == 1)
		bench_stop = 2;
}

/* --- steps ------------------------------------------------------------------------------------ */

static uint64_t reconnects(const struct monitor *w)
{
	struct weft_ctrl_info info;

	weft_ctrl_info(w->load->ctrl, &info);
	return info.reconnects;
}

static double seconds(const struct timeval *after, const struct timeval *before)
{
	return (double)(after->tv_sec - before->tv_sec) +
	       (double)(after->tv_usec - before->tv_usec) / 1e6;
}

static void begin_measuring(struct monitor *w, uint64_t now)
{
	w->measuring = true;
	w->result->series.from_ns = w->result->series.last_ns = now;
	getrusage(RUSAGE_SELF, &w->before);
}

static void end_measuring(struct monitor *w, uint64_t now)
{
	struct bench_series *series = &w->result->series;
	struct rusage after;

	w->loaded = true;
	getrusage(RUSAGE_SELF, &after);
	w->result->user_s = seconds(&after.ru_utime, &w->before.ru_utime);
	w->result->system_s = seconds(&after.ru_stime, &w->before.ru_stime);
	/* A very short last step would be noise. */
	if (now - series->last_ns >= w->load->config->interval_ns / 2 || !series->count)
		bench_series_step(series, w->jobs, w->load->config->jobs, reconnects(w));
}

static void monitor_step(struct monitor *w)
{
	uint64_t now = weft_monotonic_ns();

	if (!w->measuring && (now >= w->load->measure_ns || all_reached(w, BENCH_SWEEPING)))
		begin_measuring(w, now);
	if (w->measuring && !w->loaded && all_reached(w, BENCH_SWEEPING))
		end_measuring(w, now);
	else if (w->measuring && !w->loaded && now >= w->next_ns + w->load->config->interval_ns)
		bench_series_step(&w->result->series, w->jobs, w->load->config->jobs,
				  reconnects(w));
	while (w->next_ns + w->load->config->interval_ns <= now)
		w->next_ns += w->load->config->interval_ns;
	print_events(w);
	print_access(w, now);
	handle_stop(w, now);
	draw_live_line(w, now);
	print_late(w, now);
}

/* Until the next step, or until a job has something to say. */
static void wait_for_step(const struct monitor *w)
{
	struct pollfd fds[] = { { .fd = w->load->wake_fd, .events = POLLIN },
				{ .fd = weft_ctrl_event_fd(w->load->ctrl), .events = POLLIN } };
	uint64_t now = weft_monotonic_ns(), next = w->next_ns + w->load->config->interval_ns, value;
	struct timespec ts = {};

	if (!w->measuring && next > w->load->measure_ns)
		next = w->load->measure_ns;
	if (next > now + LIVE_NS)
		next = now + LIVE_NS;
	if (next > now)
		ts.tv_nsec = (long)(next - now);
	if (ppoll(fds, 2, &ts, NULL) > 0 && fds[0].revents &&
	    read(w->load->wake_fd, &value, sizeof(value)) < 0)
		return; /* somebody took it: nobody else does */
}

void bench_monitor(const struct bench_load *load, struct bench_job *jobs,
		   struct bench_loss_watch *losses, struct bench_result *result)
{
	struct monitor w = { .load = load,
			     .jobs = jobs,
			     .result = result,
			     .next_ns = load->measure_ns,
			     .losses = losses,
			     .tty = isatty(STDERR_FILENO),
			     .utf8 = weft_utf8_locale() };

	while (!all_reached(&w, BENCH_ENDED)) {
		wait_for_step(&w);
		monitor_step(&w);
	}
	monitor_step(&w);
	clear_live_line(&w);
}
