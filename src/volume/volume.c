/* volume.c - a volume: a namespace that outlives its controller, as long as each new controller
 * shows the same one. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "base/err.h"
#include "volume/internal.h"

bool weft_ns_info_has_identity(const struct weft_ns_info *info)
{
	static const uint8_t none[16];

	return info->uuid[0] || memcmp(info->nguid, none, sizeof(info->nguid)) ||
	       memcmp(info->eui64, none, sizeof(info->eui64));
}

bool weft_ns_info_same(const struct weft_ns_info *x, const struct weft_ns_info *y)
{
	return !strcmp(x->uuid, y->uuid) && !memcmp(x->nguid, y->nguid, sizeof(x->nguid)) &&
	       !memcmp(x->eui64, y->eui64, sizeof(x->eui64)) && x->block_size == y->block_size;
}

static unsigned max_uint(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* Under conn->lock. Other volumes of the namespace may have written what was lost: until one of
 * them has reported it, a new volume reports it, too. */
static void copy_flush_state(struct weft_volume *volume)
{
	struct weft_volume *other;

	weft_list_for_each(other, &volume->conn->volumes, link) {
		if (other->info.nsid != volume->info.nsid ||
		    !weft_ns_info_has_identity(&volume->info) ||
		    !weft_ns_info_same(&other->info, &volume->info))
			continue;
		volume->unflushed_losses = max_uint(volume->unflushed_losses,
						    other->unflushed_losses);
		volume->flush_reported = max_uint(volume->flush_reported, other->flush_reported);
		volume->unflushed_gone |= other->unflushed_gone;
	}
}

static int open_once(struct weft_volume_conn *conn, uint32_t nsid, struct weft_volume *volume,
		     struct weft_err *err)
{
	int rc;

	pthread_rwlock_rdlock(&conn->ctrl_lock);
	rc = weft_ns_open(conn->vctrl.ctrl, nsid, &volume->ns, err);
	if (!rc) {
		weft_ns_info(volume->ns, &volume->info);
		volume->last_info = volume->info;
		pthread_mutex_lock(&conn->lock);
		copy_flush_state(volume);
		weft_list_push(&conn->volumes, &volume->link);
		pthread_mutex_unlock(&conn->lock);
	}
	pthread_rwlock_unlock(&conn->ctrl_lock);
	return rc;
}

int weft_volume_open(struct weft_volume_conn *conn, uint32_t nsid, struct weft_volume **volume,
		     struct weft_err *err)
{
	_cleanup_(weft_freep) struct weft_volume *made = calloc(1, sizeof(*made));
	struct weft_err first = {};
	int rc;

	if (!made)
		return -ENOMEM;
	made->conn = conn;
	made->can_zero = conn->first_info.can_zero;
	rc = open_once(conn, nsid, made, &first);
	if (weft_volume_conn_replace_if_dead(conn, rc))
		rc = open_once(conn, nsid, made, err);
	if (rc < 0)
		return weft_fail(err, rc, "%s", first.text);
	weft_range_locks_init(&made->write_locks);
	*volume = take_ptr(&made);
	return 0;
}

void weft_volume_close(struct weft_volume *volume)
{
	struct weft_volume_conn *conn = volume->conn;
	bool last;

	assert(!volume->nr_running);
	pthread_mutex_lock(&conn->lock);
	weft_list_remove(&volume->link);
	last = conn->closed && weft_list_empty(&conn->volumes);
	if (conn->reopening == volume)
		conn->reopening = NULL;
	if (volume->ns)
		weft_ns_close(volume->ns);
	if (volume->next_ns)
		weft_ns_close(volume->next_ns);
	pthread_mutex_unlock(&conn->lock);
	weft_range_locks_destroy(&volume->write_locks);
	free(volume);
	if (last)
		weft_volume_conn_free(conn);
}

void weft_volume_set_user(struct weft_volume *volume, void *user)
{
	pthread_mutex_lock(&volume->conn->lock);
	volume->user = user;
	pthread_mutex_unlock(&volume->conn->lock);
}

/* Without a namespace, the volume is as it was when somebody last looked. */
static void info_keep_or_recall(struct weft_volume *volume, bool now, struct weft_ns_info *info)
{
	pthread_mutex_lock(&volume->conn->lock);
	if (now)
		volume->last_info = *info;
	else
		*info = volume->last_info;
	pthread_mutex_unlock(&volume->conn->lock);
}

void weft_volume_info(struct weft_volume *volume, struct weft_ns_info *info)
{
	bool there;

	pthread_rwlock_rdlock(&volume->conn->ctrl_lock);
	there = volume->ns;
	if (there)
		weft_ns_info(volume->ns, info);
	pthread_rwlock_unlock(&volume->conn->ctrl_lock);
	info_keep_or_recall(volume, there, info);
}

static bool info_if_present(struct weft_volume *volume, struct weft_ns_info *info)
{
	bool there;

	if (pthread_rwlock_tryrdlock(&volume->conn->ctrl_lock))
		return false;
	there = volume->ns;
	if (there)
		weft_ns_info(volume->ns, info);
	pthread_rwlock_unlock(&volume->conn->ctrl_lock);
	return there;
}

