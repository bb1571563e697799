/* pace.h - when the next I/O is due.
 *
 * Without a rate it is due as soon as there is room. With one, I/O number k of a job is due at
 * start + k / rate, whatever became of the ones before: the latency of an I/O that had to wait for
 * room counts from when it was due, so a target that stalls cannot hide it by being asked less. */
#ifndef WEFT_BENCH_PACE_H
#define WEFT_BENCH_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct bench_pace {
	uint64_t start_ns;
	double step_ns; /* 0: no rate */
	uint64_t taken;
};

/* @share of @shares equal parts of @rate I/Os per second, which take turns. */
static inline void bench_pace_init(struct bench_pace *pace, uint64_t start_ns, uint64_t rate,
				   unsigned share, unsigned shares)
{
	pace->step_ns = rate ? 1e9 * shares / (double)rate : 0;
	pace->start_ns = start_ns + (uint64_t)(pace->step_ns * share / shares);
	pace->taken = 0;
}

/* When the next one is due; @now without a rate. */
static inline uint64_t bench_pace_due(const struct bench_pace *pace, uint64_t now)
{
	if (pace->step_ns == 0)
		return now;
	return pace->start_ns + (uint64_t)(pace->step_ns * (double)pace->taken);
}

static inline void bench_pace_take(struct bench_pace *pace)
{
	pace->taken++;
}

#endif
