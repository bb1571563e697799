/* file_open.c - a state file is opened: made where there is none, joined, read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sync.h"
#include "store/file.h"

/* Made here or a moment ago by another: either way its name must survive before it is relied on. */
static int open_file(struct file_store *f, const char *path, struct weft_err *err)
{
	struct stat st;
	int rc;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return weft_fail(err, -EINVAL, "%s: it is not a regular file", path);
	f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	if (f->fd < 0)
		return weft_fail(err, -errno, "%s: cannot open it: %s", path, strerror(errno));
	if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode)) /* another one by now */
		return weft_fail(err, -EINVAL, "%s: it is not a regular file", path);
	if (st.st_mode & S_IRWXO)
		weft_warn("%s: every user may open it, and so lock it and stop all changes; take "
			  "that away (chmod o= %s)",
			  path, path);
	rc = weft_sync_name(path);
	return rc < 0 ? weft_fail(err, rc, "%s: cannot sync its directory: %s", path,
				  strerror(-rc)) :
			0;
}

static int join_busy(const char *path, const struct weft_store_options *options,
		     struct weft_err *err)
{
	if (options->nodes == 1)
		return weft_fail(err, -EBUSY,
				 "%s: another process has it open, and this subsystem is of no "
				 "cluster",
				 path);
	return weft_fail(err, -EBUSY,
			 "%s: another process has it open as node %u, or by itself, of no cluster",
			 path, options->node);
}

static int locks_apart(const char *path, const struct weft_store_options *options, unsigned hidden,
		       struct weft_err *err)
{
	if (hidden == options->node)
		return weft_fail(err, -EXDEV,
				 "%s: another process lives that is node %u, and its lock does not "
				 "show here: the file system does not share locks between the "
				 "machines or mounts of members; use one that does",
				 path, hidden);
	return weft_fail(err, -EXDEV,
			 "%s: node %u lives, and its lock does not show here: the file system does "
			 "not share locks between the machines or mounts of members; use one that "
			 "does",
			 path, hidden);
}

static int join_failed(const char *path, const struct weft_store_options *options, int rc,
		       unsigned hidden, struct weft_err *err)
{
	switch (rc) {
	case -EXDEV:
		return locks_apart(path, options, hidden, err);
	case -EBUSY:
		return join_busy(path, options, err);
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

/* It sees our lock as another process would. Where that is not to be had, less is seen. */
static int open_witness(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

void store_file_prepare(struct file_store *f, unsigned node, unsigned nodes)
{
	f->cycle = (struct store_cycle){
		.fd = f->fd,
		.witness = open_witness(f->fd),
		.path = f->path,
		.node = node,
		.nodes = nodes,
		.here = store_locks_here(f->fd),
		.remote = store_file_reaches_others(&f->store),
	};
	weft_list_init(&f->cycle.txns);
}

static int join(struct file_store *f, const struct weft_store_options *options,
		struct weft_err *err)
{
	struct store_records *nothing = store_records_new(0, 0, 0);
	unsigned hidden;
	int rc;

	if (!nothing)
		return -ENOMEM;
	store_file_prepare(f, options->node, options->nodes);
	f->cycle.records = nothing;
	rc = store_cycle_join(&f->cycle, &hidden);
	store_records_free(nothing);
	if (rc < 0)
		return join_failed(f->path, options, rc, hidden, err);
	f->store.records = take_ptr(&f->cycle.fresh);
	memcpy(f->store.members, f->cycle.members, sizeof(f->store.members));
	return 0;
}

int store_file_open(struct file_store *f, const struct weft_store_options *options,
		    const char *path, struct weft_err *err)
{
	int rc;

	f->path = strdup(path);
	if (!f->path)
		return -ENOMEM;
	if (options->heir) {
		f->store.records = store_records_new(0, 0, 0);
		return f->store.records ? 0 : -ENOMEM;
	}
	rc = open_file(f, path, err);
	return rc < 0 ? rc : join(f, options, err);
}
