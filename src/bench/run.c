/* run.c - one run of the load generator: create the jobs, run them, add up.
 *
 *   setup ─▶ jobs ─▶ monitor ─▶ join ─▶ collect */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/job.h"
#include "bench/path_loss.h"
#include "bench/random.h"
#include "bench/verify.h"

#define HEAD_START UINT64_C(10000000) /* ns, for the threads to come up */

struct run {
	struct bench_config *config;
	struct bench_load load;
	struct bench_job *jobs;
	struct bench_result *result;
	const struct bench_observer *observer;
};

/* --- the jobs --------------------------------------------------------------------------------- */

static int make_jobs(struct run *run, struct weft_err *err)
{
	size_t size = run->config->jobs * sizeof(*run->jobs);
	int rc = 0;

	run->jobs = aligned_alloc(_Alignof(struct bench_job), size);
	if (!run->jobs)
		return weft_fail(err, -ENOMEM, "no memory for %u jobs", run->config->jobs);
	memset(run->jobs, 0, size);
	for (unsigned i = 0; !rc && i < run->config->jobs; i++) {
		bench_affinity_set(run->config, i);
		rc = bench_job_init(&run->jobs[i], &run->load, i, err);
	}
	bench_affinity_restore(run->config);
	return rc;
}

static void set_times(struct run *run)
{
	struct bench_load *load = &run->load;

	load->start_ns = weft_monotonic_ns() + HEAD_START;
	load->measure_ns = load->start_ns + run->config->warmup_ns;
	load->until_ns = load->measure_ns + run->config->time_ns;
}

static void join_jobs(struct run *run)
{
	for (unsigned i = 0; i < run->config->jobs; i++) {
		if (run->jobs[i].started)
			pthread_join(run->jobs[i].thread, NULL);
	}
}

static int start_jobs(struct run *run, struct weft_err *err)
{
	for (unsigned i = 0; i < run->config->jobs; i++) {
		int rc = bench_job_start(&run->jobs[i]);

		if (rc < 0) {
			*run->load.stop = 1;
			join_jobs(run);
			return weft_fail(err, rc, "thread %u of %u: %s", i + 1, run->config->jobs,
					 strerror(-rc));
		}
	}
	return 0;
}

/* --- adding up -------------------------------------------------------------------------------- */

static void collect_counters(struct bench_result *r, const struct bench_job *job)
{
	struct weft_queue_stats stats;

	bench_job_counters(job, &stats);
	bench_counters_add(&r->counters, &stats);
	bench_job_stalls(job, &r->stalls);
	if (!job->measuring)
		return;
	r->registrations += job->loaded.registrations - job->began.registrations;
	r->copied_bytes += job->loaded.copied_bytes - job->began.copied_bytes;
}

static void collect_job(struct run *run, const struct bench_job *job)
{
	struct bench_result *r = run->result;
	double seconds = job->loaded_ns > run->load.measure_ns ?
				 (double)(job->loaded_ns - run->load.measure_ns) / 1e9 :
				 0;

	for (unsigned op = 0; op < BENCH_OPS; op++) {
		weft_hist_merge(&r->hist[op], &job->hist[op]);
		r->ios[op] += job->completed[op];
	}
	r->seconds = seconds > r->seconds ? seconds : r->seconds;
	r->unstarted += job->unstarted;
	r->left += job->in_flight;
	r->checked += job->checked;
	r->unstamped += job->unstamped;
	bench_errors_merge(&r->trouble, &job->trouble);
	collect_counters(r, job);
}

static void note_end(struct run *run)
{
	struct bench_result *r = run->result;
	struct weft_ctrl_info info;
	struct weft_err why = {};

	weft_ctrl_info(run->load.ctrl, &info);
	r->reconnects = info.reconnects;
	r->stopped = *run->load.stop;
	if (weft_ctrl_state(run->load.ctrl, &why) == WEFT_DEAD)
		weft_fail(&r->end, 0, "the controller is gone%s%s", why.text[0] ? ": " : "",
			  why.text);
}

/* "A?words,B" is "A,B": what the words say is told elsewhere. */
static void name_target(struct bench_result *r, const char *uris)
{
	size_t used = 0, length;
	const char *next;

	for (const char *at = uris; at && used < sizeof(r->where); at = next) {
		next = strcasestr(at + 1, ",nvme+");
		length = strcspn(at, "?");
		if (next && at + length > next)
			length = (size_t)(next - at);
		used += (size_t)snprintf(r->where + used, sizeof(r->where) - used, "%.*s",
					 (int)length, at);
	}
	if (used < sizeof(r->where))
		snprintf(r->where + used, sizeof(r->where) - used, "?nsid=%u", r->ns_info.nsid);
}

static void note_start(struct run *run)
{
	struct bench_result *r = run->result;
	time_t now = time(NULL);
	struct tm utc;

	r->config = run->config;
	r->info = run->load.info;
	r->ns_info = run->load.ns_info;
	weft_ctrl_path(run->load.ctrl, &r->path);
	name_target(r, run->config->uri);
	strftime(r->when, sizeof(r->when), "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
}

static int run_load(struct run *run, struct weft_err *err)
{
	struct bench_loss_watch losses = { .losses = &run->result->losses,
					   .ctrl = run->load.ctrl,
					   .ns = run->load.ns };
	int rc;

	bench_access_begin(&losses, weft_monotonic_ns());
	set_times(run);
	losses.from_ns = run->load.measure_ns;
	rc = start_jobs(run, err);
	if (rc < 0)
		return rc;
	bench_monitor(&run->load, run->jobs, run->observer, &losses, run->result);
	join_jobs(run);
	for (unsigned i = 0; i < run->config->jobs; i++)
		collect_job(run, &run->jobs[i]);
	note_end(run);
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int prepare_run(struct run *run, struct weft_err *err)
{
	int rc = bench_setup(&run->load, run->config, err);

	return rc ? rc : make_jobs(run, err);
}

static void free_jobs(struct run *run)
{
	for (unsigned i = 0; run->jobs && i < run->config->jobs; i++) {
		if (run->jobs[i].load)
			bench_job_free(&run->jobs[i]);
	}
	free(run->jobs);
}

int bench_run(struct bench_config *config, struct weft_ctrl *ctrl, struct weft_ns *ns,
	      const struct bench_observer *observer, struct bench_result *result,
	      struct weft_err *err)
{
	_cleanup_(weft_closep) int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	static struct run run; /* may outlive this */
	int rc;

	if (wake_fd < 0)
		return weft_fail(err, -errno, "eventfd: %s", strerror(errno));
	run = (struct run){ .config = config, .result = result, .observer = observer };
	run.load = (struct bench_load){ .ctrl = ctrl,
					.ns = ns,
					.run = bench_mix(config->seed + BENCH_GOLDEN),
					.wake_fd = wake_fd,
					.stop = observer->stop };
	rc = prepare_run(&run, err);
	if (!rc) {
		observer->begin(observer->arg);
		note_start(&run);
		rc = run_load(&run, err);
	}
	/* What is still in flight is the library's: the process ends with it. */
	if (!result->left)
		free_jobs(&run);
	return rc;
}
