/* offload.h - one blocking call on a thread of its own, while the reactor goes on.
 *
 *   reactor ─▶ weft_offload_start() ─▶ thread: work() ─▶ mailbox ─▶ done(), on the reactor
 *
 * For the control reactor, which every host's Keep Alive and Connect depends on. Such calls are
 * rare, so there is no pool: the thread ends with the call. */
#ifndef WEFT_REACTOR_OFFLOAD_H
#define WEFT_REACTOR_OFFLOAD_H

#include "reactor/workers.h"

/* Embedded in its owner, who keeps it until done(). */
struct weft_offload {
	struct weft_workers thread;
	struct weft_op op;
	int (*work)(struct weft_offload *offload);
	void (*done)(struct weft_offload *offload, int rc); /* with what work() returned */
};

/* @r is the caller's reactor. done() runs later, never from inside this. */
void weft_offload_start(struct weft_offload *offload, struct weft_reactor *r,
			int (*work)(struct weft_offload *offload),
			void (*done)(struct weft_offload *offload, int rc));

#endif
