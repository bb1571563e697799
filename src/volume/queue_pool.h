/* queue_pool.h - a queue pool: many threads share a few I/O queues. */
#ifndef WEFT_VOLUME_QUEUE_POOL_H
#define WEFT_VOLUME_QUEUE_POOL_H

#include <weft/host.h>

struct weft_queue_pool;

/* Opens as many as the controller allows. */
int weft_queue_pool_open(struct weft_ctrl *ctrl, struct weft_queue_pool **queues,
			 struct weft_err *err);
/* Nobody is in weft_queue_pool_run(). @queues may be NULL. */
void weft_queue_pool_close(struct weft_queue_pool *queues);

/* weft_run() on a free queue, from any thread; waits for one if all are in use. */
int weft_queue_pool_run(struct weft_queue_pool *queues, struct weft_cmd *cmd, struct weft_err *err);

#endif
