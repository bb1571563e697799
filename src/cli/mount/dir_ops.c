/* dir_ops.c - FUSE operations on the directory, which has one file per namespace.
 *
 * Node 1 is the directory; any other node is the address of its weft_mount_node. The kernel caches
 * nothing: neither data, since other hosts may write to the namespace, nor attributes. */
#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/mount/session.h"

#define IN_FLIGHT_MAX 64

static struct weft_mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void on_init(void *user, struct fuse_conn_info *conn)
{
	/* With O_TRUNC a file is opened as a disk is: nothing happens to it. Without this the
	 * kernel would ask to make it empty. */
	conn->want |= conn->capable & FUSE_CAP_ATOMIC_O_TRUNC;
	conn->want |= conn->capable & FUSE_CAP_ASYNC_DIO;
	conn->max_write = WEFT_MOUNT_REQUEST_MAX;
	conn->max_background = IN_FLIGHT_MAX;
	conn->congestion_threshold = IN_FLIGHT_MAX;
}

/* --- attributes ------------------------------------------------------------------------------- */

/* Who may read the files may see which there are; nobody makes any. */
static void directory_stat(const struct weft_mount *mount, struct stat *st)
{
	mode_t readers = mount->options->mode & 0444;

	*st = (struct stat){
		.st_ino = FUSE_ROOT_ID,
		.st_mode = S_IFDIR | S_IRWXU | readers | readers >> 2,
		.st_nlink = 2,
		.st_uid = getuid(),
		.st_gid = getgid(),
		.st_atim = { .tv_sec = mount->since },
		.st_mtim = { .tv_sec = mount->since },
		.st_ctim = { .tv_sec = mount->since },
	};
}

/* All its blocks count as allocated: programs take a file with fewer for one with holes. */
static void node_stat(const struct weft_mount *mount, struct weft_mount_node *node, struct stat *st)
{
	struct weft_ns_info info;
	bool read_only;

	weft_volume_info_nowait(node->volume, &info);
	read_only = info.read_only || mount->options->read_only;
	*st = (struct stat){
		.st_ino = FUSE_ROOT_ID + (ino_t)node->nsid,
		.st_mode = S_IFREG | (mount->options->mode & (read_only ? 0444 : 0666)),
		.st_nlink = 1,
		.st_uid = getuid(),
		.st_gid = getgid(),
		.st_size = (off_t)info.size,
		.st_blocks = (blkcnt_t)(info.size / 512),
		.st_blksize = info.block_size > 4096 ? (blksize_t)info.block_size : 4096,
		.st_atim = { .tv_sec = node->written },
		.st_mtim = { .tv_sec = node->written },
		.st_ctim = { .tv_sec = node->written },
	};
}

static void any_stat(struct weft_mount *mount, fuse_ino_t ino, struct stat *st)
{
	if (ino == FUSE_ROOT_ID)
		directory_stat(mount, st);
	else
		node_stat(mount, weft_mount_node_of(ino), st);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	any_stat(mount_of(req), ino, &st);
	fuse_reply_attr(req, &st, 0);
}

/* A disk has the size it has; times may be asked for and stay. */
static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *wanted, int what,
		       struct fuse_file_info *fi)
{
	struct stat st;

	any_stat(mount_of(req), ino, &st);
	if (what & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		fuse_reply_err(req, EPERM);
	else if ((what & FUSE_SET_ATTR_SIZE) && wanted->st_size != st.st_size)
		fuse_reply_err(req, EINVAL);
	else
		fuse_reply_attr(req, &st, 0);
}

static void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st = { .f_bsize = 4096, .f_frsize = 4096, .f_namemax = 15 };
	struct weft_mount *mount = mount_of(req);
	struct weft_ns_info info;
	struct weft_mount_node *node;
	uint32_t nsid = 0;

	while ((node = weft_mount_table_next(&mount->table, nsid))) {
		nsid = node->nsid;
		st.f_files++;
		weft_volume_info_nowait(node->volume, &info);
		st.f_blocks += info.size / st.f_frsize;
		weft_mount_node_put(&mount->table, node, 1);
	}
	fuse_reply_statfs(req, &st);
}

/* --- names ------------------------------------------------------------------------------------ */

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct weft_mount *mount = mount_of(req);
	struct fuse_entry_param entry = {};
	struct weft_mount_node *node;

	node = parent == FUSE_ROOT_ID ? weft_mount_table_find(&mount->table, name) : NULL;
	if (!node) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	entry.ino = (uintptr_t)node;
	entry.generation = node->generation;
	node_stat(mount, node, &entry.attr);
	if (fuse_reply_entry(req, &entry) < 0) /* the kernel did not get the reference */
		weft_mount_node_put(&mount->table, node, 1);
}

static void on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	if (ino != FUSE_ROOT_ID)
		weft_mount_node_put(&mount_of(req)->table, weft_mount_node_of(ino), lookups);
	fuse_reply_none(req);
}

/* Entry 1 is ".", 2 is "..", and 2 + nsid a namespace: where a listing goes on does not depend on
 * what came and went. Returns false when @name does not fit. */
static bool add_dir_entry(fuse_req_t req, char *buf, size_t size, size_t *used, const char *name,
			  mode_t type, off_t entry)
{
	const struct stat st = { .st_ino = entry > 2 ? (ino_t)entry - 1 : FUSE_ROOT_ID,
				 .st_mode = type };
	size_t need = fuse_add_direntry(req, buf + *used, size - *used, name, &st, entry);

	if (need > size - *used)
		return false;
	*used += need;
	return true;
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t after,
		       struct fuse_file_info *fi)
{
	_cleanup_(weft_freep) char *buf = malloc(size);
	struct weft_mount *mount = mount_of(req);
	struct weft_mount_node *node;
	bool fits = buf;
	size_t used = 0;

	if (after < 1)
		fits = fits && add_dir_entry(req, buf, size, &used, ".", S_IFDIR, 1);
	if (after < 2)
		fits = fits && add_dir_entry(req, buf, size, &used, "..", S_IFDIR, 2);
	after = after < 2 ? 2 : after;
	while (fits && (node = weft_mount_table_next(&mount->table, (uint32_t)(after - 2)))) {
		after = 2 + (off_t)node->nsid;
		fits = add_dir_entry(req, buf, size, &used, node->name, S_IFREG, after);
		weft_mount_node_put(&mount->table, node, 1);
	}
	fuse_reply_buf(req, buf, used);
}

/* --- what a directory of disks does not have -------------------------------------------------- */

static void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	fuse_reply_err(req, EPERM);
}

static void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	fuse_reply_err(req, EPERM);
}

static void on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, EPERM);
}

static void on_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, EPERM);
}

static void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, EPERM);
}

static void on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		      const char *newname, unsigned flags)
{
	fuse_reply_err(req, EPERM);
}

static void on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	fuse_reply_err(req, EPERM);
}

const struct fuse_lowlevel_ops weft_mount_ops = {
	.init = on_init,
	.lookup = on_lookup,
	.forget = on_forget,
	.getattr = on_getattr,
	.setattr = on_setattr,
	.statfs = on_statfs,
	.readdir = on_readdir,
	.mknod = on_mknod,
	.mkdir = on_mkdir,
	.unlink = on_unlink,
	.rmdir = on_unlink,
	.symlink = on_symlink,
	.link = on_link,
	.rename = on_rename,
	.create = on_create,
	.open = weft_mount_open,
	.release = weft_mount_release,
	.read = weft_mount_read,
	.write = weft_mount_write,
	.fsync = weft_mount_fsync,
	.fallocate = weft_mount_fallocate,
	.lseek = weft_mount_lseek,
};
