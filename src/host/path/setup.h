/* setup.h - the set-up of a controller, and its shutdown. */
#ifndef WEFT_HOST_PATH_SETUP_H
#define WEFT_HOST_PATH_SETUP_H

#include "host/path/admin.h"

struct host_path;

struct host_setup {
	unsigned step; /* of host_setup_steps */
	uint64_t ready_by_ns;
	struct weft_timer timer; /* before a step is repeated */
	struct host_admin cmd;
	char *page; /* HOST_PAGE bytes */
};

void host_setup_start(struct host_path *path);
void host_setup_shutdown(struct host_path *path, void (*done)(struct host_admin *a, int rc));

#endif
