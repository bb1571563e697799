/* setup_steps.h - the steps from a connection to a live controller. */
#ifndef WEFT_HOST_PATH_SETUP_STEPS_H
#define WEFT_HOST_PATH_SETUP_STEPS_H

#include "host/path/path.h"

struct host_setup_step {
	const char *name;
	uint32_t length; /* of the data, in path->setup.page */
	bool io_only;    /* not for a discovery controller */
	void (*fill)(struct host_path *path, union nvme_sqe *cmd);
	/* 0: on to the next step; -EAGAIN: again, in a moment; else the association was ended.
	 * Is not called for refusals, unless @tolerant. */
	int (*answer)(struct host_path *path, const struct nvme_cqe *cqe);
	bool tolerant;
};

extern const struct host_setup_step host_setup_steps[]; /* in their order */
extern const unsigned host_setup_nsteps;

/* Fills in the command that shuts the controller down (CC.SHN). */
void host_fill_shutdown(const struct host_path *path, union nvme_sqe *cmd);

#endif
