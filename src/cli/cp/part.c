#include "cli/cp/part.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"

int weft_part_place(struct cp_part *part, const char *path, const struct stat *old, bool force,
		    struct weft_err *err)
{
	if (old && !force)
		return weft_fail(err, -EEXIST, "%s is there already; --force replaces it", path);
	part->path = old ? realpath(path, NULL) : strdup(path);
	if (!part->path)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	part->replaces = old;
	part->force = force;
	part->mode = old ? old->st_mode & 07777 : 0;
	return 0;
}

/* Between open and lock another copy may have finished: what is open then is its file. */
static bool is_still(int fd, const char *name)
{
	struct stat open, there;

	return !fstat(fd, &open) && !stat(name, &there) && open.st_dev == there.st_dev &&
	       open.st_ino == there.st_ino;
}

/* Whoever holds the lock is the one who writes it. */
static int open_locked(const char *name, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);

	if (fd < 0)
		return weft_fail(err, -errno, "%s: %s", name, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_still(fd, name))
		return weft_fail(err, -EBUSY, "%s is being written by another copy", name);
	return take_fd(&fd);
}

int weft_part_make(struct cp_part *part, uint64_t size, struct weft_err *err)
{
	_cleanup_(weft_freep) char *name = NULL;
	_cleanup_(weft_closep) int fd = -1;

	if (asprintf(&name, "%s.part", part->path) < 0) {
		name = NULL;
		return weft_fail(err, -ENOMEM, "no memory");
	}
	fd = open_locked(name, err);
	if (fd < 0)
		return take_fd(&fd);
	part->name = take_ptr(&name);
	if (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    (part->replaces && fchmod(fd, part->mode) < 0))
		return weft_fail(err, -errno, "%s: %s", part->name, strerror(errno));
	return take_fd(&fd);
}

static int sync_folder(const char *path)
{
	_cleanup_(weft_freep) char *copy = strdup(path);
	_cleanup_(weft_closep) int fd = copy ? open(dirname(copy),
						    O_RDONLY | O_DIRECTORY | O_CLOEXEC) :
					       -1;

	return fd < 0 ? -1 : fsync(fd);
}

/* A file that came meanwhile is not replaced, unless that was asked for. A few file systems cannot
 * promise that. */
static int put_in_place(const struct cp_part *part)
{
	unsigned flags = part->force ? 0 : RENAME_NOREPLACE;
	int rc = renameat2(AT_FDCWD, part->name, AT_FDCWD, part->path, flags);

	return rc < 0 && errno == EINVAL ? rename(part->name, part->path) : rc;
}

int weft_part_complete(struct cp_part *part, int fd, uint64_t size, struct weft_err *err)
{
	if (ftruncate(fd, (off_t)size) < 0 || fsync(fd) < 0)
		return weft_fail(err, -errno, "%s: %s", part->name, strerror(errno));
	if (put_in_place(part) < 0)
		return weft_fail(err, -errno, "%s: %s", part->path,
				 errno == EEXIST ? "somebody else has made it meanwhile" :
						   strerror(errno));
	free(take_ptr(&part->name));
	if (sync_folder(part->path) < 0)
		return weft_fail(err, -errno, "%s: its folder cannot be flushed: %s", part->path,
				 strerror(errno));
	return 0;
}

void weft_part_remove(struct cp_part *part)
{
	if (part->name)
		unlink(part->name);
	free(take_ptr(&part->name));
}

void weft_part_free(struct cp_part *part)
{
	free(part->path);
	free(part->name);
}
