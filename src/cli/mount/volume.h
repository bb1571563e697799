/* volume.h - a controller that is replaced when it is dead, and the namespaces used through it. The
 * nbdkit plugin is built with it too. */
#ifndef WEFT_CLI_MOUNT_VOLUME_H
#define WEFT_CLI_MOUNT_VOLUME_H

#include <pthread.h>
#include <stdatomic.h>
#include <weft/host.h>

#include "base/list.h"
#include "cli/mount/queue_pool.h"
#include "cli/path_wait.h"

/* One life of the connection. */
struct weft_volume_ctrl {
	struct weft_ctrl *ctrl;
	struct weft_queue_pool *queues;
};

struct weft_volume_conn {
	const char *uri;
	const struct weft_options *options;
	struct weft_ctrl_info first_info; /* of the first life */
	int epoll_fd;                     /* epoll: @begun, and what the present life has to tell */
	int replaced_fd;                  /* eventfd: lives since it was last asked */

	pthread_rwlock_t ctrl_lock; /* read: uses @line and the volumes' @ns; write: replaces them */
	struct weft_volume_ctrl vctrl;

	pthread_mutex_t lock; /* of the list; nobody waits for the target with it */
	struct weft_list volumes;
	struct weft_volume
		*reopening;   /* in the life that is about to begin; NULL: none, or it closed */
	unsigned reopen_pass; /* how many there were */

	pthread_mutex_t replace_lock; /* to connect again */
	uint64_t replace_tried_ms;
};

/* A namespace, through all lives of the connection in which it is the same one. */
struct weft_volume {
	struct weft_list link;
	struct weft_volume_conn *conn;
	struct weft_ns *ns;       /* NULL: it is not there in this life */
	struct weft_ns *next_ns;  /* in the life that is about to begin */
	unsigned reopen_pass;     /* the last that has looked for it */
	struct weft_ns_info info; /* as it was at first */
	/* As it was when last somebody looked; under conn->lock. */
	struct weft_ns_info last_info;
	atomic_uint nr_running; /* I/Os that are not over */
	struct weft_path_wait waiting;

	/* What flushes have to tell of former lives; changed by who replaces the line. */
	unsigned unflushed_losses; /* lives that ended with writes that no flush had followed */
	bool unflushed_gone; /* … and no other controller has the namespace: no flush succeeds again */
	atomic_uint flush_reported; /* the last of them that a flush has failed for */
};

/* @uri and @options (may be NULL) stay in place until weft_volume_conn_close(). */
int weft_volume_conn_open(struct weft_volume_conn *conn, const char *uri,
			  const struct weft_options *options, struct weft_err *err);
/* Nobody does I/O any more. Volumes that are still open stay so, without a namespace. Also of an
 * connection that is all zeroes. */
void weft_volume_conn_close(struct weft_volume_conn *conn);

/* As weft_ns_list(), weft_ctrl_next_event(). */
int weft_volume_conn_list_ns(struct weft_volume_conn *conn, uint32_t *nsids, unsigned max,
			     struct weft_err *err);
bool weft_volume_conn_next_event(struct weft_volume_conn *conn, struct weft_event *event);
bool weft_volume_conn_is_live(struct weft_volume_conn *conn);

/* Whether @rc came of a dead line, which has not carried it out, and there is another one now. Of a
 * command that was not answered: an answer of -EIO is nothing that a line is to blame for. */
bool weft_volume_conn_replace_if_dead(struct weft_volume_conn *conn, int rc);

/* --- volume.c --------------------------------------------------------------------------------- */

int weft_volume_open(struct weft_volume_conn *conn, uint32_t nsid, struct weft_volume **volume,
		     struct weft_err *err);
void weft_volume_close(struct weft_volume *volume);

/* As of now, or, if it is not there in this life, as it was at first. While the line is being
 * replaced this waits for the I/O of the old one. */
void weft_volume_info(struct weft_volume *volume, struct weft_ns_info *info);
/* For who only looks: as of now, or as it was seen last. Never waits. */
void weft_volume_info_nowait(struct weft_volume *volume, struct weft_ns_info *info);
/* By identity (UUID, NGUID, EUI64) and block size. Two without identity are the same only in one
 * life of the connection, which looks after them. */
bool weft_ns_info_has_identity(const struct weft_ns_info *info);
bool weft_ns_info_same(const struct weft_ns_info *x, const struct weft_ns_info *y);
/* Whether a path shows it in this life, as the library knows without a look. */
bool weft_volume_is_visible(struct weft_volume *volume);
/* Whether @other is what @volume is in this life. */
bool weft_volume_is_same(struct weft_volume *volume, const struct weft_volume *other);

/* weft_run() on a queue that is free, from any thread; sets @cmd->ns. -EIO: the target is gone for
 * longer than loss_timeout, and cannot be connected to again; or whether it was carried out is not
 * known. Not for a flush. */
int weft_volume_run(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err);

/* A flush covers what was written in former lives, too. -EIO: one of them ended before that was
 * flushed, by a controller with a volatile cache. That is told once, and *@told is how far the one
 * who flushes has been told; it begins with what weft_volume_flush_reported() returns.
 * -ENOTRECOVERABLE: likewise, and it is told every time, because controllers do not share the
 * namespace. */
int weft_volume_flush(struct weft_volume *volume, unsigned *flush_reported, struct weft_err *err);
/* What nobody was told so far is told to who comes new, too. */
unsigned weft_volume_flush_reported(struct weft_volume *volume);

/* As weft_ns_extents(), and what fails is data: it never does. @length is not 0, @max neither. */
unsigned weft_volume_extents(struct weft_volume *volume, uint64_t offset, uint64_t length,
			     struct weft_ns_extent *extents, unsigned max);

#endif
