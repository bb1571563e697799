/* local_locks.c - a directory seen through FUSE, whose locks stay with the mount.
 *
 *   local_locks DIRECTORY MOUNTPOINT [fuse options]
 *
 * Files are the directory's own, and written through. But the file system has no lock(), so the
 * kernel keeps locks by itself, one table for each mount, and pages that were read, too. Two mounts
 * of one directory stand for two machines whose file system does not share locks. */
#define FUSE_USE_VERSION 312

#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int root;

/* What is below the mount point, from the directory. */
static const char *below(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int done(long rc)
{
	return rc < 0 ? -errno : (int)rc;
}

static void *on_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	(void)conn;
	config->use_ino = 1;
	config->kernel_cache = 1; /* a page that one mount has read hides what the other writes */
	return NULL;
}

static int on_getattr(const char *path, struct stat *st, struct fuse_file_info *file)
{
	return done(file ? fstat((int)file->fh, st) :
			   fstatat(root, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int on_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t at,
		      struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
	(void)path, (void)at, (void)file, (void)flags;
	fill(buf, ".", NULL, 0, 0);
	fill(buf, "..", NULL, 0, 0);
	return 0;
}

static int open_file(const char *path, int flags, mode_t mode, struct fuse_file_info *file)
{
	int fd = openat(root, below(path), flags | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
	file->fh = (uint64_t)fd;
	return 0;
}

static int on_open(const char *path, struct fuse_file_info *file)
{
	return open_file(path, file->flags & ~O_DIRECT, 0, file);
}

static int on_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
	return open_file(path, (file->flags & ~O_DIRECT) | O_CREAT, mode, file);
}

static int on_release(const char *path, struct fuse_file_info *file)
{
	(void)path;
	return done(close((int)file->fh));
}

static int on_read(const char *path, char *buf, size_t size, off_t at, struct fuse_file_info *file)
{
	(void)path;
	return done(pread((int)file->fh, buf, size, at));
}

static int on_write(const char *path, const char *buf, size_t size, off_t at,
		    struct fuse_file_info *file)
{
	(void)path;
	return done(pwrite((int)file->fh, buf, size, at));
}

static int on_truncate(const char *path, off_t size, struct fuse_file_info *file)
{
	int fd = file ? (int)file->fh : openat(root, below(path), O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : done(ftruncate(fd, size));

	if (!file && fd >= 0)
		close(fd);
	return rc;
}

static int on_fallocate(const char *path, int mode, off_t at, off_t size,
			struct fuse_file_info *file)
{
	(void)path;
	return done(fallocate((int)file->fh, mode, at, size));
}

/* A file of this name fails who wants to be sure of what was written, and so tells who does. */
static int on_fsync(const char *path, int data, struct fuse_file_info *file)
{
	if (!strcmp(path, "/never-durable"))
		return -EIO;
	return done(data ? fdatasync((int)file->fh) : fsync((int)file->fh));
}

static int on_unlink(const char *path)
{
	return done(unlinkat(root, below(path), 0));
}

static const struct fuse_operations ops = {
	.init = on_init,
	.getattr = on_getattr,
	.readdir = on_readdir,
	.open = on_open,
	.create = on_create,
	.release = on_release,
	.read = on_read,
	.write = on_write,
	.truncate = on_truncate,
	.fallocate = on_fallocate,
	.fsync = on_fsync,
	.unlink = on_unlink,
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s DIRECTORY MOUNTPOINT [fuse options]\n", argv[0]);
		return 2;
	}
	root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	argv[1] = argv[0];
	return fuse_main(argc - 1, argv + 1, &ops, NULL);
}
