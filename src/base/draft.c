/* draft.c - a draft: a new file is written as FILE.part, and renamed when it is complete and
 * durable (draft.h).
 *
 * A process that is killed leaves its FILE.part behind, and the next one must tell it from a file
 * that a user happens to call so. Therefore a draft has a mark from its creation until it is
 * complete: the sticky bit. That bit means nothing on a regular file, every file system that keeps
 * modes keeps it, and nobody sets it by chance. Where modes are not kept, no FILE.part is taken for
 * a draft, and none is removed.
 *
 * The user knows only FILE, so errors name FILE, unless FILE.part itself is in the way.
 *
 * Invariant: a process writes only to a draft that it has created itself, and holds its lock. */
#include "base/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MARK       S_ISVTX
#define OWNER_ONLY 0600

static int fail_errno(struct weft_err *err, const char *path)
{
	int rc = -errno;

	return weft_fail(err, rc, "%s: %s", path, strerror(-rc));
}

int weft_draft_locate(struct weft_draft *draft, const char *path, bool replace,
		      struct weft_err *err)
{
	const struct weft_chased *at = &draft->at;
	int rc = weft_chase(&draft->at, path, err);

	if (rc == 0 && at->exists && !S_ISREG(at->st.st_mode))
		rc = weft_fail(err, -EINVAL, "%s is there, and is not a regular file", path);
	else if (rc < 0)
		weft_fail(err, rc, "%s: %s", path, strerror(-rc));
	else if (at->exists && !replace)
		rc = -EEXIST;
	if (rc < 0)
		weft_chased_close(&draft->at);
	draft->replaces = replace;
	draft->mode = at->exists ? at->st.st_mode & 0777 : OWNER_ONLY;
	return rc;
}

/* The umask can only be read by setting it; a file that another thread creates at that moment gets
 * fewer permissions than it should. */
void weft_draft_set_mode(struct weft_draft *draft, mode_t mode)
{
	mode_t mask = umask(077);

	umask(mask);
	if (!draft->at.exists)
		draft->mode = mode & ~mask;
}

static int stat_name(const struct weft_draft *draft, const char *name, struct stat *st)
{
	return fstatat(draft->at.dirfd, name, st, AT_SYMLINK_NOFOLLOW);
}

/* --- create ----------------------------------------------------------------------------------- */

/* Between open and lock another process may have removed it, or completed it. */
static bool is_same_file(const struct weft_draft *draft, int fd, const char *name)
{
	struct stat open, there;

	return !fstat(fd, &open) && !stat_name(draft, name, &there) &&
	       open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

static int lock_draft(const struct weft_draft *draft, int fd, const char *name,
		      struct weft_err *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_same_file(draft, fd, name))
		return weft_fail(err, -EBUSY, "%s is being written by another process",
				 draft->at.path);
	return 0;
}

/* A process that was killed in rename_into_place() leaves FILE as a second name of the draft. */
static bool is_abandoned_draft(const struct weft_draft *draft, const struct stat *st)
{
	struct stat file;
	bool linked = !stat_name(draft, draft->at.name, &file) && file.st_dev == st->st_dev &&
		      file.st_ino == st->st_ino;

	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1u + linked &&
	       (st->st_mode & 07777) == (MARK | OWNER_ONLY);
}

/* Removes a draft that was left and creates a new one: another process may have the old one
 * open. */
static int remove_abandoned(const struct weft_draft *draft, const char *name, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = -1;
	struct stat st;
	int rc;

	if (stat_name(draft, name, &st) < 0)
		return errno == ENOENT ? 0 : fail_errno(err, draft->at.path);
	if (!is_abandoned_draft(draft, &st))
		return weft_fail(
			err, -EEXIST,
			"%s.part is in the way: it is not what a copy that was killed leaves "
			"behind; rename it, or remove it",
			draft->at.path);
	fd = openat(draft->at.dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(err, draft->at.path);
	rc = lock_draft(draft, fd, name, err);
	if (rc == 0 && unlinkat(draft->at.dirfd, name, 0) < 0)
		return fail_errno(err, draft->at.path);
	return rc;
}

static int create_exclusive(const struct weft_draft *draft, const char *name)
{
	return openat(draft->at.dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
		      MARK | OWNER_ONLY);
}

static int create_draft_file(const struct weft_draft *draft, const char *name, struct weft_err *err)
{
	int fd = create_exclusive(draft, name), rc;

	if (fd < 0 && errno == EEXIST) {
		rc = remove_abandoned(draft, name, err);
		if (rc < 0)
			return rc;
		fd = create_exclusive(draft, name);
	}
	return fd < 0 ? fail_errno(err, draft->at.path) : fd;
}

int weft_draft_create(struct weft_draft *draft, struct weft_err *err)
{
	_cleanup_(weft_freep) char *name = NULL;
	_cleanup_(weft_closep) int fd = -1;
	int rc;

	if (asprintf(&name, "%s.part", draft->at.name) < 0) {
		name = NULL;
		return weft_fail(err, -ENOMEM, "no memory");
	}
	fd = create_draft_file(draft, name, err);
	rc = fd < 0 ? fd : lock_draft(draft, fd, name, err);
	if (rc < 0)
		return rc;
	draft->name = take_ptr(&name);
	return take_fd(&fd);
}

/* --- complete --------------------------------------------------------------------------------- */

/* The group bits of a file with an access control list are the list's mask: the permissions of its
 * group are in the list. */
static bool has_acl(const struct weft_draft *draft)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", draft->at.dirfd, draft->at.name);
	return lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

/* The mode of the replaced file was meant for that file's group, and not for another. */
static void keep_group(struct weft_draft *draft, int fd)
{
	if (!draft->at.exists)
		return;
	if (has_acl(draft) || fchown(fd, (uid_t)-1, draft->at.st.st_gid) < 0)
		draft->mode &= ~(mode_t)S_IRWXG;
}

/* A file system that has lost the mark keeps no modes: there is nothing to set. */
static int clear_mark(int fd, mode_t mode)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	return st.st_mode & MARK ? fchmod(fd, mode) : 0;
}

