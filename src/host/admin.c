/* admin.c - the admin queue: commands of our own, and those of callers.
 *
 * Ours (set-up, keep-alive, events, aborts) go out at once. Callers' wait until the controller is
 * live, a few at a time. When the connection is lost those that only look are asked again on the
 * next one; the others fail, because nobody knows whether they were carried out. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "host/internal.h"
#include "transport/bufs.h"

/* --- ours ------------------------------------------------------------------------------------------ */

static struct host_admin *first_flying(const struct weft_ctrl *ctrl)
{
	struct host_admin *a, *first = NULL;

	weft_list_for_each(a, &ctrl->admin_flying, link) {
		if (a->deadline_ns && (!first || a->deadline_ns < first->deadline_ns))
			first = a;
	}
	return first;
}

static void watch(struct weft_ctrl *ctrl)
{
	struct host_admin *first = first_flying(ctrl);
	uint64_t now = weft_reactor_now_ns(ctrl->reactor), left;

	weft_timer_stop(ctrl->reactor, &ctrl->admin_timer);
	if (!first)
		return;
	left = first->deadline_ns > now ? first->deadline_ns - now : 0;
	weft_timer_set(ctrl->reactor, &ctrl->admin_timer, left / 1000000 + 1);
}

static void on_timeout(struct weft_timer *timer)
{
	struct weft_ctrl *ctrl = container_of(timer, struct weft_ctrl, admin_timer);
	struct host_admin *first = first_flying(ctrl);

	if (first && first->deadline_ns <= weft_reactor_now_ns(ctrl->reactor))
		host_ctrl_broken(ctrl, -ETIMEDOUT, "%s: no answer in time", first->name);
	else
		watch(ctrl);
}

void host_admin_start(struct weft_ctrl *ctrl, struct host_admin *a, uint32_t timeout_ms)
{
	struct weft_slot *slot = ctrl->link && !ctrl->link->closing ? weft_link_take(ctrl->link) :
								      NULL;
	uint16_t cid;

	a->ctrl = ctrl;
	if (!slot) {
		a->done(a, -ECONNRESET);
		return;
	}
	cid = le16_to_cpu(slot->cmd.common.cid);
	slot->cmd = a->cmd;
	slot->cmd.common.cid = cpu_to_le16(cid);
	slot->iov = &a->iov;
	slot->data_len = (uint32_t)a->iov.iov_len;
	slot->user = a;
	a->deadline_ns = timeout_ms ? weft_reactor_now_ns(ctrl->reactor) +
					      timeout_ms * UINT64_C(1000000) :
				      0;
	weft_list_push(&ctrl->admin_flying, &a->link);
	weft_link_submit(ctrl->link, slot);
	watch(ctrl);
}

static void on_ready(struct weft_link *link)
{
	host_setup_start(link->user);
}

static void on_done(struct weft_link *link, struct weft_slot *slot)
{
	struct host_admin *a = slot->user;

	if (!host_status(&slot->cqe) && slot->moved != slot->data_len && !a->inexact) {
		weft_link_close(link, -EPROTO, "%s: success, but %u of %u bytes moved", a->name,
				slot->moved, slot->data_len);
		return; /* it goes with the connection */
	}
	a->cqe = slot->cqe;
	if (slot->corrupt && !host_status(&slot->cqe))
		a->cqe.status = cpu_to_le16(SC_GENERIC(TRAN_TPORT_ERROR) << 1);
	weft_list_remove(&a->link);
	a->done(a, 0);
	watch(link->user);
	/* This slot is free when we return. */
	weft_reactor_defer(link->reactor, &((struct weft_ctrl *)link->user)->pump);
}

static void on_closed(struct weft_link *link)
{
	host_ctrl_link_closed(link->user);
}

const struct weft_link_ops host_admin_link_ops = {
	.ready = on_ready,
	.done = on_done,
	.closed = on_closed,
};

void host_admin_lost(struct weft_ctrl *ctrl)
{
	struct weft_list lost, *link;

	weft_timer_stop(ctrl->reactor, &ctrl->admin_timer);
	weft_list_init(&lost);
	weft_list_splice(&lost, &ctrl->admin_flying);
	while ((link = weft_list_pop(&lost))) {
		struct host_admin *a = container_of(link, struct host_admin, link);

		a->done(a, -ECONNRESET);
	}
}

static void pump_task(struct weft_task *task)
{
	host_admin_pump(container_of(task, struct weft_ctrl, pump));
}

void host_admin_init(struct weft_ctrl *ctrl)
{
	weft_list_init(&ctrl->admin_flying);
	weft_list_init(&ctrl->admin_waiting);
	ctrl->admin_timer.fn = on_timeout;
	weft_task_init(&ctrl->pump, pump_task);
}

/* --- callers' ---------------------------------------------------------------------------------------- */

enum { TRIES_MAX = 3 }; /* of a command that only looks and lost its connection */

struct user_admin {
	struct host_admin admin;
	struct weft_msg msg;
	int rc;
	unsigned tries;
	bool over;
};

static bool only_looks(const union nvme_sqe *cmd)
{
	switch (cmd->common.opcode) {
	case nvme_admin_identify:
	case nvme_admin_get_log_page:
	case nvme_admin_get_features:
		return true;
	default:
		return false;
	}
}

static void finish(struct user_admin *u, int rc)
{
	struct weft_ctrl *ctrl = u->admin.ctrl;

	pthread_mutex_lock(&ctrl->lock);
	u->rc = rc;
	u->over = true;
	pthread_cond_broadcast(&ctrl->changed);
	pthread_mutex_unlock(&ctrl->lock);
}

