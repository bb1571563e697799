/* agree.c - several who have a file open say the same number of something, or learn that they do
 * not.
 *
 *   from ─────────── from + as ─────────────────── from + count
 *        nobody          │           nobody
 *                  shared, of all
 *
 * It is a lock of the open file description on the byte that stands for the number: it ends with
 * who says it, however that comes, and reaches as far as the file's locks do. First ours, then a
 * look at the others: of two who do not agree, one at least sees it. */
#include "base/agree.h"

#include <errno.h>
#include <fcntl.h>

static int set_lock(int fd, short type, off_t start, uint64_t len)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = (off_t)len
	};

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

/* The first byte that another has locked; 0: none. */
static int find_locked(int fd, off_t start, uint64_t len, off_t *at)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = (off_t)len
	};

	*at = 0;
	if (!len) /* which would be all that follows */
		return 0;
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return -errno;
	if (lock.l_type != F_UNLCK)
		*at = lock.l_start;
	return 0;
}

static int look(int fd, const struct weft_agree *at, uint64_t as, uint64_t *other)
{
	off_t mine = at->from + (off_t)as, found;
	int rc = find_locked(fd, at->from, as, &found);

	if (!rc && !found)
		rc = find_locked(fd, mine + 1, at->count - as - 1, &found);
	if (rc < 0 || !found)
		return rc;
	*other = (uint64_t)(found - at->from);
	return -ENOTUNIQ;
}

int weft_agree(int fd, const struct weft_agree *at, uint64_t as, uint64_t *other)
{
	int rc = set_lock(fd, F_RDLCK, at->from + (off_t)as, 1);

	if (!rc)
		rc = look(fd, at, as, other);
	if (rc < 0)
		weft_agree_end(fd, at);
	return rc;
}

void weft_agree_end(int fd, const struct weft_agree *at)
{
	set_lock(fd, F_UNLCK, at->from, at->count);
}
