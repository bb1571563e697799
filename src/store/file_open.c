/* file_open.c - open a state file: create it if there is none, join, load it. On a thread that may
 * block. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/chase.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "store/file.h"

static int open_or_create_file(struct weft_chased *at, const char *path, struct weft_err *err)
{
	int rc = weft_chase(at, path, err);

	if (rc < 0)
		return rc;
	if (!at->exists)
		return weft_chased_create(at, O_RDWR, 0600);
	if (!S_ISREG(at->st.st_mode))
		return weft_fail(err, -EINVAL, "%s: it is not a regular file", path);
	return weft_chased_open(at, O_RDWR);
}

/* Created here, or a moment ago by another member: in both cases its name must be durable before it
 * is used. */
static int open_state_file(struct file_store *f, struct weft_err *err)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	const char *path = f->path;
	int rc;

	assert(f->fd < 0);
	f->fd = open_or_create_file(&at, path, err);
	if (f->fd == -EEXIST) { /* created by another member, just now */
		weft_chased_close(&at);
		f->fd = open_or_create_file(&at, path, err);
	}
	if (f->fd < 0)
		return weft_fail(err, f->fd, "%s: cannot open it: %s", path, strerror(-f->fd));
	if (at.exists && at.st.st_mode & S_IRWXO)
		weft_warn("%s: every user may open it, and so lock it and stop all changes; take "
			  "that away (chmod o= %s)",
			  path, path);
	rc = weft_chased_sync_dir(&at);
	return rc < 0 ? weft_fail(err, rc, "%s: cannot sync its directory: %s", path,
				  strerror(-rc)) :
			0;
}

static int fail_join_busy(const struct file_store *f, struct weft_err *err)
{
	if (f->store.nodes == 1)
		return weft_fail(err, -EBUSY,
				 "%s: another process has it open, and this subsystem is of no "
				 "cluster",
				 f->path);
	return weft_fail(err, -EBUSY,
			 "%s: another process has it open as node %u, or by itself, of no cluster",
			 f->path, f->store.node);
}

static int fail_locks_not_shared(const struct file_store *f, unsigned hidden, struct weft_err *err)
{
	if (hidden == f->store.node)
		return weft_fail(err, -EXDEV,
				 "%s: another process lives that is node %u, and its lock does not "
				 "show here: the file system does not share locks between the "
				 "machines or mounts of members; use one that does",
				 f->path, hidden);
	return weft_fail(err, -EXDEV,
			 "%s: node %u lives, and its lock does not show here: the file system does "
			 "not share locks between the machines or mounts of members; use one that "
			 "does",
			 f->path, hidden);
}

static int fail_join(const struct file_store *f, int rc, unsigned hidden, struct weft_err *err)
{
	const char *path = f->path;

	switch (rc) {
	case -EXDEV:
		return fail_locks_not_shared(f, hidden, err);
	case -EBUSY:
		return fail_join_busy(f, err);
	case -EAGAIN:
		return weft_fail(err, -EBUSY,
				 "%s: another process has locked it and does not go on; see "
				 "whether one is stopped",
				 path);
	case -EPROTO:
		return weft_fail(
			err, rc,
			"%s: its members do not agree on how many they are; \"of\" must be the "
			"same for all",
			path);
	case -ECANCELED:
		return weft_fail(err, rc, "%s: joining was given up", path);
	case -EMEDIUMTYPE:
		return weft_fail(err, rc, "%s: it is not a state file of Weft", path);
	case -EUCLEAN:
		return weft_fail(err, rc,
				 "%s: both copies of the state in it are damaged; restore it, or "
				 "remove it to begin without any",
				 path);
	case -ENOLCK:
	case -ENOSYS:
	case -EOPNOTSUPP:
		return weft_fail(err, rc, "%s: its file system does not lock it: %s", path,
				 strerror(-rc));
	default:
		return weft_fail(err, rc, "%s: cannot use it: %s", path, strerror(-rc));
	}
}

/* A second open file description: it sees our lock as another process would. Without one, fewer
 * losses of the lock are noticed. */
static int open_lock_probe(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

void store_file_init_cycle(struct file_store *f)
{
	assert(f->fd >= 0 && f->cycle.lock_probe_fd < 0);
	f->cycle = (struct store_cycle){
		.fd = f->fd,
		.lock_probe_fd = open_lock_probe(f->fd),
		.path = f->path,
		.node = f->store.node,
		.nodes = f->store.nodes,
		.lock_domain = store_lock_domain(f->fd),
		.remote = store_file_on_shared_fs(&f->store),
		.cancelled = &f->store.cancelled,
	};
	weft_list_init(&f->cycle.txns);
}

int store_file_join(struct file_store *f, struct weft_err *err)
{
	unsigned hidden;
	int rc = open_state_file(f, err);

	if (rc < 0)
		return rc;
	store_file_init_cycle(f);
	f->cycle.records = f->store.records;
	rc = store_cycle_join(&f->cycle, &hidden);
	if (rc < 0)
		return fail_join(f, rc, hidden, err);
	store_records_free(f->store.records);
	f->store.records = take_ptr(&f->cycle.fresh);
	memcpy(f->store.members, f->cycle.members, sizeof(f->store.members));
	return 0;
}
