/* session.h - the mount session: what its files share. */
#ifndef WEFT_CLI_MOUNT_SESSION_H
#define WEFT_CLI_MOUNT_SESSION_H

#include "cli/mount/buffers.h"
#include "cli/mount/interrupt.h"
#include "cli/mount/mount.h"
#include "cli/mount/ns_table.h"

enum { WEFT_MOUNT_REQUEST_MAX = 1 << 20 }; /* bytes; the kernel has no larger ones */

struct weft_mount {
	const struct weft_mount_options *options;
	struct weft_volume_conn *conn;
	struct weft_mount_table table;
	struct weft_mount_calls calls;
	struct weft_mount_buffers buffers;
	struct fuse_session *session;
	time_t since;

	/* signals.c */
	pthread_t signals_thread, main;
	int signal_fd, stop_fd; /* signalfd, eventfd */

	/* ctrl_events.c */
	pthread_t events_thread;
	int events_stop_fd; /* eventfd */
	bool ctrl_lost;     /* the connection is lost */
	unsigned left_out;  /* namespaces that were reported as left out */
};

extern const struct fuse_lowlevel_ops weft_mount_ops; /* user data: a struct weft_mount */

/* Any node but the directory. */
static inline struct weft_mount_node *weft_mount_node_of(fuse_ino_t ino)
{
	return (struct weft_mount_node *)(uintptr_t)ino;
}

/* file_ops.c */
void weft_mount_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void weft_mount_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void weft_mount_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi);
void weft_mount_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
		      struct fuse_file_info *fi);
void weft_mount_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void weft_mount_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
			  struct fuse_file_info *fi);
void weft_mount_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		      struct fuse_file_info *fi);

/* Follows the controller's events. */
int weft_mount_events_start(struct weft_mount *mount);
void weft_mount_events_stop(struct weft_mount *mount);
/* Updates the directory to the controller's namespaces, and reports those that it has no room
 * for. */
int weft_mount_scan(struct weft_mount *mount, struct weft_err *err);
/* To standard error, or to the system's log. */
void weft_mount_log(const struct weft_mount *mount, const char *what, const char *text);

/* Handles the process's signals and interrupted calls. The signals are blocked from
 * weft_mount_signals_prepare() on, in every thread that is created after it. */
int weft_mount_signals_prepare(struct weft_mount *mount);
int weft_mount_signals_start(struct weft_mount *mount);
void weft_mount_signals_stop(struct weft_mount *mount);

#endif
