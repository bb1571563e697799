/* ask.c - what a lane asks of home: to end its path's association, to abort a command, to read the
 * ANA log page again, to see whether the controller is still there.
 *
 * The question stands in the lane, under ctrl->lock; a message says that there is one. */
#include <stdlib.h>

#include "host/internal.h"

static void answer(struct weft_msg *msg);

/* Under ctrl->lock. */
static void post(struct host_lane *lane)
{
	lane->ask.generation = lane->generation;
	if (lane->ask.posted)
		return;
	lane->ask.posted = true;
	lane->ask.msg.fn = answer;
	weft_reactor_post(lane->path->reactor, &lane->ask.msg);
}

static void lock(struct host_lane *lane)
{
	pthread_mutex_lock(&lane->queue->ctrl->lock);
}

static void post_and_unlock(struct host_lane *lane)
{
	post(lane);
	pthread_mutex_unlock(&lane->queue->ctrl->lock);
}

void host_lane_ask_reset(struct host_lane *lane, int rc, const struct weft_err *why, bool setup,
			 bool hung_up)
{
	lock(lane);
	lane->ask.lost = true;
	lane->ask.rc = rc;
	lane->ask.setup = setup;
	lane->ask.hung_up = hung_up;
	lane->ask.why = *why;
	post_and_unlock(lane);
}

void host_lane_ask_abort(struct host_lane *lane, uint16_t cid)
{
	lock(lane);
	lane->ask.abort = true;
	lane->ask.cid = cid;
	post_and_unlock(lane);
}

/* Under ctrl->lock. */
static bool is_open(const struct host_path *path, const struct host_ns_view *view)
{
	uint8_t state = host_ana_state(path, view->group);

	return state == NVME_ANA_STATE_OPTIMIZED || state == NVME_ANA_STATE_NONOPTIMIZED;
}

/* What home works out meanwhile, for another reason, must not bring the old page's word back. Of
 * the commands that are sent away together the first asks: home, woken by each, would hold up the
 * rest. */
bool host_lane_ask_ana(struct host_lane *lane, struct weft_ns *ns)
{
	const struct host_path *path = lane->path;
	struct host_ns_view *view = &ns->views[path->index];
	bool contradicts;

	lock(lane);
	contradicts = is_open(path, view);
	if (view->doubt != path->ana.begun + 1) {
		view->doubt = path->ana.begun + 1;
		atomic_store_explicit(&ns->access[path->index], HOST_ACCESS_NONE,
				      memory_order_relaxed);
		lane->ask.ana = true;
		post(lane);
	}
	pthread_mutex_unlock(&lane->queue->ctrl->lock);
	return contradicts;
}

void host_lane_ask_probe(struct host_lane *lane, uint32_t timeout_ms)
{
	lock(lane);
	lane->ask.probe_ms = timeout_ms;
	post_and_unlock(lane);
}

/* What came of it shows in the command itself, or in its second timeout. */
static void aborted(struct host_admin *admin, int rc)
{
	admin->path->aborts--;
	free(admin);
}

static void start_abort(struct host_path *path, uint16_t qid, uint16_t cid)
{
	struct host_admin *abort;

	if (path->aborts == HOST_ABORTS_MAX)
		return;
	abort = calloc(1, sizeof(*abort));
	if (!abort)
		return;
	path->aborts++;
	abort->name = "Abort";
	abort->done = aborted;
	abort->cmd.common.opcode = nvme_admin_abort_cmd;
	abort->cmd.common.cdw10 = cpu_to_le32(qid | (uint32_t)cid << 16);
	host_admin_start(path, abort, path->config.options.admin_ms);
}

/* On home. The lane cannot go away before ask.posted is cleared. */
static struct host_ask take(struct host_lane *lane)
{
	struct weft_ctrl *ctrl = lane->queue->ctrl;
	struct host_ask ask;

	pthread_mutex_lock(&ctrl->lock);
	ask = lane->ask;
	ask.others = lane->path->ready;
	lane->ask.posted = lane->ask.lost = lane->ask.abort = lane->ask.ana = false;
	lane->ask.probe_ms = 0;
	if (lane->path->leaving)
		host_queue_tell(lane->queue); /* which waits for this */
	pthread_cond_broadcast(&ctrl->changed);
	pthread_mutex_unlock(&ctrl->lock);
	return ask;
}

static void answer(struct weft_msg *msg)
{
	struct host_lane *lane = container_of(msg, struct host_lane, ask.msg);
	struct host_path *path = lane->path;
	uint16_t qid = lane->queue->qid;
	struct host_ask ask = take(lane);

	if (path->state != WEFT_LIVE || ask.generation != path->generation)
		return;
	if (ask.lost && (!ask.setup || !ask.others)) {
		if (ask.hung_up)
			host_path_queue_ended(path, ask.rc, "I/O queue %u: %s", qid, ask.why.text);
		else
			host_path_broken(path, ask.rc, "I/O queue %u: %s", qid, ask.why.text);
		return;
	}
	if (ask.abort)
		start_abort(path, qid, ask.cid);
	if (ask.ana)
		host_ana_read(path);
	if (ask.probe_ms)
		host_probe(path, ask.probe_ms);
}
