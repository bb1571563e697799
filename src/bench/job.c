/* job.c - a job: one thread of load, from its first I/O to its end. */
#include "bench/job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/memory.h>

#include "base/clock.h"
#include "bench/random.h"

enum { GROUPS_MAX = 1000000 }; /* of I/Os that never began: a rate may demand billions */

static bool may_continue(const struct bench_job *job, uint64_t now)
{
	return now < job->load->until_ns && !*job->load->stop && !job->over;
}

static bool wants_flush(const struct bench_job *job)
{
	unsigned every = job->load->config->flush_every;

	return every && job->unflushed >= every && !job->flush.busy;
}

/* Everything that is due and has room. Returns when the next one is due. */
static uint64_t issue_due(struct bench_job *job, uint64_t now)
{
	struct bench_next_io step;

	while (job->idle && !job->over) {
		uint64_t due = bench_pace_due(&job->pace, now);

		if (due > now)
			return due;
		if (!bench_plan_next(&job->plan, &step))
			break;
		bench_pace_take(&job->pace);
		bench_io_start(bench_job_pop_idle(job), &step, due);
		if (wants_flush(job))
			bench_io_flush(job);
	}
	return job->load->until_ns;
}

static void add_many(struct weft_hist *hist, uint64_t value, uint64_t times)
{
	uint64_t *bucket = &hist->bucket[weft_hist_index(value)];

	weft_hist_add(hist, value);
	__atomic_store_n(bucket, *bucket + times - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&hist->count, hist->count + times - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&hist->sum, hist->sum + value * (times - 1), __ATOMIC_RELAXED);
}

static uint64_t count_due(const struct bench_job *job, uint64_t now, uint64_t end)
{
	uint64_t due = bench_pace_due(&job->pace, now);

	return due < end ? (uint64_t)((double)(end - due) / job->pace.step_ns) + 1 : 0;
}

/* What was due and never had room waited at least until now, and that must be seen. Where there are
 * very many, neighbours count as one that waited as long as the first of them. */
static void count_unstarted(struct bench_job *job, uint64_t now)
{
	struct bench_next_io step = {};
	uint64_t end = now < job->load->until_ns ? now : job->load->until_ns, left, group;

	if (!job->load->config->rate)
		return;
	left = count_due(job, now, end);
	group = left / GROUPS_MAX + 1;
	for (; left; left -= group) {
		uint64_t due = bench_pace_due(&job->pace, now);

		group = group < left ? group : left;
		job->pace.taken += group;
		if (due < job->load->measure_ns)
			continue;
		bench_plan_next(&job->plan, &step);
		add_many(&job->hist[step.write ? BENCH_WRITE : BENCH_READ],
			 now > due ? now - due : 0, group);
		job->unstarted += group;
	}
}

