/* uplink.c - a controller that is replaced when it is dead.
 *
 *   I/O ─▶ line ─▶ -ENOTCONN: dead ─▶ connect, open every volume's namespace ─▶ a new line ─▶ I/O
 *            ▲                                    │ fails: -EIO; not again for RETRY_MS
 *            └────────────────────────────────────┘
 *
 * The library reconnects by itself, and gives up after loss_timeout, for good. A program would be
 * told once and go on to its next file; a mount or a server has to be there when the target is.
 *
 * What a controller has completed, and not flushed, when it dies is not forgotten with it: the volume
 * keeps that for who flushes next.
 *
 * Invariant: a volume's namespace belongs to the line in use and is what it was at first, or there
 * is none. */
#include "cli/mount/uplink.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

#define RETRY_MS 1000

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- one life --------------------------------------------------------------------------------- */

static void line_close(struct weft_line *line)
{
	weft_queues_close(take_ptr(&line->queues));
	weft_disconnect(take_ptr(&line->ctrl));
}

static int also_tell(struct weft_uplink *uplink, int fd, struct weft_err *err)
{
	struct epoll_event readable = { .events = EPOLLIN };

	if (epoll_ctl(uplink->events, EPOLL_CTL_ADD, fd, &readable) < 0)
		return weft_fail(err, -errno, "epoll: %s", strerror(errno));
	return 0;
}

static int line_open(struct weft_uplink *uplink, struct weft_line *line, struct weft_err *err)
{
	struct weft_ctrl_info info;
	int rc;

	*line = (struct weft_line){};
	rc = weft_connect(uplink->uri, uplink->options, &line->ctrl, err);
	if (rc < 0)
		return rc;
	weft_ctrl_info(line->ctrl, &info);
	if (!info.discovery)
		rc = weft_queues_open(line->ctrl, &line->queues, err);
	if (!rc)
		rc = also_tell(uplink, weft_ctrl_event_fd(line->ctrl), err);
	if (rc < 0)
		line_close(line);
	return rc;
}

/* --- the next one ----------------------------------------------------------------------------- */

/* NULL: it is not there, or another one, or there is no telling. */
static struct weft_ns *find_again(struct weft_ctrl *ctrl, const struct weft_ns_info *wanted)
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

/* Those that were looked for are behind those that were not. False: all were. */
static bool seek_next(struct weft_uplink *uplink, struct weft_ns_info *wanted)
{
	struct weft_volume *volume;
	bool found;

	pthread_mutex_lock(&uplink->lock);
	volume = container_of(uplink->volumes.next, struct weft_volume, link);
	found = !weft_list_empty(&uplink->volumes) && volume->search != uplink->search;
	if (found) {
		volume->search = uplink->search;
		weft_list_remove(&volume->link);
		weft_list_push(&uplink->volumes, &volume->link);
		uplink->sought = volume;
		*wanted = volume->info;
	}
	pthread_mutex_unlock(&uplink->lock);
	return found;
}

/* Who sought it may have closed it meanwhile. */
static void take_in(struct weft_uplink *uplink, struct weft_ns *ns)
{
	struct weft_volume *volume;

	pthread_mutex_lock(&uplink->lock);
	volume = take_ptr(&uplink->sought);
	if (volume)
		volume->next = take_ptr(&ns);
	pthread_mutex_unlock(&uplink->lock);
	weft_ns_close(ns);
}

/* A target that was away for so long may have lost its power, and what its cache held with it. The
 * next line's controllers do not know what was in there: their Flush would succeed. */
static void note_unflushed(struct weft_volume *volume)
{
	struct weft_ns_info info;

	weft_ns_info(volume->ns, &info);
	volume->lost += info.unflushed;
	volume->gone |= info.unflushed && !info.shared;
}

/* All I/O of a dead line fails, but for writes that its target may still carry out: these end when it
 * cannot any more, and until then there is no next line. */
static void begin(struct weft_uplink *uplink, struct weft_line *line)
{
	struct weft_line old = uplink->line;
	struct weft_volume *volume;

	pthread_rwlock_wrlock(&uplink->use);
	pthread_mutex_lock(&uplink->lock);
	uplink->line = *line;
	weft_list_for_each(volume, &uplink->volumes, link) {
		if (volume->ns) {
			note_unflushed(volume);
			weft_ns_close(volume->ns);
		}
		volume->ns = take_ptr(&volume->next);
	}
	pthread_mutex_unlock(&uplink->lock);
	pthread_rwlock_unlock(&uplink->use);
	eventfd_write(uplink->begun, 1);
	line_close(&old);
}

static void find_all_again(struct weft_uplink *uplink, struct weft_ctrl *ctrl)
{
	struct weft_ns_info wanted;

	/* Whoever opened a namespace before the line died has it on the list after this. */
	pthread_rwlock_wrlock(&uplink->use);
	uplink->search++;
	pthread_rwlock_unlock(&uplink->use);
	while (seek_next(uplink, &wanted))
		take_in(uplink, find_again(ctrl, &wanted));
}

static void forget_all(struct weft_uplink *uplink)
{
	struct weft_volume *volume;

	pthread_mutex_lock(&uplink->lock);
	weft_list_for_each(volume, &uplink->volumes, link) {
		if (volume->next)
			weft_ns_close(take_ptr(&volume->next));
	}
	pthread_mutex_unlock(&uplink->lock);
}

