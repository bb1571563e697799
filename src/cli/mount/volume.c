/* volume.c - a namespace that is used through all lives of a connection in which it is the same
 * one. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/mount/uplink.h"

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

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* Under uplink->lock. Others who have the namespace open may have written what was lost: until one of
 * them was told, who comes new is told, too. */
static void learn_from_others(struct weft_volume *volume)
{
	struct weft_volume *other;

	weft_list_for_each(other, &volume->uplink->volumes, link) {
		if (other->info.nsid != volume->info.nsid ||
		    !weft_ns_info_has_identity(&volume->info) ||
		    !weft_ns_info_same(&other->info, &volume->info))
			continue;
		volume->lost = most(volume->lost, other->lost);
		volume->told = most(volume->told, other->told);
		volume->gone |= other->gone;
	}
}

static int open_once(struct weft_uplink *uplink, uint32_t nsid, struct weft_volume *volume,
		     struct weft_err *err)
{
	int rc;

	pthread_rwlock_rdlock(&uplink->use);
	rc = weft_ns_open(uplink->line.ctrl, nsid, &volume->ns, err);
	if (!rc) {
		weft_ns_info(volume->ns, &volume->info);
		volume->last = volume->info;
		pthread_mutex_lock(&uplink->lock);
		learn_from_others(volume);
		weft_list_push(&uplink->volumes, &volume->link);
		pthread_mutex_unlock(&uplink->lock);
	}
	pthread_rwlock_unlock(&uplink->use);
	return rc;
}

int weft_volume_open(struct weft_uplink *uplink, uint32_t nsid, struct weft_volume **volume,
		     struct weft_err *err)
{
	_cleanup_(weft_freep) struct weft_volume *made = calloc(1, sizeof(*made));
	struct weft_err first = {};
	int rc;

	if (!made)
		return -ENOMEM;
	made->uplink = uplink;
	rc = open_once(uplink, nsid, made, &first);
	if (weft_uplink_try_again(uplink, rc))
		rc = open_once(uplink, nsid, made, err);
	if (rc < 0)
		return weft_fail(err, rc, "%s", first.text);
	*volume = take_ptr(&made);
	return 0;
}

void weft_volume_close(struct weft_volume *volume)
{
	struct weft_uplink *uplink = volume->uplink;

	pthread_mutex_lock(&uplink->lock);
	weft_list_remove(&volume->link);
	if (uplink->sought == volume)
		uplink->sought = NULL;
	if (volume->ns)
		weft_ns_close(volume->ns);
	if (volume->next)
		weft_ns_close(volume->next);
	pthread_mutex_unlock(&uplink->lock);
	free(volume);
}

void weft_volume_info(struct weft_volume *volume, struct weft_ns_info *info)
{
	pthread_rwlock_rdlock(&volume->uplink->use);
	if (volume->ns)
		weft_ns_info(volume->ns, info);
	else
		*info = volume->info;
	pthread_rwlock_unlock(&volume->uplink->use);
}

static bool is_there_now(struct weft_volume *volume, struct weft_ns_info *info)
{
	bool there;

	if (pthread_rwlock_tryrdlock(&volume->uplink->use))
		return false;
	there = volume->ns;
	if (there)
		weft_ns_info(volume->ns, info);
	pthread_rwlock_unlock(&volume->uplink->use);
	return there;
}

void weft_volume_glance(struct weft_volume *volume, struct weft_ns_info *info)
{
	bool now = is_there_now(volume, info);

	pthread_mutex_lock(&volume->uplink->lock);
	if (now)
		volume->last = *info;
	else
		*info = volume->last;
	pthread_mutex_unlock(&volume->uplink->lock);
}

/* The library follows what becomes of a namespace that is open. */
static bool is_seen(struct weft_ns *ns)
{
	struct weft_ns_path paths[WEFT_PATHS_MAX];
	unsigned n = weft_ns_paths(ns, paths, WEFT_PATHS_MAX);

	for (unsigned i = 0; i < n && i < WEFT_PATHS_MAX; i++)
		if (paths[i].access != WEFT_ACCESS_UNKNOWN && paths[i].access != WEFT_ACCESS_ABSENT)
			return true;
	return false;
}

