/* reconnect.c - when a lost path is connected again, and when that is given up.
 *
 *   lost ─▶ at once, or after a moment if there is another path ─▶ pauses, each twice as long ─▶ …
 *
 * Each pause is drawn at random between half and all of it, so that a thousand hosts that lost the
 * same target do not come back in step. */
#include <errno.h>
#include <stdlib.h>

#include "host/internal.h"

#define STEADY_NS UINT64_C(1000000000)

/* Where I/O has another path, failover to that path comes first; reconnecting can wait. */
enum { OTHER_PATH_DELAY_MS = 2 };

void host_reconnect_live(struct host_path *path)
{
	assert(path->state == HOST_PATH_LIVE);
	path->reconnect.live_ns = weft_reactor_now_ns(path->reactor);
}

/* A target that takes us in and throws us out at once has not really come back. */
void host_reconnect_lost(struct host_path *path)
{
	uint64_t now = weft_reactor_now_ns(path->reactor);

	assert(path->state == HOST_PATH_RESETTING || path->state == HOST_PATH_STOPPING);
	if (path->reconnect.live_ns && now - path->reconnect.live_ns >= STEADY_NS) {
		path->reconnect.attempt = 0;
		path->reconnect.lost_ns = now;
	} else if (!path->reconnect.lost_ns) {
		path->reconnect.lost_ns = now;
	}
	path->reconnect.live_ns = 0;
}

static uint64_t reconnect_delay_ms(struct host_path *path)
{
	const struct weft_options *o = &path->config.options;
	uint64_t pause = o->reconnect_ms;

	for (unsigned i = 2; i < path->reconnect.attempt && pause < o->reconnect_max_ms; i++)
		pause *= 2;
	if (pause > o->reconnect_max_ms)
		pause = o->reconnect_max_ms;
	return pause / 2 + (uint64_t)rand_r(&path->reconnect.random) % (pause / 2 + 1);
}

/* loss_timeout limits how long I/O waits. A follower has no I/O, and never gives up. */
static uint64_t loss_timeout_left_ms(const struct host_path *path)
{
	uint64_t lost_ms = (weft_reactor_now_ns(path->reactor) - path->reconnect.lost_ns) / 1000000;
	uint64_t most = path->ctrl->follower ? UINT64_MAX : path->config.options.loss_ms;

	return lost_ms < most ? most - lost_ms : 0;
}

/* A controller that says "do not retry" to Connect means it. Where there is only one path, the
 * first attempt is the caller's to repeat. */
static bool loss_is_final(const struct host_path *path)
{
	const struct weft_ctrl *ctrl = path->ctrl;

	if (ctrl->follower)
		return false;
	return path->assoc.refused || !loss_timeout_left_ms(path) ||
	       (!path->assoc.generation && host_path_is_only(path) &&
		weft_list_empty(&ctrl->followers));
}

/* Another address of the name may work where this one does not answer. */
static bool has_next_address(const struct host_path *path)
{
	int rc = path->assoc.rc;
	bool unreachable = rc == -ECONNREFUSED || rc == -EHOSTUNREACH || rc == -ENETUNREACH ||
			   rc == -ETIMEDOUT || rc == -EADDRNOTAVAIL;

	assert(path->addrs.current < path->addrs.count);
	return !path->reconnect.tried && unreachable &&
	       path->addrs.current + 1 != path->addrs.count;
}

bool host_reconnect_is_final(struct host_path *path)
{
	if (has_next_address(path))
		return false;
	path->reconnect.tried = true;
	return loss_is_final(path);
}

static void reconnect_on_timer(struct weft_timer *timer)
{
	host_path_retry(container_of(timer, struct host_path, reconnect.timer));
}

static uint64_t next_delay_ms(struct host_path *path)
{
	uint64_t left = loss_timeout_left_ms(path), delay;

	if (path->reconnect.attempt++)
		delay = reconnect_delay_ms(path);
	else
		delay = host_path_find_other_live(path) ? OTHER_PATH_DELAY_MS : 0;
	return delay < left ? delay : left;
}

void host_reconnect_later(struct host_path *path)
{
	bool next = has_next_address(path);

	assert(path->state == HOST_PATH_BACKOFF && !path->assoc.link);
	if (next)
		path->config.addr = path->addrs.list[++path->addrs.current];
	host_path_publish(path);
	path->reconnect.timer.fn = reconnect_on_timer;
	weft_timer_set(path->reactor, &path->reconnect.timer, next ? 0 : next_delay_ms(path));
}

void host_reconnect_stop(struct host_path *path)
{
	weft_timer_stop(path->reactor, &path->reconnect.timer);
}
