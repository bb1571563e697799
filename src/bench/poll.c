/* poll.c - poll a job's queues for completions.
 *
 * One queue without a rate sleeps in weft_queue_poll(). Several queues, or an I/O that is due in
 * less than a millisecond, sleep in ppoll(). */
#include <time.h>

#include "base/clock.h"
#include "bench/job.h"

#define MS          UINT64_C(1000000)
#define POLL_MAX_NS (100 * MS) /* to see that the user wants to stop */

struct bench_io *bench_job_pop_idle(struct bench_job *job)
{
	struct bench_io *io = job->idle;

	if (!io)
		return NULL;
	job->idle = io->next_idle;
	if (!job->idle)
		job->idle_last = &job->idle;
	return io;
}

void bench_job_push_idle(struct bench_job *job, struct bench_io *io)
{
	io->next_idle = NULL;
	*job->idle_last = io;
	job->idle_last = &io->next_idle;
}

static uint64_t poll_timeout_ns(uint64_t until_ns)
{
	uint64_t now = weft_monotonic_ns(), left = until_ns > now ? until_ns - now : 0;

	return left < POLL_MAX_NS ? left : POLL_MAX_NS;
}

static int poll_all(struct bench_job *job)
{
	int completed = 0;

	for (unsigned i = 0; i < job->load->config->queues; i++)
		completed += weft_queue_poll(job->queues[i], 0);
	return completed;
}

static void sleep_on_all(struct bench_job *job, uint64_t until_ns)
{
	uint64_t ns = poll_timeout_ns(until_ns);
	struct timespec ts = { .tv_sec = (time_t)(ns / (1000 * MS)),
			       .tv_nsec = (long)(ns % (1000 * MS)) };

	if (ppoll(job->fds, job->load->config->queues, &ts, NULL) > 0)
		poll_all(job);
}

/* The controller's last word is looked for only when there is a reason to. */
static void check_ctrl_dead(struct bench_job *job)
{
	if (!job->check_dead)
		return;
	job->check_dead = false;
	if (weft_ctrl_state(job->load->ctrl, NULL) == WEFT_DEAD)
		job->over = true;
}

static void update_epoch(struct bench_job *job)
{
	struct weft_ctrl_info info;

	if (!job->plan.ledger)
		return;
	weft_ctrl_info(job->load->ctrl, &info);
	job->epoch = (uint32_t)info.losses;
}

void bench_job_reap(struct bench_job *job, uint64_t until_ns)
{
	if (!job->fds)
		weft_queue_poll(job->queues[0], (int)((poll_timeout_ns(until_ns) + MS - 1) / MS));
	else if (!poll_all(job))
		sleep_on_all(job, until_ns);
	check_ctrl_dead(job);
	update_epoch(job);
}

bool bench_job_must_abort(const struct bench_job *job)
{
	return *job->load->stop > 1;
}

void bench_job_drain(struct bench_job *job)
{
	while (job->in_flight && !bench_job_must_abort(job))
		bench_job_reap(job, UINT64_MAX);
}
