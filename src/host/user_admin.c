/* user_admin.c - weft_admin() and the like: the program's admin commands, 16 per path at most.
 * After a loss, commands that only read are sent again, on this path or another. The others fail:
 * whether they were executed is not known.
 *
 * One about a namespace that the program holds open goes to the path with the best access to it;
 * Get LBA Status goes to one that leads there now, or fails. */
#include <errno.h>
#include <string.h>

#include "base/count.h"
#include "host/internal.h"
#include "transport/bufs.h"

enum {
	TRIES_MAX = 3, /* of a command that only reads and lost its connection */
	ANY_PATH = -1,
};

struct user_admin {
	struct host_admin admin;
	struct weft_ctrl *ctrl;
	const struct weft_ns *ns; /* Get LBA Status is about; NULL: another command */
	int only;                 /* the id of the path that it is for, or ANY_PATH */
	struct weft_msg msg;
	int rc;
	unsigned tries;
	bool done;
};

static bool is_read_only_admin(const union nvme_sqe *cmd)
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

static void finish_user_admin(struct user_admin *u, int rc)
{
	struct weft_ctrl *ctrl = u->ctrl;

	assert_on(ctrl->reactor);
	assert(!u->admin.inflight && !u->done);
	weft_mutex_lock(&ctrl->lock);
	u->rc = rc;
	u->done = true;
	pthread_cond_broadcast(&ctrl->changed);
	weft_mutex_unlock(&ctrl->lock);
}

static bool admin_timed_out(const struct host_admin *a)
{
	return a->deadline_ns && a->deadline_ns <= weft_reactor_now_ns(a->path->reactor);
}

static bool may_try_again(struct user_admin *u)
{
	return is_read_only_admin(&u->admin.cmd) && !admin_timed_out(&u->admin) &&
	       ++u->tries < TRIES_MAX && !u->ctrl->stopping;
}

static void on_user_admin_done(struct host_admin *a, int rc)
{
	struct user_admin *u = container_of(a, struct user_admin, admin);

	weft_count_down(a->path->admin.nusers);
	if (rc < 0 && may_try_again(u)) {
		weft_list_push(&u->ctrl->admin_waiting, &a->link);
		return;
	}
	if (rc < 0 && admin_timed_out(a))
		rc = -ETIMEDOUT;
	finish_user_admin(u, rc);
}

/* --- about a namespace ------------------------------------------------------------------------ */

static enum host_access io_access_to(const struct host_path *path, const struct weft_ns *ns)
{
	enum host_access access = atomic_load(&ns->access[path->index]);

	return access == HOST_ACCESS_PERHAPS ? HOST_ACCESS_NONE : access;
}

static void on_ns_admin_done(struct host_admin *a, int rc)
{
	struct user_admin *u = container_of(a, struct user_admin, admin);

	weft_count_down(a->path->admin.nusers);
	if (rc == 0 && !io_access_to(a->path, u->ns)) /* the nsid may be another namespace's now */
		rc = -EAGAIN;
	finish_user_admin(u, rc < 0 && admin_timed_out(a) ? -ETIMEDOUT : rc);
}

/* A path that supports Get LBA Status may come. */
static bool lba_status_path_may_come(const struct weft_ctrl *ctrl)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		const struct host_path *path = ctrl->paths[i];

		if (path && (!host_path_is_connected(path) || path->assoc.traits.tells_allocated))
			return true;
	}
	return false;
}

static struct host_path *find_lba_status_path(const struct weft_ns *ns)
{
	enum host_access best = HOST_ACCESS_NONE;
	struct host_path *found = NULL;

	assert_on(ns->ctrl->reactor);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		struct host_path *path = ns->ctrl->paths[i];

		if (!path || !host_admin_has_room(path) || !path->assoc.traits.tells_allocated ||
		    io_access_to(path, ns) <= best)
			continue;
		best = io_access_to(path, ns);
		found = path;
	}
	return found;
}

static void on_ns_admin_msg(struct weft_msg *msg)
{
	struct user_admin *u = container_of(msg, struct user_admin, msg);
	struct host_path *path = find_lba_status_path(u->ns);

	if (!path) {
		finish_user_admin(u, lba_status_path_may_come(u->ctrl) ? -EAGAIN : -EOPNOTSUPP);
		return;
	}
	path->admin.nusers++;
	host_admin_start(path, &u->admin, path->config.options.admin_ms);
}

/* --- any other -------------------------------------------------------------------------------- */

/* The controller clears the Changed Namespace List log page when it is read. */
static bool reads_changed(const union nvme_sqe *cmd)
{
	return cmd->common.opcode == nvme_admin_get_log_page &&
	       (le32_to_cpu(cmd->common.cdw10) & 0xff) == NVME_LOG_LID_CHANGED_NS;
}

