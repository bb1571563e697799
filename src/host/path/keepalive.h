/* keepalive.h - Keep Alive of a live path, and the probe of a path that is suspected. */
#ifndef WEFT_HOST_PATH_KEEPALIVE_H
#define WEFT_HOST_PATH_KEEPALIVE_H

#include "host/path/admin.h"

struct host_path;

struct host_keepalive {
	struct weft_timer timer;
	struct host_admin cmd;
};

struct host_path_probe {
	struct host_admin cmd;   /* Keep Alive: this path is suspected, or another one is */
	struct weft_timer timer; /* end of the interval */
	uint32_t interval_ms;
	uint64_t interval_end_ns;
	unsigned misses; /* intervals in which another path answered, and this one did not */
	unsigned answers_before; /* ctrl->probe_answers when the interval began */
};

/* keepalive.c: from live on, until lost */
void host_keepalive_start(struct host_path *path);
void host_keepalive_stop(struct host_path *path);

/* probe.c: a command on this path takes unusually long; does the controller answer at all? */
void host_probe(struct host_path *path, uint32_t timeout_ms);

#endif
