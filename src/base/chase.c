/* chase.c - follow a path name by name, as the kernel does, and check who owns each step.
 *
 *   /srv/link/a      /srv is a folder ─▶ link is a link ─▶ what it says, then a ─▶ …
 *                          └────────────────┴── each is judged by the folder that it was found in
 *
 * Each name is opened (O_PATH) in the descriptor of its folder, and what was opened is judged. If
 * another user renames a folder of ours and puts something else under its old name, nothing
 * changes: the walk goes on in the folder that it has open, and so does everything that is done at
 * its end.
 *
 * Invariant: no path is given to the kernel, only single names. */
#include "base/chase.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LINKS_MAX = 40 }; /* as the kernel's */

struct walk {
	struct weft_chased *at; /* how far the walk has come */
	const char *named;      /* by the user */
	char rest[PATH_MAX];    /* what is left to follow */
	char cwd[PATH_MAX];     /* the working directory, of a relative path */
	bool from_cwd;          /* the walk began there; false: at the root */
	unsigned links;
	struct weft_err *err;
};

/* --- who could have put it there -------------------------------------------------------------- */

static int fail_untrusted(const struct walk *walk, const char *what, const char *why)
{
	return weft_fail(
		walk->err, -EPERM,
		"%.150s: %.150s %s, and everybody can write to the folder that it is in; use "
		"another folder, or remove it",
		walk->named, strcmp(what, walk->named) ? what : "it", why);
}

static bool is_ours(const struct stat *st)
{
	return !st->st_uid || st->st_uid == geteuid();
}

/* Whether only root and this user can put something else in the place of @st. An ACL that lets
 * others write shows as the group's bit. */
static bool is_fixed(const struct stat *st, const struct stat *folder)
{
	bool shared = folder->st_mode & (S_IWGRP | S_IWOTH);

	return is_ours(folder) && (!shared || (folder->st_mode & S_ISVTX && is_ours(st)));
}

/* @st is of @path, which is in @folder. */
static int check_owner(const struct walk *walk, const char *path, const struct stat *st,
		       const struct stat *folder)
{
	char why[64];

	walk->at->fixed &= is_fixed(st, folder);
	if (!(folder->st_mode & S_IWOTH))
		return 0;
	if (st->st_uid && st->st_uid != geteuid() && st->st_uid != folder->st_uid) {
		snprintf(why, sizeof(why), "belongs to user %u", st->st_uid);
		return fail_untrusted(walk, path, why);
	}
	if (S_ISREG(st->st_mode) && st->st_nlink > 1)
		return fail_untrusted(walk, path, "has another name as well");
	return 0;
}

/* --- one name --------------------------------------------------------------------------------- */

/* Cuts the first name off the rest. "": there is none. */
static void next_name(struct walk *walk, char name[PATH_MAX])
{
	char *from = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(from, "/");

	memcpy(name, from, length);
	name[length] = '\0';
	memmove(walk->rest, from + length, strlen(from + length) + 1);
}

/* Takes @fd, which is in @folder or in no folder (-1). */
static int walk_move_to(struct walk *walk, int folder, int fd)
{
	struct weft_chased *at = walk->at;
	int rc = fd < 0 ? -errno : 0;

	if (at->dirfd != folder)
		weft_closep(&at->dirfd);
	if (at->fd != folder && at->fd != fd)
		weft_closep(&at->fd);
	at->dirfd = folder;
	at->fd = fd;
	return rc == 0 && fstat(fd, &at->st) < 0 ? -errno : rc;
}

