/* fence.c - the association fence: when can nothing of a lost association be executed any more?
 * Only then its writes may be sent again: a late one would overwrite newer data.
 *
 *   lost ─┬─ confirmed by Cross-Controller Reset (IRS) ──────────────────────┐
 *         ├─ the same controller is back with another instance (CIU, CIRN) ──┤
 *         ├─ audibly lost, and no controller can be asked: at once ──────────┼─▶ over: path queues
 *         ├─ silently lost, and none can be asked: the time that the         │   get an update
 *         │  controller needs to end by itself has passed ───────────────────┘
 *         └─ the controllers that are asked never confirm ─▶ the writes end with unknown outcome
 *
 * What becomes of a write then is decided in queue/complete.c: host_fenced_release().
 *
 * A loss is audible if the controller knows of it, because the controller has closed or reset the
 * connection. Every other loss is silent, also one that we caused: nobody knows what the controller
 * has noticed. A lost admin queue ends the association as a whole. A lost I/O queue ends what was
 * sent over that queue (host_path_queue.hung_up), and nothing else: a write on another queue may
 * still be carried out.
 *
 * A path that has reconnected, or is dead, proves nothing: it may have another controller now,
 * which knows nothing of the loss. But the new controller can be asked about the lost one, like
 * those of other paths. A controller of a different target cannot tell. So all controllers that are
 * live are asked, one after the other, until one can tell.
 *
 * A path may be lost again before that. The losses are queued, and the oldest is asked about.
 *
 * Invariant: pub.ended_generation is the newest generation such that nothing is left of it and of
 * all before it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "host/internal.h"

enum { ASK_AGAIN_MS = 200, ASK_ANOTHER_MS = 1 };

/* A controller that says "not yet" knows better than fence_limit_ms(). After so many times that
 * limit, counted from the first question, the fence gives up all the same. */
enum { GIVE_UP_TIMES = 2 };

/* A question, in flight on a path. The path it is about may be gone when it is answered. */
struct fence_query {
	struct host_admin admin;
	struct weft_ctrl *ctrl;
	unsigned id, generation;
	unsigned through; /* index of the path that it went through */
};
static_assert(HOST_PATHS_MAX <= 8, "cannot_tell has a bit for each");

static void fence_query(struct host_path *path);

/* NULL: no lost association is fenced. */
static struct host_lost_assoc *oldest_lost(struct host_path *path)
{
	return path->fence.nlost ? &path->fence.lost[0] : NULL;
}

/* Another lost association has become the oldest. */
static void fence_start_oldest(struct host_path *path)
{
	uint64_t now = weft_reactor_now_ns(path->reactor), until;

	assert_on(path->reactor);
	path->fence.cannot_tell = 0;
	path->fence.ccr_pending = false;
	weft_timer_stop(path->reactor, &path->fence.retry_timer);
	weft_timer_stop(path->reactor, &path->fence.limit);
	weft_timer_stop(path->reactor, &path->fence.give_up_timer);
	if (!oldest_lost(path))
		return;
	until = oldest_lost(path)->until_ns;
	weft_timer_set(path->reactor, &path->fence.limit,
		       until > now ? (until - now) / 1000000 + 1 : 0);
	fence_query(path);
}

static void fence_oldest_ended(struct host_path *path)
{
	struct host_fence *fence = &path->fence;
	struct weft_ctrl *ctrl = path->ctrl;

	weft_count_down(fence->nlost);
	memmove(&fence->lost[0], &fence->lost[1], fence->nlost * sizeof(fence->lost[0]));
	weft_mutex_lock(&ctrl->lock);
	path->pub.ended_generation = fence->nlost ? fence->lost[0].first - 1 : fence->generation;
	host_ctrl_wake_all(ctrl);
	weft_mutex_unlock(&ctrl->lock);
	fence_start_oldest(path);
}

/* --- asking a controller ---------------------------------------------------------------------- */

/* The path that @q is about, if that is still the question; else NULL. */
static struct host_path *find_fenced_path(const struct fence_query *q)
{
	assert_on(q->ctrl->reactor);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *path = q->ctrl->paths[i];

		if (path && path->id == q->id)
			return oldest_lost(path) && oldest_lost(path)->last == q->generation ?
				       path :
				       NULL;
	}
	return NULL;
}

static bool ccr_is_retryable(uint16_t status)
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

static void fence_handle_ccr(struct host_path *path, const struct fence_query *q)
{
	uint16_t status = host_status(&q->admin.cqe);
	bool done = le64_to_cpu(q->admin.cqe.result) & NVME_CCR_IRS;

	assert(!path->fence.ccr_pending);
	assert(q->through < HOST_PATHS_MAX);
	if (!status && done) {
		fence_oldest_ended(path);
	} else if (!status || ccr_is_retryable(status)) {
		weft_timer_set(path->reactor, &path->fence.retry_timer, ASK_AGAIN_MS);
	} else {
		path->fence.cannot_tell |= (uint8_t)(1u << q->through);
		fence_query(path);
	}
}

