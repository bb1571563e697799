/* end.c - what FROM and TO are: a URI is a namespace, "-" a stream; else the file system knows. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cp/internal.h"

bool weft_cp_is_uri(const char *text)
{
	return !strncasecmp(text, "nvme+", 5) || strstr(text, "://");
}

static bool is_stored(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISBLK(st->st_mode);
}

/* --- from ------------------------------------------------------------------------------------- */

static int from_stdin(struct cp *cp, struct cp_end **end, struct weft_err *err)
{
	if (isatty(STDIN_FILENO))
		return weft_fail(err, -EINVAL,
				 "standard input is a terminal; put a pipe or \"< FILE\" there");
	return weft_cp_stream(cp, STDIN_FILENO, "standard input", end, err);
}

static int from_path(struct cp *cp, const char *path, struct cp_end **end, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = -1;
	struct stat st;

	if (stat(path, &st) < 0)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return weft_fail(err, -EISDIR, "%s is a directory; name a file", path);
	if (is_stored(&st))
		return weft_cp_file_from(cp, path, end, err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	return weft_cp_stream(cp, take_fd(&fd), path, end, err);
}

int weft_cp_open_from(struct cp *cp, struct cp_end **end, struct weft_err *err)
{
	const char *from = cp->ask->from;

	*end = NULL;
	if (!strcmp(from, "-"))
		return from_stdin(cp, end, err);
	if (weft_cp_is_uri(from))
		return weft_cp_ns(cp, from, cp->ask->from_offset, end, err);
	return from_path(cp, from, end, err);
}

/* --- to --------------------------------------------------------------------------------------- */

static int to_stdout(struct cp *cp, struct cp_end **end, struct weft_err *err)
{
	if (cp->ask->hex)
		return weft_cp_hex(cp, end, err);
	if (isatty(STDOUT_FILENO))
		return weft_fail(err, -EINVAL,
				 "standard output is a terminal; put a pipe or \"> FILE\" there");
	return weft_cp_stream(cp, STDOUT_FILENO, "standard output", end, err);
}

static int to_path(struct cp *cp, const char *path, struct cp_end **end, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = -1;
	struct stat st;

	errno = 0;
	if (stat(path, &st) < 0 && errno != ENOENT)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (errno == ENOENT || is_stored(&st))
		return weft_cp_file_to(cp, path, end, err);
	if (S_ISDIR(st.st_mode))
		return weft_fail(err, -EISDIR, "%s is a directory; name a file in it", path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	return weft_cp_stream(cp, take_fd(&fd), path, end, err);
}

int weft_cp_open_to(struct cp *cp, struct cp_end **end, struct weft_err *err)
{
	const char *to = cp->ask->to;

	*end = NULL;
	if (!strcmp(to, "-"))
		return to_stdout(cp, end, err);
	if (weft_cp_is_uri(to))
		return weft_cp_ns(cp, to, cp->ask->to_offset, end, err);
	return to_path(cp, to, end, err);
}
