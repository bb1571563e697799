/* close_wait.c - the controller has closed an I/O queue's connection: does the admin queue's follow?
 *
 *   Keep Alive ─┬─ the admin connection is closed ─▶ the loss is audible: the controller has ended
 *               ├─ answered, and some turns later it is still open ─┐
 *               └─ 3 s have passed ─────────────────────────────────┴─▶ the association is torn down
 *
 * Meanwhile no I/O goes there. */
#include <assert.h>
#include <string.h>

#include "host/internal.h"

/* The limit for the Keep Alive's answer; after it some more turns: this machine may be late. */
enum { ADMIN_CLOSE_MAX_MS = 3000, ADMIN_CLOSE_POLL_MS = 5, ADMIN_CLOSE_POLLS = 6 };

static void close_wait_on_timer(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, close_wait.timer);

	assert(path->state == HOST_PATH_CLOSE_WAIT);
	if (++path->close_wait.polls < ADMIN_CLOSE_POLLS)
		weft_timer_set(path->reactor, timer, ADMIN_CLOSE_POLL_MS);
	else
		host_path_close_wait_over(path);
}

/* The controller answers, unless it is about to close the admin queue as well. */
static void close_wait_on_answer(struct host_admin *a, int rc)
{
	struct host_path *path = a->path;

	if (path->state == HOST_PATH_CLOSE_WAIT)
		weft_timer_set(path->reactor, &path->close_wait.timer, ADMIN_CLOSE_POLL_MS);
}

void host_close_wait_start(struct host_path *path)
{
	struct host_admin *a = &path->close_wait.cmd;

	assert(path->state == HOST_PATH_CLOSE_WAIT);
	path->close_wait.polls = 0;
	path->close_wait.timer.fn = close_wait_on_timer;
	weft_timer_set(path->reactor, &path->close_wait.timer, ADMIN_CLOSE_MAX_MS);
	host_admin_prepare(a, "Keep Alive, as an I/O queue was closed", close_wait_on_answer);
	a->cmd.common.opcode = nvme_admin_keep_alive;
	host_admin_start(path, a, 0);
}

void host_close_wait_stop(struct host_path *path)
{
	weft_timer_stop(path->reactor, &path->close_wait.timer);
}
