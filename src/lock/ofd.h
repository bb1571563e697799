/* ofd.h - OFD locks: byte-range locks of an open file description. They end with its last
 * descriptor, and work between two descriptions of one process, too. */
#ifndef WEFT_LOCK_OFD_H
#define WEFT_LOCK_OFD_H

#include <fcntl.h>

/* Locks @len bytes from @start on (0: all that follow), or unlocks them; @type as in struct flock.
 * -EAGAIN: another description has a lock there. */
int weft_ofd_lock(int fd, short type, off_t start, off_t len);
/* Does another description prevent such a lock? 1: yes, and *@at is the first byte that it has; @at
 * may be NULL. */
int weft_ofd_test(int fd, short type, off_t start, off_t len, off_t *at);

#endif
