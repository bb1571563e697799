/* volume.c - a namespace that is used through all lives of a connection in which it is the same
 * one. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/mount/uplink.h"

bool weft_ns_info_same(const struct weft_ns_info *x, const struct weft_ns_info *y)
{
	return !strcmp(x->uuid, y->uuid) && !memcmp(x->nguid, y->nguid, sizeof(x->nguid)) &&
	       !memcmp(x->eui64, y->eui64, sizeof(x->eui64)) && x->block_size == y->block_size;
}

static int open_once(struct weft_uplink *uplink, uint32_t nsid, struct weft_volume *volume,
		     struct weft_err *err)
{
	int rc;

	pthread_rwlock_rdlock(&uplink->use);
	rc = weft_ns_open(uplink->line.ctrl, nsid, &volume->ns, err);
	if (!rc) {
		weft_ns_info(volume->ns, &volume->info);
		pthread_mutex_lock(&uplink->lock);
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

bool weft_volume_is(struct weft_volume *volume, const struct weft_volume *other)
{
	bool there;

	pthread_rwlock_rdlock(&volume->uplink->use);
	there = volume->ns;
	pthread_rwlock_unlock(&volume->uplink->use);
	return there && weft_ns_info_same(&volume->info, &other->info);
}

static int run_once(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err)
{
	struct weft_uplink *uplink = volume->uplink;
	int rc;

	pthread_rwlock_rdlock(&uplink->use);
	cmd->ns = volume->ns;
	if (cmd->ns)
		rc = weft_queues_run(uplink->line.queues, cmd, err);
	else
		rc = weft_fail(err, -ESTALE, "namespace %u is not what it was", volume->info.nsid);
	pthread_rwlock_unlock(&uplink->use);
	return rc;
}

/* What a write of the dead line may have done, doing it again does once more: see weft_submit(). */
int weft_volume_run(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err)
{
	struct weft_err first = {};
	int rc = run_once(volume, cmd, &first);

	if (weft_uplink_try_again(volume->uplink, rc)) {
		first = (struct weft_err){};
		rc = run_once(volume, cmd, &first);
	}
	if (rc < 0)
		weft_fail(err, rc, "%s", first.text);
	return rc == -ENOTCONN ? -EIO : rc;
}
