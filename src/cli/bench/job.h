/* job.h - a job: one thread of load with its queues, its I/Os and its counters. Jobs share only
 * data that nobody writes.
 *
 *   idle ─▶ plan: which one, pace: when ─▶ submit ─▶ one poll per queue ─▶ done() ─▶ idle
 *
 * Invariant: an I/O is idle or in flight. Other threads read the counters, relaxed. */
#ifndef WEFT_CLI_BENCH_JOB_H
#define WEFT_CLI_BENCH_JOB_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <weft/host.h>

#include "base/hist.h"
#include "cli/bench/config.h"
#include "cli/bench/ledger.h"
#include "cli/bench/pace.h"
#include "cli/bench/plan.h"
#include "cli/bench/errors.h"
#include "cli/path_wait.h"

enum bench_op { BENCH_READ, BENCH_WRITE, BENCH_FLUSH, BENCH_OPS };

enum bench_phase { BENCH_LOADING, BENCH_SWEEPING, BENCH_ENDED };

/* What the jobs have in common; constant while they run, but for @stop. */
struct bench_load {
	const struct bench_config *config;
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_ctrl_info info;
	struct weft_ns_info ns_info;
	struct weft_path_wait waiting;
	uint64_t run;                            /* in the stamps */
	uint64_t start_ns, measure_ns, until_ns; /* begin, warmed up, end */
	int wake_fd; /* an eventfd that a job writes to when its phase changes */
	const atomic_int
		*stop; /* by the user: 1: no more I/O; 2: do not wait for I/O in flight either */
};

struct bench_io {
	struct weft_cmd cmd;
	struct iovec iov;
	struct bench_job *job;
	struct weft_queue *queue;
	struct bench_io *next_idle;
	uint64_t from_ns; /* start of its latency */
	uint64_t chunk;
	uint64_t flush_seq;
	uint32_t generation, epoch;
	bool busy;
};

struct bench_job {
	const struct bench_load *load;
	unsigned index;
	pthread_t thread;
	bool started;

	struct weft_queue **queues;
	struct pollfd *fds; /* NULL: it sleeps in its only queue */
	struct bench_io *ios, flush;
	struct bench_io *idle, **idle_last; /* first come, first served: queues share the load */
	unsigned in_flight;
	char *memory;
	size_t memory_size;

	struct bench_plan plan;
	struct bench_pace pace;
	struct bench_ledger ledger;
	uint32_t epoch;         /* losses, when last checked */
	unsigned unflushed;     /* writes since the last flush */
	uint64_t swept;         /* chunks read back so far; other threads read it */
	bool over;              /* it cannot go on */
	bool check_dead;        /* something failed: is the controller dead? */
	enum bench_phase phase; /* read by others */

	struct weft_hist hist[BENCH_OPS];
	uint64_t completed[BENCH_OPS]; /* read by others */
	uint64_t unstarted;            /* I/Os that were due, and had no room until the end */
	uint64_t checked, unstamped;   /* blocks, by --verify */
	uint64_t loaded_ns;            /* when its load had ended */
	bool measuring;
	struct weft_queue_stats began;  /* of its queues, when it began to measure */
	struct weft_queue_stats loaded; /* … when its load had ended */
	struct bench_errors trouble;
} __attribute__((aligned(64))); /* no cache line is shared with another job */

/* setup.c: connects, opens the namespace and determines the region, whose size @config may leave
 * open. On failure what was opened stays in @load. */
int bench_setup(struct bench_load *load, struct bench_config *config, struct weft_err *err);

/* Opens the queues and takes the memory; the thread starts with bench_job_start(). */
int bench_job_init(struct bench_job *job, const struct bench_load *load, unsigned index,
		   struct weft_err *err);
int bench_job_start(struct bench_job *job);
void bench_job_free(struct bench_job *job);
/* What its queues have counted so far; for the job's thread, or when that has ended. */
void bench_job_counters(const struct bench_job *job, struct weft_queue_stats *stats);
void bench_job_stalls(const struct bench_job *job, struct weft_stalls *sum); /* on top of @sum */

/* io.c: one I/O. */
void bench_io_start(struct bench_io *io, const struct bench_next_io *step, uint64_t from_ns);
void bench_io_flush(struct bench_job *job);
void bench_io_init(struct bench_io *io, struct bench_job *job, struct weft_queue *queue, void *buf,
		   uint64_t size);

/* sweep.c: read back, the last phase of --verify: reads all that was written. */
void bench_job_read_back(struct bench_job *job);

/* poll.c: polls the queues, until something has completed or @until_ns. */
void bench_job_reap(struct bench_job *job, uint64_t until_ns);
/* Until nothing is in flight, or the user does not want to wait. */
void bench_job_drain(struct bench_job *job);
bool bench_job_must_abort(const struct bench_job *job);
struct bench_io *bench_job_pop_idle(struct bench_job *job);
void bench_job_push_idle(struct bench_job *job, struct bench_io *io);

#endif
