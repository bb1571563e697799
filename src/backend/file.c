/* file.c - a regular file, sparse: storage is allocated when written, freed when zeroed.
 *
 *   open or create ─▶ lock ─▶ fit the size ─▶ serve
 *
 * A file that is created or grown is synced, with its directory, before it is served: its size and
 * its name must survive a crash as well as the data that hosts are told is durable. Opening may
 * grow an existing file, never shrink it; that takes a resize.
 *
 * In a takeover the successor continues with the old process's descriptor, which holds the lock,
 * and does not change the file: if somebody has truncated it, data is lost, and hosts must get
 * errors, not zeroes.
 *
 * Invariant: the descriptor holds a lock on the file as long as it is open, see disk_lock.c. */
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "backend/disk.h"
#include "base/chase.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/size.h"

/* --- the descriptor --------------------------------------------------------------------------- */

/* Checked before it is opened: opening a FIFO blocks, opening a device may have effects. */
static int check_kind(const struct weft_chased *at, const struct weft_spec *spec,
		      struct weft_err *err)
{
	if (!at->exists || S_ISREG(at->st.st_mode))
		return 0;
	if (S_ISBLK(at->st.st_mode))
		return weft_spec_fail(spec, err, -EINVAL,
				      "it is a block device; expected block:%.80s", spec->arg);
	return weft_spec_fail(spec, err, -EINVAL, "it is not a regular file");
}

static int open_flags(const struct weft_spec *spec)
{
	return (spec->read_only ? O_RDONLY : O_RDWR) | (spec->direct ? O_DIRECT : 0);
}

static int open_failed(const struct weft_spec *spec, int rc, struct weft_err *err)
{
	if (rc == -EINVAL && spec->direct)
		return weft_spec_fail(
			spec, err, rc,
			"its file system does not do direct I/O; leave \"direct\" out");
	if (rc == -ENOENT && !spec->size)
		return weft_spec_fail(spec, err, rc, "no such file; size=SIZE would create it");
	if (rc == -ENOENT && !spec->read_only)
		return weft_spec_fail(spec, err, rc, "cannot create it: %s", strerror(-rc));
	return weft_disk_open_failed(spec, rc, err);
}

static int create_file(const struct weft_chased *at, const struct weft_spec *spec, bool *created,
		       struct weft_err *err)
{
	int fd = weft_chased_create(at, open_flags(spec), 0600);

	*created = fd >= 0;
	if (fd >= 0)
		return fd;
	/* Some file systems refuse O_DIRECT only after they have created the file. */
	if (fd == -EINVAL && spec->direct) {
		weft_chased_unlink(at);
		return open_failed(spec, fd, err);
	}
	return weft_spec_fail(spec, err, fd, "cannot create it: %s", strerror(-fd));
}

static int open_or_create(struct weft_chased *at, const struct weft_spec *spec, bool *created,
			  struct weft_err *err)
{
	int rc = weft_chase(at, spec->arg, err);

	if (rc == 0)
		rc = check_kind(at, spec, err);
	if (rc == 0 && !at->exists && spec->size && !spec->read_only)
		return create_file(at, spec, created, err);
	if (rc == 0)
		rc = at->exists ? weft_chased_open(at, open_flags(spec)) : -ENOENT;
	return rc < 0 ? open_failed(spec, rc, err) : rc;
}

static int lock_file(int fd, const struct weft_spec *spec, struct weft_err *err)
{
	int rc = weft_disk_lock(fd, spec);

	if (rc == -EBUSY)
		return weft_spec_fail(
			spec, err, rc,
			"it is in use: another namespace, target or program has locked it");
	if (rc < 0)
		return weft_spec_fail(spec, err, rc, "cannot lock it: %s", strerror(-rc));
	return 0;
}

/* --- the size --------------------------------------------------------------------------------- */

/* The size that the file has, and the size that it gets. */
static int choose_size(int fd, const struct weft_spec *spec, uint64_t *have, uint64_t *size,
		       struct weft_err *err)
{
	char text[32];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return weft_spec_fail(spec, err, -errno, "cannot look at it: %s", strerror(errno));
	if (!st.st_nlink)
		return weft_spec_fail(spec, err, -ENOENT, "it was removed while it was opened");
	*have = (uint64_t)st.st_size;
	*size = spec->size ? spec->size : *have;
	weft_size_format(*have, text, sizeof(text));
	if (*size < *have)
		return weft_spec_fail(spec, err, -EINVAL,
				      "it has %s, more than size=, and is not cut; expected size=%s",
				      text, text);
	if (*size > *have && spec->read_only)
		return weft_spec_fail(spec, err, -EROFS,
				      "it has %s, less than size=, and \"ro\" does not let it grow",
				      text);
	return 0;
}

