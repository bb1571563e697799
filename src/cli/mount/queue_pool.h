/* queue_pool.h - many threads share a few queues. */
#ifndef WEFT_CLI_MOUNT_QUEUE_POOL_H
#define WEFT_CLI_MOUNT_QUEUE_POOL_H

#include <weft/host.h>

struct weft_queue_pool;

/* As many as the controller lets us open. */
int weft_queue_pool_open(struct weft_ctrl *ctrl, struct weft_queue_pool **queues,
			 struct weft_err *err);
/* Nobody is in weft_queue_pool_run(). @queues may be NULL. */
void weft_queue_pool_close(struct weft_queue_pool *queues);

/* weft_run() on a queue that is free, from any thread; waits for one if need be. */
int weft_queue_pool_run(struct weft_queue_pool *queues, struct weft_cmd *cmd, struct weft_err *err);

#endif
