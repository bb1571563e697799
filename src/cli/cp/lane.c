/* lane.c - a thread with its slots: let every slot go as far as it can, then wait for what the
 * ends have under way. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <weft/memory.h>

#include "cli/cp/internal.h"
#include "cli/units.h"

#define TICK_MS 200

static void poll_ends(struct cp_lane *lane, int timeout_ms)
{
	struct cp_end *ends[] = { lane->cp->from, lane->cp->to };

	for (unsigned i = 0; i < 2; i++) {
		if (ends[i]->ops->poll)
			ends[i]->ops->poll(ends[i], lane->index, timeout_ms);
	}
}

/* Where there is one thing to wait for and it is a queue, the library knows best how to. */
static void lane_wait(struct cp_lane *lane)
{
	struct cp_end *ends[] = { lane->cp->from, lane->cp->to }, *queue = NULL;
	struct pollfd fds[2];
	nfds_t count = 0;

	for (unsigned i = 0; i < 2; i++) {
		if (!ends[i]->ops->fd)
			continue;
		fds[count].fd = ends[i]->ops->fd(ends[i], lane->index, &fds[count].events);
		if (fds[count].fd < 0)
			continue;
		queue = ends[i]->ops->poll ? ends[i] : NULL;
		count++;
	}
	if (count == 1 && queue) {
		queue->ops->poll(queue, lane->index, TICK_MS);
		return;
	}
	poll(fds, count, TICK_MS);
	poll_ends(lane, 0);
}

static bool lane_busy(const struct cp_lane *lane)
{
	for (unsigned i = 0; i < lane->cp->depth; i++) {
		if (lane->slots[i].state != SLOT_IDLE)
			return true;
	}
	return false;
}

static bool run_slots(struct cp_lane *lane)
{
	bool moved = false;

	for (unsigned i = 0; i < lane->cp->depth; i++) {
		if (!lane->slots[i].started)
			moved |= weft_cp_slot_run(&lane->slots[i]);
	}
	return moved;
}

static void *lane_main(void *arg)
{
	struct cp_lane *lane = arg;
	struct cp *cp = lane->cp;

	for (;;) {
		if (run_slots(lane))
			poll_ends(lane, 0);
		else if (lane_busy(lane))
			lane_wait(lane);
		else
			break;
	}
	atomic_fetch_sub(&cp->running, 1);
	eventfd_write(cp->wake, 1);
	return NULL;
}

/* --- all of them ------------------------------------------------------------------------------ */

static int lane_open(struct cp *cp, unsigned index, struct weft_err *err)
{
	struct cp_lane *lane = &cp->lanes[index];
	struct cp_end *ends[] = { cp->from, cp->to };
	int rc = 0;

	lane->cp = cp;
	lane->index = index;
	lane->slots = calloc(cp->depth, sizeof(*lane->slots));
	lane->memory = weft_memory_alloc((size_t)cp->piece * cp->depth);
	if (!lane->slots || !lane->memory)
		return weft_fail(err, -ENOMEM,
				 "no memory for %u pieces of %s; take fewer or smaller "
				 "ones",
				 cp->depth * cp->jobs, weft_size_text(cp->piece).s);
	for (unsigned i = 0; i < cp->depth; i++) {
		lane->slots[i].lane = lane;
		lane->slots[i].buf = lane->memory + (size_t)cp->piece * i;
	}
	for (unsigned i = 0; i < 2 && rc == 0; i++) {
		if (ends[i]->ops->lane_open)
			rc = ends[i]->ops->lane_open(ends[i], index, err);
	}
	return rc;
}

int weft_cp_lanes_open(struct cp *cp, struct weft_err *err)
{
	int rc = 0;

	cp->lanes = calloc(cp->jobs, sizeof(*cp->lanes));
	if (!cp->lanes)
		return weft_fail(err, -ENOMEM, "no memory");
	for (unsigned i = 0; i < cp->jobs && rc == 0; i++)
		rc = lane_open(cp, i, err);
	return rc;
}

void weft_cp_lanes_free(struct cp *cp)
{
	for (unsigned i = 0; cp->lanes && i < cp->jobs; i++) {
		free(cp->lanes[i].slots);
		weft_memory_free(cp->lanes[i].memory);
	}
	free(cp->lanes);
}

/* -errno of the first failure; -EINTR: told to stop, and something is left to do. */
static int pass_result(struct cp *cp, struct weft_err *err)
{
	bool all = !cp->abandoned && weft_cp_complete(cp) == cp->end;
	int rc;

	pthread_mutex_lock(&cp->lock);
	rc = cp->rc ? weft_fail(err, cp->rc, "%s", cp->err.text) : 0;
	pthread_mutex_unlock(&cp->lock);
	return rc == 0 && !all ? -EINTR : rc;
}

static int start_lanes(struct cp *cp, unsigned *started, struct weft_err *err)
{
	atomic_store(&cp->running, cp->jobs);
	for (*started = 0; *started < cp->jobs; (*started)++) {
		struct cp_lane *lane = &cp->lanes[*started];
		int rc = pthread_create(&lane->thread, NULL, lane_main, lane);

		if (!rc)
			continue;
		atomic_store(&cp->stop, true);
		atomic_fetch_sub(&cp->running, cp->jobs - *started);
		return weft_fail(err, -rc, "cannot start %u threads: %s; try --jobs 1", cp->jobs,
				 strerror(rc));
	}
	return 0;
}

int weft_cp_pass(struct cp *cp, const char *doing, struct weft_err *err)
{
	uint64_t shown = cp->total == CP_UNKNOWN ? 0 : cp->total;
	unsigned started;
	int rc;

	weft_progress_start(&cp->progress, doing, shown, cp->ask->quiet);
	rc = start_lanes(cp, &started, err);
	weft_cp_watch(cp);
	weft_progress_clear(&cp->progress);
	for (unsigned i = 0; i < started && !cp->abandoned; i++)
		pthread_join(cp->lanes[i].thread, NULL);
	return rc < 0 ? rc : pass_result(cp, err);
}
