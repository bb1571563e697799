/* pidfile.c - the pid file: it has the pid of the process that serves, while it serves.
 *
 *   start: create it, empty ─▶ hosts are served: our pid ─▶ end: remove it
 *
 * The file is not locked: two processes have it at once only in a takeover, and the old one does
 * not touch it after "go" (takeover/export.c). A process that does not know that rule, an older
 * weft or an administrator, may still remove the file just before the new pid is in it.
 *
 * Invariant: when weft_pidfile_write() returns 0, the file that it wrote was the one at the
 * path. */
#include "daemon/pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/chase.h"
#include "base/cleanup.h"

#define MODE 0644 /* a pid is no secret */

enum { WRITES_MAX = 5 };

struct pid_text {
	char s[24];
};

static struct pid_text our_pid(void)
{
	struct pid_text pid_text;

	snprintf(pid_text.s, sizeof(pid_text.s), "%d\n", (int)getpid());
	return pid_text;
}

int weft_pidfile_check(const char *path, struct weft_err *err)
{
	struct weft_err why = { "" };
	_cleanup_(weft_closep) int fd = weft_chase_or_create(path, 0, MODE, &why);

	return fd < 0 ? weft_fail(err, fd, "--pidfile %s", why.text) : 0;
}

bool weft_pidfile_identify(const char *path, struct weft_pidfile_id *id)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};

	if (weft_chase(&at, path, NULL) < 0 || !at.exists)
		return false;
	snprintf(id->text, sizeof(id->text), "%ju:%ju", (uintmax_t)at.st.st_dev,
		 (uintmax_t)at.st.st_ino);
	return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A reader finds the old pid or the new one. */
static int write_pid(int fd)
{
	struct pid_text pid = our_pid();
	size_t length = strlen(pid.s), done = 0;

	while (done < length) {
		ssize_t n = pwrite(fd, pid.s + done, length - done, (off_t)done);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return ftruncate(fd, (off_t)length) < 0 ? -errno : 0;
}

static bool is_still_at(int fd, const char *path)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	struct stat st;

	return !fstat(fd, &st) && !weft_chase(&at, path, NULL) && at.exists &&
	       at.st.st_dev == st.st_dev && at.st.st_ino == st.st_ino;
}

/* -ESTALE: another process has removed or replaced the file meanwhile. */
static int write_pidfile_once(const char *path, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = weft_chase_or_create(path, 0, MODE, err);
	int rc = fd < 0 ? fd : write_pid(fd);

	if (rc < 0)
		return weft_fail(err, rc, "%s: %s", path, strerror(-rc));
	return is_still_at(fd, path) ? 0 : -ESTALE;
}

int weft_pidfile_write(const char *path, struct weft_err *err)
{
	int rc = -ESTALE;

	for (unsigned i = 0; i < WRITES_MAX && rc == -ESTALE; i++)
		rc = write_pidfile_once(path, err);
	return rc < 0 ? weft_fail(err, rc, "%s: another process keeps removing it", path) : 0;
}

/* --- removing --------------------------------------------------------------------------------- */

void weft_pidfile_remove(const char *path)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	_cleanup_(weft_closep) int fd = -1;
	struct pid_text found = { "" };

	if (weft_chase(&at, path, NULL) < 0 || !at.exists || !S_ISREG(at.st.st_mode))
		return;
	fd = weft_chased_open(&at, O_RDONLY);
	if (fd < 0 || read(fd, found.s, sizeof(found.s) - 1) < 0)
		return;
	if (!found.s[0] || !strcmp(found.s, our_pid().s))
		weft_chased_unlink(&at);
}
