/* shared_fs.c - is the state file on a file system that other machines can mount? */
#include <linux/magic.h>
#include <sys/vfs.h>

#include "store/file.h"

/* Not in <linux/magic.h>. */
enum { GFS2 = 0x01161970, LUSTRE = 0x0bd00bd0, GPFS = 0x47504653, BEEGFS = 0x19830326 };

bool store_file_on_shared_fs(const struct weft_store *store)
{
	const struct file_store *f = container_of(store, struct file_store, store);
	struct statfs fs;

	if (f->fd < 0 || fstatfs(f->fd, &fs) < 0)
		return false;
	switch ((uint32_t)fs.f_type) {
	case NFS_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case CEPH_SUPER_MAGIC:
	case OCFS2_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC: /* GlusterFS, virtiofs and others */
	case V9FS_MAGIC:
	case AFS_FS_MAGIC:
	case GFS2:
	case LUSTRE:
	case GPFS:
	case BEEGFS:
		return true;
	default:
		return false;
	}
}
