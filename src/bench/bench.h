/* bench.h - the load generator and verifier behind weft bench: I/O by plan, measured, and checked
 * against what was written.
 *
 *   config ─▶ bench_run() ─▶ result ─▶ the caller's reports, bench_plot()
 *               ├ jobs: plan, pace ─▶ I/O ─▶ histogram, ledger
 *               └ monitor: series, path losses ─▶ observer
 *
 * Ownership: controller and namespace are the caller's, and are open until bench_run() has
 * returned. If result->left is not 0 then, the library still has I/Os in memory of the run: the
 * process ends without closing anything. @config and @observer stay in place as long as the result,
 * which the caller frees. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/host.h>

#include "base/err.h"
#include "base/hist.h"

/* --- what to do ------------------------------------------------------------------------------- */

struct bench_config {
	const char *uri;     /* of the controller, for the reports */
	bool hdgst, ddgst;   /* likewise */
	const char *rw;      /* the word for @random and @read_pct */
	bool random;         /* offsets; otherwise one after the other */
	unsigned read_pct;   /* of 100 I/Os, the rest are writes */
	uint64_t bs;         /* of one I/O */
	unsigned depth;      /* of a job, over all its queues */
	unsigned jobs;       /* threads */
	unsigned queues;     /* of a job */
	cpu_set_t cpus;      /* a job on each, in turn; none: anywhere */
	cpu_set_t home_cpus; /* of the other threads, where jobs have theirs */
	uint64_t time_ns, warmup_ns, interval_ns;
	uint64_t rate;         /* I/Os per second, of all jobs together; 0: as fast as it goes */
	uint64_t offset, size; /* the region; @size 0: to the end */
	uint64_t seed;
	unsigned flush_every; /* writes of a job; 0: never */
	bool verify;
	bool strict; /* what was acknowledged has to be there, flushed or not */
};

static inline bool bench_writes(const struct bench_config *config)
{
	return config->read_pct < 100;
}

/* --- what was wrong ------------------------------------------------------------------------------
 *
 * Everything is counted; of each kind of failure the first is kept as a sentence, of the blocks the
 * first few. */

enum bench_finding {
	BENCH_FINE,
	BENCH_LOST,      /* an older generation than the one that was acknowledged */
	BENCH_TORN,      /* parts of two generations, within a block or within one I/O */
	BENCH_CORRUPT,   /* the right block, with bytes that nobody wrote */
	BENCH_MISPLACED, /* this run wrote it, for another offset */
	BENCH_FOREIGN,   /* data that this run did not write */
	BENCH_EMPTY,     /* zeroes where this run had written */
	BENCH_FINDINGS,
};

/* "lost write" … */
const char *bench_finding_text(enum bench_finding what);

enum { BENCH_KINDS_MAX = 16, BENCH_PROBLEMS_MAX = 16 };

struct bench_failure {
	enum weft_op_code op;
	int rc;
	uint16_t status;
	uint64_t count;
	struct weft_err first;
};

struct bench_problem {
	enum bench_finding what;
	uint64_t offset;
	char text[200];
};

struct bench_errors {
	uint64_t failed; /* read by other threads too */
	struct bench_failure kinds[BENCH_KINDS_MAX];
	unsigned nkinds;    /* when they are full, further ones count in the last */
	uint64_t unchecked; /* chunks that could not be read in the end */

	uint64_t found[BENCH_FINDINGS];
	struct bench_problem problems[BENCH_PROBLEMS_MAX];
	unsigned nproblems;
};

/* Blocks that were wrong. */
uint64_t bench_errors_bad_blocks(const struct bench_errors *errors);

/* --- paths that were lost --------------------------------------------------------------------- */

enum { BENCH_LOSSES_MAX = 256 };

struct bench_loss {
	double at_s;    /* since the warm-up's end */
	double seconds; /* until it could be used again; < 0: that was not seen */
	char path[128]; /* nvme+tcp://HOST:PORT */
	char why[256];
	bool access; /* the connection is there, and the namespace cannot be reached through it */
	bool alone;  /* it was the only path, and is reported as the connection */
};

struct bench_losses {
	struct bench_loss at[BENCH_LOSSES_MAX];
	unsigned count;
	uint64_t more; /* losses without room in the list */
};

const char *bench_loss_address(const struct bench_loss *loss); /* HOST:PORT */

/* --- the time series: what all jobs did in every step ----------------------------------------- */

enum bench_op { BENCH_READ, BENCH_WRITE, BENCH_FLUSH, BENCH_OPS };

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

double bench_point_iops(const struct bench_point *point);

/* --- the run ---------------------------------------------------------------------------------- */

struct bench_progress {
	enum { BENCH_WARMING_UP, BENCH_MEASURING, BENCH_READING_BACK } stage;
	double at_s;                      /* since the warm-up's end */
	const struct bench_point *point;  /* the last of the series; NULL: there is none */
	uint64_t read_back, to_read_back; /* chunks, of --verify */
	unsigned in_flight;
	uint64_t answered; /* I/Os and flushes, since the jobs began */
};

/* What the caller hears while the run goes on, in the thread of bench_run(). */
struct bench_observer {
	void *arg;
	/* Somebody who wants it to end counts it up, also a signal handler. 1: no more I/O; 2: do
	 * not wait for I/O in flight either. */
	atomic_int *stop;
	void (*begin)(void *arg); /* all is prepared; from now on @stop is looked at */
	void (*loss)(void *arg, const struct bench_loss *loss); /* begins, or has ended */
	void (*state)(void *arg, const struct weft_event *event);
	void (*step)(void *arg, const struct bench_progress *progress); /* at least 5 times/s */
	/* The end is due, or wanted, and the last I/Os wait for a controller that is not live:
	 * once. */
	void (*late)(void *arg, enum weft_state state, const struct weft_err *why);
};

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
	bool stopped;                         /* by the user */
	struct weft_err end;                  /* why it ended early; "": it did not */
	struct bench_series series;

	uint64_t checked, unstamped;
	struct bench_errors trouble;
};

/* Sets how many queues a connection needs for @config, and how deep they are. */
void bench_connect_options(const struct bench_config *config, struct weft_options *options);
/* Sets the size of the region, if @config leaves it open. -errno: it did not begin, and @err says
 * why. */
int bench_run(struct bench_config *config, struct weft_ctrl *ctrl, struct weft_ns *ns,
	      const struct bench_observer *observer, struct bench_result *result,
	      struct weft_err *err);
void bench_result_free(struct bench_result *result);

/* true: the run found nothing wrong. Otherwise @err has a sentence that sums it up. */
bool bench_result_fine(const struct bench_result *result, struct weft_err *err);
/* "randrw 70 % reads, 4 KiB, depth 32, 1 job, 2 queues" */
void bench_result_conditions(const struct bench_result *result, char *text, size_t size);
/* I/Os that a job really had in flight at most: queues have a limit of their own. */
unsigned bench_result_depth(const struct bench_result *result);
double bench_result_cpu_us(const struct bench_result *result); /* per I/O */

/* Latency by percentile, throughput and p99 over time, as SVG. */
int bench_plot(const struct bench_result *result, const char *path, struct weft_err *err);

#endif
