/* volume_conn.c - a volume connection: it reconnects with a new controller when the old one is
 * dead.
 *
 *   I/O ─▶ controller ─▶ -ENOTCONN: dead ─▶ connect, open the volumes' namespaces ─▶ replace ─▶ I/O
 *             ▲                                    │ fails: -EIO; not again for RETRY_MS
 *             └────────────────────────────────────┘
 *
 * The library reconnects by itself, and gives up after loss_timeout, for good. A program would get
 * an error and go on to its next file; a mount or a server has to be there when the target is back.
 *
 * Writes that a dead controller had completed and not flushed are not forgotten: the volume reports
 * them to the next flush.
 *
 * Invariant: a volume's namespace belongs to the present controller and is the same as at first, or
 * there is none. */
#include "volume/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#define RETRY_MS 1000

/* --- a controller ----------------------------------------------------------------------------- */

static void ctrl_close(struct weft_volume_ctrl *vctrl)
{
	weft_queue_pool_close(take_ptr(&vctrl->queues));
	weft_disconnect(take_ptr(&vctrl->ctrl));
}

static int watch_event_fd(struct weft_volume_conn *conn, int fd, struct weft_err *err)
{
	struct epoll_event readable = { .events = EPOLLIN };

	if (epoll_ctl(conn->epoll_fd, EPOLL_CTL_ADD, fd, &readable) < 0)
		return weft_fail(err, -errno, "epoll: %s", strerror(errno));
	return 0;
}

static int ctrl_open(struct weft_volume_conn *conn, struct weft_volume_ctrl *vctrl,
		     struct weft_err *err)
{
	struct weft_ctrl_info info;
	int rc;

	*vctrl = (struct weft_volume_ctrl){};
	rc = weft_connect(conn->uri, conn->options, &vctrl->ctrl, err);
	if (rc < 0)
		return rc;
	weft_ctrl_info(vctrl->ctrl, &info);
	if (!info.discovery)
		rc = weft_queue_pool_open(vctrl->ctrl, &vctrl->queues, err);
	if (!rc)
		rc = watch_event_fd(conn, weft_ctrl_event_fd(vctrl->ctrl), err);
	if (rc < 0)
		ctrl_close(vctrl);
	return rc;
}

/* --- the next controller ---------------------------------------------------------------------- */

/* NULL: it does not exist, is another one, or cannot be identified. */
static struct weft_ns *reopen_ns(struct weft_ctrl *ctrl, const struct weft_ns_info *wanted)
{
	struct weft_ns_info info;
	struct weft_ns *ns;

	if (!weft_ns_info_has_identity(wanted) || weft_ns_open(ctrl, wanted->nsid, &ns, NULL) < 0)
		return NULL;
	weft_ns_info(ns, &info);
	if (weft_ns_info_same(&info, wanted))
		return ns;
	weft_ns_close(ns);
	return NULL;
}

/* Volumes that were opened are behind those that were not. False: all were. */
static bool next_volume_to_reopen(struct weft_volume_conn *conn, struct weft_ns_info *wanted)
{
	struct weft_volume *volume;
	bool found;

	pthread_mutex_lock(&conn->lock);
	volume = container_of(conn->volumes.next, struct weft_volume, link);
	found = !weft_list_empty(&conn->volumes) && volume->reopen_pass != conn->reopen_pass;
	if (found) {
		assert(!conn->reopening);
		volume->reopen_pass = conn->reopen_pass;
		weft_list_remove(&volume->link);
		weft_list_push(&conn->volumes, &volume->link);
		conn->reopening = volume;
		*wanted = volume->info;
	}
	pthread_mutex_unlock(&conn->lock);
	return found;
}

/* The volume may have been closed meanwhile. */
static void set_next_ns(struct weft_volume_conn *conn, struct weft_ns *ns)
{
	struct weft_volume *volume;

	pthread_mutex_lock(&conn->lock);
	volume = take_ptr(&conn->reopening);
	assert(!volume || !volume->next_ns);
	if (volume)
		volume->next_ns = take_ptr(&ns);
	pthread_mutex_unlock(&conn->lock);
	weft_ns_close(ns);
}

/* A target that was away for so long may have lost its power, and with it what its cache held. The
 * next controller does not know of that: its Flush would succeed. */
static void note_unflushed(struct weft_volume *volume)
{
	struct weft_ns_info info;

	weft_ns_info(volume->ns, &info);
	volume->unflushed_losses += info.unflushed;
	volume->unflushed_gone |= info.unflushed && !info.shared;
}

/* All I/O of a dead controller fails, but for writes that its target may still carry out: these end
 * when it cannot any more, and until then the controller is not replaced. */
