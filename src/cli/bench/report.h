/* report.h - what weft bench prints: while it runs, and of its result. */
#ifndef WEFT_CLI_BENCH_REPORT_H
#define WEFT_CLI_BENCH_REPORT_H

#include <jansson.h>

#include "bench/bench.h"
#include "cli/path_wait.h"

/* The line on the terminal, and messages above it. */
struct bench_live {
	const char *command;
	const struct bench_config *config;
	bool tty, utf8;
	bool lost; /* the connection */
	uint64_t next_ns;
	struct weft_path_wait *waiting; /* hears of progress */
};

/* Makes @observer print for @live, and @waiting know whether there are answers; @stop is left to
 * the caller. */
void bench_live_init(struct bench_live *live, const char *command,
		     const struct bench_config *config, struct weft_path_wait *waiting,
		     struct bench_observer *observer);
/* Takes the line away. */
void bench_live_end(struct bench_live *live);

void bench_report_text(const struct bench_result *result);
void bench_report_problems(const struct bench_result *result, const char *command);
void bench_chart_text(const struct bench_result *result);
/* @rdma: a path of the connection is RDMA's. */
json_t *bench_report_json(const struct bench_result *result, bool rdma);

#endif
