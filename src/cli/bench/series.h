/* series.h - the time series: what all jobs did in every step. */
#ifndef WEFT_CLI_BENCH_SERIES_H
#define WEFT_CLI_BENCH_SERIES_H

#include "cli/bench/job.h"

struct bench_point {
	double at_s, seconds; /* its end, since the warm-up's; its length */
	uint64_t ios[BENCH_OPS];
	uint64_t p50_ns, p99_ns, max_ns; /* of reads and writes */
	uint64_t failed, reconnects;     /* so far */
};

struct bench_series {
	struct bench_point *points;
	size_t count, room;
	uint64_t from_ns, last_ns;
	uint64_t last_ios[BENCH_OPS];
	struct weft_hist last, now, step; /* reads and writes together */
};

/* Adds a point. Without memory there will be a gap. */
void bench_series_step(struct bench_series *series, const struct bench_job *jobs, unsigned count,
		       uint64_t reconnects);
double bench_point_iops(const struct bench_point *point);

#endif