/* The access of each live path to the namespace with this id, if the program holds it open. */
static void read_access(struct weft_ctrl *ctrl, uint32_t nsid, enum host_access by[HOST_PATHS_MAX])
{
	struct host_ns_record *at;
	struct weft_ns *ns;

	memset(by, 0, HOST_PATHS_MAX * sizeof(*by));
	weft_mutex_lock(&ctrl->lock);
	at = host_ns_record_find(ctrl, nsid);
	if (at && !weft_list_empty(&at->open)) {
		ns = container_of(at->open.next, struct weft_ns, link);
		for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
			if (ctrl->paths[i] && ctrl->paths[i]->state == HOST_PATH_LIVE)
				by[i] = io_access_to(ctrl->paths[i], ns);
	}
	weft_mutex_unlock(&ctrl->lock);
}

/* The best path of those that have room; if all with access to its namespace are full, the command
 * waits for one of them. */
static struct host_path *find_best_path(struct weft_ctrl *ctrl, uint32_t nsid)
{
	enum host_access by[HOST_PATHS_MAX], best = HOST_ACCESS_NONE;
	struct host_path *found = NULL;

	read_access(ctrl, nsid, by);
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		best = by[i] > best ? by[i] : best;
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++) {
		if (!ctrl->paths[i] || !host_admin_has_room(ctrl->paths[i]) || (best && !by[i]) ||
		    (found && by[i] <= by[found->index]))
			continue;
		found = ctrl->paths[i];
	}
	return found;
}

static struct host_path *find_path_by_id(const struct weft_ctrl *ctrl, int id)
{
	for (unsigned i = 0; i < HOST_PATHS_MAX; i++)
		if (ctrl->paths[i] && ctrl->paths[i]->id == (unsigned)id)
			return ctrl->paths[i];
	return NULL;
}

/* false: it waits. A command whose only path is not live fails: then @path is NULL. */
static bool is_ready(struct user_admin *u, struct host_path **path)
{
	if (u->only == ANY_PATH) {
		*path = find_best_path(u->ctrl, le32_to_cpu(u->admin.cmd.common.nsid));
		return *path;
	}
	*path = find_path_by_id(u->ctrl, u->only);
	if (!*path || (*path)->state != HOST_PATH_LIVE)
		*path = NULL;
	return !*path || host_admin_has_room(*path);
}

static struct user_admin *next_ready(struct weft_ctrl *ctrl, struct host_path **path)
{
	struct host_admin *a;

	weft_list_for_each(a, &ctrl->admin_waiting, link) {
		struct user_admin *u = container_of(a, struct user_admin, admin);

		if (is_ready(u, path))
			return u;
	}
	return NULL;
}

void host_user_admin_pump(struct weft_ctrl *ctrl)
{
	struct host_path *path;
	struct user_admin *u;

	assert_on(ctrl->reactor);
	while ((u = next_ready(ctrl, &path))) {
		weft_list_remove(&u->admin.link);
		if (!path) {
			finish_user_admin(u, -ENOTCONN);
			continue;
		}
		path->admin.nusers++;
		path->aer.changed_read |= reads_changed(&u->admin.cmd);
		host_admin_start(path, &u->admin, path->config.options.admin_ms);
	}
}

void host_user_admin_fail_waiting(struct weft_ctrl *ctrl, int rc)
{
	struct weft_list *link;

	assert_on(ctrl->reactor);
	while ((link = weft_list_pop(&ctrl->admin_waiting)))
		finish_user_admin(container_of(link, struct user_admin, admin.link), rc);
}

static void on_user_admin_msg(struct weft_msg *msg)
{
	struct user_admin *u = container_of(msg, struct user_admin, msg);
	struct weft_ctrl *ctrl = u->ctrl;

	if (ctrl->pub.state == WEFT_DEAD) {
		finish_user_admin(u, -ENOTCONN);
		return;
	}
	weft_list_push(&ctrl->admin_waiting, &u->admin.link);
	host_user_admin_pump(ctrl);
}

static void run_user_admin(struct weft_ctrl *ctrl, struct user_admin *u)
{
	u->ctrl = ctrl;
	u->admin.done = u->ns ? on_ns_admin_done : on_user_admin_done;
	u->msg.fn = u->ns ? on_ns_admin_msg : on_user_admin_msg;
	weft_reactor_post(ctrl->reactor, &u->msg);
	weft_mutex_lock(&ctrl->lock);
	while (!u->done)
		weft_mutex_wait(&ctrl->lock, &ctrl->changed);
	weft_mutex_unlock(&ctrl->lock);
}

