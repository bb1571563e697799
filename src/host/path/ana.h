/* ana.h - a path's ANA view: the access state of each group, as its controller's log page says. */
#ifndef WEFT_HOST_PATH_ANA_H
#define WEFT_HOST_PATH_ANA_H

#include "host/path/admin.h"
#include "host/ratelimit.h"

struct host_path;

struct host_ana_group {
	uint32_t id;
	uint8_t state; /* enum nvme_ana_state */
};

enum host_ana_reading {
	HOST_ANA_IDLE,
	HOST_ANA_DUE, /* the page is to be read, when the rate limit allows it */
	HOST_ANA_READING,
	HOST_ANA_REREAD, /* the page is being read, and then once more */
};

struct host_ana {
	enum host_ana_reading state;
	struct host_admin cmd;
	struct weft_timer timer; /* until the page is read or checked again */
	struct host_ratelimit ratelimit;
	uint64_t change_ns; /* since when a group is in change; 0: none is */
	char *page;
	size_t size;

	/* Under ctrl->lock. */
	struct host_ana_group *groups; /* by id; NULL: no ANA */
	unsigned ngroups;
	unsigned reads_begun, reads_applied; /* reads of the page */
	bool change_notified;                /* an event says that the page changed */
};

void host_ana_setup(struct host_path *path);   /* reads the page, scans, calls host_path_up() */
void host_ana_read(struct host_path *path);    /* again */
void host_ana_changed(struct host_path *path); /* an event says so */
void host_ana_stop(struct host_path *path);
void host_ana_free(struct host_path *path);
/* Under ctrl->lock: the state of @group by the log page; 0: the namespace has none. */
uint8_t host_ana_state(const struct host_path *path, uint32_t group);

#endif
