/* workers.c - threads for file operations that would block the reactor.
 *
 *   reactor ─▶ queue ─▶ worker: the blocking call ─▶ mailbox ─▶ done()
 *
 * One pool per reactor, started when it is first needed and grown while everybody is busy: a target
 * that serves from memory or through io_uring never has a thread here.
 * Invariant: idle workers sleep on the condition, and only while the queue is empty. */
#include "reactor/workers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/count.h"
#include "reactor/internal.h"

static ssize_t call_file_op(const struct weft_op *op)
{
	switch (op->kind) {
	case WEFT_OP_READ:
		return preadv2(op->fd, op->msg.msg_iov, (int)op->msg.msg_iovlen, op->offset, 0);
	case WEFT_OP_WRITE:
		return pwritev2(op->fd, op->msg.msg_iov, (int)op->msg.msg_iovlen, op->offset,
				op->flags);
	case WEFT_OP_SYNC:
		return fdatasync(op->fd);
	case WEFT_OP_ALLOCATE:
		return fallocate(op->fd, op->flags, op->offset, op->length);
	default:
		errno = EOPNOTSUPP;
		return -1;
	}
}

static int perform_op(struct weft_op *op)
{
	ssize_t res;

	if (op->kind == WEFT_OP_CALL)
		return op->call(op);
	do {
		res = call_file_op(op);
	} while (res < 0 && errno == EINTR);
	return res < 0 ? -errno : (int)res;
}

static void deliver_result(struct weft_msg *mail)
{
	struct weft_op *op = container_of(mail, struct weft_op, mail);

	op->done(op, op->res);
}

static void worker_run_op(struct weft_op *op)
{
	op->res = perform_op(op);
	op->mail.fn = deliver_result;
	weft_reactor_post(op->reactor, &op->mail);
}

/* Sleeps until there is something to do; NULL: the pool ends. */
static struct weft_op *wait_for_op(struct weft_workers *pool)
{
	struct weft_list *link;

	assert_locked(&pool->lock);
	while (!(link = weft_list_pop(&pool->queue))) {
		if (pool->stopping)
			return NULL;
		pool->idle++;
		weft_mutex_wait(&pool->lock, &pool->more);
		weft_count_down(pool->idle);
	}
	weft_count_down(pool->queued);
	return container_of(link, struct weft_op, link);
}

static void *worker_main(void *arg)
{
	struct weft_workers *pool = arg;
	struct weft_op *op;

	weft_mutex_lock(&pool->lock);
	while ((op = wait_for_op(pool))) {
		weft_mutex_unlock(&pool->lock);
		worker_run_op(op);
		weft_mutex_lock(&pool->lock);
	}
	weft_mutex_unlock(&pool->lock);
	return NULL;
}

/* Signals belong to the program's own threads. When none can be started the others do the work. */
static void start_worker(struct weft_workers *pool)
{
	pthread_t *thread = &pool->threads[pool->count];
	sigset_t all, before;

	assert_locked(&pool->lock);
	assert(pool->count < pool->most && !pool->stopping);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(thread, NULL, worker_main, pool)) {
		pthread_setaffinity_np(*thread, sizeof(pool->cpus), &pool->cpus);
		pool->count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool enqueue_op(struct weft_workers *pool, struct weft_op *op)
{
	assert_locked(&pool->lock);
	assert(!pool->stopping);
	if (pool->queued >= pool->idle && pool->count < pool->most)
		start_worker(pool);
	if (!pool->count)
		return false;
	weft_list_push(&pool->queue, &op->link);
	pool->queued++;
	pthread_cond_signal(&pool->more);
	return true;
}

void weft_workers_submit(struct weft_workers *pool, struct weft_op *op)
{
	bool taken;

	weft_mutex_lock(&pool->lock);
	taken = enqueue_op(pool, op);
	weft_mutex_unlock(&pool->lock);
	if (!taken)
		worker_run_op(op); /* slow beats not at all */
}

void weft_workers_call(struct weft_workers *pool, struct weft_reactor *r, struct weft_op *op,
		       int (*fn)(struct weft_op *op))
{
	assert(fn && op->done);
	op->reactor = r;
	op->kind = WEFT_OP_CALL;
	op->call = fn;
	weft_workers_submit(pool, op);
}

void weft_workers_init(struct weft_workers *pool, unsigned most)
{
	assert(most && most <= WEFT_WORKERS_MAX);
	pool->most = most;
	weft_mutex_init(&pool->lock);
	pthread_cond_init(&pool->more, NULL);
	weft_list_init(&pool->queue);
	pool->queued = pool->idle = pool->count = 0;
	pool->stopping = false;
	sched_getaffinity(0, sizeof(pool->cpus), &pool->cpus);
}

void weft_workers_destroy(struct weft_workers *pool)
{
	weft_mutex_lock(&pool->lock);
	assert(weft_list_empty(&pool->queue) && !pool->queued && !pool->stopping);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->more);
	weft_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->count; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->more);
	weft_mutex_destroy(&pool->lock);
}
