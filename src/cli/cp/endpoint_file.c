/* endpoint_file.c - an endpoint: a regular file or a block device. A new file is a draft first:
 * base/draft.h. A block device is written in place. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/draft.h"
#include "cli/cp/internal.h"

struct cp_file {
	struct cp_endpoint end;
	int fd;
	bool is_block;
	struct weft_draft draft; /* of a new file */
};

static struct cp_file *file_of(struct cp_endpoint *end)
{
	return (struct cp_file *)end;
}

static int xfer_fail(struct cp_xfer *xfer, const struct cp_endpoint *end, const char *doing,
		     uint64_t offset, int rc)
{
	return weft_fail(&xfer->err, rc, "%s: %s at %" PRIu64 ": %s", end->name, doing, offset,
			 strerror(-rc));
}

/* --- steps ------------------------------------------------------------------------------------ */

static int file_get(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	uint64_t offset = end->base + xfer->offset, got = 0;

	while (got < xfer->length) {
		ssize_t n = pread(file_of(end)->fd, xfer->buf + got, xfer->length - got,
				  (off_t)(offset + got));

		if (n == 0)
			return weft_fail(&xfer->err, -EIO,
					 "%s ended at %" PRIu64 ": it became shorter meanwhile",
					 end->name, offset + got);
		if (n < 0 && errno != EINTR)
			return xfer_fail(xfer, end, "read", offset + got, -errno);
		if (n > 0)
			got += (uint64_t)n;
	}
	return CP_DONE;
}

static int write_all(struct cp_endpoint *end, struct cp_xfer *xfer, const char *buf,
		     uint64_t length, uint64_t offset)
{
	uint64_t put = 0;

	while (put < length) {
		ssize_t n = pwrite(file_of(end)->fd, buf + put, length - put,
				   (off_t)(offset + put));

		if (n < 0 && errno != EINTR)
			return xfer_fail(xfer, end, "write", offset + put, -errno);
		if (n > 0)
			put += (uint64_t)n;
	}
	return CP_DONE;
}

static int file_put(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	return write_all(end, xfer, xfer->buf + xfer->at, xfer->run,
			 end->base + xfer->offset + xfer->at);
}

/* Writes zeroes piece by piece if the device cannot do it by itself. */
static int write_zeroes(struct cp_endpoint *end, struct cp_xfer *xfer, uint64_t offset)
{
	uint64_t left = xfer->run, step;
	_cleanup_(weft_freep) char *zeroes = calloc(1, end->cp->piece);
	int rc = CP_DONE;

	if (!zeroes)
		return xfer_fail(xfer, end, "write", offset, -ENOMEM);
	for (; left && rc == CP_DONE; left -= step, offset += step) {
		step = left < end->cp->piece ? left : end->cp->piece;
		rc = write_all(end, xfer, zeroes, step, offset);
	}
	return rc;
}

/* A new file has nothing but holes. */
static int file_zero(struct cp_endpoint *end, struct cp_xfer *xfer)
{
	uint64_t offset = end->base + xfer->offset + xfer->at;
	struct cp_file *file = file_of(end);

	if (!file->is_block)
		return CP_DONE;
	if (!fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		       (off_t)xfer->run))
		return CP_DONE;
	return write_zeroes(end, xfer, offset);
}

/* There is no data from @offset on. A file that became shorter ends there, and file_get() reports
 * it: bytes beyond its end are not a hole. */
static uint64_t last_hole(const struct cp_file *file, uint64_t offset)
{
	struct stat now;

	if (fstat(file->fd, &now) < 0 || (uint64_t)now.st_size <= offset)
		return 0;
	return (uint64_t)now.st_size - offset;
}

