/* reactor_threads.c - one thread per CPU. Each creates and destroys its reactor itself, so that
 * memory and ring are local to it. */
#include "daemon/reactor_threads.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reactor_thread {
	pthread_t id;
	bool running;
	struct weft_reactor_options options;
	struct weft_reactor *reactor;
	struct weft_msg stop;
	sem_t ready; /* @rc, @err and @reactor are set */
	int rc;
	struct weft_err err;
};

static void *thread_main(void *arg)
{
	struct reactor_thread *thread = arg;
	char name[16];

	snprintf(name, sizeof(name), "weft-%d", thread->options.cpu);
	pthread_setname_np(pthread_self(), name);
	thread->rc = weft_reactor_create(&thread->reactor, &thread->options, &thread->err);
	sem_post(&thread->ready);
	if (thread->rc < 0)
		return NULL;
	weft_reactor_run(thread->reactor);
	weft_reactor_destroy(thread->reactor);
	return NULL;
}

static int thread_start(struct reactor_thread *thread, struct weft_err *err)
{
	int rc;

	sem_init(&thread->ready, 0, 0);
	rc = -pthread_create(&thread->id, NULL, thread_main, thread);
	if (rc < 0)
		return weft_fail(err, rc, "cannot start a thread: %s", strerror(-rc));
	thread->running = true;
	return 0;
}

static int thread_wait_ready(struct reactor_thread *thread, struct weft_err *err)
{
	while (sem_wait(&thread->ready) < 0 && errno == EINTR)
		;
	if (thread->rc < 0)
		return weft_fail(err, thread->rc, "reactor on CPU %d: %s", thread->options.cpu,
				 thread->err.text[0] ? thread->err.text : strerror(-thread->rc));
	return 0;
}

static int start_all(struct weft_reactor_threads *threads, struct weft_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < threads->count && !rc; i++) {
		rc = thread_start(&threads->at[i], err);
		if (!rc)
			rc = thread_wait_ready(&threads->at[i], err);
		threads->reactors[i] = threads->at[i].reactor;
	}
	return rc;
}

int weft_reactor_threads_start(struct weft_reactor_threads *threads, const cpu_set_t *cpus,
			       const struct weft_reactor_options *options, struct weft_err *err)
{
	unsigned count = (unsigned)CPU_COUNT(cpus), i = 0;

	threads->at = calloc(count, sizeof(*threads->at));
	threads->reactors = calloc(count, sizeof(*threads->reactors));
	if (!threads->at || !threads->reactors)
		return -ENOMEM;
	threads->count = count;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, cpus))
			continue;
		threads->at[i].options = *options;
		threads->at[i++].options.cpu = cpu;
	}
	return start_all(threads, err);
}

static void on_stop(struct weft_msg *msg)
{
	weft_reactor_stop(weft_reactor_self());
}

static void thread_stop(struct reactor_thread *thread)
{
	if (!thread->running)
		return;
	thread->stop.fn = on_stop;
	if (!thread->rc)
		weft_reactor_post(thread->reactor, &thread->stop);
	pthread_join(thread->id, NULL);
	sem_destroy(&thread->ready);
}

void weft_reactor_threads_stop(struct weft_reactor_threads *threads)
{
	for (unsigned i = 0; i < threads->count; i++)
		thread_stop(&threads->at[i]);
	free(threads->at);
	free(threads->reactors);
	memset(threads, 0, sizeof(*threads));
}
