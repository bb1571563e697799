/* monitor.h - the main thread while jobs run: time series, live line, Ctrl-C. */
#ifndef WEFT_CLI_BENCH_MONITOR_H
#define WEFT_CLI_BENCH_MONITOR_H

#include <stdatomic.h>

#include "cli/bench/result.h"

/* How often Ctrl-C came: the first ends the load, the second the wait for I/O in flight, the third
 * the program. */
extern atomic_int bench_stop;
void bench_catch_signals(void);

/* Returns when all jobs have ended. Fills the result's series and CPU time. @losses knows the paths
 * from before the jobs began. */
void bench_monitor(const struct bench_load *load, struct bench_job *jobs,
		   struct bench_loss_watch *losses, struct bench_result *result);

#endif
