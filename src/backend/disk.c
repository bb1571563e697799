/* disk.c - io on a descriptor, and what fsync promises.
 *
 *   READ   read,  on until all is there ─┐
 *   ZERO   punch ─(cannot)▶ write zeroes ─┴─▶ FUA? sync ─▶ done
 *   WRITE  write, on until all is there; FUA: each with RWF_DSYNC
 *   TRIM   punch
 *   FLUSH  sync
 *   EXTENTS  lseek, repeated, on the disk's own thread: it may read all of a file's metadata
 *
 * When a sync fails, the kernel has dropped or may drop the pages that it could not write, reports
 * that once, and the next sync succeeds without them. So a failed sync is remembered: from then on
 * FLUSH and FUA fail (ENOTRECOVERABLE), until the disk is opened again by somebody who has checked
 * it. A FUA write that fails does not say whether the write or its sync failed: the same write
 * without FUA shows it. Of several syncs under way when the error comes, the kernel reports it to
 * one; another is still acknowledged if its completion is handled before that one's.
 *
 * Invariant: once sync_failed was seen, no FLUSH and no FUA succeeds on this descriptor. */
#include "backend/disk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#define ZEROES_SIZE (1u << 20)

/* Never written, so it costs no memory; not const, or it would cost a megabyte of binary. */
static char zeroes[ZEROES_SIZE] __attribute__((aligned(4096)));

static void transfer_rest(struct weft_io *io);
static void on_synced(struct weft_op *op, int res);
static void on_punched(struct weft_op *op, int res);

static struct weft_io *io_of(struct weft_op *op)
{
	return container_of(op, struct weft_io, op);
}

static int fd_of(struct weft_io *io)
{
	return weft_disk_of(io->be)->fd;
}

static bool has_fua(const struct weft_io *io)
{
	return io->flags & WEFT_IO_FUA;
}

/* --- durable ---------------------------------------------------------------------------------- */

void weft_disk_sync_failed(struct weft_disk *disk, int rc)
{
	if (atomic_exchange(&disk->be.sync_failed, true))
		return;
	weft_error("%s:%s: writes did not become durable: %s; every flush and FUA fails until it is "
		   "opened again",
		   disk->be.ops->type, disk->path, strerror(-rc));
}

static void start_sync(struct weft_io *io)
{
	io->op.done = on_synced;
	weft_file_sync(weft_reactor_self(), &io->op, fd_of(io));
}

