/* listen.c - a listening Unix socket at a path that another, a dead one or a plain file may hold.
 *
 *   folder ─▶ socket, mode 0600 ─▶ bind ──────────────────────────▶ listen
 *                                   └ in use ─▶ does anyone answer? ─▶ refuse
 *                                                └ no ─▶ unlink ─▶ bind again */
#include "daemon/listen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"

#define HANGUP_MS 1000

/* In /tmp anybody could have made it first. */
static int check_dir(const char *dir, struct weft_err *err)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return weft_fail(err, -errno, "%s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return weft_fail(err, -EPERM,
				 "%s: not a folder that only this user can write; remove it, or "
				 "choose another place with --control PATH",
				 dir);
	return 0;
}

static int make_dir_of(const char *path, struct weft_err *err)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return weft_fail(err, -errno,
				 "control socket: cannot create %s: %s; choose another place with "
				 "--control PATH",
				 dir, strerror(errno));
	return check_dir(dir, err);
}

/* A connection to a process that died is hung up on without a word: the kernel takes a moment to
 * tear down an io_uring and lets go of its listeners only then. */
static bool is_hung_up(int fd)
{
	struct pollfd pollfd = { .fd = fd };
	char word;

	return poll(&pollfd, 1, HANGUP_MS) > 0 && recv(fd, &word, 1, 0) <= 0;
}

static bool is_answered(const struct sockaddr_un *addr)
{
	_cleanup_(weft_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
					       0);

	/* EAGAIN: its backlog is full, so it is alive. */
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return errno == EAGAIN;
	return !is_hung_up(fd);
}

static int remove_dead(const struct sockaddr_un *addr, struct weft_err *err)
{
	struct stat st;

	if (!lstat(addr->sun_path, &st) && !S_ISSOCK(st.st_mode))
		return weft_fail(err, -EEXIST,
				 "control socket %s: there is a file that is no socket",
				 addr->sun_path);
	if (is_answered(addr))
		return weft_fail(err, -EADDRINUSE,
				 "control socket %s: another weft answers there; stop it, or choose "
				 "another place with --control PATH",
				 addr->sun_path);
	return unlink(addr->sun_path) < 0 ? -errno : 0;
}

static int bind_at(int fd, const struct sockaddr_un *addr, struct weft_err *err)
{
	int rc;

	if (!bind(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	rc = remove_dead(addr, err);
	if (rc < 0)
		return rc;
	return bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;
}

int weft_unix_listen(const char *path, bool make_dir, struct weft_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_(weft_closep) int fd = -1;
	int rc = 0;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (make_dir)
		rc = make_dir_of(path, err);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The name that bind() makes gets the mode of the socket. */
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return weft_fail(err, -errno, "control socket: %s", strerror(errno));
	rc = bind_at(fd, &addr, err);
	if (!rc && listen(fd, 128) < 0)
		rc = -errno;
	if (rc < 0)
		return weft_fail(err, rc, "control socket %s: %s", path, strerror(-rc));
	return take_fd(&fd);
}