static void fence_on_ccr_done(struct host_admin *a, int rc)
{
	struct fence_query *q = container_of(a, struct fence_query, admin);
	struct host_path *path = find_fenced_path(q);

	if (path)
		path->fence.ccr_pending = false;
	if (path && rc == 0)
		fence_handle_ccr(path, q);
	else if (path) /* the one that was asked is lost as well, or just about to be */
		weft_timer_set(path->reactor, &path->fence.retry_timer, ASK_ANOTHER_MS);
	free(q);
}

static void fence_send_ccr(struct host_path *path, struct host_path *through)
{
	const struct host_lost_assoc *lost = oldest_lost(path);
	struct fence_query *q = calloc(1, sizeof(*q));

	assert(lost && !path->fence.ccr_pending);
	assert(host_path_is_up(through));
	if (!q) {
		weft_timer_set(path->reactor, &path->fence.retry_timer, ASK_AGAIN_MS);
		return;
	}
	q->ctrl = path->ctrl;
	q->id = path->id;
	q->generation = lost->last;
	q->through = through->index;
	q->admin.name = "Cross-Controller Reset";
	q->admin.done = fence_on_ccr_done;
	q->admin.cmd.ccr.opcode = NVME_ADMIN_CROSS_CTRL_RESET;
	q->admin.cmd.ccr.icid = cpu_to_le16(lost->cntlid);
	q->admin.cmd.ccr.ciu = lost->ciu;
	q->admin.cmd.ccr.cirn = cpu_to_le64(lost->cirn);
	path->fence.ccr_pending = true;
	if (!weft_heap_has(&path->fence.give_up_timer.node))
		weft_timer_set(path->reactor, &path->fence.give_up_timer,
			       GIVE_UP_TIMES * lost->fence_limit_ms);
	host_admin_start(through, &q->admin, through->config.options.admin_ms);
}

static bool path_is_up(const struct host_path *path)
{
	return path && host_path_is_up(path);
}

/* The path is back, and its controller has the number of the lost one. */
static bool has_lost_cntlid(const struct host_path *path, const struct host_lost_assoc *lost)
{
	return path_is_up(path) && path->assoc.traits.cntlid == lost->cntlid;
}

/* A controller's instance changes when it is reset, which ends its commands (NVMe base 2.3). */
static bool lost_ctrl_was_reset(const struct host_path *path, const struct host_lost_assoc *lost)
{
	const struct host_traits *now = &path->assoc.traits;

	return has_lost_cntlid(path, lost) && now->ciu &&
	       (now->ciu != lost->ciu || now->cirn != lost->cirn);
}

/* A path whose controller may know; no controller is asked to reset itself. NULL: none. */
static struct host_path *find_ccr_path(const struct host_path *path,
				       const struct host_lost_assoc *lost)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *p = path->ctrl->paths[i];

		if (path_is_up(p) && p->assoc.traits.ccrl && !(path->fence.cannot_tell >> i & 1) &&
		    !(p == path && has_lost_cntlid(p, lost)))
			return p;
	}
	return NULL;
}

/* While no path is live nothing can be written either, and a path that comes may tell. */
static bool ccr_path_may_come(const struct host_path *path)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (path_is_up(path->ctrl->paths[i]))
			return false;
	return path->state != HOST_PATH_DEAD;
}

/* No controller can tell, nor will. About the losses behind the oldest, none has been asked yet. */
static bool nobody_can_confirm(struct host_path *path, const struct host_lost_assoc *lost)
{
	return !lost->ciu || (lost == oldest_lost(path) && !find_ccr_path(path, lost) &&
			      !ccr_path_may_come(path));
}

static bool lost_ended_by_itself(struct host_path *path, const struct host_lost_assoc *lost)
{
	if (weft_reactor_now_ns(path->reactor) >= lost->until_ns)
		return true;
	return !lost->silent && nobody_can_confirm(path, lost);
}

/* Commands on connections that the controller itself closed are over, whatever becomes of the
 * others. */
static void release_peer_closed(struct host_path *path)
{
	struct host_fence *fence = &path->fence;
	struct weft_ctrl *ctrl = path->ctrl;
	unsigned n = 0;

	while (n < fence->nlost && nobody_can_confirm(path, &fence->lost[n]))
		n++;
	if (!n || fence->ccr_pending || fence->lost[n - 1].last <= path->pub.peer_closed_generation)
		return;
	weft_mutex_lock(&ctrl->lock);
	path->pub.peer_closed_generation = fence->lost[n - 1].last;
	host_ctrl_wake_all(ctrl);
	weft_mutex_unlock(&ctrl->lock);
}

