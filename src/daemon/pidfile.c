#include "daemon/pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/chase.h"
#include "base/cleanup.h"

#define MODE 0644 /* a pid is no secret */

struct text {
	char s[24];
};

static struct text our_pid(void)
{
	struct text text;

	snprintf(text.s, sizeof(text.s), "%d\n", (int)getpid());
	return text;
}

int weft_pidfile_check(const char *path, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = weft_chase_or_make(path, 0, MODE, err);

	return fd < 0 ? take_fd(&fd) : 0;
}

/* A reader finds the old pid or the new one. */
int weft_pidfile_write(const char *path, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = weft_chase_or_make(path, 0, MODE, err);
	struct text pid = our_pid();
	ssize_t length = (ssize_t)strlen(pid.s);

	if (fd < 0)
		return take_fd(&fd);
	if (pwrite(fd, pid.s, (size_t)length, 0) != length || ftruncate(fd, length) < 0)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

void weft_pidfile_remove(const char *path)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	_cleanup_(weft_closep) int fd = -1;
	struct text found = { "" };

	if (weft_chase(&at, path, NULL) < 0 || !at.there || !S_ISREG(at.st.st_mode))
		return;
	fd = weft_chased_open(&at, O_RDONLY);
	if (fd < 0 || read(fd, found.s, sizeof(found.s) - 1) < 0)
		return;
	if (!found.s[0] || !strcmp(found.s, our_pid().s))
		weft_chased_remove(&at);
}
