/* ofd.c - OFD locks: byte-range locks of an open file description. */
#include "lock/ofd.h"

#include <errno.h>
#include <unistd.h>

int weft_ofd_lock(int fd, short type, off_t start, off_t len)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

int weft_ofd_test(int fd, short type, off_t start, off_t len, off_t *at)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };

	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return -errno;
	if (at)
		*at = lock.l_start;
	return lock.l_type != F_UNLCK;
}
