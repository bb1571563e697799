/* uplink.h - a controller that is replaced when it is dead, and the namespaces used through it. The
 * nbdkit plugin is built with it too. */
#ifndef WEFT_CLI_MOUNT_UPLINK_H
#define WEFT_CLI_MOUNT_UPLINK_H

#include <pthread.h>
#include <weft/host.h>

#include "base/list.h"
#include "cli/mount/queues.h"

/* One life of the connection. */
struct weft_line {
	struct weft_ctrl *ctrl;
	struct weft_queues *queues;
};

struct weft_uplink {
	const char *uri;
	const struct weft_options *options;
	struct weft_ctrl_info info; /* of the first life */
	int events;                 /* epoll: @begun, and what the present life has to tell */
	int begun;                  /* eventfd: lives since it was last asked */

	pthread_rwlock_t use; /* read: uses @line and the volumes' @ns; write: replaces them */
	struct weft_line line;

	pthread_mutex_t lock; /* of the list */
	struct weft_list volumes;

	pthread_mutex_t trying; /* to connect again */
	uint64_t tried_ms;
};

/* A namespace, through all lives of the connection in which it is the same one. */
struct weft_volume {
	struct weft_list link;
	struct weft_uplink *uplink;
	struct weft_ns *ns;       /* NULL: it is not there in this life */
	struct weft_ns *next;     /* in the life that is about to begin */
	struct weft_ns_info info; /* as it was at first */
};

/* @uri and @options (may be NULL) stay in place until weft_uplink_close(). */
int weft_uplink_open(struct weft_uplink *uplink, const char *uri,
		     const struct weft_options *options, struct weft_err *err);
/* Nobody does I/O any more. Volumes that are still open stay so, without a namespace. Also of an
 * uplink that is all zeroes. */
void weft_uplink_close(struct weft_uplink *uplink);

/* As weft_ns_list(), weft_ctrl_next_event(). */
int weft_uplink_list(struct weft_uplink *uplink, uint32_t *nsids, unsigned max,
		     struct weft_err *err);
bool weft_uplink_next_event(struct weft_uplink *uplink, struct weft_event *event);
bool weft_uplink_is_live(struct weft_uplink *uplink);

/* Whether @rc came of a dead line, and there is another one now. */
bool weft_uplink_try_again(struct weft_uplink *uplink, int rc);

/* --- volume.c --------------------------------------------------------------------------------- */

int weft_volume_open(struct weft_uplink *uplink, uint32_t nsid, struct weft_volume **volume,
		     struct weft_err *err);
void weft_volume_close(struct weft_volume *volume);

/* As of now, or as it was last known. */
void weft_volume_info(struct weft_volume *volume, struct weft_ns_info *info);
/* By identity (UUID, NGUID, EUI64) and block size. */
bool weft_ns_info_same(const struct weft_ns_info *x, const struct weft_ns_info *y);
/* Whether @other is what @volume is in this life. */
bool weft_volume_is(struct weft_volume *volume, const struct weft_volume *other);

/* weft_run() on a queue that is free, from any thread; sets @cmd->ns. -EIO: the target is gone for
 * longer than loss_timeout, and cannot be connected to again. */
int weft_volume_run(struct weft_volume *volume, struct weft_cmd *cmd, struct weft_err *err);

#endif
