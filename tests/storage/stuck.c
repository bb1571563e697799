/* stuck.c - a disk that stands still while the test says so. */
#include "storage/stuck.h"

#include <pthread.h>

struct weft_backend;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER, let_go = PTHREAD_COND_INITIALIZER;
static enum stuck_at stuck;
static unsigned waiting;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
void __real_weft_disk_close(struct weft_backend *be);
void __wrap_weft_disk_close(struct weft_backend *be);

static void pass(enum stuck_at at)
{
	pthread_mutex_lock(&lock);
	while (stuck == at) {
		waiting++;
		pthread_cond_signal(&came);
		pthread_cond_wait(&let_go, &lock);
		waiting--;
	}
	pthread_mutex_unlock(&lock);
}

int __wrap_fsync(int fd)
{
	pass(STUCK_AT_SYNC);
	return __real_fsync(fd);
}

void __wrap_weft_disk_close(struct weft_backend *be)
{
	pass(STUCK_AT_CLOSE);
	__real_weft_disk_close(be);
}

void stuck_hold(enum stuck_at at)
{
	pthread_mutex_lock(&lock);
	stuck = at;
	pthread_cond_broadcast(&let_go);
	pthread_mutex_unlock(&lock);
}

void stuck_until_one_waits(void)
{
	pthread_mutex_lock(&lock);
	while (!waiting)
		pthread_cond_wait(&came, &lock);
	pthread_mutex_unlock(&lock);
}
