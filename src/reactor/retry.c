/* retry.c - retries work that is blocked by somebody who does not say when he is done.
 *
 *   blocked ─▶ next turn ─▶ blocked ─▶ … TURNS of them … ─▶ blocked ─▶ a millisecond ─▶ …
 *
 * Mostly that is a copy of microseconds, so the next turn tries again. It may also be an adapter
 * with a slow host, for seconds: after TURNS tries there is one per millisecond, and the reactor
 * can sleep in between.
 *
 * Invariant: the task is deferred, or the timer is set, from weft_retry_later() until it runs. */
#include "reactor/reactor.h"

enum {
	TURNS = 256, /* longer than the kernel takes to copy what one send holds */
	PAUSE_MS = 1,
};

static void pause_expired(struct weft_timer *timer)
{
	struct weft_retry *retry = container_of(timer, struct weft_retry, timer);
	weft_reactor_defer(retry->reactor, &retry->task);
}

void weft_retry_init(struct weft_retry *retry, void (*fn)(struct weft_task *task))
{
	*retry = (struct weft_retry){ .timer.fn = pause_expired };
	weft_task_init(&retry->task, fn);
}

void weft_retry_later(struct weft_reactor *r, struct weft_retry *retry)
{
	assert(!retry->reactor || retry->reactor == r);
	if (retry->turns < TURNS) {
		retry->turns++;
		weft_reactor_defer(r, &retry->task);
		return;
	}
	retry->reactor = r;
	weft_timer_set(r, &retry->timer, PAUSE_MS);
}

void weft_retry_reset(struct weft_retry *retry)
{
	retry->turns = 0;
}

void weft_retry_cancel(struct weft_retry *retry)
{
	weft_task_cancel(&retry->task);
	if (retry->reactor)
		weft_timer_stop(retry->reactor, &retry->timer);
}
