/* queue_pool.c - a queue pool: many threads share a few I/O queues.
 *
 *   thread ─▶ takes a free queue ─▶ drives it until its command is done ─▶ gives it back
 *
 * There is no other thread between a caller and the socket, so nobody has to be woken; as many
 * commands are under way as there are queues. The queue given back last is taken first: the others
 * stay idle as long as they are not needed. A queue for which the controller has no room since a
 * reconnect is taken last.
 *
 * Invariant: a queue is on the stack of free ones, or it belongs to one thread. */
#include "volume/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct weft_queue_pool {
	pthread_mutex_t lock;
	pthread_cond_t given_back;
	unsigned count, nfree;
	struct weft_queue *free[]; /* a stack */
};

void weft_queue_pool_close(struct weft_queue_pool *queues)
{
	if (!queues)
		return;
	assert(queues->nfree == queues->count); /* nobody has one */
	while (queues->nfree)
		weft_queue_close(queues->free[--queues->nfree]);
	pthread_cond_destroy(&queues->given_back);
	pthread_mutex_destroy(&queues->lock);
	free(queues);
}

int weft_queue_pool_open(struct weft_ctrl *ctrl, struct weft_queue_pool **queues,
			 struct weft_err *err)
{
	struct weft_ctrl_info info;
	struct weft_queue_pool *made;
	int rc;

	weft_ctrl_info(ctrl, &info);
	made = calloc(1, sizeof(*made) + info.queues * sizeof(struct weft_queue *));
	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->given_back, NULL);
	while (made->nfree < info.queues) {
		rc = weft_queue_open(ctrl, &made->free[made->nfree], err);
		if (rc < 0) {
			weft_queue_pool_close(made);
			return rc;
		}
		made->count = ++made->nfree;
	}
	*queues = made;
	return 0;
}

static struct weft_queue *pool_take_queue(struct weft_queue_pool *queues)
{
	struct weft_queue *queue;

	pthread_mutex_lock(&queues->lock);
	while (!queues->nfree)
		pthread_cond_wait(&queues->given_back, &queues->lock);
	queue = queues->free[--queues->nfree];
	pthread_mutex_unlock(&queues->lock);
	assert(queue);
	return queue;
}

static void pool_put_queue(struct weft_queue_pool *queues, struct weft_queue *queue, bool as_last)
{
	pthread_mutex_lock(&queues->lock);
	assert(queues->nfree < queues->count);
	if (as_last)
		memmove(&queues->free[1], queues->free, queues->nfree * sizeof(queue));
	queues->free[as_last ? 0 : queues->nfree] = queue;
	queues->nfree++;
	pthread_cond_signal(&queues->given_back);
	pthread_mutex_unlock(&queues->lock);
}

int weft_queue_pool_run(struct weft_queue_pool *queues, struct weft_cmd *cmd, struct weft_err *err)
{
	struct weft_queue *queue;
	int rc = -EUSERS;

	for (unsigned tries = 0; rc == -EUSERS && tries < queues->count; tries++) {
		queue = pool_take_queue(queues);
		rc = weft_run(queue, cmd, err);
		pool_put_queue(queues, queue, rc == -EUSERS);
	}
	return rc;
}
