/* workers.h - threads for file operations that would block the reactor. */
#ifndef WEFT_REACTOR_WORKERS_H
#define WEFT_REACTOR_WORKERS_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "lock/mutex.h"
#include "reactor/reactor.h"

#define WEFT_WORKERS_MAX 8

struct weft_workers {
	struct weft_mutex lock;
	pthread_cond_t more;
	struct weft_list queue;
	unsigned queued, idle, count;
	unsigned most; /* threads */
	bool stopping;
	cpu_set_t cpus; /* where they may run: not only on the reactor's own CPU */
	pthread_t threads[WEFT_WORKERS_MAX];
};

/* Of @most threads, WEFT_WORKERS_MAX at most. */
void weft_workers_init(struct weft_workers *pool, unsigned most);
/* Nothing is queued or running. */
void weft_workers_destroy(struct weft_workers *pool);

/* Owns @op until it comes back, completed, through its reactor's mailbox. */
void weft_workers_submit(struct weft_workers *pool, struct weft_op *op);

/* Runs @fn on a worker; op->done(), on @r, gets what it returned. For work on files that is more
 * than one operation; the caller has a pool of its own. */
void weft_workers_call(struct weft_workers *pool, struct weft_reactor *r, struct weft_op *op,
		       int (*fn)(struct weft_op *op));

#endif
