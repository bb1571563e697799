/* series.c - the time series: what all jobs did in every step. */
#include "bench/job.h"

#include <stdlib.h>

#include "base/clock.h"

static bool make_room(struct bench_series *series)
{
	size_t room = series->room ? 2 * series->room : 128;
	struct bench_point *grown;

	if (series->count < series->room)
		return true;
	grown = reallocarray(series->points, room, sizeof(*grown));
	if (!grown)
		return false;
	series->points = grown;
	series->room = room;
	return true;
}

static void sum_jobs(struct bench_series *series, const struct bench_job *jobs, unsigned count,
		     struct bench_point *point)
{
	series->now = (struct weft_hist){};
	for (unsigned i = 0; i < count; i++) {
		weft_hist_merge(&series->now, &jobs[i].hist[BENCH_READ]);
		weft_hist_merge(&series->now, &jobs[i].hist[BENCH_WRITE]);
		for (unsigned op = 0; op < BENCH_OPS; op++)
			point->ios[op] += __atomic_load_n(&jobs[i].completed[op], __ATOMIC_RELAXED);
		point->failed += __atomic_load_n(&jobs[i].trouble.failed, __ATOMIC_RELAXED);
	}
}

static void subtract_last(struct bench_series *series, struct bench_point *point)
{
	for (unsigned op = 0; op < BENCH_OPS; op++) {
		uint64_t ios = point->ios[op];

		point->ios[op] -= series->last_ios[op];
		series->last_ios[op] = ios;
	}
	weft_hist_since(&series->now, &series->last, &series->step);
	series->last = series->now;
	point->p50_ns = weft_hist_percentile(&series->step, 50);
	point->p99_ns = weft_hist_percentile(&series->step, 99);
	point->max_ns = series->step.max;
}

void bench_series_step(struct bench_series *series, const struct bench_job *jobs, unsigned count,
		       uint64_t reconnects)
{
	struct bench_point point = { .reconnects = reconnects };
	uint64_t now = weft_monotonic_ns();

	sum_jobs(series, jobs, count, &point);
	subtract_last(series, &point);
	point.at_s = (double)(now - series->from_ns) / 1e9;
	point.seconds = (double)(now - series->last_ns) / 1e9;
	series->last_ns = now;
	if (make_room(series))
		series->points[series->count++] = point;
}

double bench_point_iops(const struct bench_point *point)
{
	uint64_t ios = point->ios[BENCH_READ] + point->ios[BENCH_WRITE];

	return point->seconds > 0 ? (double)ios / point->seconds : 0;
}
