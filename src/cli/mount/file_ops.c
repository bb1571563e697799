/* file_ops.c - FUSE operations on a file.
 *
 * An I/O may still be under way when its request was answered (interrupt.c) and the file is closed:
 * it holds a reference to the node itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/mount/session.h"

static struct weft_mount_table *mount_table_of(fuse_req_t req)
{
	struct weft_mount *mount = fuse_req_userdata(req);

	return &mount->table;
}

/* An open file. It exists while a request of it is not answered; after that it may be gone. */
struct open_file {
	atomic_uint flush_reported; /* see weft_volume_flush() */
};

static struct open_file *open_file_of(const struct fuse_file_info *fi)
{
	return (struct open_file *)(uintptr_t)fi->fh;
}

static struct open_file *open_file_new(struct weft_mount_node *node)
{
	struct open_file *file = malloc(sizeof(*file));

	if (file)
		file->flush_reported = weft_volume_flush_reported(node->volume);
	return file;
}

void weft_mount_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct weft_mount_table *table = mount_table_of(req);
	struct weft_mount_node *node = weft_mount_node_of(ino);
	struct open_file *file;
	struct weft_ns_info info;

	weft_volume_info_nowait(node->volume, &info);
	if (info.read_only && (fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	file = open_file_new(node);
	if (!file) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)file;
	fi->direct_io = 1;
	weft_mount_node_get(table, node);
	if (fuse_reply_open(req, fi) == 0)
		return;
	weft_mount_node_put(table, node, 1);
	free(file);
}

void weft_mount_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	weft_mount_node_put(mount_table_of(req), weft_mount_node_of(ino), 1);
	free(open_file_of(fi));
	fuse_reply_err(req, 0);
}

/* --- I/O -------------------------------------------------------------------------------------- */

struct io {
	struct weft_mount_call call;
	struct weft_mount_table *table;
	struct weft_mount_node *node;
};

/* False: the request is answered. */
static bool io_begin(struct io *io, fuse_req_t req, fuse_ino_t ino)
{
	struct weft_mount *mount = fuse_req_userdata(req);

	io->table = &mount->table;
	io->node = weft_mount_node_of(ino);
	if (!weft_mount_call_begin(&mount->calls, &io->call, req))
		return false;
	weft_mount_node_get(io->table, io->node);
	return true;
}

/* False: as above. */
static bool io_end(struct io *io)
{
	bool ours = weft_mount_call_end(&io->call);

	weft_mount_node_put(io->table, io->node, 1);
	return ours;
}

static void reply_read(fuse_req_t req, const char *buf, ssize_t got)
{
	if (got < 0)
		fuse_reply_err(req, (int)-got);
	else
		fuse_reply_buf(req, buf, (size_t)got);
}

void weft_mount_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	struct weft_mount *mount = fuse_req_userdata(req);
	ssize_t got = -ENOMEM;
	struct io io;
	char *buf;

	if (!io_begin(&io, req, ino))
		return;
	buf = weft_mount_buffer_get(&mount->buffers, size);
	if (buf)
		got = weft_volume_read(io.node->volume, buf, size, (uint64_t)offset);
	if (io_end(&io))
		reply_read(req, buf, got);
	weft_mount_buffer_put(&mount->buffers, buf);
}

/* O_SYNC has the bits of O_DSYNC and one more. */
static unsigned fua_flag(const struct fuse_file_info *fi)
{
	return fi->flags & O_DSYNC ? WEFT_FUA : 0;
}

void weft_mount_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
		      struct fuse_file_info *fi)
{
	struct io io;
	ssize_t put;

	if (!io_begin(&io, req, ino))
		return;
	put = weft_volume_write(io.node->volume, buf, size, (uint64_t)offset, fua_flag(fi));
	if (put >= 0)
		io.node->written = time(NULL);
	if (!io_end(&io))
		return;
	if (put < 0)
		fuse_reply_err(req, (int)-put);
	else
		fuse_reply_write(req, (size_t)put);
}

void weft_mount_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct open_file *file = open_file_of(fi);
	unsigned flush_reported = file->flush_reported;
	struct io io;
	int rc;

	if (!io_begin(&io, req, ino))
		return;
	rc = weft_volume_flush(io.node->volume, &flush_reported, NULL);
	if (!io_end(&io))
		return;
	file->flush_reported = flush_reported;
	fuse_reply_err(req, -rc);
}

/* Space is neither reserved nor made: what lies within the namespace is there. */
static int fallocate_range(struct weft_volume *volume, int mode, uint64_t offset, uint64_t length)
{
	bool beyond = offset + length > weft_volume_size(volume);

	if (beyond && !(mode & FALLOC_FL_KEEP_SIZE))
		return -ENOSPC;
	if (mode & FALLOC_FL_PUNCH_HOLE)
		return weft_volume_zero(volume, length, offset, WEFT_UNMAP);
	if (mode & FALLOC_FL_ZERO_RANGE)
		return weft_volume_zero(volume, length, offset, 0);
	return mode & ~FALLOC_FL_KEEP_SIZE ? -EOPNOTSUPP : 0;
}

void weft_mount_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
			  struct fuse_file_info *fi)
{
	struct io io;
	int rc;

	if (!io_begin(&io, req, ino))
		return;
	rc = fallocate_range(io.node->volume, mode, (uint64_t)offset, (uint64_t)length);
	if (io_end(&io))
		fuse_reply_err(req, -rc);
}

/* The kernel asks for these two only. */
void weft_mount_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		      struct fuse_file_info *fi)
{
	struct io io;
	off_t at;

	if (offset < 0 || (whence != SEEK_DATA && whence != SEEK_HOLE)) {
		fuse_reply_err(req, offset < 0 ? ENXIO : EINVAL);
		return;
	}
	if (!io_begin(&io, req, ino))
		return;
	at = weft_volume_seek(io.node->volume, (uint64_t)offset, whence == SEEK_DATA);
	if (!io_end(&io))
		return;
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, at);
}
