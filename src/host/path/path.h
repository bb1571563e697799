/* path.h - a path to a subsystem (multipath): its address, and the association with the controller
 * behind it.
 *
 *   host_path  path.c, its states ─┬─ assoc       the admin queue's connection, and its loss
 *                                  ├─ reconnect   when the next attempt is made
 *                                  ├─ close_wait  does the controller close its admin queue as well?
 *                                  ├─ setup       Connect … live
 *                                  ├─ admin       commands of the admin queue
 *                                  ├─ keepalive, probe, aer, ana, scan   from live on
 *                                  └─ fence       associations that were lost
 *
 * Only the control reactor uses what is here, except @pub and other members under ctrl->lock. */
#ifndef WEFT_HOST_PATH_PATH_H
#define WEFT_HOST_PATH_PATH_H

#include <stdatomic.h>
#include <weft/host.h>

#include "base/err.h"
#include "host/config.h"
#include "host/namespace/scan.h"
#include "host/path/aer.h"
#include "host/path/ana.h"
#include "host/path/assoc.h"
#include "host/path/fence.h"
#include "host/path/keepalive.h"
#include "host/path/setup.h"
#include "proto/status.h"

enum { HOST_ADDRS_MAX = 8 /* of a name */ };

/* A path's state as its path queues see it, under ctrl->lock. */
struct host_published {
	enum weft_state state;
	bool lives;                /* WEFT_LIVE, and not about to be torn down */
	unsigned generation;       /* of the association */
	unsigned ended_generation; /* the newest whose fence is over: no command of it is left */
	/* The newest of whose commands none is left on connections that the controller closed. */
	unsigned peer_closed_generation;
	unsigned abandoned_generation; /* the newest whose end no controller has confirmed */
	bool tried;                    /* the first attempt is over */
	int rc;                        /* of the last loss */
	struct weft_err why;
	struct host_traits traits;
	uint64_t reconnects, losses;
	char address[128]; /* nvme+tcp://HOST:PORT */
	struct weft_path path;
	bool takes_dmabuf;
};

/* path.c has the picture. */
enum host_path_state {
	HOST_PATH_NEW,
	HOST_PATH_CONNECTING, /* for the first time: the admin queue's connection, then set-up */
	HOST_PATH_LIVE,
	HOST_PATH_CLOSE_WAIT,   /* lost; is the admin queue's connection about to be closed? */
	HOST_PATH_RESETTING,    /* lost; the admin queue's connection is being closed */
	HOST_PATH_BACKOFF,      /* the pause before the next attempt */
	HOST_PATH_RECONNECTING, /* as CONNECTING, not for the first time */
	HOST_PATH_DEAD,         /* there will be no other attempt */
	HOST_PATH_SHUTDOWN,     /* to be stopped; the controller is told (CC.SHN) */
	HOST_PATH_STOPPING,     /* to be stopped; the admin queue's connection is being closed */
	HOST_PATH_STOPPED,
	HOST_PATH_STATES,
};

/* Is it one of its controller's paths? path_add.c has the picture. */
enum host_path_membership {
	HOST_PATH_OUTSIDE,
	HOST_PATH_ADDING, /* weft_path_add() waits for its first attempt */
	HOST_PATH_MEMBER,
	HOST_PATH_REMOVING, /* takes no new commands */
};

/* When the next attempt is made. */
struct host_reconnect {
	bool tried; /* the first attempt is over */
	unsigned attempt;
	unsigned random;           /* seed for the delays */
	uint64_t lost_ns, live_ns; /* since when; 0: never, not now */
	struct weft_timer timer;
};

/* The controller has closed an I/O queue's connection: is the admin queue's next? */
struct host_close_wait {
	struct weft_timer timer;
	unsigned polls;        /* how often it was checked */
	struct host_admin cmd; /* Keep Alive meanwhile */
};

/* The addresses of a name, to be tried until one has worked. */
struct host_addrs {
	struct sockaddr_storage list[HOST_ADDRS_MAX];
	unsigned count, current;
};

