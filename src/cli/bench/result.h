/* result.h - the result of a run, from which the reports are made. */
#ifndef WEFT_CLI_BENCH_RESULT_H
#define WEFT_CLI_BENCH_RESULT_H

#include <jansson.h>

#include "cli/bench/path_loss.h"
#include "cli/bench/series.h"

struct bench_result {
	const struct bench_config *config;
	struct weft_ctrl_info info;
	struct weft_ns_info ns_info;
	struct weft_path path;
	char where[512]; /* the URIs without their words, with the nsid */
	char when[32];   /* the date, with the time */

	double seconds;
	uint64_t ios[BENCH_OPS];
	struct weft_hist hist[BENCH_OPS];
	uint64_t unstarted;
	uint64_t left;           /* I/Os still in flight, which the user did not want to wait for */
	double user_s, system_s; /* CPU of the process, while measuring */
	uint64_t reconnects;
	struct bench_losses losses;           /* of paths */
	struct weft_stalls stalls;            /* of all queues */
	struct weft_queue_stats counters;     /* of all queues, over all of their lives */
	uint64_t registrations, copied_bytes; /* of these, while measuring */
	bool rdma;                            /* some of them are RDMA's */
	bool stopped;                         /* by the user */
	struct weft_err end;                  /* why it ended early; "": it did not */
	struct bench_series series;

	uint64_t checked, unstamped;
	struct bench_errors trouble;
};

/* -errno: it did not begin, and @err says why. */
int bench_run(struct bench_config *config, struct bench_result *result, struct weft_err *err);
void bench_result_free(struct bench_result *result);

/* true: the run found nothing wrong. Otherwise @err has a sentence that sums it up. */
bool bench_result_fine(const struct bench_result *result, struct weft_err *err);
/* "randrw 70 % reads, 4 KiB, depth 32, 1 job, 2 queues" */
void bench_result_conditions(const struct bench_result *result, char *text, size_t size);
/* I/Os that a job really had in flight at most: queues have a limit of their own. */
unsigned bench_result_depth(const struct bench_result *result);
double bench_result_cpu_us(const struct bench_result *result); /* per I/O */

void bench_report_text(const struct bench_result *result);
void bench_report_problems(const struct bench_result *result, const char *command);
void bench_chart_text(const struct bench_result *result);
json_t *bench_report_json(const struct bench_result *result);
int bench_plot(const struct bench_result *result, const char *path, struct weft_err *err);

#endif
