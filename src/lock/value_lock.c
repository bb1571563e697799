/* value_lock.c - all processes that have a file open must hold the same value for it: an OFD lock
 * on the byte that stands for the value.
 *
 *   from ─────────── from + as ─────────────────── from + count
 *        nobody          │           nobody
 *                  shared, of all
 *
 * The lock ends with its process, in whatever way, and is seen wherever the file's locks are. We
 * lock our own byte first and then test the others, so of two that differ at least one notices. */
#include "lock/value_lock.h"

#include <errno.h>

#include "lock/ofd.h"

/* A length of 0 would mean all bytes that follow. */
static int find_lock(int fd, off_t start, uint64_t len, off_t *at)
{
	return len ? weft_ofd_test(fd, F_WRLCK, start, (off_t)len, at) : 0;
}

static int find_other_value(int fd, const struct weft_value_range *at, uint64_t as, uint64_t *other)
{
	off_t mine = at->from + (off_t)as, found;
	int rc = find_lock(fd, at->from, as, &found);

	if (!rc)
		rc = find_lock(fd, mine + 1, at->count - as - 1, &found);
	if (rc <= 0)
		return rc;
	*other = (uint64_t)(found - at->from);
	return -ENOTUNIQ;
}

int weft_value_lock(int fd, const struct weft_value_range *at, uint64_t as, uint64_t *other)
{
	int rc = weft_ofd_lock(fd, F_RDLCK, at->from + (off_t)as, 1);

	if (!rc)
		rc = find_other_value(fd, at, as, other);
	if (rc < 0)
		weft_value_unlock(fd, at);
	return rc;
}

void weft_value_unlock(int fd, const struct weft_value_range *at)
{
	weft_ofd_lock(fd, F_UNLCK, at->from, (off_t)at->count);
}
