/* range_lists.c - range lists: a limit for the Copy and Dataset Management commands of a tenant on
 * a reactor.
 *
 *   its list? ── fewer than TGT_RANGE_LISTS_MAX ──▶ fetch ─▶ pieces ─▶ finish ─▶ one fewer
 *       └─ as many ─▶ wait ─▶ the first, in a later turn ─▶ fetch         │
 *                              ▲                                          │
 *                              └──────────────────────────────────────────┘
 *
 * A Copy or Dataset Management command keeps its list of ranges until it ends. Lists of all hosts
 * come out of the same small "in" buffers, so a tenant may hold TGT_RANGE_LISTS_MAX of them on a
 * reactor; further commands wait. A list inside the capsule needs no buffer and is not counted
 * here: it stays where it was received, which the rx quota limits (transport/tcp/chunks.c,
 * transport/rdma/rx.c).
 *
 * Invariant: while a command waits, there is no room, or the task that wakes it is deferred. The
 * task reads the tenant before it runs a command, not after: the last command's end may free the
 * tenant. */
#include "base/count.h"
#include "target/io/io.h"

static struct tgt_flow_local *tenant_of(struct weft_req *req)
{
	return tgt_tenant_local(tgt_queue(req)->ctrl, req->qp->group);
}

static void count_list(struct weft_req *req)
{
	assert(!tgt_req(req)->list_counted && tenant_of(req)->lists < TGT_RANGE_LISTS_MAX);
	tgt_req(req)->list_counted = true;
	tenant_of(req)->lists++;
}

void tgt_io_list_admit(struct weft_req *req, void (*fetch)(struct weft_req *req))
{
	struct tgt_flow_local *local = tenant_of(req);

	assert_on(req->qp->group->reactor);
	if (req->data) {
		fetch(req);
	} else if (local->lists < TGT_RANGE_LISTS_MAX && weft_list_empty(&local->waiting)) {
		count_list(req);
		fetch(req);
	} else {
		tgt_req(req)->retry = fetch;
		tgt_req(req)->waits = TGT_WAITS_FOR_LIST;
		weft_list_push(&local->waiting, &req->link);
	}
}

static void wake_next_later(struct tgt_flow_local *local, struct weft_req *req)
{
	if (local->lists < TGT_RANGE_LISTS_MAX && !weft_list_empty(&local->waiting))
		weft_reactor_defer(req->qp->group->reactor, &local->wake_task);
}

void tgt_io_list_release(struct weft_req *req)
{
	struct tgt_flow_local *local = tenant_of(req);

	assert(tgt_req(req)->list_counted);
	tgt_req(req)->list_counted = false;
	weft_count_down(local->lists);
	wake_next_later(local, req);
}

void tgt_io_list_unwait(struct weft_req *req)
{
	struct tgt_flow_local *local = tenant_of(req);

	assert(tgt_req(req)->waits == TGT_WAITS_FOR_LIST);
	weft_list_remove(&req->link);
	if (weft_list_empty(&local->waiting))
		weft_task_cancel(&local->wake_task);
}

/* One command in a turn. */
void tgt_io_lists_wake_next(struct weft_task *task)
{
	struct tgt_flow_local *local = container_of(task, struct tgt_flow_local, wake_task);
	struct weft_req *req;

	assert(!weft_list_empty(&local->waiting));
	req = container_of(weft_list_pop(&local->waiting), struct weft_req, link);
	assert(tgt_req(req)->waits == TGT_WAITS_FOR_LIST);
	tgt_req(req)->waits = TGT_WAITS_NOT;
	count_list(req);
	wake_next_later(local, req);
	tgt_req(req)->retry(req);
}
