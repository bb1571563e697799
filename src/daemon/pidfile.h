/* pidfile.h - the pid of who serves, for those who send signals. */
#ifndef WEFT_DAEMON_PIDFILE_H
#define WEFT_DAEMON_PIDFILE_H

#include "base/err.h"

/* Whether it can be written; one that is not there is there now, and empty. */
int weft_pidfile_check(const char *path, struct weft_err *err);
/* From now on it has our pid. */
int weft_pidfile_write(const char *path, struct weft_err *err);
/* Removes it if it is ours, or still empty: another process may have taken our place. */
void weft_pidfile_remove(const char *path);

#endif
