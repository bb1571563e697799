/* queue_poll.c - weft_queue_poll(): the queue's reactor turns inside the program's call. */
#include "host/internal.h"

enum { TURNS_MAX = 64 }; /* of one poll without a wait: the program needs the thread as well */

static void queue_turn(struct weft_queue *queue, int wait_ms)
{
	queue->batch_ns = 0;
	weft_reactor_turn(queue->reactor, wait_ms);
	queue->batch_ns = 0;
}

static uint64_t queue_now_ms(const struct weft_queue *queue)
{
	return weft_reactor_now_ns(queue->reactor) / 1000000;
}

/* Turns that wait, until something completes or time is up. */
static void wait_for_completion(struct weft_queue *queue, int timeout_ms)
{
	uint64_t end = timeout_ms > 0 ? queue_now_ms(queue) + (uint64_t)timeout_ms : 0, now;

	while (!queue->completed && queue->pending) {
		now = queue_now_ms(queue);
		if (end && now >= end)
			return;
		queue_turn(queue, end ? (int)(end - now) : -1);
	}
}

/* Work that is left makes the descriptor readable at once. */
static void queue_arm_fd(struct weft_queue *queue)
{
	int turns = 0;

	while (weft_reactor_busy(queue->reactor) && ++turns < TURNS_MAX)
		queue_turn(queue, 0);
	weft_reactor_prepare_wait(queue->reactor);
}

/* One turn reaps what has come. Going on while more comes would keep the program from submitting,
 * and the controller idle, until everything is back. */
int weft_queue_poll(struct weft_queue *queue, int timeout_ms)
{
	queue->completed = 0;
	weft_reactor_run_deferred(queue->reactor);
	queue_turn(queue, 0);
	if (!queue->completed && timeout_ms)
		wait_for_completion(queue, timeout_ms);
	if (queue->watched)
		queue_arm_fd(queue);
	else
		weft_reactor_submit(queue->reactor);
	return (int)queue->completed;
}

int weft_queue_fd(struct weft_queue *queue)
{
	int fd = weft_reactor_fd(queue->reactor);

	queue->watched = true;
	weft_reactor_prepare_wait(queue->reactor);
	return fd;
}

unsigned weft_queue_pending(const struct weft_queue *queue)
{
	return queue->pending;
}

/* --- counters --------------------------------------------------------------------------------- */

void host_stats_add(struct weft_queue_stats *sum, const struct weft_queue_stats *more)
{
	sum->posted += more->posted;
	sum->completed += more->completed;
	sum->copied_bytes += more->copied_bytes;
	sum->flushed += more->flushed;
	sum->retried += more->retried;
	sum->rnr += more->rnr;
	sum->key_hits += more->key_hits;
	sum->registrations += more->registrations;
}

void weft_queue_stats(const struct weft_queue *queue, struct weft_queue_stats *stats)
{
	*stats = queue->stats;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (queue->path_queues[i] && queue->path_queues[i]->link)
			host_stats_add(stats, &queue->path_queues[i]->link->stats);
}