int host_ns_lba_status(struct weft_ns *ns, uint64_t slba, uint16_t blocks, void *buf,
		       uint32_t length)
{
	struct user_admin u = {
		.admin = { .iov = { buf, length }, .name = "Get LBA Status", .inexact = true },
		.ns = ns,
		.only = ANY_PATH,
	};
	uint16_t status;

	memset(buf, 0, length);
	host_fill_lba_status(&u.admin.cmd, ns->nsid, slba, blocks, length);
	run_user_admin(ns->ctrl, &u);
	if (u.rc < 0)
		return u.rc;
	status = host_status(&u.admin.cqe) & 0x7ff;
	return status >> 8 == NVME_SCT_PATH ? -EAGAIN : status ? -EIO : 0;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Runs @u->admin: its command, name and data. */
static int run_user_admin_checked(struct weft_ctrl *ctrl, struct user_admin *u,
				  struct weft_err *err)
{
	size_t length = u->admin.iov.iov_len;
	const char *name = u->admin.name;
	struct weft_err why = { "" };
	uint16_t status;

	if (length > WEFT_MDTS_BYTES)
		return weft_fail(err, -EMSGSIZE, "%s: more than %u bytes of data", name,
				 WEFT_MDTS_BYTES);
	if (!host_memory_is_plain(&u->admin.iov, 1))
		return weft_fail(err, -EOPNOTSUPP, "%s: its data cannot be in a device's memory",
				 name);
	if (nvme_cmd_direction(&u->admin.cmd) == NVME_DIR_TO_HOST && u->admin.iov.iov_base)
		memset(u->admin.iov.iov_base, 0, length);
	run_user_admin(ctrl, u);
	if (u->rc < 0) {
		weft_ctrl_state(ctrl, &why);
		return weft_fail(err, u->rc, "%s%s%s", starts_with(why.text, name) ? "" : name,
				 starts_with(why.text, name) ? "" : ": ",
				 why.text[0] ? why.text : strerror(-u->rc));
	}
	status = host_status(&u->admin.cqe) & (0x7ff | SC_DNR);
	if (status)
		host_fail_status(err, name, status);
	return status;
}

/* The program's command may be anything. */
int weft_admin_moved(struct weft_ctrl *ctrl, const void *sqe, void *buf, uint32_t length,
		     uint64_t *result, uint32_t *moved, struct weft_err *err)
{
	struct user_admin u = {
		.admin = { .iov = { buf, length }, .name = "admin command", .inexact = true },
		.only = ANY_PATH,
	};
	int rc;

	memcpy(&u.admin.cmd, sqe, sizeof(u.admin.cmd));
	rc = run_user_admin_checked(ctrl, &u, err);
	if (rc < 0)
		return rc;
	if (result)
		*result = le64_to_cpu(u.admin.cqe.result);
	if (moved)
		*moved = u.admin.moved;
	return rc;
}

int weft_admin(struct weft_ctrl *ctrl, const void *sqe, void *buf, uint32_t length,
	       uint64_t *result, struct weft_err *err)
{
	return weft_admin_moved(ctrl, sqe, buf, length, result, NULL, err);
}

/* A positive status is -errno here: the caller asked for an answer, not for a command. */
static int status_to_negative_errno(int rc)
{
	return rc > 0 ? weft_status_to_errno((uint16_t)rc) : rc;
}

static int identify_through(struct weft_ctrl *ctrl, int only, uint8_t cns, uint32_t nsid, void *buf,
			    struct weft_err *err)
{
	struct user_admin u = { .admin = { .iov = { buf, HOST_PAGE }, .name = "Identify" },
				.only = only };

	host_fill_identify(&u.admin.cmd, cns, nsid);
	return status_to_negative_errno(run_user_admin_checked(ctrl, &u, err));
}

int weft_identify(struct weft_ctrl *ctrl, uint8_t cns, uint32_t nsid, void *buf,
		  struct weft_err *err)
{
	return identify_through(ctrl, ANY_PATH, cns, nsid, buf, err);
}

int host_identify_through(struct weft_ctrl *ctrl, unsigned path, uint8_t cns, uint32_t nsid,
			  void *buf, struct weft_err *err)
{
	return identify_through(ctrl, (int)path, cns, nsid, buf, err);
}

int weft_log_page(struct weft_ctrl *ctrl, uint8_t lid, uint32_t nsid, uint64_t offset, void *buf,
		  uint32_t length, struct weft_err *err)
{
	struct user_admin u = { .admin = { .iov = { buf, length }, .name = "Get Log Page" },
				.only = ANY_PATH };

	if (!length || length % 4)
		return weft_fail(err, -EINVAL, "a log page is read in units of 4 bytes, not %u",
				 length);
	host_fill_log_page(&u.admin.cmd, lid, nsid, offset, length);
	return status_to_negative_errno(run_user_admin_checked(ctrl, &u, err));
}