bool weft_volume_is_seen(struct weft_volume *volume)
{
	bool seen;

	pthread_rwlock_rdlock(&volume->uplink->use);
	seen = volume->ns && is_seen(volume->ns);
	pthread_rwlock_unlock(&volume->uplink->use);
	return seen;
}

bool weft_volume_is(struct weft_volume *volume, const struct weft_volume *other)
{
	bool there;

	pthread_rwlock_rdlock(&volume->uplink->use);
	there = volume->ns;
	pthread_rwlock_unlock(&volume->uplink->use);
	return there && weft_ns_info_same(&volume->info, &other->info);
}

/* @told of who flushes. 0: former lives have left nothing that is news to it; -ECONNRESET: it is not
 * known what became of what was written. */
static int check_unflushed(struct weft_volume *volume, unsigned *told, struct weft_err *err)
{
	if (volume->gone)
		return weft_fail(err, -ENOTRECOVERABLE,
				 "Flush: the controller died before what it was given was flushed, "
				 "and others do not share the namespace");
	if (*told == volume->lost)
		return 0;
	*told = volume->lost;
	volume->told = volume->lost;
	return weft_fail(err, -ECONNRESET,
			 "Flush: the controller died before what it was given was flushed; whether "
			 "that is durable is not known");
}

/* @told: of a flush; else NULL. */
static int run_once(struct weft_volume *volume, struct weft_cmd *cmd, unsigned *told,
		    struct weft_err *err)
{
	struct weft_uplink *uplink = volume->uplink;
	int rc = 0;

	pthread_rwlock_rdlock(&uplink->use);
	cmd->ns = volume->ns;
	if (!cmd->ns)
		rc = weft_fail(err, -ESTALE, "namespace %u is not what it was", volume->info.nsid);
	else if (told)
		rc = check_unflushed(volume, told, err);
	if (!rc)
		rc = weft_queues_run(uplink->line.queues, cmd, err);
	pthread_rwlock_unlock(&uplink->use);
	return rc;
}

/* -ENOTCONN: it was not carried out, and is by the next line. What may have been is not sent again,
 * and neither is what a controller has answered (it has a status): who asked for it has to know. */
static int run_through_lives(struct weft_volume *volume, struct weft_cmd *cmd, unsigned *told,
			     struct weft_err *err)
{
	struct weft_err first = {};
	int rc;

	volume->running++;
	rc = run_once(volume, cmd, told, &first);
	if (!cmd->status && weft_uplink_try_again(volume->uplink, rc)) {
		first = (struct weft_err){};
		rc = run_once(volume, cmd, told, &first);
	}
	volume->running--;
	if (rc < 0)
		weft_fail(err, rc, "%s", first.text);
	return rc == -ENOTCONN || rc == -ECONNRESET ? -EIO : rc;
}

int weft_volume_run(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err)
{
	assert(cmd->op != WEFT_FLUSH);
	return run_through_lives(volume, cmd, NULL, err);
}

int weft_volume_flush(struct weft_volume *volume, unsigned *told, struct weft_err *err)
{
	struct weft_cmd cmd = { .op = WEFT_FLUSH };

	return run_through_lives(volume, &cmd, told, err);
}

unsigned weft_volume_told(struct weft_volume *volume)
{
	return volume->told;
}

unsigned weft_volume_extents(struct weft_volume *volume, uint64_t offset, uint64_t length,
			     struct weft_ns_extent *extents, unsigned max)
{
	int n = -ESTALE;

	pthread_rwlock_rdlock(&volume->uplink->use);
	if (volume->ns)
		n = weft_ns_extents(volume->ns, offset, length, extents, max, NULL);
	pthread_rwlock_unlock(&volume->uplink->use);
	if (n > 0)
		return (unsigned)n;
	extents[0] = (struct weft_ns_extent){ length, true };
	return 1;
}