/* It consists of counters. */
void bench_counters_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more)
{
	static_assert(sizeof(*sum) % sizeof(uint64_t) == 0, "counters");
	const uint64_t *from = (const uint64_t *)more;
	uint64_t *to = (uint64_t *)sum;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

void bench_job_counters(const struct bench_job *job, struct weft_queue_stats *stats)
{
	struct weft_queue_stats one;

	*stats = (struct weft_queue_stats){ 0 };
	for (unsigned i = 0; i < job->load->config->queues; i++) {
		weft_queue_stats(job->queues[i], &one);
		bench_counters_add(stats, &one);
	}
}

void bench_job_stalls(const struct bench_job *job, struct weft_stalls *sum)
{
	struct weft_stalls one;

	for (unsigned i = 0; i < job->load->config->queues; i++) {
		weft_queue_stalls(job->queues[i], &one);
		sum->switches += one.switches;
		sum->stalls += one.stalls;
		sum->total_ns += one.total_ns;
		if (one.longest_ns > sum->longest_ns)
			sum->longest_ns = one.longest_ns;
		for (unsigned n = 0; n < WEFT_STALL_LENGTHS; n++)
			sum->by_length[n] += one.by_length[n];
	}
}

static void begin_to_measure(struct bench_job *job, uint64_t now)
{
	if (job->measuring || now < job->load->measure_ns)
		return;
	job->measuring = true;
	bench_job_counters(job, &job->began);
}

static void run_load_phase(struct bench_job *job)
{
	uint64_t now;

	while (may_continue(job, now = weft_monotonic_ns())) {
		uint64_t next = issue_due(job, now);

		begin_to_measure(job, now);
		bench_job_reap(job, next < job->load->until_ns ? next : job->load->until_ns);
	}
	bench_job_drain(job);
	job->loaded_ns = weft_monotonic_ns();
	bench_job_counters(job, &job->loaded);
	count_unstarted(job, now);
	if (job->unflushed && job->load->config->flush_every && !job->over &&
	    !bench_job_must_abort(job)) {
		bench_io_flush(job);
		bench_job_drain(job);
	}
}

/* --- read back: the last phase of --verify reads all that was written ------------------------- */

static void read_back_next(struct bench_job *job)
{
	struct bench_next_io step = { .write = false, .chunk = job->ledger.written[job->swept] };

	bench_io_start(bench_job_pop_idle(job), &step, weft_monotonic_ns());
	__atomic_store_n(&job->swept, job->swept + 1, __ATOMIC_RELAXED);
}

static void read_back(struct bench_job *job)
{
	while (job->swept < job->ledger.nwritten && !job->over && !bench_job_must_abort(job)) {
		while (job->idle && job->swept < job->ledger.nwritten && !job->over)
			read_back_next(job);
		bench_job_reap(job, UINT64_MAX);
	}
	bench_job_drain(job);
	job->trouble.unchecked += job->ledger.nwritten - job->swept;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void set_phase(struct bench_job *job, enum bench_phase phase)
{
	uint64_t one = 1;

	__atomic_store_n(&job->phase, phase, __ATOMIC_RELEASE);
	if (write(job->load->wake_fd, &one, sizeof(one)) < 0)
		return; /* the reporter looks at its next step */
}

static int nth_cpu(const cpu_set_t *cpus, unsigned n)
{
	int cpu = 0;

	while (!CPU_ISSET(cpu, cpus) || n--)
		cpu++;
	return cpu;
}

void bench_affinity_set(const struct bench_config *config, unsigned index)
{
	unsigned count = (unsigned)CPU_COUNT(&config->cpus);
	cpu_set_t one;

	if (!count)
		return;
	CPU_ZERO(&one);
	CPU_SET(nth_cpu(&config->cpus, index % count), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

void bench_affinity_restore(const struct bench_config *config)
{
	if (CPU_COUNT(&config->cpus))
		sched_setaffinity(0, sizeof(config->home_cpus), &config->home_cpus);
}

static void *job_main(void *arg)
{
	struct bench_job *job = arg;

	bench_affinity_set(job->load->config, job->index);
	run_load_phase(job);
	if (job->plan.ledger) {
		set_phase(job, BENCH_SWEEPING);
		read_back(job);
	}
	set_phase(job, BENCH_ENDED);
	return NULL;
}

int bench_job_start(struct bench_job *job)
{
	int rc;

	bench_pace_init(&job->pace, job->load->start_ns, job->load->config->rate, job->index,
			job->load->config->jobs);
	rc = pthread_create(&job->thread, NULL, job_main, job);
	job->started = !rc;
	return -rc;
}

/* --- making and freeing ----------------------------------------------------------------------- */

/* A queue that nobody watches from outside waits for itself, which is cheaper. */
static int watch_queues(struct bench_job *job, struct weft_err *err)
{
	const struct bench_config *config = job->load->config;

	if (config->queues == 1 && !config->rate)
		return 0;
	job->fds = calloc(config->queues, sizeof(struct pollfd));
	if (!job->fds)
		return weft_fail(err, -ENOMEM, "no memory for %u queues", config->queues);
	for (unsigned i = 0; i < config->queues; i++)
		job->fds[i] = (struct pollfd){ .fd = weft_queue_fd(job->queues[i]),
					       .events = POLLIN };
	return 0;
}

static int open_queues(struct bench_job *job, struct weft_err *err)
{
	unsigned count = job->load->config->queues;

	job->queues = calloc(count, sizeof(struct weft_queue *));
	if (!job->queues)
		return weft_fail(err, -ENOMEM, "no memory for %u queues", count);
	for (unsigned i = 0; i < count; i++) {
		int rc = weft_queue_open(job->load->ctrl, &job->queues[i], err);

		if (rc < 0)
			return rc;
	}
	return watch_queues(job, err);
}

/* Data that neither compresses nor repeats. */
static void fill_buffers(struct bench_job *job)
{
	uint64_t *word = (uint64_t *)job->memory, state = job->plan.rng;

	if (!bench_writes(job->load->config))
		return;
	for (size_t i = 0; i < job->memory_size / sizeof(*word); i++)
		word[i] = bench_random(&state);
}

static int make_ios(struct bench_job *job, struct weft_err *err)
{
	const struct bench_config *config = job->load->config;

	job->memory_size = config->depth * config->bs;
	job->memory = weft_memory_alloc(job->memory_size);
	job->ios = calloc(config->depth, sizeof(*job->ios));
	if (!job->memory || !job->ios)
		return weft_fail(err, -ENOMEM, "no memory for %u I/Os of %llu bytes", config->depth,
				 (unsigned long long)config->bs);
	fill_buffers(job);
	job->idle_last = &job->idle;
	for (unsigned i = 0; i < config->depth; i++) {
		bench_io_init(&job->ios[i], job, job->queues[i % config->queues],
			      job->memory + i * config->bs, config->bs);
		bench_job_push_idle(job, &job->ios[i]);
	}
	bench_io_init(&job->flush, job, job->queues[0], NULL, 0);
	return 0;
}

static int make_ledger(struct bench_job *job, struct weft_err *err)
{
	const struct bench_load *l = job->load;
	int rc;

	if (!l->config->verify)
		return 0;
	rc = bench_ledger_init(&job->ledger, job->plan.chunks,
			       l->info.volatile_cache && !l->config->strict);
	if (rc < 0)
		return weft_fail(err, rc, "no memory to remember %llu blocks; use a smaller --size",
				 (unsigned long long)job->plan.chunks);
	if (!bench_writes(l->config))
		bench_ledger_assume(&job->ledger);
	job->plan.ledger = &job->ledger;
	return 0;
}

int bench_job_init(struct bench_job *job, const struct bench_load *l, unsigned index,
		   struct weft_err *err)
{
	const struct bench_config *config = l->config;
	int rc;

	job->load = l;
	job->index = index;
	job->plan.random = config->random;
	job->plan.read_pct = config->read_pct;
	job->plan.rng = bench_mix(config->seed + BENCH_GOLDEN * (index + 1));
	bench_plan_share(&job->plan, config->size / config->bs, index, config->jobs);
	rc = make_ledger(job, err);
	if (!rc)
		rc = open_queues(job, err);
	return rc ? rc : make_ios(job, err);
}

void bench_job_free(struct bench_job *job)
{
	for (unsigned i = 0; job->queues && i < job->load->config->queues; i++) {
		if (job->queues[i])
			weft_queue_close(job->queues[i]);
	}
	weft_memory_free(job->memory);
	free(job->queues);
	free(job->fds);
	free(job->ios);
	bench_ledger_free(&job->ledger);
}
