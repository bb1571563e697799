/* unix_listen.c - listen on a Unix socket at a path where a living process, a dead one's socket or
 * a plain file may be.
 *
 *   folder ─▶ socket, mode 0600 ─▶ bind ──────────────────────────▶ listen
 *                                   └ in use ─▶ does anyone answer? ─▶ refuse
 *                                                └ no ─▶ unlink ─▶ bind again */
#include "daemon/control/socket.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/chase.h"
#include "base/cleanup.h"

#define HANGUP_MS 1000

/* In /tmp anybody could have made it first. */
static int check_folder(const struct weft_chased *at, struct weft_err *err)
{
	char path[PATH_MAX];
	struct stat st;

	if (fstat(at->dirfd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return weft_fail(err, -EPERM,
				 "%s: not a folder that only this user can write; remove it, or "
				 "choose another place with --control PATH",
				 dirname(strcpy(path, at->path)));
	return 0;
}

static int make_folder_of(const char *path, struct weft_err *err)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int rc;

	assert(path[0] == '/');
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
	rc = weft_chase(&at, dir, err);
	if (rc == 0 && !at.exists)
		rc = weft_chased_mkdir(&at, 0700);
	if (rc < 0 && rc != -EEXIST)
		return weft_fail(err, rc,
				 "control socket: cannot create %s: %s; choose another place with "
				 "--control PATH",
				 dir, strerror(-rc));
	return 0;
}

/* A dead process's connection is closed without a byte: the kernel takes a moment to tear down an
 * io_uring, and closes its listeners only then. */
static bool is_hung_up(int fd)
{
	struct pollfd pollfd = { .fd = fd };
	char word;

	return poll(&pollfd, 1, HANGUP_MS) > 0 && recv(fd, &word, 1, 0) <= 0;
}

/* @pid: who listens, 0: not known. */
static bool is_answered(const struct sockaddr_un *addr, pid_t *pid)
{
	_cleanup_(weft_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
					       0);
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	*pid = 0;
	/* EAGAIN: its backlog is full, so it is alive. */
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return errno == EAGAIN;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		*pid = peer.pid;
	return !is_hung_up(fd);
}

static int fail_in_use(const char *path, pid_t pid, struct weft_err *err)
{
	char who[32] = "";

	if (pid > 0) /* 0: of another PID namespace */
		snprintf(who, sizeof(who), " (pid %d)", (int)pid);
	return weft_fail(err, -EADDRINUSE,
			 "control socket %s: another weft%s answers there; stop it, or choose "
			 "another place with --control PATH",
			 path, who);
}

static int remove_stale(const struct weft_chased *at, const struct sockaddr_un *addr,
			struct weft_err *err)
{
	struct stat st;
	pid_t pid;

	if (!fstatat(at->dirfd, at->name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISSOCK(st.st_mode))
		return weft_fail(err, -EEXIST,
				 "control socket %s: there is a file that is no socket", at->path);
	if (is_answered(addr, &pid))
		return fail_in_use(at->path, pid, err);
	return weft_chased_unlink(at);
}

static int bind_or_replace(int fd, const struct weft_chased *at, const struct sockaddr_un *addr,
			   struct weft_err *err)
{
	int rc;

	if (!bind(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	rc = remove_stale(at, addr, err);
	if (rc < 0)
		return rc;
	return bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;
}

/* bind() may have been given a path, which root or this user may have changed since it was chased.
 * A socket that was bound elsewhere is not removed: it is not known what else is there. */
static int check_bound(const struct weft_chased *at, const struct sockaddr_un *addr,
		       struct weft_err *err)
{
	struct stat here, there;

	if (!fstatat(at->dirfd, at->name, &here, AT_SYMLINK_NOFOLLOW) &&
	    !lstat(addr->sun_path, &there) && S_ISSOCK(here.st_mode) &&
	    here.st_dev == there.st_dev && here.st_ino == there.st_ino)
		return 0;
	return weft_fail(err, -ESTALE,
			 "control socket %s: its folder was moved while the socket was made; "
			 "remove what is there, and start again",
			 at->path);
}

static int bind_at(int fd, const struct weft_chased *at, struct weft_err *err)
{
	struct sockaddr_un addr;
	int rc = weft_chased_addr(at, &addr);

	if (rc == 0)
		rc = bind_or_replace(fd, at, &addr, err);
	return rc < 0 ? rc : check_bound(at, &addr, err);
}

static int chase_path(struct weft_chased *at, const char *path, bool make_dir, struct weft_err *err)
{
	int rc = make_dir ? make_folder_of(path, err) : 0;

	if (rc == 0)
		rc = weft_chase(at, path, err);
	return rc == 0 && make_dir ? check_folder(at, err) : rc;
}

int weft_unix_listen(const char *path, bool make_dir, struct weft_err *err)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	_cleanup_(weft_closep) int fd = -1;
	int rc = chase_path(&at, path, make_dir, err);

	if (rc < 0)
		return weft_fail(err, rc, "control socket %s: %s", path, strerror(-rc));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The file that bind() creates gets the mode of the socket. */
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return weft_fail(err, -errno, "control socket: %s", strerror(errno));
	rc = bind_at(fd, &at, err);
	if (!rc && listen(fd, 128) < 0)
		rc = -errno;
	if (rc < 0)
		return weft_fail(err, rc, "control socket %s: %s", path, strerror(-rc));
	return take_fd(&fd);
}

void weft_unix_remove(const char *path)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};

	if (!weft_chase(&at, path, NULL) && at.exists && S_ISSOCK(at.st.st_mode))
		weft_chased_unlink(&at);
}
