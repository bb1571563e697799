/* plot.h - the panels of the plot. */
#ifndef WEFT_CLI_BENCH_PLOT_H
#define WEFT_CLI_BENCH_PLOT_H

#include "cli/bench/result.h"
#include "cli/bench/svg.h"

/* Latency by percentile. The panel's pixels are set, its values are not. */
void bench_plot_latency(struct svg_panel *panel, const struct bench_result *result);
/* Throughput and p99 over time, one above the other. */
void bench_plot_throughput(struct svg_panel *panel, const struct bench_result *result);
void bench_plot_p99(struct svg_panel *panel, const struct bench_result *result);

#endif
