/* interrupt.h - FUSE requests whose caller may be interrupted while I/O is under way. */
#ifndef WEFT_CLI_MOUNT_INTERRUPT_H
#define WEFT_CLI_MOUNT_INTERRUPT_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <pthread.h>

#include "base/list.h"

struct weft_mount_calls {
	pthread_mutex_t lock;
	struct weft_list waiting; /* not answered yet */
	unsigned given_up;        /* answered, and their I/O is still under way */
	int interrupt_fd;         /* eventfd: a call was interrupted */
};

/* Lives on the stack of the thread that does the I/O. */
struct weft_mount_call {
	struct weft_list link;
	struct weft_mount_calls *calls;
	fuse_req_t req;
	uint64_t interrupted_ms; /* when; 0: was not */
	bool given_up;
};

int weft_mount_calls_init(struct weft_mount_calls *calls);

/* False: it was answered with an error, because too many were given up and are still under way. */
bool weft_mount_call_begin(struct weft_mount_calls *calls, struct weft_mount_call *call,
			   fuse_req_t req);
/* Whether the caller is to reply; if not, the request is gone. */
bool weft_mount_call_end(struct weft_mount_call *call);

/* Replies EINTR to calls that were interrupted long enough ago. Returns after how many ms to call
 * it again; -1: when @interrupt_fd is readable. */
int weft_mount_calls_expire(struct weft_mount_calls *calls, bool live);

#endif
