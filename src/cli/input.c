/* input.c - a little data for a command, read as a whole before anything is sent: too much data is
 * refused and not cut off. */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

int weft_input_open(struct weft_input *input, const char *path, struct weft_err *err)
{
	bool is_stdin = !strcmp(path, "-");

	input->name = is_stdin ? "standard input" : path;
	input->fd = -1;
	if (is_stdin && isatty(STDIN_FILENO))
		return weft_fail(err, -EINVAL,
				 "standard input is a terminal; put a pipe or \"< FILE\" there");
	input->fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	return input->fd < 0 ? weft_fail(err, -errno, "%s: %s", input->name, strerror(errno)) : 0;
}

void weft_input_close(struct weft_input *input)
{
	if (input->fd >= 0)
		close(input->fd);
	input->fd = -1;
}

ssize_t weft_input_fill(struct weft_input *input, void *buf, size_t want, struct weft_err *err)
{
	size_t at = 0;

	while (at < want) {
		ssize_t got = read(input->fd, (char *)buf + at, want - at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return weft_fail(err, -errno, "%s: %s", input->name, strerror(errno));
		if (got == 0)
			break;
		at += (size_t)got;
	}
	return (ssize_t)at;
}

/* One byte more than there is room for tells that there are more. */
static int check_input_max(struct weft_input *input, size_t max, struct weft_err *err)
{
	char more;
	ssize_t got = weft_input_fill(input, &more, 1, err);

	if (got > 0)
		return weft_fail(err, -E2BIG, "%s has more than %zu bytes", input->name, max);
	return (int)got;
}

int weft_input_read(const char *path, void *buf, size_t max, size_t *length, struct weft_err *err)
{
	struct weft_input input;
	int rc = weft_input_open(&input, path, err);
	ssize_t got = 0;

	if (rc == 0) {
		got = weft_input_fill(&input, buf, max, err);
		rc = got < 0 ? (int)got : 0;
	}
	if (rc == 0 && (size_t)got == max)
		rc = check_input_max(&input, max, err);
	weft_input_close(&input);
	*length = rc == 0 ? (size_t)got : 0;
	return rc;
}
