/* probe.c - is a path silent, or is this machine slow? A silent path fails over in seconds.
 *
 *   a command takes unusually long ─▶ its path is suspected: a Keep Alive there, and on the others
 *     ├─ anything is answered there ─▶ the path is fine
 *     └─ others answer, interval after interval, and this path does not ─▶ it is silent: ended
 *
 * On a busy machine everything is late: the command, the answer to the Keep Alive, the thread that
 * reads it, and its timers. So time alone is no evidence. An interval counts against the path only
 * if another path was asked and answered in it, and the control reactor has read that answer. A
 * suspicion costs these Keep Alives and no more.
 *
 * Where no other path is live there is nothing to fail over to and nothing to compare with:
 * keepalive.c finds the loss. */
#include <errno.h>
#include <string.h>

#include "host/internal.h"

#define NS_PER_MS UINT64_C(1000000)

enum { PARTS = 8 };

static void probe_on_answer(struct host_admin *a, int rc)
{
	if (rc == 0)
		a->path->ctrl->probe_answers++;
	weft_timer_stop(a->path->reactor, &a->path->probe.timer);
}

static void send_probe(struct host_path *path)
{
	struct host_admin *a = &path->probe.cmd;

	assert(host_path_is_up(path));
	if (path->probe.cmd.inflight)
		return;
	host_admin_prepare(a, "Keep Alive, as a command takes unusually long", probe_on_answer);
	a->cmd.common.opcode = nvme_admin_keep_alive;
	host_admin_start(path, a, 0);
}

/* If an interval ended a little late, the next one is shorter by that. */
static uint64_t next_probe_interval_ms(struct host_path *path)
{
	uint64_t now = weft_reactor_now_ns(path->reactor),
		 interval_ns = path->probe.interval_ms * NS_PER_MS;

	path->probe.interval_end_ns += interval_ns;
	if (path->probe.interval_end_ns <= now)
		path->probe.interval_end_ns = now + interval_ns;
	return (path->probe.interval_end_ns - now + NS_PER_MS - 1) / NS_PER_MS;
}

static void start_probe_interval(struct host_path *path)
{
	assert_on(path->reactor);
	path->probe.answers_before = path->ctrl->probe_answers;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *other = path->ctrl->paths[i];

		if (other && other != path && host_path_is_up(other))
			send_probe(other);
	}
	weft_timer_set(path->reactor, &path->probe.timer, next_probe_interval_ms(path));
}

static void on_probe_interval(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, probe.timer);

	if (atomic_load(&path->activity.answered) || host_path_is_lost(path) ||
	    !host_path_find_other_live(path))
		return;
	path->probe.misses += path->ctrl->probe_answers != path->probe.answers_before;
	if (path->probe.misses < PARTS)
		start_probe_interval(path);
	else
		host_path_broken(path, -ETIMEDOUT, "%s: no answer in time", path->probe.cmd.name);
}

void host_probe(struct host_path *path, uint32_t timeout_ms)
{
	assert_on(path->reactor);
	if (weft_heap_has(&path->probe.timer.node) || host_path_is_lost(path) ||
	    !host_path_find_other_live(path))
		return;
	send_probe(path);
	if (!path->probe.cmd.inflight)
		return; /* the admin queue is full */
	atomic_store(&path->activity.answered, false);
	path->probe.misses = 0;
	path->probe.interval_ms = timeout_ms > PARTS ? timeout_ms / PARTS : 1;
	path->probe.interval_end_ns = weft_reactor_now_ns(path->reactor);
	path->probe.timer.fn = on_probe_interval;
	start_probe_interval(path);
}