static int grow_file(int fd, const struct weft_spec *spec, struct weft_err *err)
{
	assert(spec->size && !spec->read_only);
	if (ftruncate(fd, (off_t)spec->size) < 0 || fsync(fd) < 0)
		return weft_spec_fail(spec, err, -errno, "cannot make it as large as size=: %s",
				      strerror(errno));
	return 0;
}

/* Also for a file that existed: a target may have created it and was killed at once. Not where we
 * may not open the directory or it cannot be synced: creating the file would have been refused. */
static int sync_name(const struct weft_chased *at, const struct weft_spec *spec, bool created,
		     struct weft_err *err)
{
	int rc = weft_chased_sync_dir(at);
	bool old = !created && (rc == -EACCES || rc == -EINVAL);

	if (rc < 0 && !old)
		return weft_spec_fail(spec, err, rc, "cannot sync its directory: %s",
				      strerror(-rc));
	return 0;
}

/* --- direct I/O ------------------------------------------------------------------------------- */

struct alignment {
	uint32_t memory, offset;
};

/* An alignment that every disk takes, if the kernel (before 6.1) or the file system does not report
 * one. */
static struct alignment direct_alignment(int fd)
{
	struct alignment any = { 4096, 4096 };
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
	    (stx.stx_mask & STATX_DIOALIGN) && stx.stx_dio_offset_align)
		return (struct alignment){ stx.stx_dio_mem_align, stx.stx_dio_offset_align };
#endif
	return any;
}

enum { BUFFER_ALIGN = 4096 }; /* of the target's buffers: base/pool.h */

static int choose_alignment(int fd, const struct weft_spec *spec, struct alignment *align,
			    struct weft_err *err)
{
	*align = (struct alignment){ 1, WEFT_BLOCK_MIN };
	if (spec->direct)
		*align = direct_alignment(fd);
	if (align->offset > 4096)
		return weft_spec_fail(
			spec, err, -EINVAL,
			"direct I/O needs blocks of %u bytes there; leave \"direct\" out",
			align->offset);
	if (align->memory > BUFFER_ALIGN)
		return weft_spec_fail(
			spec, err, -EINVAL,
			"direct I/O needs memory aligned to %u bytes there; leave \"direct\" out",
			align->memory);
	return 0;
}

/* --- ops -------------------------------------------------------------------------------------- */

static uint64_t file_used(struct weft_backend *be)
{
	uint64_t used;
	struct stat st;

	if (fstat(weft_disk_of(be)->fd, &st) < 0)
		return be->size;
	used = (uint64_t)st.st_blocks * 512;
	return used < (uint64_t)st.st_size ? used : (uint64_t)st.st_size;
}

/* Some file systems assign inode numbers as files are used, differently on each machine. */
static uint64_t file_identity(struct weft_backend *be)
{
	struct statfs fs;
	struct stat st;

	if (fstat(weft_disk_of(be)->fd, &st) < 0 || fstatfs(weft_disk_of(be)->fd, &fs) < 0)
		return 0;
	switch ((uint32_t)fs.f_type) {
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC:
	case V9FS_MAGIC:
		return 0;
	default:
		return st.st_ino;
	}
}

static int file_resize(struct weft_backend *be, uint64_t size, struct weft_err *err)
{
	struct weft_disk *disk = weft_disk_of(be);
	int rc;

	if (be->read_only)
		return weft_fail(err, -EROFS, "%s: it is read only", be->spec);
	if (ftruncate(disk->fd, (off_t)size) < 0)
		return weft_fail(err, -errno, "%s: cannot resize it: %s", be->spec,
				 strerror(errno));
	if (fsync(disk->fd) == 0)
		return 0;
	rc = -errno;
	weft_disk_sync_failed(disk, rc);
	return weft_fail(err, rc, "%s: cannot sync its new size: %s", be->spec, strerror(-rc));
}

