/* pidfile.h - the pid of the process that serves, for those who send signals. */
#ifndef WEFT_DAEMON_PIDFILE_H
#define WEFT_DAEMON_PIDFILE_H

#include <stdbool.h>

#include "base/err.h"

/* Names the file itself, its device and inode: a path is relative to a working directory, and may
 * have links. */
struct weft_pidfile_id {
	char text[48];
};

/* Whether it can be written; one that is not there is there now, and empty. */
int weft_pidfile_check(const char *path, struct weft_err *err);
/* false: there is no file. */
bool weft_pidfile_identify(const char *path, struct weft_pidfile_id *id);
/* From now on it has our pid. */
int weft_pidfile_write(const char *path, struct weft_err *err);
/* Removes it if it is ours, or still empty: another process may have taken our place. */
void weft_pidfile_remove(const char *path);

#endif