/* What the path queues tell the control reactor while they carry I/O. */
struct host_activity {
	atomic_bool traffic;  /* a queue sent something: as good as a keep-alive */
	atomic_bool answered; /* an answer came since probe.c suspects the path */
};

struct host_path {
	struct weft_ctrl *ctrl;
	struct weft_reactor *reactor; /* the control reactor */
	struct host_config config;
	struct host_addrs addrs;
	unsigned id;             /* for the program; never used again */
	char discovered_by[128]; /* the discovery service that lists it; "": the program gave it */
	struct weft_msg msg;

	/* Under ctrl->lock. */
	enum host_path_membership membership;
	unsigned path_queues; /* how many there are */
	unsigned ready;       /* how many of them are connected in this association */
	unsigned index;       /* in ctrl->paths and all other arrays by path */
	struct host_published pub;

	struct host_activity activity;

	/* Only the control reactor uses these. */
	enum host_path_state state;
	struct host_assoc assoc;
	struct host_close_wait close_wait;
	struct host_reconnect reconnect;
	struct host_setup setup;
	struct host_admin_queue admin;
	struct host_keepalive keepalive;
	struct host_path_probe probe;
	struct host_aers aer;
	struct host_ana ana; /* its groups are under ctrl->lock */
	struct host_fence fence;
	struct host_scan scan;
};

static inline bool host_path_is_setting_up(const struct host_path *path)
{
	return path->state == HOST_PATH_CONNECTING || path->state == HOST_PATH_RECONNECTING;
}

/* It has an association, and that is not lost. */
static inline bool host_path_is_up(const struct host_path *path)
{
	return path->state == HOST_PATH_LIVE || path->state == HOST_PATH_SHUTDOWN;
}

/* It has an association, perhaps a lost one, whose admin queue is connected. */
static inline bool host_path_is_connected(const struct host_path *path)
{
	return host_path_is_up(path) || path->state == HOST_PATH_CLOSE_WAIT;
}

/* There is a cause why it is not up. */
static inline bool host_path_is_lost(const struct host_path *path)
{
	return path->state != HOST_PATH_NEW && !host_path_is_setting_up(path) &&
	       !host_path_is_up(path);
}

static inline bool host_path_is_stopping(const struct host_path *path)
{
	return path->state == HOST_PATH_SHUTDOWN || path->state == HOST_PATH_STOPPING ||
	       path->state == HOST_PATH_STOPPED;
}

/* Under ctrl->lock, or on the control reactor for a path that a discovery log lists. */
static inline bool host_path_is_removing(const struct host_path *path)
{
	return path->membership == HOST_PATH_REMOVING;
}

/* path.c */
enum weft_state host_path_public_state(const struct host_path *path);
void host_path_start(struct host_path *path);
void host_path_retry(struct host_path *path); /* the pause is over */
/* nvme+tcp://HOST:PORT */
void host_path_address(const struct host_path *path, char *text, size_t size);
void host_path_up(struct host_path *path); /* set-up is complete */
/* Ends the association; the first reason is kept. */
void host_path_broken(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* … because its controller has closed an I/O queue's connection. */
void host_path_io_link_closed(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void host_path_close_wait_over(struct host_path *path);
void host_path_link_closed(struct host_path *path); /* the admin queue's */
/* Ends the path, with an orderly shutdown if it is connected; host_path_stopped() follows. */
void host_path_stop(struct host_path *path);

/* reconnect.c */
void host_reconnect_live(struct host_path *path);
void host_reconnect_lost(struct host_path *path);
bool host_reconnect_is_final(struct host_path *path); /* no: host_reconnect_later() */
void host_reconnect_later(struct host_path *path);    /* host_path_retry() follows */
void host_reconnect_stop(struct host_path *path);

/* close_wait.c: host_path_close_wait_over() follows, unless the admin connection is closed. */
void host_close_wait_start(struct host_path *path);
void host_close_wait_stop(struct host_path *path);

#endif
