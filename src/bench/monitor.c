/* monitor.c - the thread of bench_run() while jobs run: it makes the time series, and tells the
 * observer what happens. */
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/job.h"
#include "bench/path_loss.h"

#define SECOND  UINT64_C(1000000000)
#define STEP_NS (SECOND / 5)
#define LATE_NS (3 * SECOND) /* after the end, until the observer hears what the run waits for */

struct monitor {
	const struct bench_load *load;
	struct bench_job *jobs;
	const struct bench_observer *observer;
	struct bench_result *result;
	struct rusage before;
	bool measuring, loaded, told_late, saw_stop;
	struct bench_loss_watch *losses;
	uint64_t next_ns;
};

static bool all_reached(const struct monitor *w, enum bench_phase phase)
{
	for (unsigned i = 0; i < w->load->config->jobs; i++) {
		if (__atomic_load_n(&w->jobs[i].phase, __ATOMIC_ACQUIRE) < phase)
			return false;
	}
	return true;
}

/* --- what the observer hears ------------------------------------------------------------------ */

static void tell_progress(const struct monitor *w, uint64_t now)
{
	const struct bench_series *series = &w->result->series;
	struct bench_progress progress = { .stage = BENCH_WARMING_UP };

	if (w->loaded && w->load->config->verify)
		progress.stage = BENCH_READING_BACK;
	else if (w->measuring)
		progress.stage = BENCH_MEASURING;
	if (now > w->load->measure_ns)
		progress.at_s = (double)(now - w->load->measure_ns) / 1e9;
	if (series->count)
		progress.point = &series->points[series->count - 1];
	for (unsigned i = 0; w->loaded && i < w->load->config->jobs; i++) {
		progress.read_back += __atomic_load_n(&w->jobs[i].swept, __ATOMIC_RELAXED);
		progress.to_read_back += w->jobs[i].ledger.nwritten;
	}
	for (unsigned i = 0; i < w->load->config->jobs; i++) {
		progress.in_flight += __atomic_load_n(&w->jobs[i].in_flight, __ATOMIC_RELAXED);
		progress.answered += __atomic_load_n(&w->jobs[i].answered, __ATOMIC_RELAXED);
	}
	w->observer->step(w->observer->arg, &progress);
}

static void tell_loss(const struct monitor *w, const struct bench_loss *loss)
{
	if (loss && !loss->alone)
		w->observer->loss(w->observer->arg, loss);
}

static void tell_events(struct monitor *w)
{
	struct weft_event event;

	while (weft_ctrl_next_event(w->load->ctrl, &event)) {
		tell_loss(w, bench_loss_event(w->losses, &event, weft_monotonic_ns()));
		if (event.kind == WEFT_EVENT_STATE)
			w->observer->state(w->observer->arg, &event);
	}
}

static void tell_access(struct monitor *w, uint64_t now)
{
	struct bench_access seen;

	bench_access_sample(w->losses, now, &seen);
	for (unsigned i = 0; i < seen.count; i++)
		tell_loss(w, bench_access_note(w->losses, &seen, i));
}

/* The last I/Os do not end: say why, once, before the user thinks that it hangs. */
static void tell_late(struct monitor *w, uint64_t now)
{
	struct weft_err why = {};
	enum weft_state state;

	if (w->told_late || (!*w->load->stop && now < w->load->until_ns + LATE_NS))
		return;
	state = weft_ctrl_state(w->load->ctrl, &why);
	if (state == WEFT_LIVE)
		return;
	w->observer->late(w->observer->arg, state, &why);
	w->told_late = true;
}

/* Ctrl-C when the load has ended anyway can only mean the waiting. */
static void handle_stop(struct monitor *w, uint64_t now)
{
	atomic_int *stop = w->load->stop;

	if (!*stop || w->saw_stop)
		return;
	w->saw_stop = true;
	if (now >= w->load->until_ns && *stop == 1)
		*stop = 2;
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
	tell_events(w);
	tell_access(w, now);
	handle_stop(w, now);
	tell_progress(w, now);
	tell_late(w, now);
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
	if (next > now + STEP_NS)
		next = now + STEP_NS;
	if (next > now)
		ts.tv_nsec = (long)(next - now);
	if (ppoll(fds, 2, &ts, NULL) > 0 && fds[0].revents &&
	    read(w->load->wake_fd, &value, sizeof(value)) < 0)
		return; /* somebody took it: nobody else does */
}

void bench_monitor(const struct bench_load *load, struct bench_job *jobs,
		   const struct bench_observer *observer, struct bench_loss_watch *losses,
		   struct bench_result *result)
{
	struct monitor w = { .load = load,
			     .jobs = jobs,
			     .observer = observer,
			     .result = result,
			     .next_ns = load->measure_ns,
			     .losses = losses };

	while (!all_reached(&w, BENCH_ENDED)) {
		wait_for_step(&w);
		monitor_step(&w);
	}
	monitor_step(&w);
}
