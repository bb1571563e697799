/* follower.h - follows discovery services (paths=discover): a connection per service, its log,
 * and the referrals in it. Invariant: only a log that was read whole, in one generation, counts.
 *
 *   URI?paths=discover ─▶ follower ─▶ log ─┬─▶ places of the subsystem ─▶ paths come and go
 *        follower.c           │ ▲          └─▶ referrals ─▶ followers          reconcile.c
 *                          │ └ follower_log.c: again, when an event says that it changed
 *                          └ a controller of its own, on its owner's control, for as long as that is
 *
 * Everything here is the control reactor's, but for what stands under the owner's lock.
 *
 * Invariant: what a follower lists is one whole log. What could not be read whole changes
 * nothing. */
#ifndef WEFT_HOST_DISCOVERY_FOLLOWER_H
#define WEFT_HOST_DISCOVERY_FOLLOWER_H

#include "host/internal.h"

enum {
	HOST_FOLLOWERS_MAX = 16,
	HOST_DISCOVERED_MAX = 2 * HOST_PATHS_MAX, /* of a kind, of one log: more are of no use */
};

struct host_discovered_addr {
	const struct weft_link_transport *transport;
	struct sockaddr_storage addr;
};

/* What a log says, as far as it matters. */
struct host_disc_log {
	struct host_discovered_addr addrs[HOST_DISCOVERED_MAX];     /* of the subsystem */
	struct host_discovered_addr referrals[HOST_DISCOVERED_MAX]; /* of other discovery services */
	unsigned naddrs, nreferrals;
};

/* follower_log.c: a log that is being read. */
struct host_disc_log_read {
	struct host_admin cmd;
	struct weft_timer retry_timer;
	bool out, stale; /* commands are out; what they bring has changed meanwhile */
	unsigned tries;
	uint64_t generation, total, at; /* entries */
	char *page;
	struct host_disc_log log; /* so far */
};

struct host_follower {
	struct weft_list link;     /* owner->followers */
	struct weft_ctrl *owner;   /* whose paths it tells of */
	struct weft_ctrl *ctrl;    /* the connection */
	struct host_config wanted; /* of the paths that it tells of */
	unsigned depth;            /* referrals that lead to it; 0: it was given */
	enum weft_state state;     /* as it was told last */
	unsigned generation;       /* of the association through which it was read last */
	struct host_disc_log_read reading;
	struct host_disc_log log; /* the newest that is whole */
	bool answered;            /* there is one */
	bool fresh;               /* it is new: paths that are dead get another chance */
	bool stopped;
	struct weft_msg msg;

	/* Under owner->lock. */
	bool tried; /* its first log counts, or there is none */
	int rc;     /* 0, or why it tells of no path */
	struct weft_err why;
	char address[128]; /* where it was looked for */
};

/* follower.c */
void host_followers_init(struct weft_ctrl *ctrl);
/* Before the control reactor has begun. @place: a URI with paths=discover. */
int host_follower_add(struct weft_ctrl *ctrl, const struct host_path_spec *spec,
		      struct weft_err *err);
/* A referral, on the control reactor. */
void host_follower_add_referral(struct host_follower *from,
				const struct host_discovered_addr *daddr);
void host_followers_start(struct weft_ctrl *ctrl);
void host_followers_stop(struct weft_ctrl *ctrl);
void host_followers_free(struct weft_ctrl *ctrl);
void host_follower_drop(struct host_follower *follower);    /* nobody refers to it any more */
void host_follower_stopped(struct host_follower *follower); /* it was told to stop, and has */
void host_follower_update(struct host_follower *follower);  /* its connection has another state */
/* Its log has been read whole, or cannot be. */
void host_follower_log_complete(struct host_follower *follower);
void host_follower_failed(struct host_follower *follower, int rc, const struct weft_err *why);
/* Under ctrl->lock: one has not said yet what it lists. */
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

/* reconcile.c: what is listed becomes what there is, soon. */
void host_paths_reconcile_soon(struct weft_ctrl *ctrl);
void host_paths_reconcile(struct weft_task *task);

#endif
