/* detach.h - continue in the background after a successful start. */
#ifndef WEFT_CLI_DETACH_H
#define WEFT_CLI_DETACH_H

#include <stdbool.h>

/* Forks. The parent waits here for what the child says, and exits. In the child, which has no
 * threads yet, returns what weft_detach_done() takes; -errno: there is no child. */
int weft_detach(void);
/* In the child: all is well; the terminal is let go of, the parent exits with 0. Standard error is
 * @log from now on; -1: nothing. A child that ends without this has said why on stderr, and its
 * status is the parent's. */
void weft_detach_done(int handle, int log);
/* Whether standard error is a thing that the child can keep: a file, or the journal's socket, but
 * not a terminal or a pipe, whose other end waits for us. */
bool weft_detach_may_keep(void);

#endif
