/* worker.c - a copy worker: a thread that runs its xfers as far as they can go, and then waits for
 * the endpoints. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <weft/memory.h>

#include "base/units.h"
#include "cli/cp/internal.h"

#define TICK_MS 200

static void poll_ends(struct cp_worker *worker, int timeout_ms)
{
	struct cp_endpoint *ends[] = { worker->cp->from, worker->cp->to };

	for (unsigned i = 0; i < 2; i++) {
		if (ends[i]->ops->poll)
			ends[i]->ops->poll(ends[i], worker->index, timeout_ms);
	}
}

/* If a queue is the only thing to wait for, the library waits best. */
static void worker_wait(struct cp_worker *worker)
{
	struct cp_endpoint *ends[] = { worker->cp->from, worker->cp->to }, *queue = NULL;
	struct pollfd fds[2];
	nfds_t count = 0;

	for (unsigned i = 0; i < 2; i++) {
		if (!ends[i]->ops->fd)
			continue;
		fds[count].fd = ends[i]->ops->fd(ends[i], worker->index, &fds[count].events);
		if (fds[count].fd < 0)
			continue;
		queue = ends[i]->ops->poll ? ends[i] : NULL;
		count++;
	}
	if (count == 1 && queue) {
		queue->ops->poll(queue, worker->index, TICK_MS);
		return;
	}
	poll(fds, count, TICK_MS);
	poll_ends(worker, 0);
}

static bool worker_busy(const struct cp_worker *worker)
{
	for (unsigned i = 0; i < worker->cp->depth; i++) {
		if (worker->xfers[i].state != XFER_IDLE)
			return true;
	}
	return false;
}

static bool run_xfers(struct cp_worker *worker)
{
	bool moved = false;

	for (unsigned i = 0; i < worker->cp->depth; i++) {
		if (!worker->xfers[i].started)
			moved |= weft_cp_xfer_run(&worker->xfers[i]);
	}
	return moved;
}

static void *worker_main(void *arg)
{
	struct cp_worker *worker = arg;
	struct cp *cp = worker->cp;

	for (;;) {
		if (run_xfers(worker))
			poll_ends(worker, 0);
		else if (worker_busy(worker))
			worker_wait(worker);
		else
			break;
	}
	atomic_fetch_sub(&cp->running, 1);
	eventfd_write(cp->wake, 1);
	return NULL;
}

/* --- all workers ------------------------------------------------------------------------------ */

static int worker_open(struct cp *cp, unsigned index, struct weft_err *err)
{
	struct cp_worker *worker = &cp->workers[index];
	struct cp_endpoint *ends[] = { cp->from, cp->to };
	int rc = 0;

	worker->cp = cp;
	worker->index = index;
	worker->xfers = calloc(cp->depth, sizeof(*worker->xfers));
	worker->memory = weft_memory_alloc((size_t)cp->piece * cp->depth);
	if (!worker->xfers || !worker->memory)
		return weft_fail(err, -ENOMEM,
				 "no memory for %u pieces of %s; take fewer or smaller "
				 "ones",
				 cp->depth * cp->jobs, weft_size_text(cp->piece).s);
	for (unsigned i = 0; i < cp->depth; i++) {
		worker->xfers[i].worker = worker;
		worker->xfers[i].buf = worker->memory + (size_t)cp->piece * i;
	}
	for (unsigned i = 0; i < 2 && rc == 0; i++) {
		if (ends[i]->ops->worker_open)
			rc = ends[i]->ops->worker_open(ends[i], index, err);
	}
	return rc;
}

int weft_cp_workers_open(struct cp *cp, struct weft_err *err)
{
	int rc = 0;

	cp->workers = calloc(cp->jobs, sizeof(*cp->workers));
	if (!cp->workers)
		return weft_fail(err, -ENOMEM, "no memory");
	for (unsigned i = 0; i < cp->jobs && rc == 0; i++)
		rc = worker_open(cp, i, err);
	return rc;
}

void weft_cp_workers_free(struct cp *cp)
{
	for (unsigned i = 0; cp->workers && i < cp->jobs; i++) {
		free(cp->workers[i].xfers);
		weft_memory_free(cp->workers[i].memory);
	}
	free(cp->workers);
}

/* -errno of the first failure; -EINTR: a signal stopped it, and something is left to do. */
static int pass_result(struct cp *cp, struct weft_err *err)
{
	bool all = !cp->abandoned && weft_cp_completed_upto(cp) == cp->end;
	int rc;

	pthread_mutex_lock(&cp->lock);
	rc = cp->rc ? weft_fail(err, cp->rc, "%s", cp->err.text) : 0;
	pthread_mutex_unlock(&cp->lock);
	return rc == 0 && !all ? -EINTR : rc;
}

static int start_workers(struct cp *cp, unsigned *started, struct weft_err *err)
{
	atomic_store(&cp->running, cp->jobs);
	for (*started = 0; *started < cp->jobs; (*started)++) {
		struct cp_worker *worker = &cp->workers[*started];
		int rc = pthread_create(&worker->thread, NULL, worker_main, worker);

		if (!rc)
			continue;
		atomic_store(&cp->stop, true);
		atomic_fetch_sub(&cp->running, cp->jobs - *started);
		return weft_fail(err, -rc, "cannot start %u threads: %s; try --jobs 1", cp->jobs,
				 strerror(rc));
	}
	return 0;
}

int weft_cp_run_pass(struct cp *cp, const char *doing, struct weft_err *err)
{
	uint64_t shown = cp->total == CP_UNKNOWN ? 0 : cp->total;
	unsigned started;
	int rc;

	weft_progress_start(&cp->progress, doing, shown, cp->ask->quiet);
	rc = start_workers(cp, &started, err);
	weft_cp_supervise(cp);
	weft_progress_clear(&cp->progress);
	for (unsigned i = 0; i < started && !cp->abandoned; i++)
		pthread_join(cp->workers[i].thread, NULL);
	return rc < 0 ? rc : pass_result(cp, err);
}
