/* frames.h - what the old process of a takeover sends to its successor.
 *
 * "prepare": subsystems, namespaces and the descriptors of their storage; the old process serves
 * meanwhile. "state": listeners, controllers, queues, stores; the old process is frozen. Each frame
 * has a format number; a reader refuses a number that it does not know.
 *
 *   format 1   the first
 *          2   "prepare" says which hosts may connect; it is left out for a reader of format 1 */
#ifndef WEFT_DAEMON_TAKEOVER_FRAMES_H
#define WEFT_DAEMON_TAKEOVER_FRAMES_H

#include "daemon/takeover/channel.h"
#include "daemon/config/config.h"
#include "target/takeover/takeover.h"

#define WEFT_TAKEOVER_FORMAT        2
#define WEFT_TAKEOVER_FORMAT_ACCESS 2 /* from this one on, "prepare" says which hosts may connect */

struct weft_running_ns {
	uint32_t nsid, block, ana_group;
	char uuid[37], backend[1400];
	uint64_t size;
	bool sync_failed, has_fd;
	int fd;
};

struct weft_running_subsys {
	char nqn[WEFT_NQN_MAX + 1], serial[21], model[41];
	char state[WEFT_STATE_MAX + 1]; /* SPEC of its store; "": in memory */
	uint32_t node, nodes;           /* of a cluster; 0: it is served by this target alone */
	uint32_t access;                /* WEFT_ALLOWED_ANY or _LISTED; 0: not in the frame */
	struct weft_items hosts;        /* char[WEFT_NQN_MAX + 1] */
	struct weft_items namespaces;   /* struct weft_running_ns */
};

struct weft_running_config {
	uint32_t format;              /* of the frame */
	uint32_t depth, queues;       /* as in weft.yaml(5) */
	struct weft_items subsystems; /* struct weft_running_subsys */
};

struct weft_takeover_state {
	uint32_t format;   /* of the frame */
	uint64_t since_ns; /* CLOCK_MONOTONIC: when hosts began to wait … */
	uint64_t still_ns; /* … and when the target was frozen */
	int control;       /* the control socket */
	struct weft_target_state target;
};

/* Free it with weft_frame_free_borrowed(): the descriptors in it are borrowed. */
int weft_running_config_encode(const struct weft_running_config *running, struct weft_frame *frame);
int weft_takeover_state_encode(const struct weft_takeover_state *state, struct weft_frame *frame);
void weft_frame_free_borrowed(struct weft_frame *frame);

/* Moves descriptors from the frame into the struct. On -errno the struct is freed. */
int weft_running_config_decode(struct weft_frame *frame, struct weft_running_config *running,
			       struct weft_err *err);
int weft_takeover_state_decode(struct weft_frame *frame, struct weft_takeover_state *state,
			       struct weft_err *err);
void weft_running_config_free(struct weft_running_config *running); /* closes nothing */

#endif
