/* pidfile.h - the pid file, for those who send signals. */
#ifndef WEFT_DAEMON_PIDFILE_H
#define WEFT_DAEMON_PIDFILE_H

#include <stdbool.h>

#include "base/err.h"

/* The file's device and inode: a path is relative to a working directory, and may have links. */
struct weft_pidfile_id {
	char text[48];
};

/* Whether the file can be written; creates it, empty, if it does not exist. */
int weft_pidfile_check(const char *path, struct weft_err *err);
/* false: there is no file. */
bool weft_pidfile_identify(const char *path, struct weft_pidfile_id *id);
/* Writes our pid. */
int weft_pidfile_write(const char *path, struct weft_err *err);
/* Removes the file if it has our pid or is empty: another process may have taken our place. */
void weft_pidfile_remove(const char *path);

#endif
