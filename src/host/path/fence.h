/* fence.h - the association fence of a path: associations that were lost and may not be over. */
#ifndef WEFT_HOST_PATH_FENCE_H
#define WEFT_HOST_PATH_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "reactor/reactor.h"

struct host_path;

enum { HOST_LOST_ASSOCS_MAX = 32 };

/* A lost association that is still fenced: its commands may yet be carried out. */
struct host_lost_assoc {
	unsigned first, last; /* generations that it stands for */
	bool silent;          /* the controller may not know that all connections are lost */
	uint16_t cntlid;      /* its controller */
	uint8_t ciu;          /* 0: no controller can be asked about it */
	uint64_t cirn;
	uint64_t fence_limit_ms; /* time that it needs at most to end by itself … */
	uint64_t until_ns;       /* … and when that is over */
};

struct host_fence {
	unsigned generation;                               /* the last one that was lost */
	struct host_lost_assoc lost[HOST_LOST_ASSOCS_MAX]; /* oldest first */
	unsigned nlost;
	bool ccr_pending;    /* a Cross-Controller Reset about the oldest is in flight */
	uint8_t cannot_tell; /* bits by index: paths whose controllers do not know it */
	struct weft_timer retry_timer, limit;
	struct weft_timer give_up_timer; /* no controller confirms */
};

void host_fence_path_lost(struct host_path *path);
void host_fence_path_up(struct host_path *path);
void host_fence_path_dead(struct host_path *path);
void host_fence_stop(struct host_path *path);

#endif