static int go_to_cwd(struct walk *walk)
{
	strcpy(walk->at->path, walk->cwd);
	walk->at->name[0] = '\0';
	walk->from_cwd = true;
	return walk_move_to(walk, -1, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static int go_to_root(struct walk *walk)
{
	walk->from_cwd = false;
	strcpy(walk->at->path, "/");
	walk->at->name[0] = '\0';
	return walk_move_to(walk, -1, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static void cut_last_name(char *path)
{
	char *slash = strrchr(path, '/');

	slash[slash == path] = '\0';
}

static int prepend_to_rest(struct walk *walk, const char *text)
{
	char rest[PATH_MAX];

	strcpy(rest, walk->rest);
	return snprintf(walk->rest, PATH_MAX, "%s%s", text, rest) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* The part of @path below @folder; NULL: it is not below it. */
static const char *path_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	length -= folder[length - 1] == '/';
	return !strncmp(path, folder, length) && strchr("/", path[length]) ? path + length : NULL;
}

/* Starts again from the beginning, and judges again: ".." of a folder that was moved meanwhile is
 * wherever its owner moved it. What is above the working directory is below the root. The path does
 * not say what is above the folder that a magic link leads to. */
static int go_up(struct walk *walk)
{
	char folder[PATH_MAX];
	const char *down;
	int rc;

	if (walk->at->is_magic_link)
		return weft_fail(walk->err, -EINVAL,
				 "%.300s: \"..\" after a link of /proc is not followed; name the "
				 "folder that it leads to",
				 walk->named);
	strcpy(folder, walk->at->path);
	cut_last_name(folder);
	down = walk->from_cwd ? path_below(folder, walk->cwd) : NULL;
	rc = prepend_to_rest(walk, down ? down : folder);
	if (rc < 0)
		return rc;
	return down ? go_to_cwd(walk) : go_to_root(walk);
}

/* As a folder first: that triggers an automount. */
static int open_name(int folder, const char *name)
{
	int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 && errno == ENOTDIR ? openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) :
					    fd;
}

static int go_down(struct walk *walk, const char *name)
{
	struct weft_chased *at = walk->at;
	size_t length = strlen(at->path);

	length -= at->path[length - 1] == '/';
	if (strlen(name) > NAME_MAX || length + 1 + strlen(name) >= PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(at->path + length, PATH_MAX - length, "/%s", name);
	strcpy(at->name, name);
	return walk_move_to(walk, at->fd, open_name(at->fd, name));
}

/* Magic links of /proc do not say where they lead to; only the kernel makes them. */
static bool is_in_procfs(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

static int follow_magic_link(struct walk *walk)
{
	struct weft_chased *at = walk->at;

	at->is_magic_link = true;
	at->fixed = false;
	return walk_move_to(walk, at->dirfd, openat(at->dirfd, at->name, O_PATH | O_CLOEXEC));
}

static int follow_link(struct walk *walk)
{
	struct weft_chased *at = walk->at;
	char text[PATH_MAX];
	ssize_t length;
	int rc;

	if (is_in_procfs(at->fd))
		return follow_magic_link(walk);
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	length = readlinkat(at->fd, "", text, sizeof(text) - 1);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	rc = prepend_to_rest(walk, text);
	if (rc < 0)
		return rc;
	if (text[0] == '/')
		return go_to_root(walk);
	cut_last_name(at->path);
	at->name[0] = '\0';
	return walk_move_to(walk, -1, take_fd(&at->dirfd));
}

static int follow_name(struct walk *walk, const char *name)
{
	const struct stat folder = walk->at->st;
	int rc;

	if (!S_ISDIR(folder.st_mode))
		return -ENOTDIR;
	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, ".."))
		return go_up(walk);
	walk->at->is_magic_link = false;
	rc = go_down(walk, name);
	if (rc == 0)
		rc = check_owner(walk, walk->at->path, &walk->at->st, &folder);
	return rc == 0 && S_ISLNK(walk->at->st.st_mode) ? follow_link(walk) : rc;
}

/* --- the walk --------------------------------------------------------------------------------- */

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* false: @fd was at the root, or in a folder that this user may not search. */
static bool open_parent(int *fd, struct stat *st)
{
	const struct stat was = *st;
	int up = openat(*fd, "..", O_PATH | O_CLOEXEC);

	weft_closep(fd);
	*fd = up;
	return up >= 0 && fstat(up, st) == 0 && !is_same_inode(st, &was);
}

/* The folders above the working directory count, too, as far up as this user may go. They are found
 * by "..", not by name: a user may work in a folder that no path of his reaches. */
static int check_cwd_owners(const struct walk *walk)
{
	_cleanup_(weft_closep) int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, folder = walk->at->st;
	char path[PATH_MAX];
	int rc;

	strcpy(path, walk->cwd);
	do {
		st = folder;
		if (!open_parent(&fd, &folder)) {
			walk->at->fixed &= fd >= 0; /* else it is not known what is above */
			return 0;
		}
		rc = check_owner(walk, path, &st, &folder);
		cut_last_name(path);
	} while (rc == 0);
	return rc;
}

static int start_walk_at_cwd(struct walk *walk)
{
	int rc;

	if (!getcwd(walk->cwd, sizeof(walk->cwd)))
		return -errno;
	rc = go_to_cwd(walk);
	return rc < 0 ? rc : check_cwd_owners(walk);
}

static int start_walk(struct walk *walk)
{
	if (!walk->named[0])
		return -ENOENT;
	if (snprintf(walk->rest, PATH_MAX, "%s", walk->named) >= PATH_MAX)
		return -ENAMETOOLONG;
	return walk->named[0] == '/' ? go_to_root(walk) : start_walk_at_cwd(walk);
}

/* The walk has come to a name that is not there, and is not the last. */
static int fail_no_folder(const struct walk *walk)
{
	return weft_fail(walk->err, -ENOENT,
			 "%.150s: there is no folder %.150s; make it first, or correct the path",
			 walk->named, walk->at->path);
}

/* Only the last name may be missing. One that ends in "/" is a folder's. */
static int finish_walk(struct walk *walk, int rc)
{
	bool slash = walk->named[strlen(walk->named) - 1] == '/';

	walk->at->exists = rc == 0;
	if (rc == -ENOENT && !walk->rest[0])
		return 0;
	if (rc == -ENOENT)
		return fail_no_folder(walk);
	if (rc < 0)
		return rc;
	return slash && !S_ISDIR(walk->at->st.st_mode) ? -ENOTDIR : 0;
}

static int walk_path(struct walk *walk)
{
	char name[PATH_MAX];
	int rc = start_walk(walk);

	if (rc < 0)
		return rc;
	while (rc == 0) {
		next_name(walk, name);
		if (!name[0])
			break;
		rc = follow_name(walk, name);
	}
	return finish_walk(walk, rc);
}

int weft_chase(struct weft_chased *chased, const char *path, struct weft_err *err)
{
	struct walk walk = { .at = chased, .named = path, .err = err };
	int rc;

	chased->dirfd = chased->fd = -1;
	chased->is_magic_link = false;
	chased->fixed = true;
	strcpy(chased->path, "/");
	rc = walk_path(&walk);
	if (rc < 0)
		weft_chased_close(chased);
	return rc;
}

void weft_chased_close(struct weft_chased *chased)
{
	if (!chased->path[0])
		return;
	weft_closep(&chased->fd);
	weft_closep(&chased->dirfd);
	chased->path[0] = '\0';
}

/* --- operations on what was found ------------------------------------------------------------- */

/* Opening a file never blocks: a FIFO may have been put in its place. */
static int open_flags(const struct weft_chased *chased)
{
	return (chased->is_magic_link ? 0 : O_NOFOLLOW) |
	       (S_ISREG(chased->st.st_mode) ? O_NONBLOCK : 0) | O_CLOEXEC | O_NOCTTY;
}

/* A link is not followed, and a FIFO that nobody reads cannot be written to. */
static int open_error(const struct weft_chased *chased, int error)
{
	bool exchanged = error == ELOOP || (error == ENXIO && S_ISREG(chased->st.st_mode));

	return exchanged ? -ESTALE : -error;
}

/* As the caller wants it from now on. */
static int set_flags(int fd, int flags)
{
	int now = fcntl(fd, F_GETFL);

	return now < 0 || fcntl(fd, F_SETFL, (now & ~O_NONBLOCK) | (flags & O_NONBLOCK)) < 0 ?
		       -errno :
		       0;
}

int weft_chased_open(const struct weft_chased *chased, int flags)
{
	_cleanup_(weft_closep) int fd = -1;
	struct stat st;
	int rc;

	if (chased->dirfd < 0)
		return -EISDIR;
	fd = openat(chased->dirfd, chased->name, flags | open_flags(chased));
	if (fd < 0)
		return open_error(chased, errno);
	if (fstat(fd, &st) < 0 || st.st_dev != chased->st.st_dev || st.st_ino != chased->st.st_ino)
		return -ESTALE;
	rc = set_flags(fd, flags);
	return rc < 0 ? rc : take_fd(&fd);
}

int weft_chased_create(const struct weft_chased *chased, int flags, mode_t mode)
{
	int fd = openat(chased->dirfd, chased->name,
			flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, mode);

	return fd < 0 ? -errno : fd;
}

int weft_chase_or_create(const char *path, int flags, mode_t mode, struct weft_err *err)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	int rc = weft_chase(&at, path, err);

	if (rc == 0 && at.exists && !S_ISREG(at.st.st_mode))
		return weft_fail(err, -EINVAL, "%s: it is not a regular file", path);
	if (rc == 0)
		rc = at.exists ? weft_chased_open(&at, O_WRONLY | flags) :
				 weft_chased_create(&at, O_WRONLY | flags, mode);
	return rc < 0 ? weft_fail(err, rc, "%s: %s", path, strerror(-rc)) : rc;
}

int weft_chased_mkdir(const struct weft_chased *chased, mode_t mode)
{
	return mkdirat(chased->dirfd, chased->name, mode) < 0 ? -errno : 0;
}

int weft_chased_unlink(const struct weft_chased *chased)
{
	return unlinkat(chased->dirfd, chased->name, 0) < 0 ? -errno : 0;
}

int weft_chased_sync_dir(const struct weft_chased *chased)
{
	_cleanup_(weft_closep) int fd = openat(chased->dirfd, ".",
					       O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* The kernel has neither bindat() nor connectat(): if another user could change the path, a link of
 * /proc leads to the folder. */
int weft_chased_addr(const struct weft_chased *chased, struct sockaddr_un *addr)
{
	int length;

	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (chased->fixed && strlen(chased->path) < sizeof(addr->sun_path)) {
		strcpy(addr->sun_path, chased->path);
		return 0;
	}
	length = snprintf(addr->sun_path, sizeof(addr->sun_path), "/proc/self/fd/%d/%s",
			  chased->dirfd, chased->name);
	return length < (int)sizeof(addr->sun_path) ? 0 : -ENAMETOOLONG;
}
