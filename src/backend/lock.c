/* lock.c - who may use a file or a device: one for itself, or the nodes of a cluster together.
 *
 *   0 ─────────────────────────────── 2^62 ── 2^62 + node ───────── 2^62 + 2^61 + as ──▶
 *   alone:    exclusive (read only: shared), all of it
 *   cluster:  shared, what is in front of 2^62; exclusive, the node's own byte behind it;
 *             shared, the byte of what all take it for: who finds another one locked stays out
 *
 * Locks are the open file description's: two namespaces of one process are kept apart too, and
 * other programs that lock images so (QEMU) are. A description lives until the last operation on it
 * has ended, also when its process was killed with operations under way: while a node's byte is
 * locked, something of it may still reach the storage. */
#include <fcntl.h>

#include "backend/disk.h"

static const off_t nodes_at = (off_t)1 << 62, as_at = 3ll << 61;

static int set_lock(int fd, short type, off_t start, off_t len)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

int weft_disk_lock(int fd, const struct weft_spec *spec)
{
	int rc;

	if (!spec->node)
		return set_lock(fd, spec->read_only ? F_RDLCK : F_WRLCK, 0, 0);
	rc = set_lock(fd, F_RDLCK, 0, nodes_at);
	return rc < 0 ? rc :
			set_lock(fd, spec->read_only ? F_RDLCK : F_WRLCK, nodes_at + spec->node, 1);
}

/* What cannot be asked may be there. */
bool weft_disk_left(struct weft_backend *be, unsigned node)
{
	struct flock lock = {
		.l_type = be->read_only ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = nodes_at + node,
		.l_len = 1,
	};

	return fcntl(weft_disk_of(be)->fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* --- what it is taken for --------------------------------------------------------------------- */

/* The first byte from @start on that another one has locked; 0: none. */
static int find_locked(int fd, off_t start, off_t len, off_t *at)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = len
	};

	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return -errno;
	*at = lock.l_type == F_UNLCK ? 0 : lock.l_start;
	return 0;
}

/* First ours, then a look at the others: of two who do not agree, one at least sees it. */
int weft_disk_agree(struct weft_backend *be, uint64_t as, uint64_t *other)
{
	int fd = weft_disk_of(be)->fd;
	off_t mine = as_at + (off_t)as, at = 0;
	int rc = set_lock(fd, F_RDLCK, mine, 1);

	if (!rc && as)
		rc = find_locked(fd, as_at, (off_t)as, &at);
	if (!rc && !at && as + 1 < WEFT_AS_MAX)
		rc = find_locked(fd, mine + 1, 0, &at);
	if (rc < 0 || !at)
		return rc;
	*other = (uint64_t)(at - as_at);
	return -ENOTUNIQ;
}
