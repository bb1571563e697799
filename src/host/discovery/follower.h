/* follower.h - follows discovery services (paths=discover): a connection per service, its log,
 * and the referrals in it.
 *
 *   URI?paths=discover ─▶ follower ─▶ log ─┬─▶ addresses of the subsystem ─▶ paths come and go
 *        follower.c        │ ▲             └─▶ referrals ─▶ followers        reconcile.c
 *                          │ └ follower_log.c: again, when an event says that the log changed
 *                          └ a controller of its own, on its owner's control reactor
 *
 * Only the control reactor uses what is here, except members under the owner's lock.
 *
 * Invariant: only a log that was read whole, in one generation, counts. */
#ifndef WEFT_HOST_DISCOVERY_FOLLOWER_H
#define WEFT_HOST_DISCOVERY_FOLLOWER_H

#include "host/internal.h"

enum {
	HOST_FOLLOWERS_MAX = 16,
	HOST_DISCOVERED_MAX = 2 * HOST_PATHS_MAX, /* addresses, and referrals, of one log */
};

struct host_discovered_addr {
	const struct weft_link_transport *transport;
	struct sockaddr_storage addr;
};

/* The entries of a log that the host acts on. */
struct host_disc_log {
	struct host_discovered_addr addrs[HOST_DISCOVERED_MAX];     /* of the subsystem */
	struct host_discovered_addr referrals[HOST_DISCOVERED_MAX]; /* other discovery services */
	unsigned naddrs, nreferrals;
};

/* follower_log.c: a log that is being read. */
struct host_disc_log_read {
	struct host_admin cmd;
	struct weft_timer retry_timer;
	bool stale; /* the log has changed since @cmd was sent */
	unsigned tries;
	uint64_t generation, total, at; /* entries */
	char *page;
	struct host_disc_log log; /* so far */
};

struct host_follower {
	struct weft_list link;     /* owner->followers */
	struct weft_ctrl *owner;   /* whose paths the service lists */
	struct weft_ctrl *ctrl;    /* the connection */
	struct host_config wanted; /* for the paths that it lists */
	unsigned depth;            /* referrals that lead to it; 0: it was given */
	enum weft_state state;     /* in the last event to the program */
	unsigned generation;       /* of the association through which the log was read last */
	struct host_disc_log_read reading;
	struct host_disc_log log; /* the newest that is whole */
	bool answered;            /* there is one */
	bool fresh;               /* @log is new: dead paths get another chance */
	bool stopped;
	struct weft_msg msg;

	/* Under owner->lock. */
	bool tried; /* its first log was read, or cannot be */
	int rc;     /* 0, or why it lists no path */
	struct weft_err why;
	char address[128]; /* of the service */
};

/* follower.c */
void host_followers_init(struct weft_ctrl *ctrl);
/* Before the control reactor runs. @spec: a URI with paths=discover. */
int host_follower_add(struct weft_ctrl *ctrl, const struct host_path_spec *spec,
		      struct weft_err *err);
/* A referral, on the control reactor. */
void host_follower_add_referral(struct host_follower *from,
				const struct host_discovered_addr *daddr);
void host_followers_start(struct weft_ctrl *ctrl);
void host_followers_stop(struct weft_ctrl *ctrl);
void host_followers_free(struct weft_ctrl *ctrl);
void host_follower_drop(struct host_follower *follower);    /* nobody refers to it any more */
void host_follower_stopped(struct host_follower *follower); /* its connection is shut down */
void host_follower_update(struct host_follower *follower);  /* its connection's state changed */
/* Its log has been read whole, or cannot be. */
void host_follower_log_complete(struct host_follower *follower);
void host_follower_failed(struct host_follower *follower, int rc, const struct weft_err *why);
/* Under ctrl->lock: the first log of a follower has not been read yet. */
bool host_followers_pending(const struct weft_ctrl *ctrl);
bool host_follower_is_at(const struct host_follower *follower,
			 const struct host_discovered_addr *daddr);
static inline struct host_path *host_follower_path(const struct host_follower *follower)
{
	return follower->ctrl->paths[0];
}

/* follower_log.c */
void host_follower_read_log(struct host_follower *follower); /* again, if it is being read */
void host_follower_read_stop(struct host_follower *follower);

/* reconcile.c: at the end of the turn, compares the logs with the paths. */
void host_paths_reconcile_soon(struct weft_ctrl *ctrl);
void host_paths_reconcile(struct weft_task *task);

#endif
