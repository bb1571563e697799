/* detach.h - go on in the background once there is nothing left to complain about. */
#ifndef WEFT_CLI_DETACH_H
#define WEFT_CLI_DETACH_H

/* Forks. The parent waits here for what the child says, and exits. In the child, which has no
 * threads yet, returns what weft_detach_done() takes; -errno: there is no child. */
int weft_detach(void);
/* In the child: all is well; the terminal is let go of, the parent exits with 0. Who wants to keep
 * its stderr writes a byte to the handle instead. A child that ends without this has said why on
 * stderr, and its status is the parent's. */
void weft_detach_done(int handle);

#endif
