/* fence.c - when is a lost association over? What it was writing may be written anew only then: a
 * late write of it would overwrite what came after.
 *
 *   lost ─┬─ the controller says so over another path (Cross-Controller Reset) ─┐
 *         ├─ the path has a new association: the target saw to the old one      ├─▶ over: lanes look
 *         ├─ audibly lost, and without such resets: at once, as every host does │
 *         └─ silently, and without: keep-alive time-out and quiesce time passed ┘
 *
 * Audible is a loss that the controller has seen as well: the connection was closed or reset. One
 * that the network tells of is silent.
 *
 * A controller may know nothing of the lost one, for they are of different targets; another one
 * may. So all that live are asked, one after the other, until one can tell.
 *
 * Invariant: path->pub.over is the newest generation of which nothing is left. */
#include <errno.h>
#include <stdlib.h>

#include "host/internal.h"

enum { ASK_AGAIN_MS = 200, ASK_ANOTHER_MS = 1 };

/* A question, in flight on another path. The path it is about may be gone when it is answered. */
struct ask {
	struct host_admin admin;
	struct weft_ctrl *ctrl;
	unsigned id, generation;
	unsigned through; /* index of the path that it went through */
};
static_assert(HOST_PATHS_MAX <= 8, "mute has a bit for each");

static void ask(struct host_path *path);

static void over(struct host_path *path)
{
	struct weft_ctrl *ctrl = path->ctrl;

	path->fence.waiting = false;
	weft_timer_stop(path->reactor, &path->fence.again);
	weft_timer_stop(path->reactor, &path->fence.limit);
	pthread_mutex_lock(&ctrl->lock);
	path->pub.over = path->fence.generation;
	host_paths_wake(ctrl);
	pthread_mutex_unlock(&ctrl->lock);
}

/* --- asking another controller ---------------------------------------------------------------- */

static struct host_path *find(struct weft_ctrl *ctrl, unsigned id)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i] && ctrl->paths[i]->id == id)
			return ctrl->paths[i];
	return NULL;
}

/* Nobody will tell. A silent loss is the clock's then, if there is one, or the next connection's,
 * if there will be one. */
static void do_without(struct host_path *path)
{
	bool in_vain = path->state == WEFT_DEAD && !weft_heap_has(&path->fence.limit.node);

	if (!path->fence.silent || in_vain)
		over(path);
}

static bool is_worth_asking_again(uint16_t status)
{
	switch (status & 0x7ff) {
	case SC_COMMAND(CCR_IN_PROGRESS):
	case SC_COMMAND(CCR_LOG_FULL):
	case SC_COMMAND(CCR_LIMIT):
		return true;
	default:
		return false;
	}
}

static void answered(struct host_path *path, const struct ask *q)
{
	uint16_t status = host_status(&q->admin.cqe);
	bool done = le64_to_cpu(q->admin.cqe.result) & NVME_CCR_IRS;

	if (!status && done) {
		over(path);
	} else if (!status || is_worth_asking_again(status)) {
		weft_timer_set(path->reactor, &path->fence.again, ASK_AGAIN_MS);
	} else {
		path->fence.mute |= (uint8_t)(1u << q->through);
		ask(path);
	}
}

static void on_answer(struct host_admin *a, int rc)
{
	struct ask *q = container_of(a, struct ask, admin);
	struct host_path *path = find(q->ctrl, q->id);
	bool current = path && path->fence.waiting && path->fence.generation == q->generation;

	if (path)
		path->fence.asked = false;
	if (current && rc == 0)
		answered(path, q);
	else if (current) /* that path is lost as well, or just about to be */
		weft_timer_set(path->reactor, &path->fence.again, ASK_ANOTHER_MS);
	else if (path) /* lost once more meanwhile */
		ask(path);
	free(q);
}

static void send_reset(struct host_path *path, struct host_path *through)
{
	const struct host_fence *fence = &path->fence;
	struct ask *q = calloc(1, sizeof(*q));

	if (!q) {
		weft_timer_set(path->reactor, &path->fence.again, ASK_AGAIN_MS);
		return;
	}
	q->ctrl = path->ctrl;
	q->id = path->id;
	q->generation = fence->generation;
	q->through = through->index;
	q->admin.name = "Cross-Controller Reset";
	q->admin.done = on_answer;
	q->admin.cmd.ccr.opcode = NVME_ADMIN_CROSS_CTRL_RESET;
	q->admin.cmd.ccr.icid = cpu_to_le16(fence->cntlid);
	q->admin.cmd.ccr.ciu = fence->ciu;
	q->admin.cmd.ccr.cirn = cpu_to_le64(fence->cirn);
	path->fence.asked = true;
	host_admin_start(through, &q->admin, through->config.options.admin_ms);
}

/* One whose controller may know; NULL: none. */
static struct host_path *find_teller(const struct host_path *path)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *p = path->ctrl->paths[i];

		if (p && p != path && p->state == WEFT_LIVE && !p->broken && p->traits.ccrl &&
		    !(path->fence.mute >> i & 1))
			return p;
	}
	return NULL;
}

/* Without another path there is nowhere to write to either. */
static void ask(struct host_path *path)
{
	struct host_path *through = find_teller(path);

	if (!path->fence.waiting || path->fence.asked)
		return;
	if (path->fence.ciu && through)
		send_reset(path, through);
	else if (!path->fence.ciu || host_paths_another_lives(path))
		do_without(path);
}

static void on_again(struct weft_timer *timer)
{
	ask(container_of(timer, struct host_path, fence.again));
}

/* As good as heard, where nobody can tell. One that says "not yet" knows better. */
static void on_limit(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, fence.limit);

	path->fence.silent = false;
	ask(path);
}

/* --- what happens ----------------------------------------------------------------------------- */

static bool is_silent(int rc)
{
	return rc == -ETIMEDOUT || rc == -EHOSTUNREACH || rc == -ENETUNREACH || rc == -EHOSTDOWN ||
	       rc == -ENETDOWN;
}

/* A controller without keep-alive does not end by itself. */
static void set_limit(struct host_path *path)
{
	uint32_t kato = path->config.options.keepalive_ms;

	if (kato)
		weft_timer_set(path->reactor, &path->fence.limit,
			       (uint64_t)kato + path->traits.cqt_ms);
}

void host_fence_lost(struct host_path *path)
{
	struct host_fence *fence = &path->fence;

	if (path->stopping || fence->generation == path->generation)
		return;
	fence->generation = path->generation;
	fence->silent = is_silent(path->why_rc);
	fence->mute = 0;
	fence->cntlid = path->traits.cntlid;
	fence->ciu = path->traits.ciu;
	fence->cirn = path->traits.cirn;
	fence->waiting = true;
	fence->again.fn = on_again;
	fence->limit.fn = on_limit;
	if (fence->silent)
		set_limit(path);
	ask(path);
}

void host_fence_up(struct host_path *path)
{
	if (path->fence.waiting)
		over(path);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *other = path->ctrl->paths[i];

		if (!other)
			continue;
		other->fence.mute &= (uint8_t) ~(1u << path->index); /* a new controller */
		ask(other);
	}
}

void host_fence_dead(struct host_path *path)
{
	if (path->fence.waiting && !path->fence.asked)
		do_without(path);
}

void host_fence_stop(struct host_path *path)
{
	path->fence.waiting = false;
	weft_timer_stop(path->reactor, &path->fence.again);
	weft_timer_stop(path->reactor, &path->fence.limit);
}
