/* block.c - a block device, claimed while it is open and used without the page cache.
 *
 * The claim (O_EXCL) is the kernel's own: a mounted disk, a member of an array, a disk that another
 * target serves are refused, and nobody mounts it while we serve it. The nodes of a cluster cannot
 * all claim it; they lock the device as they would a file, which keeps out programs that check
 * locks. Those locks are this machine's: another one that has the same disk does not see them.
 *
 * Invariant: io is a multiple of the device's logical block, in length, offset and address. */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "backend/disk.h"
#include "base/chase.h"
#include "base/cleanup.h"
#include "base/size.h"

struct geometry {
	uint64_t size;
	uint32_t block; /* logical */
};

static int find_device(struct weft_chased *at, const struct weft_spec *spec, struct weft_err *err)
{
	int rc = weft_chase(at, spec->arg, err);

	if (rc == 0 && !at->exists)
		rc = -ENOENT;
	if (rc < 0)
		return weft_spec_fail(spec, err, rc, "cannot open it: %s", strerror(-rc));
	if (S_ISREG(at->st.st_mode))
		return weft_spec_fail(spec, err, -ENOTBLK,
				      "it is a regular file; expected file:%.80s", spec->arg);
	if (!S_ISBLK(at->st.st_mode))
		return weft_spec_fail(spec, err, -ENOTBLK, "it is not a block device");
	return 0;
}

static int open_exclusive(const struct weft_chased *at, const struct weft_spec *spec, int flags)
{
	return weft_chased_open(at, flags | (spec->read_only ? O_RDONLY : O_RDWR) |
					    (spec->node ? 0 : O_EXCL));
}

/* The few devices that refuse O_DIRECT are served through the page cache. */
static int open_device(const struct weft_spec *spec, bool *direct, struct weft_err *err)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	int fd = find_device(&at, spec, err);

	if (fd < 0)
		return fd;
	fd = open_exclusive(&at, spec, O_DIRECT);
	*direct = fd >= 0;
	if (fd == -EINVAL)
		fd = open_exclusive(&at, spec, 0);
	if (fd >= 0)
		return fd;
	if (fd == -EBUSY)
		return weft_spec_fail(spec, err, -EBUSY,
				      "it is in use (mounted, or opened by another program)");
	return weft_disk_open_failed(spec, fd, err);
}

static int lock_device(int fd, const struct weft_spec *spec, struct weft_err *err)
{
	int rc = weft_disk_lock(fd, spec);

	if (rc == -EBUSY)
		return weft_spec_fail(spec, err, rc, "it is in use: another target has locked it");
	if (rc < 0)
		return weft_spec_fail(spec, err, rc, "cannot lock it: %s", strerror(-rc));
	return 0;
}

static int read_size(int fd, uint64_t *size)
{
	return ioctl(fd, BLKGETSIZE64, size) < 0 ? -errno : 0;
}

static int read_geometry(int fd, struct geometry *geo, const struct weft_spec *spec,
			 struct weft_err *err)
{
	int block;

	if (read_size(fd, &geo->size) < 0 || ioctl(fd, BLKSSZGET, &block) < 0)
		return weft_spec_fail(spec, err, -errno, "cannot read its size: %s",
				      strerror(errno));
	if (block > 4096)
		return weft_spec_fail(spec, err, -EINVAL,
				      "its logical block is %d bytes; expected at most 4096",
				      block);
	geo->block = (uint32_t)block;
	return 0;
}

/* A device is resized elsewhere; this only reads its new size. */
static int block_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	char has[32], asked[32];
	uint64_t now;
	int rc = read_size(weft_disk_of(be)->fd, &now);

	if (rc < 0)
		return weft_fail(err, rc, "%s: cannot read its size: %s", be->spec, strerror(-rc));
	if (now == size)
		return 0;
	weft_size_format(now, has, sizeof(has));
	weft_size_format(size, asked, sizeof(asked));
	return weft_fail(err, -EINVAL, "%s: the device has %s, not %s; resize the device first",
			 be->spec, has, asked);
}

/* Valid on this machine only, as its locks are. */
static uint64_t block_identity(struct weft_backend *be)
{
	struct stat st;

	return fstat(weft_disk_of(be)->fd, &st) < 0 ? 0 : st.st_rdev;
}

/* Sets *@fd to -1 if it owns it. */
static int block_new(struct weft_backend **be, int *fd, bool direct, const struct weft_spec *spec,
		     struct weft_err *err)
{
	struct weft_disk *disk;
	struct geometry geo;
	int rc;

	rc = read_geometry(*fd, &geo, spec, err);
	if (rc < 0)
		return rc;
	rc = weft_disk_new(&disk, fd, spec, geo.size, geo.block > 512 ? 4096 : 512, err);
	if (rc < 0)
		return rc;
	disk->be.align = direct ? geo.block : 1;
	*be = &disk->be;
	return 0;
}

static int block_open(struct weft_backend **be, const struct weft_spec *spec, struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = -1;
	bool direct;
	int rc;

	fd = open_device(spec, &direct, err);
	if (fd < 0)
		return fd;
	rc = lock_device(fd, spec, err);
	return rc < 0 ? rc : block_new(be, &fd, direct, spec, err);
}

/* The claim belongs to the open file, and so came with it; so did the lock, and locking again makes
 * sure. */
static int block_adopt(struct weft_backend **be, const struct weft_spec *spec, int adopted_fd,
		       struct weft_err *err)
{
	_cleanup_(weft_closep) int fd = adopted_fd;
	int flags = fcntl(fd, F_GETFL);
	int rc;

	assert(fd >= 0);
	if (flags < 0)
		return weft_spec_fail(spec, err, -errno, "%s", strerror(errno));
	rc = lock_device(fd, spec, err);
	return rc < 0 ? rc : block_new(be, &fd, flags & O_DIRECT, spec, err);
}

const struct weft_backend_ops weft_block_ops = {
	.type = "block",
	.usage = "block:PATH",
	.exclusive = true,
	.open = block_open,
	.adopt = block_adopt,
	.descriptor = weft_disk_descriptor,
	.submit = weft_disk_submit,
	.resize = block_resize,
	.locks_are_local = true,
	.node_active = weft_disk_node_active,
	.lock_as = weft_disk_lock_as,
	.identity = block_identity,
	.close = weft_disk_close,
};