static uint64_t file_hole(struct cp_endpoint *end, uint64_t offset)
{
	off_t data = lseek(file_of(end)->fd, (off_t)offset, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? last_hole(file_of(end), offset) : 0;
	return (uint64_t)data - offset;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int file_resize(struct cp_file *file, uint64_t size, struct weft_err *err)
{
	if (ftruncate(file->fd, (off_t)size) < 0)
		return weft_fail(err, -errno, "%s: %s", file->end.name, strerror(errno));
	return 0;
}

/* One hole, until something is put. */
static int file_prepare(struct cp_endpoint *end, uint64_t total, struct weft_err *err)
{
	struct cp_file *file = file_of(end);

	if (file->is_block)
		return 0;
	file->fd = weft_draft_create(&file->draft, err);
	if (file->fd < 0)
		return file->fd;
	return file_resize(file, total == CP_UNKNOWN ? 0 : total, err);
}

static int file_flush(struct cp_endpoint *end, struct weft_err *err)
{
	struct cp_file *file = file_of(end);
	int rc = 0;

	/* A stream that ended in zeroes left no trace of them: --verify reads that far. */
	if (!file->is_block && end->cp->total != CP_UNKNOWN)
		rc = file_resize(file, end->cp->total, err);
	if (rc < 0)
		return rc;
	if (fsync(file->fd) < 0)
		return weft_fail(err, -errno, "%s: flush: %s", end->name, strerror(errno));
	/* --verify must read from the disk. */
	posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static int file_finish(struct cp_endpoint *end, uint64_t total, struct weft_err *err)
{
	struct cp_file *file = file_of(end);
	int rc;

	if (file->is_block)
		return 0;
	rc = file_resize(file, total, err);
	return rc < 0 ? rc : weft_draft_commit(&file->draft, file->fd, err);
}

static void file_abandon(struct cp_endpoint *end, char *text, size_t size)
{
	struct cp_file *file = file_of(end);

	/* Complete, but for a last flush of its folder. */
	if (file->is_block || !file->draft.name)
		return;
	weft_draft_discard(&file->draft);
	snprintf(text, size, file->draft.at.exists ? "%s is as it was before" : "%s is not made",
		 end->name);
}

static void file_close(struct cp_endpoint *end)
{
	struct cp_file *file = file_of(end);

	if (file->fd >= 0)
		close(file->fd);
	weft_draft_free(&file->draft);
	free(file);
}

static const struct cp_endpoint_ops file_ops = {
	.prepare = file_prepare,
	.get = file_get,
	.put = file_put,
	.zero = file_zero,
	.hole = file_hole,
	.flush = file_flush,
	.finish = file_finish,
	.abandon = file_abandon,
	.close = file_close,
};

/* --- opening ---------------------------------------------------------------------------------- */

static struct cp_file *file_new(struct cp *cp, const char *name)
{
	struct cp_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->fd = -1;
	file->end = (struct cp_endpoint){
		.ops = &file_ops,
		.cp = cp,
		.name = name,
		.size = CP_UNKNOWN,
		.block = 1,
		.can_zero = true,
		.workers_max = CP_WORKERS,
	};
	return file;
}

static int file_size(struct cp_file *file, struct weft_err *err)
{
	off_t size = lseek(file->fd, 0, SEEK_END);

	if (size < 0)
		return weft_fail(err, -errno, "%s: %s", file->end.name, strerror(errno));
	file->end.size = (uint64_t)size;
	return 0;
}

int weft_cp_file_from(struct cp *cp, const char *path, struct cp_endpoint **end,
		      struct weft_err *err)
{
	struct cp_file *file = file_new(cp, path);

	if (!file)
		return weft_fail(err, -ENOMEM, "no memory");
	*end = &file->end;
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0)
		return weft_fail(err, -errno, "%s: %s", path, strerror(errno));
	return file_size(file, err);
}

static int open_block(struct cp_file *file, const struct weft_chased *at, struct weft_err *err)
{
	file->is_block = true;
	/* Exclusive: not one that is mounted. */
	file->fd = weft_chased_open(at, O_RDWR | O_EXCL);
	if (file->fd < 0)
		return weft_fail(err, file->fd, "%s: %s%s", file->end.name, strerror(-file->fd),
				 file->fd == -EBUSY ? "; it is mounted, or used otherwise" : "");
	return file_size(file, err);
}

static int place(struct cp_file *file, const char *path, struct weft_err *err)
{
	int rc = weft_draft_locate(&file->draft, path, file->end.cp->ask->force, err);

	if (rc == -EEXIST)
		weft_fail(err, rc, "%s is there already; --force replaces it", path);
	return rc;
}

int weft_cp_file_to(struct cp *cp, const char *path, const struct weft_chased *at,
		    struct cp_endpoint **end, struct weft_err *err)
{
	struct cp_file *file = file_new(cp, path);

	if (!file)
		return weft_fail(err, -ENOMEM, "no memory");
	*end = &file->end;
	return at->exists && S_ISBLK(at->st.st_mode) ? open_block(file, at, err) :
						       place(file, path, err);
}

bool weft_cp_same_file(const struct cp_endpoint *a, const struct cp_endpoint *b)
{
	const struct cp_file *from = (const struct cp_file *)a, *to = (const struct cp_file *)b;
	struct stat one, other;

	if (a->ops != &file_ops || b->ops != &file_ops)
		return false;
	other = to->draft.at.st;
	if (fstat(from->fd, &one) < 0)
		return false;
	if (to->fd >= 0 ? fstat(to->fd, &other) < 0 : !to->draft.at.exists)
		return false;
	return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}
