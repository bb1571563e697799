/* job.h - a job: one thread of load with its queues, its I/Os and its counters. Jobs share only
 * data that nobody writes.
 *
 *   idle ─▶ plan: which one, pace: when ─▶ submit ─▶ one poll per queue ─▶ done() ─▶ idle
 *
 * Invariant: an I/O is idle or in flight. Other threads read the counters, relaxed. */
#ifndef WEFT_BENCH_JOB_H
#define WEFT_BENCH_JOB_H

#include <poll.h>
#include <pthread.h>

#include "bench/bench.h"
#include "bench/ledger.h"
#include "bench/pace.h"
#include "bench/plan.h"

enum bench_phase { BENCH_LOADING, BENCH_SWEEPING, BENCH_ENDED };

/* What the jobs have in common; constant while they run, but for what @stop points to. */
struct bench_load {
	const struct bench_config *config;
	struct weft_ctrl *ctrl;
	struct weft_ns *ns;
	struct weft_ctrl_info info;
	struct weft_ns_info ns_info;
	uint64_t run;                            /* in the stamps */
	uint64_t start_ns, measure_ns, until_ns; /* begin, warmed up, end */
	int wake_fd;      /* an eventfd that a job writes to when its phase changes */
	atomic_int *stop; /* of the observer */
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
	unsigned in_flight;                 /* read by others, as @answered */
	uint64_t answered;                  /* or failed: I/Os, and flushes */
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

/* setup.c: checks that controller and namespace, which are set, can do what @config wants, and
 * determines the region. */
int bench_setup(struct bench_load *load, struct bench_config *config, struct weft_err *err);

/* Opens the queues and takes the memory; the thread starts with bench_job_start(). */
int bench_job_init(struct bench_job *job, const struct bench_load *load, unsigned index,
		   struct weft_err *err);
int bench_job_start(struct bench_job *job);
void bench_job_free(struct bench_job *job);
/* What its queues have counted so far; for the job's thread, or when that has ended. */
void bench_job_counters(const struct bench_job *job, struct weft_queue_stats *stats);
void bench_job_stalls(const struct bench_job *job, struct weft_stalls *sum); /* on top of @sum */
void bench_counters_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more);
/* The calling thread goes to where job @index belongs; without --cpus it stays. Memory is allocated
 * on the node of the CPU that touches it first, so queues and buffers are made by a thread that is
 * already there. */
void bench_affinity_set(const struct bench_config *config, unsigned index);
/* … and from there to wherever it may be, as @config has kept it. */
void bench_affinity_restore(const struct bench_config *config);

/* io.c: one I/O. */
void bench_io_start(struct bench_io *io, const struct bench_next_io *step, uint64_t from_ns);
void bench_io_flush(struct bench_job *job);
void bench_io_init(struct bench_io *io, struct bench_job *job, struct weft_queue *queue, void *buf,
		   uint64_t size);

/* poll.c: polls the queues, until something has completed or @until_ns. */
void bench_job_reap(struct bench_job *job, uint64_t until_ns);
/* Until nothing is in flight, or the user does not want to wait. */
void bench_job_drain(struct bench_job *job);
bool bench_job_must_abort(const struct bench_job *job);
struct bench_io *bench_job_pop_idle(struct bench_job *job);
void bench_job_push_idle(struct bench_job *job, struct bench_io *io);

/* series.c: adds a point. Without memory there will be a gap. */
void bench_series_step(struct bench_series *series, const struct bench_job *jobs, unsigned count,
		       uint64_t reconnects);

/* monitor.c: returns when all jobs have ended. Fills the result's series and CPU time. @losses
 * knows the paths from before the jobs began. */
struct bench_loss_watch;
void bench_monitor(const struct bench_load *load, struct bench_job *jobs,
		   const struct bench_observer *observer, struct bench_loss_watch *losses,
		   struct bench_result *result);

#endif
