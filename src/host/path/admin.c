/* admin.c - a path's admin queue: commands go out at once, and the one that is late ends the
 * association. Set-up, keep-alive, events and aborts use it, and user_admin.c for the program's.
 *
 *   host_admin_start() ─▶ waiting ─ a slot is free ─▶ inflight ─ answered, or the link is lost ─▶ done()
 *
 * All that may be asked for at a time is more than the queue has entries: a few events, Aborts, Keep
 * Alives, log pages, resets for other paths, besides the program's. What finds no slot is not lost: it
 * waits.
 *
 * Invariant: while a command waits, no slot is free, or the task that sends it is deferred. */
#include <errno.h>

#include "host/internal.h"

static struct host_admin *earlier(struct host_admin *first, const struct weft_list *list)
{
	struct host_admin *a;

	weft_list_for_each(a, list, link) {
		if (a->deadline_ns && (!first || a->deadline_ns < first->deadline_ns))
			first = a;
	}
	return first;
}

static struct host_admin *earliest_deadline(const struct host_path *path)
{
	return earlier(earlier(NULL, &path->admin.inflight), &path->admin.waiting);
}

static void admin_arm_timer(struct host_path *path)
{
	struct host_admin *first = earliest_deadline(path);
	uint64_t now = weft_reactor_now_ns(path->reactor), left;

	assert_on(path->reactor);
	weft_timer_stop(path->reactor, &path->admin.timer);
	if (!first)
		return;
	left = first->deadline_ns > now ? first->deadline_ns - now : 0;
	weft_timer_set(path->reactor, &path->admin.timer, left / 1000000 + 1);
}

static void admin_on_timeout(struct weft_timer *timer)
{
	struct host_path *path = container_of(timer, struct host_path, admin.timer);
	struct host_admin *first = earliest_deadline(path);

	if (first && first->deadline_ns <= weft_reactor_now_ns(path->reactor))
		host_path_broken(path, -ETIMEDOUT, "%s: no answer in time", first->name);
	else
		admin_arm_timer(path);
}

static bool link_is_open(const struct host_path *path)
{
	return path->assoc.link && !path->assoc.link->closing;
}

static void admin_submit(struct host_path *path, struct host_admin *a, struct weft_link_slot *slot)
{
	uint16_t cid = le16_to_cpu(slot->cmd.common.cid);

	slot->cmd = a->cmd;
	slot->cmd.common.cid = cpu_to_le16(cid);
	slot->data.iov = &a->iov;
	slot->data_len = (uint32_t)a->iov.iov_len;
	slot->user = a;
	weft_list_push(&path->admin.inflight, &a->link);
	weft_link_submit(path->assoc.link, slot);
}

static void admin_submit_waiting(struct host_path *path)
{
	struct weft_link_slot *slot;

	while (!weft_list_empty(&path->admin.waiting) && link_is_open(path) &&
	       (slot = weft_link_get_slot(path->assoc.link)))
		admin_submit(path,
			     container_of(weft_list_pop(&path->admin.waiting), struct host_admin,
					  link),
			     slot);
}

void host_admin_start(struct host_path *path, struct host_admin *a, uint32_t timeout_ms)
{
	assert_on(path->reactor);
	assert(!a->inflight);
	a->path = path;
	if (!link_is_open(path)) {
		a->done(a, -ECONNRESET);
		return;
	}
	a->inflight = true;
	a->deadline_ns = timeout_ms ? weft_reactor_now_ns(path->reactor) +
					      timeout_ms * UINT64_C(1000000) :
				      0;
	weft_list_push(&path->admin.waiting, &a->link);
	admin_submit_waiting(path);
	admin_arm_timer(path);
}

static void admin_finish(struct host_admin *a, int rc)
{
	assert(a->inflight);
	a->inflight = false;
	weft_list_remove(&a->link);
	a->done(a, rc);
}

static void admin_on_link_ready(struct weft_link *link)
{
	host_setup_start(link->user);
}

static void admin_on_slot_done(struct weft_link *link, struct weft_link_slot *slot)
{
	struct host_admin *a = slot->user;

	if (!host_status(&slot->cqe) && slot->moved != slot->data_len && !a->inexact) {
		weft_link_close(link, -EPROTO, "%s: success, but %u of %u bytes moved", a->name,
				slot->moved, slot->data_len);
		return; /* it goes with the connection */
	}
	atomic_store(&a->path->activity.answered, true);
	a->cqe = slot->cqe;
	a->moved = slot->moved;
	if (slot->corrupt && !host_status(&slot->cqe))
		a->cqe.status = cpu_to_le16(SC_GENERIC(TRAN_TPORT_ERROR) << 1);
	admin_finish(a, 0);
	admin_arm_timer(link->user);
	/* This slot is free when we return. */
	weft_reactor_defer(link->reactor, &((struct host_path *)link->user)->admin.pump);
}

static void admin_on_link_closed(struct weft_link *link)
{
	host_path_link_closed(link->user);
}

const struct weft_link_ops host_admin_link_ops = {
	.ready = admin_on_link_ready,
	.done = admin_on_slot_done,
	.closed = admin_on_link_closed,
};

void host_admin_lost(struct host_path *path)
{
	struct weft_list lost, *link;

	assert_on(path->reactor);
	assert(!path->assoc.link);
	weft_timer_stop(path->reactor, &path->admin.timer);
	weft_list_init(&lost);
	weft_list_splice(&lost, &path->admin.inflight);
	weft_list_splice(&lost, &path->admin.waiting);
	while ((link = weft_list_pop(&lost))) {
		struct host_admin *a = container_of(link, struct host_admin, link);

		admin_finish(a, -ECONNRESET);
	}
	assert(weft_list_empty(&path->admin.inflight) && weft_list_empty(&path->admin.waiting));
	assert(!path->admin.nusers && !path->admin.naborts);
}

bool host_admin_has_room(const struct host_path *path)
{
	assert_on(path->reactor);
	return path->state == HOST_PATH_LIVE && !path->assoc.link->closing &&
	       path->assoc.link->free && weft_list_empty(&path->admin.waiting) &&
	       path->admin.nusers < HOST_ADMIN_USER_MAX;
}

static void slot_is_free(struct weft_task *task)
{
	struct host_path *path = container_of(task, struct host_path, admin.pump);

	admin_submit_waiting(path);
	host_user_admin_pump(path->ctrl);
}

void host_admin_init(struct host_path *path)
{
	weft_list_init(&path->admin.inflight);
	weft_list_init(&path->admin.waiting);
	path->admin.timer.fn = admin_on_timeout;
	weft_task_init(&path->admin.pump, slot_is_free);
}
