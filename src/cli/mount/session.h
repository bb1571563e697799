/* session.h - what the parts of a mount share. */
#ifndef WEFT_CLI_MOUNT_SESSION_H
#define WEFT_CLI_MOUNT_SESSION_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "cli/mount/mount.h"
#include "cli/mount/table.h"

struct weft_mount {
	const struct weft_mount_options *options;
	struct weft_ctrl *ctrl;
	struct weft_queues *queues;
	struct weft_table table;
	struct fuse_session *session;
	time_t since;

	/* watch.c */
	pthread_t watcher, main;
	int signals, stop; /* signalfd, eventfd */
	bool lost;         /* the connection */
};

extern const struct fuse_lowlevel_ops weft_mount_ops; /* user data: a struct weft_mount */

/* Follows the controller's events and the process's signals. The signals are blocked from
 * weft_watch_prepare() on, in every thread that is made after it. */
int weft_watch_prepare(struct weft_mount *mount);
int weft_watch_start(struct weft_mount *mount);
void weft_watch_stop(struct weft_mount *mount);

#endif