void weft_volume_info_nowait(struct weft_volume *volume, struct weft_ns_info *info)
{
	info_keep_or_recall(volume, info_if_present(volume, info), info);
}

/* The library follows the changes of an open namespace. */
static bool ns_is_visible(struct weft_ns *ns)
{
	struct weft_ns_path paths[WEFT_PATHS_MAX];
	unsigned n = weft_ns_paths(ns, paths, WEFT_PATHS_MAX);

	for (unsigned i = 0; i < n && i < WEFT_PATHS_MAX; i++)
		if (paths[i].access != WEFT_ACCESS_UNKNOWN && paths[i].access != WEFT_ACCESS_ABSENT)
			return true;
	return false;
}

bool weft_volume_is_visible(struct weft_volume *volume)
{
	bool seen;

	pthread_rwlock_rdlock(&volume->conn->ctrl_lock);
	seen = volume->ns && ns_is_visible(volume->ns);
	pthread_rwlock_unlock(&volume->conn->ctrl_lock);
	return seen;
}

bool weft_volume_is_same(struct weft_volume *volume, const struct weft_volume *other)
{
	bool there;

	pthread_rwlock_rdlock(&volume->conn->ctrl_lock);
	there = volume->ns;
	pthread_rwlock_unlock(&volume->conn->ctrl_lock);
	return there && weft_ns_info_same(&volume->info, &other->info);
}

/* 0: no loss of a former controller is left to report; -ECONNRESET: it is not known whether writes
 * are durable. @flush_reported: how far the caller was told. */
static int check_unflushed(struct weft_volume *volume, unsigned *flush_reported,
			   struct weft_err *err)
{
	if (volume->unflushed_gone)
		return weft_fail(err, -ENOTRECOVERABLE,
				 "Flush: the controller died before what it was given was flushed, "
				 "and others do not share the namespace");
	assert(*flush_reported <= volume->unflushed_losses);
	if (*flush_reported == volume->unflushed_losses)
		return 0;
	*flush_reported = volume->unflushed_losses;
	volume->flush_reported = volume->unflushed_losses;
	return weft_fail(err, -ECONNRESET,
			 "Flush: the controller died before what it was given was flushed; whether "
			 "that is durable is not known");
}

/* @flush_reported: of a flush; else NULL. */
static int run_once(struct weft_volume *volume, struct weft_cmd *cmd, unsigned *flush_reported,
		    struct weft_err *err)
{
	struct weft_volume_conn *conn = volume->conn;
	int rc = 0;

	pthread_rwlock_rdlock(&conn->ctrl_lock);
	cmd->ns = volume->ns;
	if (!cmd->ns)
		rc = weft_fail(err, -ESTALE, "namespace %u is not what it was", volume->info.nsid);
	else if (flush_reported)
		rc = check_unflushed(volume, flush_reported, err);
	if (!rc)
		rc = weft_queue_pool_run(conn->vctrl.queues, cmd, err);
	pthread_rwlock_unlock(&conn->ctrl_lock);
	return rc;
}

/* After -ENOTCONN the command was not carried out, and is sent to the next controller. A command
 * that may have been carried out is not sent again, nor is one that a controller has answered (it
 * has a status): the caller has to know. */
static int run_with_reconnect(struct weft_volume *volume, struct weft_cmd *cmd,
			      unsigned *flush_reported, struct weft_err *err)
{
	struct weft_err first = {};
	int rc;

	volume->nr_running++;
	rc = run_once(volume, cmd, flush_reported, &first);
	if (!cmd->status && weft_volume_conn_replace_if_dead(volume->conn, rc)) {
		first = (struct weft_err){};
		rc = run_once(volume, cmd, flush_reported, &first);
	}
	weft_count_down(volume->nr_running);
	if (rc < 0)
		weft_fail(err, rc, "%s", first.text);
	return rc == -ENOTCONN || rc == -ECONNRESET ? -EIO : rc;
}

int weft_volume_run(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err)
{
	assert(cmd->op != WEFT_FLUSH);
	return run_with_reconnect(volume, cmd, NULL, err);
}

int weft_volume_flush(struct weft_volume *volume, unsigned *flush_reported, struct weft_err *err)
{
	struct weft_cmd cmd = { .op = WEFT_FLUSH };

	return run_with_reconnect(volume, &cmd, flush_reported, err);
}

unsigned weft_volume_flush_reported(struct weft_volume *volume)
{
	return volume->flush_reported;
}

unsigned weft_volume_extents(struct weft_volume *volume, uint64_t offset, uint64_t length,
			     struct weft_ns_extent *extents, unsigned max)
{
	int n = -ESTALE;

	assert(length && max);
	pthread_rwlock_rdlock(&volume->conn->ctrl_lock);
	if (volume->ns)
		n = weft_ns_extents(volume->ns, offset, length, extents, max, NULL);
	pthread_rwlock_unlock(&volume->conn->ctrl_lock);
	if (n > 0)
		return (unsigned)n;
	extents[0] = (struct weft_ns_extent){ length, true };
	return 1;
}
