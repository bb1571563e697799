/* tenant_limit.c - how many commands of a kind a tenant has under way on a reactor. Further ones
 * wait, and the tenant's flows take turns.
 *
 *   fewer than so many? ──▶ start ─▶ … ─▶ finish ─▶ one fewer
 *       └─ as many ─▶ wait ─▶ the next, in a later turn ─▶ start
 *
 * Two kinds of commands have such a limit:
 * - Copy and Dataset Management keep their list of ranges until they end. Lists of all hosts come
 *   out of the same small "in" buffers. A list inside the capsule needs no buffer and is not
 *   counted: it stays where it was received, which the rx quota limits (transport/tcp/chunks.c,
 *   transport/rdma/rx.c).
 * - Fused pairs of all hosts stand in one queue for their namespace (ns_quiesce.c).
 *
 * Invariant: while a command waits, there is no room, or the task that wakes it is deferred. The
 * task reads the tenant before it starts a command, not after: the last command's end may free the
 * tenant. */
#include "base/count.h"
#include "target/io/io.h"

void tgt_limit_init(struct tgt_tenant_limit *limit, unsigned most)
{
	limit->most = most;
	limit->count = 0;
	weft_list_init(&limit->flows);
	weft_task_init(&limit->wake_task, tgt_limit_wake_next);
	weft_fair_flow_init(&limit->waits, NULL);
}

bool tgt_limit_is_idle(const struct tgt_tenant_limit *limit)
{
	return !limit->count && weft_list_empty(&limit->flows) &&
	       weft_list_empty(&limit->wake_task.link) && weft_list_empty(&limit->waits.waiters);
}

static struct tgt_tenant_limit *limit_in(struct tgt_flow_local *local, struct weft_req *req)
{
	return tgt_io_is_fused(req) ? &local->pairs : &local->lists;
}

static struct tgt_tenant_limit *limit_of_tenant(struct weft_req *req)
{
	return limit_in(tgt_tenant_local(tgt_queue(req)->ctrl, req->qp->group), req);
}

static struct weft_fair_flow *waits_of_flow(struct weft_req *req)
{
	struct tgt_flow *flow = tgt_queue(req)->ctrl->flow;

	return &limit_in(&flow->per_reactor[req->qp->group->index], req)->waits;
}

static void count_command(struct tgt_tenant_limit *limit, struct weft_req *req)
{
	assert(!tgt_req(req)->counted && limit->count < limit->most);
	tgt_req(req)->counted = true;
	limit->count++;
}

void tgt_limit_admit(struct weft_req *req, void (*start)(struct weft_req *req))
{
	struct tgt_tenant_limit *limit = limit_of_tenant(req);

	assert_on(req->qp->group->reactor);
	if (limit->count < limit->most && weft_list_empty(&limit->flows)) {
		count_command(limit, req);
		start(req);
	} else {
		tgt_req(req)->retry = start;
		tgt_req(req)->waits = TGT_WAITS_FOR_TENANT;
		weft_fair_queue_push(&limit->flows, waits_of_flow(req), &req->link);
	}
}

static void wake_next_later(struct tgt_tenant_limit *limit, struct weft_req *req)
{
	if (limit->count < limit->most && !weft_list_empty(&limit->flows))
		weft_reactor_defer(req->qp->group->reactor, &limit->wake_task);
}

void tgt_limit_release(struct weft_req *req)
{
	struct tgt_tenant_limit *limit = limit_of_tenant(req);

	assert(tgt_req(req)->counted);
	tgt_req(req)->counted = false;
	weft_count_down(limit->count);
	wake_next_later(limit, req);
}

void tgt_limit_unwait(struct weft_req *req)
{
	struct tgt_tenant_limit *limit = limit_of_tenant(req);

	assert(tgt_req(req)->waits == TGT_WAITS_FOR_TENANT);
	weft_fair_queue_remove(waits_of_flow(req), &req->link);
	tgt_req(req)->waits = TGT_WAITS_NOT;
	if (weft_list_empty(&limit->flows))
		weft_task_cancel(&limit->wake_task);
}

/* One command in a turn. */
void tgt_limit_wake_next(struct weft_task *task)
{
	struct tgt_tenant_limit *limit = container_of(task, struct tgt_tenant_limit, wake_task);
	struct weft_req *req;

	assert(!weft_list_empty(&limit->flows));
	req = container_of(weft_fair_queue_pop(&limit->flows), struct weft_req, link);
	assert(tgt_req(req)->waits == TGT_WAITS_FOR_TENANT);
	tgt_req(req)->waits = TGT_WAITS_NOT;
	count_command(limit, req);
	wake_next_later(limit, req);
	tgt_req(req)->retry(req);
}