static bool has_no_links(int error)
{
	return error == EPERM || error == EOPNOTSUPP || error == ENOSYS;
}

/* Another process may create FILE between the check and the rename, and would lose it. The file
 * system has no call that prevents it; a complete copy is worth that risk. */
static int rename_if_free(const struct weft_draft *draft)
{
	struct stat st;

	if (stat_name(draft, draft->at.name, &st) == 0)
		errno = EEXIST;
	if (errno != ENOENT)
		return -1;
	return renameat(draft->at.dirfd, draft->name, draft->at.dirfd, draft->at.name);
}

/* A file that another process created meanwhile is not replaced, unless the caller asked for that.
 * A few file systems cannot rename that way, but can link only if the name is free; some of them
 * have no links either. */
static int rename_into_place(const struct weft_draft *draft)
{
	unsigned flags = draft->replaces ? 0 : RENAME_NOREPLACE;
	const char *name = draft->at.name;
	int folder = draft->at.dirfd;
	int rc = renameat2(folder, draft->name, folder, name, flags);

	if (rc == 0 || errno != EINVAL || !flags)
		return rc;
	if (linkat(folder, draft->name, folder, name, 0) == 0)
		return unlinkat(folder, draft->name, 0);
	return has_no_links(errno) ? rename_if_free(draft) : -1;
}

/* A process that is killed, or a loss of power, leaves
 *
 *   before it is in place     FILE as it was; FILE.part, marked: the next process removes it
 *   while it is linked        FILE, complete; FILE.part, its second name, marked: likewise
 *   until the mark is off     FILE, complete, for its owner alone, with a mark that nobody minds
 *   after that                FILE, complete, with its mode
 *
 * A reader sees the old file or all of the new one; others than its owner may be refused until the
 * mark is off. The folder is flushed before that: else the disk might have the file without its
 * mark under its old name, which nobody would remove. */
int weft_draft_commit(struct weft_draft *draft, int fd, struct weft_err *err)
{
	int rc;

	keep_group(draft, fd);
	if (fsync(fd) < 0)
		return fail_errno(err, draft->at.path);
	if (rename_into_place(draft) < 0)
		return weft_fail(err, -errno, "%s: %s", draft->at.path,
				 errno == EEXIST ? "somebody else has made it meanwhile" :
						   strerror(errno));
	free(take_ptr(&draft->name));
	rc = weft_chased_sync_dir(&draft->at);
	if (clear_mark(fd, draft->mode) < 0 || fsync(fd) < 0)
		return fail_errno(err, draft->at.path);
	if (rc < 0)
		return weft_fail(err, rc, "%s: its folder cannot be flushed: %s", draft->at.path,
				 strerror(-rc));
	return 0;
}

void weft_draft_discard(struct weft_draft *draft)
{
	if (draft->name)
		unlinkat(draft->at.dirfd, draft->name, 0);
	free(take_ptr(&draft->name));
}

static int write_all(struct weft_draft *draft, int (*write)(FILE *to, const void *what),
		     const void *what, struct weft_err *err)
{
	int fd = weft_draft_create(draft, err), rc;
	FILE *to = fd < 0 ? NULL : fdopen(fd, "w");

	if (!to) {
		weft_closep(&fd);
		return fd < 0 ? fd : -ENOMEM;
	}
	errno = 0;
	rc = write(to, what);
	if (!rc && (fflush(to) || ferror(to)))
		rc = errno ? -errno : -EIO;
	if (!rc)
		rc = weft_draft_commit(draft, fd, err);
	fclose(to);
	return rc;
}

int weft_draft_write(struct weft_draft *draft, int (*write)(FILE *to, const void *what),
		     const void *what, struct weft_err *err)
{
	int rc = write_all(draft, write, what, err);

	if (rc == 0)
		return 0;
	weft_draft_discard(draft);
	return weft_fail(err, rc, "%s: %s", draft->at.path, strerror(-rc));
}

void weft_draft_free(struct weft_draft *draft)
{
	weft_chased_close(&draft->at);
	free(draft->name);
}
