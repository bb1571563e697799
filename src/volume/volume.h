/* volume.h - volumes: namespaces that outlive their controller, and the connection that replaces a
 * dead controller. The nbdkit plugin is built with it, too. */
#ifndef WEFT_VOLUME_H
#define WEFT_VOLUME_H

#include <pthread.h>
#include <stdatomic.h>
#include <weft/host.h>

#include "base/list.h"
#include "volume/queue_pool.h"

/* A controller of the connection, until it is dead and replaced. */
struct weft_volume_ctrl {
	struct weft_ctrl *ctrl;
	struct weft_queue_pool *queues;
};

struct weft_volume_conn {
	const char *uri;
	const struct weft_options *options;
	struct weft_ctrl_info first_info; /* of the first controller */
	int epoll_fd;    /* @replaced_fd, and the events of the present controller */
	int replaced_fd; /* eventfd: controllers since it was last read */

	pthread_rwlock_t ctrl_lock; /* read: use @vctrl and the volumes' @ns; write: replace them */
	struct weft_volume_ctrl vctrl;

	pthread_mutex_t lock; /* of the list; never held while waiting for the target */
	struct weft_list volumes;
	/* Its namespace is being opened on the next controller; NULL: none, or it was closed. */
	struct weft_volume *reopening;
	unsigned reopen_pass; /* how many passes there were */

	pthread_mutex_t replace_lock; /* held to connect again */
	uint64_t replace_tried_ms;
};

/* A namespace, on all controllers of the connection that show the same one. */
struct weft_volume {
	struct weft_list link;
	struct weft_volume_conn *conn;
	struct weft_ns *ns;       /* NULL: this controller does not show it */
	struct weft_ns *next_ns;  /* on the next controller */
	unsigned reopen_pass;     /* the last pass that has opened it */
	struct weft_ns_info info; /* as it was at first */
	/* As it was seen last; under conn->lock. */
	struct weft_ns_info last_info;
	atomic_uint nr_running; /* I/Os under way */
	void *user;             /* under conn->lock */

	/* What flushes have to report of former controllers; changed when the controller is
	 * replaced. */
	unsigned unflushed_losses; /* controllers that died with unflushed writes */
	/* … and no other controller has the namespace: no flush succeeds again. */
	bool unflushed_gone;
	atomic_uint flush_reported; /* the last of them that a flush has failed for */
};

/* @uri and @options (may be NULL) stay in place until weft_volume_conn_close(). */
int weft_volume_conn_open(struct weft_volume_conn *conn, const char *uri,
			  const struct weft_options *options, struct weft_err *err);
/* No I/O is under way any more. Volumes that are still open stay so, without a namespace. Also for
 * a connection that is all zeroes. */
void weft_volume_conn_close(struct weft_volume_conn *conn);

/* As weft_ns_list(), weft_ctrl_next_event(). */
int weft_volume_conn_list_ns(struct weft_volume_conn *conn, uint32_t *nsids, unsigned max,
			     struct weft_err *err);
bool weft_volume_conn_next_event(struct weft_volume_conn *conn, struct weft_event *event);
bool weft_volume_conn_is_live(struct weft_volume_conn *conn);

/* True: @rc came from a dead controller, which has not carried the command out, and the connection
 * has a new one. For a command without a status: an -EIO that a controller has answered is not its
 * death. */
bool weft_volume_conn_replace_if_dead(struct weft_volume_conn *conn, int rc);

/* A volume, for the length of a call. */
struct weft_volume_view {
	void *user;             /* of weft_volume_set_user(); NULL: was not set */
	struct weft_ctrl *ctrl; /* the present controller */
	struct weft_ns *ns;     /* NULL: that does not show it */
	unsigned nr_running;    /* I/Os under way */
};

/* Shows @look each open volume. While the controller is being replaced this waits for I/O of the
 * old one; @look may not wait, and calls no function of a volume. */
void weft_volume_conn_for_each(struct weft_volume_conn *conn,
			       void (*look)(void *arg, const struct weft_volume_view *view),
			       void *arg);

/* --- volume.c --------------------------------------------------------------------------------- */

int weft_volume_open(struct weft_volume_conn *conn, uint32_t nsid, struct weft_volume **volume,
		     struct weft_err *err);
/* After this returns weft_volume_conn_for_each() does not show @user any more. */
void weft_volume_close(struct weft_volume *volume);
/* What weft_volume_conn_for_each() shows with @volume; the caller owns it. */
void weft_volume_set_user(struct weft_volume *volume, void *user);

/* As of now, or, if this controller does not show it, as it was at first. While the controller is
 * being replaced this waits for I/O of the old one. */
void weft_volume_info(struct weft_volume *volume, struct weft_ns_info *info);
/* As of now, or as it was seen last. Never waits. */
void weft_volume_info_nowait(struct weft_volume *volume, struct weft_ns_info *info);
/* By identity (UUID, NGUID, EUI64) and block size. Two namespaces without identity are the same
 * only on one controller, whose library follows them. */
bool weft_ns_info_has_identity(const struct weft_ns_info *info);
bool weft_ns_info_same(const struct weft_ns_info *x, const struct weft_ns_info *y);
/* Whether a path of this controller shows it, as the library knows without a command. */
bool weft_volume_is_visible(struct weft_volume *volume);
/* Whether @other is what @volume is on this controller. */
bool weft_volume_is_same(struct weft_volume *volume, const struct weft_volume *other);

/* weft_run() on a free queue, from any thread; sets @cmd->ns. -EIO: the target is gone for longer
 * than loss_timeout, and cannot be connected to again; or it is not known whether the command was
 * carried out. Not for a flush. */
int weft_volume_run(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err);

/* A flush covers writes to former controllers, too. -EIO: one of them, with a volatile cache, died
 * before they were flushed. That is reported once; *@flush_reported is how far this caller was
 * told, and begins with what weft_volume_flush_reported() returns. -ENOTRECOVERABLE: the same,
 * reported every time, because controllers do not share the namespace. */
int weft_volume_flush(struct weft_volume *volume, unsigned *flush_reported, struct weft_err *err);
/* A loss that nobody was told of yet is reported to new callers, too. */
unsigned weft_volume_flush_reported(struct weft_volume *volume);

/* As weft_ns_extents(), but never fails: unknown blocks count as data. @length and @max are not
 * 0. */
unsigned weft_volume_extents(struct weft_volume *volume, uint64_t offset, uint64_t length,
			     struct weft_ns_extent *extents, unsigned max);

#endif
