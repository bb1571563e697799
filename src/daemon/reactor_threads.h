/* reactor_threads.h - one thread per CPU, each with its reactor. */
#ifndef WEFT_DAEMON_REACTOR_THREADS_H
#define WEFT_DAEMON_REACTOR_THREADS_H

#include <sched.h>

#include "base/err.h"
#include "reactor/reactor.h"

struct weft_reactor_threads {
	struct reactor_thread *at;
	struct weft_reactor **reactors; /* for weft_target_create() */
	unsigned count;
};

/* Returns when every reactor exists. Each thread sets @options.cpu itself. */
int weft_reactor_threads_start(struct weft_reactor_threads *threads, const cpu_set_t *cpus,
			       const struct weft_reactor_options *options, struct weft_err *err);
/* Ends and frees what weft_reactor_threads_start() made, also when it failed. */
void weft_reactor_threads_stop(struct weft_reactor_threads *threads);

#endif