static void switch_ctrl(struct weft_volume_conn *conn, struct weft_volume_ctrl *vctrl)
{
	struct weft_volume_ctrl old = conn->vctrl;
	struct weft_volume *volume;

	assert(old.ctrl && vctrl->ctrl != old.ctrl);
	pthread_rwlock_wrlock(&conn->ctrl_lock);
	pthread_mutex_lock(&conn->lock);
	conn->vctrl = *vctrl;
	weft_list_for_each(volume, &conn->volumes, link) {
		if (volume->ns) {
			note_unflushed(volume);
			weft_ns_close(volume->ns);
		}
		volume->ns = take_ptr(&volume->next_ns);
	}
	pthread_mutex_unlock(&conn->lock);
	pthread_rwlock_unlock(&conn->ctrl_lock);
	eventfd_write(conn->replaced_fd, 1);
	ctrl_close(&old);
}

static void reopen_all_ns(struct weft_volume_conn *conn, struct weft_ctrl *ctrl)
{
	struct weft_ns_info wanted;

	/* After this every namespace that was opened on the dead controller is on the list. */
	pthread_rwlock_wrlock(&conn->ctrl_lock);
	conn->reopen_pass++;
	pthread_rwlock_unlock(&conn->ctrl_lock);
	while (next_volume_to_reopen(conn, &wanted))
		set_next_ns(conn, reopen_ns(ctrl, &wanted));
}

static void close_next_ns(struct weft_volume_conn *conn)
{
	struct weft_volume *volume;

	pthread_mutex_lock(&conn->lock);
	weft_list_for_each(volume, &conn->volumes, link) {
		if (volume->next_ns)
			weft_ns_close(take_ptr(&volume->next_ns));
	}
	pthread_mutex_unlock(&conn->lock);
}

/* If the connection breaks meanwhile, it is not known which namespaces exist: try again later. */
static bool replace_ctrl(struct weft_volume_conn *conn)
{
	struct weft_volume_ctrl vctrl;

	assert(!conn->closed);
	if (ctrl_open(conn, &vctrl, NULL) < 0)
		return false;
	reopen_all_ns(conn, vctrl.ctrl);
	if (weft_ctrl_state(vctrl.ctrl, NULL) == WEFT_LIVE) {
		switch_ctrl(conn, &vctrl);
		return true;
	}
	close_next_ns(conn);
	ctrl_close(&vctrl);
	return false;
}

static enum weft_state ctrl_state(struct weft_volume_conn *conn)
{
	enum weft_state state;

	pthread_rwlock_rdlock(&conn->ctrl_lock);
	state = weft_ctrl_state(conn->vctrl.ctrl, NULL);
	pthread_rwlock_unlock(&conn->ctrl_lock);
	return state;
}

/* I/O that had no path for too long (fast_io_fail) fails with -EIO also if the controller is dead;
 * it has no status. */
static bool failed_as_ctrl_dead(struct weft_volume_conn *conn, int rc)
{
	return rc == -ENOTCONN || (rc == -EIO && ctrl_state(conn) == WEFT_DEAD);
}

bool weft_volume_conn_replace_if_dead(struct weft_volume_conn *conn, int rc)
{
	bool again;

	if (!failed_as_ctrl_dead(conn, rc) || pthread_mutex_trylock(&conn->replace_lock))
		return false;
	again = ctrl_state(conn) != WEFT_DEAD;
	if (!again && weft_monotonic_ms() - conn->replace_tried_ms >= RETRY_MS) {
		again = replace_ctrl(conn);
		conn->replace_tried_ms = weft_monotonic_ms();
	}
	pthread_mutex_unlock(&conn->replace_lock);
	return again;
}

/* --- the connection --------------------------------------------------------------------------- */

