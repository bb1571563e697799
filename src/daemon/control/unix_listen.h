/* unix_listen.h - a listening Unix socket at a path. */
#ifndef WEFT_DAEMON_CONTROL_UNIX_LISTEN_H
#define WEFT_DAEMON_CONTROL_UNIX_LISTEN_H

#include <stdbool.h>

#include "base/err.h"

/* The descriptor, non-blocking, or -errno; see weft_control_socket_open(). */
int weft_unix_listen(const char *path, bool make_dir, struct weft_err *err);
/* Whatever socket is there. */
void weft_unix_remove(const char *path);

#endif