/* The path may lead elsewhere by now. The lock keeps others from the file until it is closed; other
 * nodes of a cluster may use it by now. */
static void remove_created(const struct weft_disk *disk)
{
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	struct stat st;

	assert(disk->be.created && disk->be.never_served && !disk->be.read_only);
	if (fstat(disk->fd, &st) < 0 || weft_chase(&at, disk->path, NULL) < 0)
		return;
	if (at.exists && at.st.st_dev == st.st_dev && at.st.st_ino == st.st_ino &&
	    weft_chased_unlink(&at) == 0)
		weft_info("%s: removed again", disk->path);
}

static void file_close(struct weft_backend *be)
{
	if (be->created && be->never_served)
		remove_created(weft_disk_of(be));
	weft_disk_close(be);
}

/* Checks everything before it changes anything. */
static int file_new(struct weft_backend **be, int *fd, const struct weft_spec *spec,
		    struct weft_err *err)
{
	struct alignment align;
	struct weft_disk *disk;
	uint64_t have = 0, size = 0;
	int rc;

	rc = choose_size(*fd, spec, &have, &size, err);
	if (rc < 0)
		return rc;
	rc = choose_alignment(*fd, spec, &align, err);
	if (rc < 0)
		return rc;
	rc = weft_disk_new(&disk, fd, spec, size, align.offset > 512 ? 4096 : 512, err);
	if (rc < 0)
		return rc;
	disk->be.align = align.memory;
	disk->be.thin = true;
	*be = &disk->be;
	return size > have ? grow_file(disk->fd, spec, err) : 0;
}

static int file_open(struct weft_backend **be, const struct weft_spec *spec, struct weft_err *err)
{
	_cleanup_(weft_backend_closep) struct weft_backend *file = NULL;
	_cleanup_(weft_closep) int fd = -1;
	_cleanup_(weft_chased_close) struct weft_chased at = {};
	bool created = false;
	int rc;

	fd = open_or_create(&at, spec, &created, err);
	if (fd < 0)
		return fd;
	rc = lock_file(fd, spec, err);
	if (rc < 0)
		return rc; /* even if created: somebody else uses it already */
	rc = file_new(&file, &fd, spec, err);
	if (rc == 0 && !spec->read_only)
		rc = sync_name(&at, spec, created, err);
	if (rc < 0 && created)
		weft_chased_unlink(&at); /* we hold the lock, so it is still ours */
	if (rc < 0)
		return rc;
	file->created = created && !spec->node;
	*be = take_ptr(&file);
	return 0;
}

static int check_not_truncated(int fd, const struct weft_spec *spec, struct weft_err *err)
{
	char text[32];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return weft_spec_fail(spec, err, -errno, "cannot look at it: %s", strerror(errno));
	if ((uint64_t)st.st_size >= spec->size)
		return 0;
	weft_size_format((uint64_t)st.st_size, text, sizeof(text));
	return weft_spec_fail(spec, err, -EINVAL,
			      "it has %s, less than the running target serves: somebody has cut it; "
			      "restore it, or stop that target and start anew, with zeroes there",
			      text);
}

/* The lock belongs to the open file description, and so came with it; locking again makes sure. */
static int file_adopt(struct weft_backend **be, const struct weft_spec *spec, int adopted_fd,
		      struct weft_err *err)
{
	_cleanup_(weft_backend_closep) struct weft_backend *file = NULL;
	_cleanup_(weft_closep) int fd = adopted_fd;
	int rc;

	assert(fd >= 0);
	rc = lock_file(fd, spec, err);
	if (rc == 0)
		rc = check_not_truncated(fd, spec, err);
	if (rc == 0)
		rc = file_new(&file, &fd, spec, err);
	if (rc == 0)
		*be = take_ptr(&file);
	return rc;
}

const struct weft_backend_ops weft_file_ops = {
	.type = "file",
	.usage = "file:PATH[,size=SIZE][,direct]",
	.keys = WEFT_KEY_SIZE | WEFT_KEY_DIRECT,
	.open = file_open,
	.adopt = file_adopt,
	.descriptor = weft_disk_descriptor,
	.submit = weft_disk_submit,
	.extents = true,
	.used = file_used,
	.resize = file_resize,
	.node_active = weft_disk_node_active,
	.lock_as = weft_disk_lock_as,
	.identity = file_identity,
	.close = file_close,
};
