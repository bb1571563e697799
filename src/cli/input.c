/* input.c - a little data for a command, read as a whole before anything is sent: what is too long is
 * refused and not cut off. */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

/* One byte more than there is room for tells that there are more. */
static ssize_t read_all(int fd, char *buf, size_t max)
{
	size_t at = 0;
	char more;

	for (;;) {
		ssize_t got = read(fd, at < max ? buf + at : &more, at < max ? max - at : 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return (ssize_t)at;
		if (at == max)
			return -E2BIG;
		at += (size_t)got;
	}
}

int weft_input_read(const char *path, void *buf, size_t max, size_t *length, struct weft_err *err)
{
	bool is_stdin = !strcmp(path, "-");
	_cleanup_(weft_closep) int fd = is_stdin ? dup(STDIN_FILENO) :
						   open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -errno : read_all(fd, buf, max);

	if (got == -E2BIG)
		return weft_fail(err, -E2BIG, "%s has more than %zu bytes",
				 is_stdin ? "standard input" : path, max);
	if (got < 0)
		return weft_fail(err, (int)got, "%s: %s", is_stdin ? "standard input" : path,
				 strerror((int)-got));
	*length = (size_t)got;
	return 0;
}
