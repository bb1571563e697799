/* endpoint.c - endpoints: FROM and TO. A URI is a namespace, "-" a stream; for the rest the file
 * system decides. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cli/cp/internal.h"
#include "cli/host_options.h"

static bool is_stored(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISBLK(st->st_mode);
}

/* An endpoint with a known size begins at the offset; a pipe, and a file that does not exist yet,
 * at 0. */
static int begin_at(struct cp_endpoint *end, const char *option, uint64_t base,
		    struct weft_err *err)
{
	end->option = option;
	if (!base)
		return 0;
	if (end->size == CP_UNKNOWN)
		return weft_fail(err, -EINVAL,
				 "%s %" PRIu64 ": %s can only be %s from its "
				 "beginning on; leave the option out",
				 option, base, end->name,
				 strcmp(option, "--to-offset") ? "read" : "written");
	if (base > end->size)
		return weft_fail(err, -ERANGE,
				 "%s %" PRIu64 " is beyond the end of %s, which has %s", option,
				 base, end->name, weft_exact_text(end->size).s);
	end->base = base;
	end->size -= base;
	return 0;
}

/* --- from ------------------------------------------------------------------------------------- */

static int from_stdin(struct cp *cp, struct cp_endpoint **end, struct weft_err *err)
{
	if (isatty(STDIN_FILENO))
		return weft_fail(err, -EINVAL,
				 "standard input is a terminal; put a pipe or \"< FILE\" there");
	return weft_cp_stream(cp, STDIN_FILENO, "standard input", end, err);
}

static int from_path(struct cp *cp, const char *path, struct cp_endpoint **end,
		     struct weft_err *err)
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

static int open_from(struct cp *cp, struct cp_endpoint **end, struct weft_err *err)
{
	const char *from = cp->ask->from;

	if (!strcmp(from, "-"))
		return from_stdin(cp, end, err);
	if (weft_cli_is_uri(from))
		return weft_cp_ns(cp, from, end, err);
	return from_path(cp, from, end, err);
}

int weft_cp_open_from(struct cp *cp, struct cp_endpoint **end, struct weft_err *err)
{
	int rc;

	*end = NULL;
	rc = open_from(cp, end, err);
	return rc < 0 ? rc : begin_at(*end, "--offset", cp->ask->from_offset, err);
}

/* --- to --------------------------------------------------------------------------------------- */

static int to_stdout(struct cp *cp, struct cp_endpoint **end, struct weft_err *err)
{
	if (cp->ask->hex)
		return weft_cp_hex(cp, end, err);
	if (isatty(STDOUT_FILENO))
		return weft_fail(err, -EINVAL,
				 "standard output is a terminal; put a pipe or \"> FILE\" there");
	return weft_cp_stream(cp, STDOUT_FILENO, "standard output", end, err);
}

static int to_path(struct cp *cp, const char *path, struct cp_endpoint **end, struct weft_err *err)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	int rc = weft_chase(&at, path, err), fd;

	if (rc < 0)
		return weft_fail(err, rc, "%s: %s", path, strerror(-rc));
	if (!at.exists || is_stored(&at.st))
		return weft_cp_file_to(cp, path, &at, end, err);
	if (S_ISDIR(at.st.st_mode))
		return weft_fail(err, -EISDIR, "%s is a directory; name a file in it", path);
	fd = weft_chased_open(&at, O_WRONLY);
	if (fd < 0)
		return weft_fail(err, fd, "%s: %s", path, strerror(-fd));
	return weft_cp_stream(cp, fd, path, end, err);
}

static int open_to(struct cp *cp, struct cp_endpoint **end, struct weft_err *err)
{
	const char *to = cp->ask->to;

	if (!strcmp(to, "-"))
		return to_stdout(cp, end, err);
	if (weft_cli_is_uri(to))
		return weft_cp_ns(cp, to, end, err);
	return to_path(cp, to, end, err);
}

int weft_cp_open_to(struct cp *cp, struct cp_endpoint **end, struct weft_err *err)
{
	int rc;

	*end = NULL;
	rc = open_to(cp, end, err);
	return rc < 0 ? rc : begin_at(*end, cp->ask->to_option, cp->ask->to_offset, err);
}
