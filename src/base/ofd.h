/* ofd.h - locks on bytes of a file, of an open file description: they end with its last descriptor,
 * and keep two descriptions of one process apart, too. */
#ifndef WEFT_BASE_OFD_H
#define WEFT_BASE_OFD_H

#include <fcntl.h>

/* Locks @len bytes from @start on (0: all that follow), or unlocks them; @type as of struct flock.
 * -EAGAIN: another has some of them. */
int weft_ofd_lock(int fd, short type, off_t start, off_t len);
/* Does another keep us from such a lock? 1: yes, and *@at is the first byte that it has; @at may be
 * NULL. */
int weft_ofd_held(int fd, short type, off_t start, off_t len, off_t *at);

#endif
