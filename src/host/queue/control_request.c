/* control_request.c - what a path queue asks of the control reactor: reset the association,
 * abort a command, read the ANA log page, probe the controller. The request is stored in the
 * path queue under ctrl->lock; a message tells the control reactor that there is one. */
#include <stdlib.h>

#include "base/count.h"
#include "host/internal.h"

static void on_control_request(struct weft_msg *msg);

static void post_request(struct host_path_queue *pq)
{
	assert_locked(&pq->queue->ctrl->lock);
	pq->request.generation = pq->generation;
	if (pq->request.posted)
		return;
	pq->request.posted = true;
	pq->request.msg.fn = on_control_request;
	weft_reactor_post(pq->path->reactor, &pq->request.msg);
}

static void lock_ctrl(struct host_path_queue *pq)
{
	weft_mutex_lock(&pq->queue->ctrl->lock);
}

static void post_request_and_unlock(struct host_path_queue *pq)
{
	post_request(pq);
	weft_mutex_unlock(&pq->queue->ctrl->lock);
}

void host_path_queue_request_reset(struct host_path_queue *pq, int rc, const struct weft_err *why,
				   bool setup, bool hung_up)
{
	lock_ctrl(pq);
	pq->request.reset = true;
	pq->request.rc = rc;
	pq->request.setup_failed = setup;
	pq->request.hung_up = hung_up;
	pq->request.why = *why;
	post_request_and_unlock(pq);
}

void host_path_queue_request_abort(struct host_path_queue *pq, uint16_t cid)
{
	lock_ctrl(pq);
	pq->request.abort = true;
	pq->request.cid = cid;
	post_request_and_unlock(pq);
}

static bool ana_state_allows_io(const struct host_path *path, const struct host_ns_view *view)
{
	uint8_t state = host_ana_state(path, view->group);

	assert_locked(&path->ctrl->lock);
	return state == NVME_ANA_STATE_OPTIMIZED || state == NVME_ANA_STATE_NONOPTIMIZED;
}

/* Until the page is read again, an access update for another reason must not use the old page: see
 * ana_stale_until. Of several commands that are refused together only the first posts a request:
 * waking the control reactor for each would delay the others. */
bool host_path_queue_request_ana_read(struct host_path_queue *pq, struct weft_ns *ns)
{
	const struct host_path *path = pq->path;
	struct host_ns_view *view = &ns->views[path->index];
	bool contradicts;

	lock_ctrl(pq);
	contradicts = ana_state_allows_io(path, view);
	if (view->ana_stale_until != path->ana.reads_begun + 1) {
		view->ana_stale_until = path->ana.reads_begun + 1;
		atomic_store_explicit(&ns->access[path->index], HOST_ACCESS_NONE,
				      memory_order_relaxed);
		pq->request.ana = true;
		post_request(pq);
	}
	weft_mutex_unlock(&pq->queue->ctrl->lock);
	return contradicts;
}

void host_path_queue_request_probe(struct host_path_queue *pq, uint32_t timeout_ms)
{
	lock_ctrl(pq);
	pq->request.probe_ms = timeout_ms;
	post_request_and_unlock(pq);
}

/* The aborted command's own completion, or its second timeout, shows the result. */
static void on_abort_done(struct host_admin *admin, int rc)
{
	weft_count_down(admin->path->admin.naborts);
	free(admin);
}

static void control_send_abort(struct host_path *path, uint16_t qid, uint16_t cid)
{
	struct host_admin *abort;

	assert_on(path->reactor);
	if (path->admin.naborts == HOST_ABORTS_MAX)
		return;
	abort = calloc(1, sizeof(*abort));
	if (!abort)
		return;
	path->admin.naborts++;
	abort->name = "Abort";
	abort->done = on_abort_done;
	abort->cmd.common.opcode = nvme_admin_abort_cmd;
	abort->cmd.common.cdw10 = cpu_to_le32(qid | (uint32_t)cid << 16);
	host_admin_start(path, abort, path->config.options.admin_ms);
}

/* On the control reactor. The path queue is not freed before request.posted is cleared. */
static struct host_control_request control_request_take(struct host_path_queue *pq)
{
	struct weft_ctrl *ctrl = pq->queue->ctrl;
	struct host_control_request request;

	assert_on(ctrl->reactor);
	weft_mutex_lock(&ctrl->lock);
	request = pq->request;
	request.other_pqs_ready = pq->path->ready;
	pq->request.posted = pq->request.reset = pq->request.abort = pq->request.ana = false;
	pq->request.probe_ms = 0;
	if (host_path_is_removing(pq->path))
		host_queue_post_update(pq->queue); /* it may wait for request.posted */
	pthread_cond_broadcast(&ctrl->changed);
	weft_mutex_unlock(&ctrl->lock);
	return request;
}

static void on_control_request(struct weft_msg *msg)
{
	struct host_path_queue *pq = container_of(msg, struct host_path_queue, request.msg);
	struct host_path *path = pq->path;
	uint16_t qid = pq->queue->qid;
	struct host_control_request request = control_request_take(pq);

	if (!host_path_is_connected(path) || request.generation != path->assoc.generation)
		return;
	if (request.reset && (!request.setup_failed || !request.other_pqs_ready)) {
		if (request.hung_up)
			host_path_io_link_closed(path, request.rc, "I/O queue %u: %s", qid,
						 request.why.text);
		else
			host_path_broken(path, request.rc, "I/O queue %u: %s", qid,
					 request.why.text);
		return;
	}
	if (request.abort)
		control_send_abort(path, qid, request.cid);
	if (request.ana)
		host_ana_read(path);
	if (request.probe_ms)
		host_probe(path, request.probe_ms);
}
