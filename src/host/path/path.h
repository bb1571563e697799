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
	bool inserted, removing;
	bool adding;          /* weft_path_add() waits for its first attempt */
	unsigned path_queues; /* how many there are */
	unsigned ready;       /* how many of them are connected in this association */
	unsigned index;       /* in ctrl->paths and all other arrays by path */
	struct host_published pub;

	struct host_activity activity;

	/* Only the control reactor uses these. */
	enum weft_state state;
	bool stopping, stopped, broken;
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

/* path.c */
void host_path_start(struct host_path *path);
/* nvme+tcp://HOST:PORT */
void host_path_address(const struct host_path *path, char *text, size_t size);
void host_path_up(struct host_path *path); /* set-up is complete */
/* Ends the association; the first reason is kept. */
void host_path_broken(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* … because its controller has closed an I/O queue's connection. */
void host_path_io_link_closed(struct host_path *path, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void host_path_link_closed(struct host_path *path);
/* Ends the path, with an orderly shutdown if it is connected; host_path_stopped() follows. */
void host_path_stop(struct host_path *path);

#endif