/* A connection that breaks meanwhile does not tell which namespaces are there: next time. */
static bool replace(struct weft_uplink *uplink)
{
	struct weft_line line;

	if (line_open(uplink, &line, NULL) < 0)
		return false;
	find_all_again(uplink, line.ctrl);
	if (weft_ctrl_state(line.ctrl, NULL) == WEFT_LIVE) {
		begin(uplink, &line);
		return true;
	}
	forget_all(uplink);
	line_close(&line);
	return false;
}

static enum weft_state state_of(struct weft_uplink *uplink)
{
	enum weft_state state;

	pthread_rwlock_rdlock(&uplink->use);
	state = weft_ctrl_state(uplink->line.ctrl, NULL);
	pthread_rwlock_unlock(&uplink->use);
	return state;
}

/* I/O that had no path for too long (fast_io_fail) fails with -EIO also when the line is dead; it was
 * not answered. */
static bool is_of_the_dead(struct weft_uplink *uplink, int rc)
{
	return rc == -ENOTCONN || (rc == -EIO && state_of(uplink) == WEFT_DEAD);
}

bool weft_uplink_try_again(struct weft_uplink *uplink, int rc)
{
	bool again;

	if (!is_of_the_dead(uplink, rc) || pthread_mutex_trylock(&uplink->trying))
		return false;
	again = state_of(uplink) != WEFT_DEAD;
	if (!again && now_ms() - uplink->tried_ms >= RETRY_MS) {
		again = replace(uplink);
		uplink->tried_ms = now_ms();
	}
	pthread_mutex_unlock(&uplink->trying);
	return again;
}

/* --- the uplink ------------------------------------------------------------------------------- */

static void init(struct weft_uplink *uplink)
{
	pthread_rwlockattr_t attr;

	/* Threads whose I/O fails would keep the one out that changes that. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&uplink->use, &attr);
	pthread_rwlockattr_destroy(&attr);
	pthread_mutex_init(&uplink->lock, NULL);
	pthread_mutex_init(&uplink->trying, NULL);
	weft_list_init(&uplink->volumes);
}

static int open_events(struct weft_uplink *uplink, struct weft_err *err)
{
	uplink->events = epoll_create1(EPOLL_CLOEXEC);
	uplink->begun = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (uplink->events < 0 || uplink->begun < 0)
		return weft_fail(err, -errno, "eventfd: %s", strerror(errno));
	return also_tell(uplink, uplink->begun, err);
}

static void close_events(struct weft_uplink *uplink)
{
	weft_closep(&uplink->events);
	weft_closep(&uplink->begun);
}

int weft_uplink_open(struct weft_uplink *uplink, const char *uri,
		     const struct weft_options *options, struct weft_err *err)
{
	int rc;

	*uplink = (struct weft_uplink){ .uri = uri, .options = options };
	init(uplink);
	rc = open_events(uplink, err);
	if (rc == 0)
		rc = line_open(uplink, &uplink->line, err);
	if (rc < 0)
		close_events(uplink);
	else
		weft_ctrl_info(uplink->line.ctrl, &uplink->info);
	return rc;
}

void weft_uplink_close(struct weft_uplink *uplink)
{
	struct weft_volume *volume;

	if (!uplink->line.ctrl)
		return;
	pthread_mutex_lock(&uplink->lock);
	weft_list_for_each(volume, &uplink->volumes, link) {
		if (volume->ns)
			weft_ns_close(take_ptr(&volume->ns));
	}
	pthread_mutex_unlock(&uplink->lock);
	line_close(&uplink->line);
	close_events(uplink);
}

static int list_once(struct weft_uplink *uplink, uint32_t *nsids, unsigned max,
		     struct weft_err *err)
{
	int rc;

	pthread_rwlock_rdlock(&uplink->use);
	rc = weft_ns_list(uplink->line.ctrl, nsids, max, err);
	pthread_rwlock_unlock(&uplink->use);
	return rc;
}

int weft_uplink_list(struct weft_uplink *uplink, uint32_t *nsids, unsigned max,
		     struct weft_err *err)
{
	struct weft_err first = {};
	int rc = list_once(uplink, nsids, max, &first);

	if (weft_uplink_try_again(uplink, rc))
		return list_once(uplink, nsids, max, err);
	return rc < 0 ? weft_fail(err, rc, "%s", first.text) : rc;
}

/* A connection does not tell that it is live when it is made. */
static bool has_begun(struct weft_uplink *uplink, struct weft_event *event)
{
	eventfd_t times;

	*event = (struct weft_event){ .kind = WEFT_EVENT_STATE, .state = WEFT_LIVE };
	return !eventfd_read(uplink->begun, &times);
}

bool weft_uplink_next_event(struct weft_uplink *uplink, struct weft_event *event)
{
	bool found;

	if (has_begun(uplink, event))
		return true;
	pthread_rwlock_rdlock(&uplink->use);
	found = weft_ctrl_next_event(uplink->line.ctrl, event);
	pthread_rwlock_unlock(&uplink->use);
	return found;
}

/* Never waits: a line that is about to be replaced is not. */
bool weft_uplink_is_live(struct weft_uplink *uplink)
{
	bool live;

	if (pthread_rwlock_tryrdlock(&uplink->use))
		return false;
	live = weft_ctrl_state(uplink->line.ctrl, NULL) == WEFT_LIVE;
	pthread_rwlock_unlock(&uplink->use);
	return live;
}