static bool is_late(const struct host_admin *a)
{
	return a->deadline_ns && a->deadline_ns <= weft_reactor_now_ns(a->ctrl->reactor);
}

static bool may_try_again(struct user_admin *u)
{
	return only_looks(&u->admin.cmd) && !is_late(&u->admin) && ++u->tries < TRIES_MAX &&
	       !u->admin.ctrl->stopping;
}

static void user_done(struct host_admin *a, int rc)
{
	struct weft_ctrl *ctrl = a->ctrl;
	struct user_admin *u = container_of(a, struct user_admin, admin);

	ctrl->admin_users--;
	if (rc < 0 && may_try_again(u)) {
		weft_list_push(&ctrl->admin_waiting, &a->link);
		return;
	}
	if (rc < 0 && is_late(a))
		rc = -ETIMEDOUT;
	finish(u, rc);
}

static bool takes_users(const struct weft_ctrl *ctrl)
{
	return ctrl->state == WEFT_LIVE && !ctrl->broken && ctrl->link && !ctrl->link->closing &&
	       ctrl->link->free && ctrl->admin_users < HOST_ADMIN_USER_MAX;
}

void host_admin_pump(struct weft_ctrl *ctrl)
{
	struct weft_list *link;

	while (takes_users(ctrl) && (link = weft_list_pop(&ctrl->admin_waiting))) {
		ctrl->admin_users++;
		host_admin_start(ctrl, container_of(link, struct host_admin, link),
				 ctrl->config.options.admin_ms);
	}
}

void host_admin_fail_waiting(struct weft_ctrl *ctrl, int rc)
{
	struct weft_list *link;

	while ((link = weft_list_pop(&ctrl->admin_waiting)))
		finish(container_of(link, struct user_admin, admin.link), rc);
}

static void on_msg(struct weft_msg *msg)
{
	struct user_admin *u = container_of(msg, struct user_admin, msg);
	struct weft_ctrl *ctrl = u->admin.ctrl;

	if (ctrl->state == WEFT_DEAD) {
		finish(u, -ENOTCONN);
		return;
	}
	weft_list_push(&ctrl->admin_waiting, &u->admin.link);
	host_admin_pump(ctrl);
}

static void run(struct weft_ctrl *ctrl, struct user_admin *u)
{
	u->admin.ctrl = ctrl;
	u->admin.done = user_done;
	u->msg.fn = on_msg;
	weft_reactor_post(ctrl->reactor, &u->msg);
	pthread_mutex_lock(&ctrl->lock);
	while (!u->over)
		pthread_cond_wait(&ctrl->changed, &ctrl->lock);
	pthread_mutex_unlock(&ctrl->lock);
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* @name NULL: somebody else's command, of which we know nothing. */
static int run_named(struct weft_ctrl *ctrl, const char *name, const union nvme_sqe *cmd, void *buf,
		     uint32_t length, uint64_t *result, struct weft_err *err)
{
	struct user_admin u = {
		.admin = { .cmd = *cmd, .iov = { buf, length }, .name = name, .inexact = !name },
	};
	struct weft_err why = { "" };
	uint16_t status;

	if (!name)
		name = u.admin.name = "admin command";
	if (length > WEFT_MDTS_BYTES)
		return weft_fail(err, -EMSGSIZE, "%s: more than %u bytes of data", name,
				 WEFT_MDTS_BYTES);
	if (!host_memory_is_plain(&u.admin.iov, 1))
		return weft_fail(err, -EOPNOTSUPP, "%s: its data cannot be in a device's memory",
				 name);
	if (nvme_cmd_direction(cmd) == NVME_DIR_TO_HOST && buf)
		memset(buf, 0, length);
	run(ctrl, &u);
	if (u.rc < 0) {
		weft_ctrl_state(ctrl, &why);
		return weft_fail(err, u.rc, "%s%s%s", starts_with(why.text, name) ? "" : name,
				 starts_with(why.text, name) ? "" : ": ",
				 why.text[0] ? why.text : strerror(-u.rc));
	}
	if (result)
		*result = le64_to_cpu(u.admin.cqe.result);
	status = host_status(&u.admin.cqe) & (0x7ff | SC_DNR);
	if (status)
		host_fail_status(err, name, status);
	return status;
}

int weft_admin(struct weft_ctrl *ctrl, const void *sqe, void *buf, uint32_t length,
	       uint64_t *result, struct weft_err *err)
{
	union nvme_sqe cmd;

	memcpy(&cmd, sqe, sizeof(cmd));
	return run_named(ctrl, NULL, &cmd, buf, length, result, err);
}

/* A positive status is -errno here: the caller asked for an answer, not for a command. */
static int negative(int rc)
{
	return rc > 0 ? weft_status_to_errno((uint16_t)rc) : rc;
}

int weft_identify(struct weft_ctrl *ctrl, uint8_t cns, uint32_t nsid, void *buf,
		  struct weft_err *err)
{
	union nvme_sqe cmd = { 0 };

	host_fill_identify(&cmd, cns, nsid);
	return negative(run_named(ctrl, "Identify", &cmd, buf, HOST_PAGE, NULL, err));
}

int weft_log_page(struct weft_ctrl *ctrl, uint8_t lid, uint32_t nsid, uint64_t offset, void *buf,
		  uint32_t length, struct weft_err *err)
{
	union nvme_sqe cmd = { 0 };

	if (!length || length % 4)
		return weft_fail(err, -EINVAL, "a log page is read in units of 4 bytes, not %u",
				 length);
	host_fill_log_page(&cmd, lid, nsid, offset, length);
	return negative(run_named(ctrl, "Get Log Page", &cmd, buf, length, NULL, err));
}
