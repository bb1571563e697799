/* aer.h - asynchronous events of a path's controller. */
#ifndef WEFT_HOST_PATH_AER_H
#define WEFT_HOST_PATH_AER_H

#include "host/path/admin.h"
#include "host/ratelimit.h"

struct host_path;

enum { HOST_AERS = 4 };

enum host_aer_state {
	HOST_AER_IDLE,
	HOST_AER_SENT,    /* the controller has the request */
	HOST_AER_READING, /* an event came: its log page is read */
};

struct host_aer {
	enum host_aer_state state;
	struct host_admin cmd, log;
	uint32_t result;
};

struct host_aers {
	struct host_aer requests[HOST_AERS];
	bool changed_read; /* the program has read the Changed Namespace List: it is incomplete */
	struct host_ratelimit ratelimit;
	struct weft_timer timer; /* until the rate limit allows the next */
	char *page;              /* HOST_AERS times HOST_PAGE bytes */
};

/* From live on, until lost. */
void host_aer_start(struct host_path *path);
void host_aer_stop(struct host_path *path);

#endif
