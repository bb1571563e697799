/* files.c - what the kernel asks of a file.
 *
 * An I/O may go on when its request has been answered (calls.c) and the file is closed: it holds on
 * to the node itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/mount/session.h"

static struct weft_table *table_of(fuse_req_t req)
{
	struct weft_mount *mount = fuse_req_userdata(req);

	return &mount->table;
}

/* An open file. It is there while a request of it is not answered, and no longer for sure. */
struct open_file {
	atomic_uint told; /* of lives of the connection that ended with unflushed writes */
};

static struct open_file *file_of(const struct fuse_file_info *fi)
{
	return (struct open_file *)(uintptr_t)fi->fh;
}

static struct open_file *file_new(struct weft_node *node)
{
	struct open_file *file = malloc(sizeof(*file));

	if (file)
		file->told = weft_volume_told(node->bytes.volume);
	return file;
}

void weft_mount_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct weft_table *table = table_of(req);
	struct weft_node *node = weft_node_of(ino);
	struct open_file *file;
	struct weft_ns_info info;

	weft_volume_glance(node->bytes.volume, &info);
	if (info.read_only && (fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	file = file_new(node);
	if (!file) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)file;
	fi->direct_io = 1;
	weft_node_get(table, node);
	if (fuse_reply_open(req, fi) == 0)
		return;
	weft_node_put(table, node, 1);
	free(file);
}

void weft_mount_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	weft_node_put(table_of(req), weft_node_of(ino), 1);
	free(file_of(fi));
	fuse_reply_err(req, 0);
}

/* --- I/O -------------------------------------------------------------------------------------- */

struct io {
	struct weft_mount_call call;
	struct weft_table *table;
	struct weft_node *node;
};

/* False: the request is answered. */
static bool begin(struct io *io, fuse_req_t req, fuse_ino_t ino)
{
	struct weft_mount *mount = fuse_req_userdata(req);

	io->table = &mount->table;
	io->node = weft_node_of(ino);
	if (!weft_call_begin(&mount->calls, &io->call, req))
		return false;
	weft_node_get(io->table, io->node);
	return true;
}

/* False: as above. */
static bool end(struct io *io)
{
	bool ours = weft_call_end(&io->call);

	weft_node_put(io->table, io->node, 1);
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

	if (!begin(&io, req, ino))
		return;
	buf = weft_buffers_take(&mount->buffers, size);
	if (buf)
		got = weft_bytes_read(&io.node->bytes, buf, size, (uint64_t)offset);
	if (end(&io))
		reply_read(req, buf, got);
	weft_buffers_give(&mount->buffers, buf);
}

/* O_SYNC has the bits of O_DSYNC and one more. */
static unsigned durable(const struct fuse_file_info *fi)
{
	return fi->flags & O_DSYNC ? WEFT_FUA : 0;
}

void weft_mount_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
		      struct fuse_file_info *fi)
{
	struct io io;
	ssize_t put;

	if (!begin(&io, req, ino))
		return;
	put = weft_bytes_write(&io.node->bytes, buf, size, (uint64_t)offset, durable(fi));
	if (put >= 0)
		io.node->written = time(NULL);
	if (!end(&io))
		return;
	if (put < 0)
		fuse_reply_err(req, (int)-put);
	else
		fuse_reply_write(req, (size_t)put);
}

void weft_mount_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct open_file *file = file_of(fi);
	unsigned told = file->told;
	struct io io;
	int rc;

	if (!begin(&io, req, ino))
		return;
	rc = weft_volume_flush(io.node->bytes.volume, &told, NULL);
	if (!end(&io))
		return;
	file->told = told;
	fuse_reply_err(req, -rc);
}

/* Space is neither reserved nor made: what lies within the namespace is there. */
static int allocate(struct weft_bytes *bytes, int mode, uint64_t offset, uint64_t length)
{
	bool beyond = offset + length > weft_bytes_size(bytes);

	if (beyond && !(mode & FALLOC_FL_KEEP_SIZE))
		return -ENOSPC;
	if (mode & FALLOC_FL_PUNCH_HOLE)
		return weft_bytes_zero(bytes, length, offset, WEFT_UNMAP);
	if (mode & FALLOC_FL_ZERO_RANGE)
		return weft_bytes_zero(bytes, length, offset, 0);
	return mode & ~FALLOC_FL_KEEP_SIZE ? -EOPNOTSUPP : 0;
}

void weft_mount_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
			  struct fuse_file_info *fi)
{
	struct io io;
	int rc;

	if (!begin(&io, req, ino))
		return;
	rc = allocate(&io.node->bytes, mode, (uint64_t)offset, (uint64_t)length);
	if (end(&io))
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
	if (!begin(&io, req, ino))
		return;
	at = weft_bytes_seek(&io.node->bytes, (uint64_t)offset, whence == SEEK_DATA);
	if (!end(&io))
		return;
	if (at < 0)
		fuse_reply_err(req, (int)-at);
	else
		fuse_reply_lseek(req, at);
}
