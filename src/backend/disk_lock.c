/* disk_lock.c - who may use a file or a block device: one process alone, or the nodes of a cluster
 * together.
 *
 *   0 ─────────────────────────────── 2^62 ── 2^62 + node ───────── 2^62 + 2^61 + as ──▶
 *   alone:    exclusive (read only: shared), all of it
 *   cluster:  shared, the bytes below 2^62; exclusive, the node's own byte behind it;
 *             shared, the byte of the namespace's number (lock/value_lock.h)
 *
 * These are OFD locks: they keep two namespaces of one process apart, too, and work with other
 * programs that lock images so (QEMU). An open file description lives until the last operation on
 * it has ended, also if its process was killed with operations under way: while a node's byte is
 * locked, I/O of that node may still reach the storage. */
#include <sys/stat.h>

#include "backend/disk.h"
#include "base/log.h"
#include "lock/ofd.h"
#include "lock/value_lock.h"

static const off_t node_bytes_at = (off_t)1 << 62;
static const struct weft_value_range value_bytes = { 3ll << 61, WEFT_LOCK_AS_MAX };

static int set_lock(int fd, short type, off_t start, off_t len)
{
	int rc = weft_ofd_lock(fd, type, start, len);

	return rc == -EAGAIN ? -EBUSY : rc;
}

static void warn_of_readers(int fd, const struct weft_spec *spec)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_mode & S_IRWXO)
		weft_warn("%s: every user may open it, and so lock it and keep a node that starts "
			  "from having it; take that away (chmod o= %s)",
			  spec->arg, spec->arg);
}

int weft_disk_lock(int fd, const struct weft_spec *spec)
{
	int rc;

	assert(spec->node <= WEFT_NODES_MAX);
	if (!spec->node)
		return set_lock(fd, spec->read_only ? F_RDLCK : F_WRLCK, 0, 0);
	warn_of_readers(fd, spec);
	rc = set_lock(fd, F_RDLCK, 0, node_bytes_at);
	return rc < 0 ? rc :
			set_lock(fd, spec->read_only ? F_RDLCK : F_WRLCK,
				 node_bytes_at + spec->node, 1);
}

/* A node that can write holds its byte exclusively, so we ask for a shared lock: locks of others,
 * who may only read the file, do not count. If the test fails, I/O may be under way. */
bool weft_disk_node_active(struct weft_backend *be, unsigned node)
{
	assert(node && node <= WEFT_NODES_MAX);
	return weft_ofd_test(weft_disk_of(be)->fd, F_RDLCK, node_bytes_at + node, 1, NULL);
}

int weft_disk_lock_as(struct weft_backend *be, uint64_t as, uint64_t *other)
{
	assert(as < WEFT_LOCK_AS_MAX);
	return weft_value_lock(weft_disk_of(be)->fd, &value_bytes, as, other);
}
