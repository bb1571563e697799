/* sweep.c - read back, the last phase of --verify: read all that was written. */
#include "base/clock.h"
#include "cli/bench/job.h"

static void sweep_next(struct bench_job *job)
{
	struct bench_next_io step = { .write = false, .chunk = job->ledger.written[job->swept] };

	bench_io_start(bench_job_pop_idle(job), &step, weft_monotonic_ns());
	__atomic_store_n(&job->swept, job->swept + 1, __ATOMIC_RELAXED);
}

void bench_job_read_back(struct bench_job *job)
{
	while (job->swept < job->ledger.nwritten && !job->over && !bench_job_must_abort(job)) {
		while (job->idle && job->swept < job->ledger.nwritten && !job->over)
			sweep_next(job);
		bench_job_reap(job, UINT64_MAX);
	}
	bench_job_drain(job);
	job->trouble.unchecked += job->ledger.nwritten - job->swept;
}
