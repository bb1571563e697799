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

#include "base/ofd.h"

/* No bytes would be all that follow. */
static int find_held(int fd, off_t start, uint64_t len, off_t *at)
{
	return len ? weft_ofd_held(fd, F_WRLCK, start, (off_t)len, at) : 0;
}

static int look(int fd, const struct weft_agree *at, uint64_t as, uint64_t *other)
{
	off_t mine = at->from + (off_t)as, found;
	int rc = find_held(fd, at->from, as, &found);

	if (!rc)
		rc = find_held(fd, mine + 1, at->count - as - 1, &found);
	if (rc <= 0)
		return rc;
	*other = (uint64_t)(found - at->from);
	return -ENOTUNIQ;
}

int weft_agree(int fd, const struct weft_agree *at, uint64_t as, uint64_t *other)
{
	int rc = weft_ofd_lock(fd, F_RDLCK, at->from + (off_t)as, 1);

	if (!rc)
		rc = look(fd, at, as, other);
	if (rc < 0)
		weft_agree_end(fd, at);
	return rc;
}

void weft_agree_end(int fd, const struct weft_agree *at)
{
	weft_ofd_lock(fd, F_UNLCK, at->from, (off_t)at->count);
}