static void conn_init(struct weft_volume_conn *conn)
{
	pthread_rwlockattr_t attr;

	/* Prefer writers: threads whose I/O fails would keep out the one that replaces the
	 * controller. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&conn->ctrl_lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	pthread_mutex_init(&conn->lock, NULL);
	pthread_mutex_init(&conn->replace_lock, NULL);
	weft_list_init(&conn->volumes);
}

static int open_events(struct weft_volume_conn *conn, struct weft_err *err)
{
	conn->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	conn->replaced_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (conn->epoll_fd < 0 || conn->replaced_fd < 0)
		return weft_fail(err, -errno, "eventfd: %s", strerror(errno));
	return watch_event_fd(conn, conn->replaced_fd, err);
}

void weft_volume_conn_free(struct weft_volume_conn *conn)
{
	assert(weft_list_empty(&conn->volumes) && !conn->reopening && !conn->vctrl.ctrl);
	weft_closep(&conn->epoll_fd);
	weft_closep(&conn->replaced_fd);
	pthread_mutex_destroy(&conn->replace_lock);
	pthread_mutex_destroy(&conn->lock);
	pthread_rwlock_destroy(&conn->ctrl_lock);
	free(conn);
}

int weft_volume_conn_open(const char *uri, const struct weft_options *options,
			  struct weft_volume_conn **conn, struct weft_err *err)
{
	struct weft_volume_conn *made = calloc(1, sizeof(*made));
	int rc;

	if (!made)
		return -ENOMEM;
	made->uri = uri;
	made->options = options;
	conn_init(made);
	rc = open_events(made, err);
	if (rc == 0)
		rc = ctrl_open(made, &made->vctrl, err);
	if (rc < 0) {
		weft_volume_conn_free(made);
		return rc;
	}
	weft_ctrl_info(made->vctrl.ctrl, &made->first_info);
	*conn = made;
	return 0;
}

void weft_volume_conn_close(struct weft_volume_conn *conn)
{
	struct weft_volume *volume;
	bool last;

	if (!conn)
		return;
	assert(!conn->closed);
	pthread_mutex_lock(&conn->lock);
	weft_list_for_each(volume, &conn->volumes, link) {
		if (volume->ns)
			weft_ns_close(take_ptr(&volume->ns));
	}
	pthread_mutex_unlock(&conn->lock);
	ctrl_close(&conn->vctrl);
	pthread_mutex_lock(&conn->lock);
	conn->closed = true;
	last = weft_list_empty(&conn->volumes);
	pthread_mutex_unlock(&conn->lock);
	if (last)
		weft_volume_conn_free(conn);
}

const struct weft_ctrl_info *weft_volume_conn_info(const struct weft_volume_conn *conn)
{
	return &conn->first_info;
}

int weft_volume_conn_event_fd(const struct weft_volume_conn *conn)
{
	return conn->epoll_fd;
}

static int list_once(struct weft_volume_conn *conn, uint32_t *nsids, unsigned max,
		     struct weft_err *err)
{
	int rc;

	pthread_rwlock_rdlock(&conn->ctrl_lock);
	rc = weft_ns_list(conn->vctrl.ctrl, nsids, max, err);
	pthread_rwlock_unlock(&conn->ctrl_lock);
	return rc;
}

int weft_volume_conn_list_ns(struct weft_volume_conn *conn, uint32_t *nsids, unsigned max,
			     struct weft_err *err)
{
	struct weft_err first = {};
	int rc = list_once(conn, nsids, max, &first);

	if (weft_volume_conn_replace_if_dead(conn, rc))
		return list_once(conn, nsids, max, err);
	return rc < 0 ? weft_fail(err, rc, "%s", first.text) : rc;
}

/* A new connection has no event that it is live. */
static bool was_replaced(struct weft_volume_conn *conn, struct weft_event *event)
{
	eventfd_t times;

	*event = (struct weft_event){ .kind = WEFT_EVENT_STATE, .state = WEFT_LIVE };
	return !eventfd_read(conn->replaced_fd, &times);
}

bool weft_volume_conn_next_event(struct weft_volume_conn *conn, struct weft_event *event)
{
	bool found;

	if (was_replaced(conn, event))
		return true;
	pthread_rwlock_rdlock(&conn->ctrl_lock);
	found = weft_ctrl_next_event(conn->vctrl.ctrl, event);
	pthread_rwlock_unlock(&conn->ctrl_lock);
	return found;
}

bool weft_volume_conn_is_live(struct weft_volume_conn *conn)
{
	bool live;

	if (pthread_rwlock_tryrdlock(&conn->ctrl_lock))
		return false;
	live = weft_ctrl_state(conn->vctrl.ctrl, NULL) == WEFT_LIVE;
	pthread_rwlock_unlock(&conn->ctrl_lock);
	return live;
}

void weft_volume_conn_for_each(struct weft_volume_conn *conn,
			       void (*look)(void *arg, const struct weft_volume_view *view),
			       void *arg)
{
	struct weft_volume *volume;

	pthread_rwlock_rdlock(&conn->ctrl_lock);
	pthread_mutex_lock(&conn->lock);
	weft_list_for_each(volume, &conn->volumes, link) {
		const struct weft_volume_view view = { .user = volume->user,
						       .ctrl = conn->vctrl.ctrl,
						       .ns = volume->ns,
						       .nr_running = volume->nr_running };

		look(arg, &view);
	}
	pthread_mutex_unlock(&conn->lock);
	pthread_rwlock_unlock(&conn->ctrl_lock);
}