static void fence_query(struct host_path *path)
{
	const struct host_lost_assoc *lost = oldest_lost(path);
	struct host_path *through;

	assert_on(path->reactor);
	if (!lost || path->fence.ccr_pending)
		return;
	through = lost->ciu ? find_ccr_path(path, lost) : NULL;
	if (lost->ciu && lost_ctrl_was_reset(path, lost))
		fence_oldest_ended(path);
	else if (through)
		fence_send_ccr(path, through);
	else if (lost_ended_by_itself(path, lost))
		fence_oldest_ended(path);
	else
		release_peer_closed(path);
}

static void fence_on_retry_timer(struct weft_timer *timer)
{
	fence_query(container_of(timer, struct host_path, fence.retry_timer));
}

static void fence_on_limit_timer(struct weft_timer *timer)
{
	fence_query(container_of(timer, struct host_path, fence.limit));
}

/* The lost writes must not be sent again, and the fence cannot wait for them any longer. */
static void fence_on_give_up_timer(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, fence.give_up_timer);

	assert(oldest_lost(path));
	weft_mutex_lock(&path->ctrl->lock);
	path->pub.abandoned_generation = oldest_lost(path)->last;
	weft_mutex_unlock(&path->ctrl->lock);
	fence_oldest_ended(path);
}

/* --- a loss ----------------------------------------------------------------------------------- */

/* KATO, as the controller counts it; 0: it does not. */
static uint64_t keepalive_ms(const struct host_path *path)
{
	uint64_t kato = path->config.options.keepalive_ms,
		 step = path->assoc.traits.keepalive_step_ms;

	return step ? (kato + step - 1) / step * step : 0;
}

/* NVMe base 2.1 (TP 4129). Our last command may take as long to arrive as a Keep Alive may. From
 * then on the controller counts KATO; one that checks every KATO for traffic (TBKAS) may notice the
 * loss a KATO later still. Then it has CQT to end its commands. A controller without keep-alive
 * does not end by itself: loss_timeout is used instead. */
static uint64_t fence_limit_ms(const struct host_path *path)
{
	uint64_t kato = keepalive_ms(path);
	unsigned times = path->assoc.traits.ctratt & NVME_CTRL_CTRATT_TBKAS ? 3 : 2;

	return (kato ? times * kato : path->config.options.loss_ms) + path->assoc.traits.cqt_ms;
}

/* A path is lost again and again: the newest two losses become one, about which no controller can
 * be asked. */
static void merge_newest_lost(struct host_fence *fence)
{
	struct host_lost_assoc *joined = &fence->lost[HOST_LOST_ASSOCS_MAX - 2],
			       *newest = joined + 1;

	assert(fence->nlost == HOST_LOST_ASSOCS_MAX);
	joined->last = newest->last;
	joined->silent = true;
	joined->ciu = 0;
	if (newest->until_ns > joined->until_ns)
		joined->until_ns = newest->until_ns;
	fence->nlost--;
}
static_assert(HOST_LOST_ASSOCS_MAX > 2,
	      "the oldest is never joined: there may be a question about it");

/* A discovery controller needs no fence: nothing is written to it. */
void host_fence_path_lost(struct host_path *path)
{
	struct host_fence *fence = &path->fence;
	uint64_t limit = fence_limit_ms(path);

	if (host_path_is_stopping(path) || path->assoc.traits.discovery ||
	    fence->generation == path->assoc.generation)
		return;
	assert(fence->generation < path->assoc.generation);
	fence->generation = path->assoc.generation;
	if (fence->nlost == HOST_LOST_ASSOCS_MAX)
		merge_newest_lost(fence);
	assert(fence->nlost < HOST_LOST_ASSOCS_MAX);
	fence->lost[fence->nlost++] = (struct host_lost_assoc){
		.first = path->assoc.generation,
		.last = path->assoc.generation,
		.silent = !path->assoc.hung_up,
		.cntlid = path->assoc.traits.cntlid,
		.ciu = path->assoc.traits.ciu,
		.cirn = path->assoc.traits.cirn,
		.fence_limit_ms = limit,
		.until_ns = weft_reactor_now_ns(path->reactor) + limit * UINT64_C(1000000),
	};
	fence->retry_timer.fn = fence_on_retry_timer;
	fence->limit.fn = fence_on_limit_timer;
	fence->give_up_timer.fn = fence_on_give_up_timer;
	if (fence->nlost == 1)
		fence_start_oldest(path);
	else
		release_peer_closed(path);
}

void host_fence_path_up(struct host_path *path)
{
	assert(host_path_is_up(path));
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *about = path->ctrl->paths[i];

		if (!about)
			continue;
		about->fence.cannot_tell &= (uint8_t) ~(1u << path->index); /* a new controller */
		fence_query(about);
	}
}

void host_fence_path_dead(struct host_path *path)
{
	assert(path->state == HOST_PATH_DEAD);
	fence_query(path);
}

void host_fence_stop(struct host_path *path)
{
	assert_on(path->reactor);
	path->fence.nlost = 0;
	fence_start_oldest(path);
}