static void on_synced(struct weft_op *op, int res)
{
	struct weft_io *io = io_of(op);
	struct weft_disk *disk = weft_disk_of(io->be);

	if (res == -EINTR) {
		start_sync(io);
		return;
	}
	if (res < 0)
		weft_disk_sync_failed(disk, res);
	else if (atomic_load(&disk->be.sync_failed))
		res = -ENOTRECOVERABLE;
	io->done(io, res);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void start_read(struct weft_io *io)
{
	io->iov.iov_base = (char *)io->buf + io->moved;
	io->iov.iov_len = io->length - io->moved;
	weft_file_read(weft_reactor_self(), &io->op, fd_of(io), &io->iov, 1,
		       (off_t)(io->offset + io->moved));
}

static void start_write(struct weft_io *io, int rwf_flags)
{
	io->iov.iov_base = (char *)io->buf + io->moved;
	io->iov.iov_len = io->length - io->moved;
	weft_file_write(weft_reactor_self(), &io->op, fd_of(io), &io->iov, 1,
			(off_t)(io->offset + io->moved), rwf_flags);
}

static void start_zeroes(struct weft_io *io)
{
	uint64_t left = io->length - io->moved;

	assert(io->kind == WEFT_IO_ZERO);
	io->iov.iov_base = zeroes;
	io->iov.iov_len = left < ZEROES_SIZE ? left : ZEROES_SIZE;
	weft_file_write(weft_reactor_self(), &io->op, fd_of(io), &io->iov, 1,
			(off_t)(io->offset + io->moved), 0);
}

/* The write succeeds without a sync, so it was the sync that failed. */
static void on_rewritten(struct weft_op *op, int res)
{
	struct weft_io *io = io_of(op);

	assert(io->kind == WEFT_IO_WRITE && has_fua(io));
	if (res == -EINTR) {
		start_write(io, 0);
		return;
	}
	if (res > 0)
		weft_disk_sync_failed(weft_disk_of(io->be), -EIO);
	io->done(io, res < 0 ? res : -EIO);
}

static void transfer_failed(struct weft_io *io, int rc)
{
	if (io->kind != WEFT_IO_WRITE || !has_fua(io)) {
		io->done(io, rc);
		return;
	}
	io->op.done = on_rewritten;
	start_write(io, 0);
}

/* No bytes: the file ends before its namespace does, somebody has truncated it. */
static void on_transferred(struct weft_op *op, int res)
{
	struct weft_io *io = io_of(op);

	if (res > 0)
		io->moved += (uint64_t)res;
	if (res > 0 || res == -EINTR)
		transfer_rest(io);
	else
		transfer_failed(io, res ? res : -EIO);
}

/* A write that must be durable had RWF_DSYNC. */
static void transfer_done(struct weft_io *io)
{
	if (has_fua(io) && io->kind != WEFT_IO_WRITE)
		start_sync(io);
	else
		io->done(io, 0);
}

static void transfer_rest(struct weft_io *io)
{
	if (io->moved == io->length) {
		transfer_done(io);
		return;
	}
	io->op.done = on_transferred;
	if (io->kind == WEFT_IO_READ)
		start_read(io);
	else if (io->kind == WEFT_IO_WRITE)
		start_write(io, has_fua(io) ? RWF_DSYNC : 0);
	else
		start_zeroes(io);
}

/* --- holes ------------------------------------------------------------------------------------ */

/* Zeroes without WEFT_IO_UNMAP keep their space: a later write there does not run out of it. */
static int punch_mode(const struct weft_io *io)
{
	bool keep = io->kind == WEFT_IO_ZERO && !(io->flags & WEFT_IO_UNMAP);

	return FALLOC_FL_KEEP_SIZE | (keep ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE);
}

static void start_punch(struct weft_io *io)
{
	assert(weft_io_clears(io) && !io->moved);
	io->op.done = on_punched;
	weft_file_allocate(weft_reactor_self(), &io->op, fd_of(io), punch_mode(io),
			   (off_t)io->offset, (off_t)io->length);
}

static void on_zero_punched(struct weft_io *io, int res)
{
	if (res < 0 && res != -EOPNOTSUPP) {
		io->done(io, res);
		return;
	}
	io->moved = res < 0 ? 0 : io->length;
	transfer_rest(io);
}

static void on_punched(struct weft_op *op, int res)
{
	struct weft_io *io = io_of(op);

	if (res == -EINTR)
		start_punch(io);
	else if (io->kind == WEFT_IO_ZERO)
		on_zero_punched(io, res);
	else
		io->done(io, res == -EOPNOTSUPP ? 0 : res);
}

/* --- extents ---------------------------------------------------------------------------------- */

enum { SEEKS_MAX = 128 };

static int hole_after(struct weft_backend *be, uint64_t at, uint64_t *end)
{
	off_t hole = lseek(weft_disk_of(be)->fd, (off_t)at, SEEK_HOLE);

	if (hole < 0)
		return -errno;
	if ((uint64_t)hole < *end)
		*end = (uint64_t)hole;
	return 0;
}

static int search_extents(struct weft_op *op)
{
	return weft_extents_search(io_of(op), SEEKS_MAX, hole_after);
}

static void on_searched(struct weft_op *op, int res)
{
	struct weft_io *io = io_of(op);

	io->done(io, res);
}

static void start_search(struct weft_io *io)
{
	io->op.done = on_searched;
	weft_workers_call(&weft_disk_of(io->be)->searcher, weft_reactor_self(), &io->op,
			  search_extents);
}

/* --- ops -------------------------------------------------------------------------------------- */

/* TRIM is a hint: there is nothing to make durable. */
static bool must_be_durable(const struct weft_io *io)
{
	return io->kind == WEFT_IO_FLUSH || (has_fua(io) && io->kind != WEFT_IO_TRIM);
}

int weft_disk_submit(struct weft_backend *be, struct weft_io *io)
{
	if (must_be_durable(io) && atomic_load(&be->sync_failed))
		return -ENOTRECOVERABLE;
	io->moved = 0;
	switch (io->kind) {
	case WEFT_IO_READ:
	case WEFT_IO_WRITE:
		transfer_rest(io);
		return 0;
	case WEFT_IO_ZERO:
	case WEFT_IO_TRIM:
		start_punch(io);
		return 0;
	case WEFT_IO_FLUSH:
		start_sync(io);
		return 0;
	case WEFT_IO_EXTENTS:
		start_search(io);
		return 0;
	}
	return -EOPNOTSUPP;
}

int weft_disk_descriptor(struct weft_backend *be)
{
	return weft_disk_of(be)->fd;
}

int weft_disk_open_failed(const struct weft_spec *spec, int rc, struct weft_err *err)
{
	bool forbidden = rc == -EACCES || rc == -EROFS;

	if (forbidden && !spec->read_only && access(spec->arg, R_OK) == 0)
		return weft_spec_fail(
			spec, err, rc,
			"cannot open it for writing: %s; \"ro\" would serve it read only",
			strerror(-rc));
	return weft_spec_fail(spec, err, rc, "cannot open it: %s%s", strerror(-rc),
			      rc == -EACCES ? "; this user may not reach it" : "");
}

void weft_disk_close(struct weft_backend *be)
{
	struct weft_disk *disk = weft_disk_of(be);

	weft_workers_destroy(&disk->searcher);
	weft_closep(&disk->fd);
	free(disk->path);
	weft_backend_fini(be);
	free(disk);
}

int weft_disk_new(struct weft_disk **disk, int *fd, const struct weft_spec *spec, uint64_t size,
		  uint32_t block_min, struct weft_err *err)
{
	struct weft_disk *d = calloc(1, sizeof(*d));
	int rc;

	assert(*fd >= 0);
	if (!d)
		return weft_spec_fail(spec, err, -ENOMEM, "out of memory");
	d->fd = -1;
	weft_workers_init(&d->searcher, 1);
	rc = weft_backend_init(&d->be, spec, size, block_min, err);
	if (rc < 0)
		goto fail;
	d->path = strdup(spec->arg);
	if (!d->path) {
		rc = weft_spec_fail(spec, err, -ENOMEM, "out of memory");
		goto fail;
	}
	d->fd = take_fd(fd);
	*disk = d;
	return 0;
fail:
	weft_disk_close(&d->be);
	return rc;
}
