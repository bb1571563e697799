/* huge.c - huge pages (2 MiB) for memory namespaces that fill up.
 *
 *   an extent was written in full ─▶ collapse thread: are its pages resident? ─▶ MADV_COLLAPSE
 *
 * Memory is allocated when it is touched, in small pages at first: a host that touches little must
 * not cost much. When almost all of an extent is resident the kernel is asked to collapse it into
 * one huge page (Linux 6.1), which it does while the memory is in use; if it cannot, the pages stay
 * as they are. That takes milliseconds, so one thread does it for all namespaces, on any CPU that
 * the process may use.
 *
 * Invariant: an extent that asks is mapped; weft_huge_fini() waits until the thread has left. */
#include "backend/huge.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* An extent's count when it is full and waits for the thread, and afterwards. */
#define ASKS  ((uint32_t)WEFT_HUGE_BYTES)
#define TRIED UINT32_MAX

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more, left;
	struct weft_list asking; /* memory with extents that wait for the thread */
	struct weft_huge *at;    /* the memory that the thread works on */
} shop = { .lock = PTHREAD_MUTEX_INITIALIZER,
	   .more = PTHREAD_COND_INITIALIZER,
	   .left = PTHREAD_COND_INITIALIZER,
	   .asking = { &shop.asking, &shop.asking } };

static uint64_t extents_of(struct weft_huge *huge)
{
	return atomic_load_explicit(&huge->extents, memory_order_relaxed);
}

static uint32_t count_of(struct weft_huge *huge, uint64_t extent)
{
	return atomic_load_explicit(&huge->written[extent], memory_order_relaxed);
}

static void set_count(struct weft_huge *huge, uint64_t extent, uint32_t count)
{
	atomic_store_explicit(&huge->written[extent], count, memory_order_relaxed);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Almost all of it is resident: the rest will cost memory. */
static bool is_full(char *at)
{
	static unsigned char there[WEFT_HUGE_BYTES / 4096];
	size_t pages = WEFT_HUGE_BYTES / (size_t)sysconf(_SC_PAGESIZE), missing = 0;

	if (mincore(at, WEFT_HUGE_BYTES, there) < 0)
		return false;
	for (size_t i = 0; i < pages; i++)
		missing += !(there[i] & 1);
	return missing <= pages / 8;
}

static void make_large(struct weft_huge *huge, uint64_t extent)
{
	char *at = huge->base + extent * WEFT_HUGE_BYTES;

	if (is_full(at))
		madvise(at, WEFT_HUGE_BYTES, MADV_COLLAPSE);
	else
		set_count(huge, extent, 0);
}

/* The next extent of @huge that waits. There may be none: they come and go. */
static bool find(struct weft_huge *huge, uint64_t *extent)
{
	for (uint64_t i = 0; i < extents_of(huge); i++) {
		huge->cursor = (huge->cursor + 1) % extents_of(huge);
		if (count_of(huge, huge->cursor) != ASKS)
			continue;
		set_count(huge, huge->cursor, TRIED);
		*extent = huge->cursor;
		return true;
	}
	huge->asking = 1;
	return false;
}

static void serve(struct weft_huge *huge)
{
	uint64_t extent;
	bool found = find(huge, &extent);

	weft_list_remove(&huge->link);
	if (--huge->asking)
		weft_list_push(&shop.asking, &huge->link);
	if (!found)
		return;
	shop.at = huge;
	pthread_mutex_unlock(&shop.lock);
	make_large(huge, extent);
	pthread_mutex_lock(&shop.lock);
	shop.at = NULL;
	pthread_cond_broadcast(&shop.left);
}

static void *work(void *arg)
{
	pthread_mutex_lock(&shop.lock);
	for (;;) {
		while (weft_list_empty(&shop.asking))
			pthread_cond_wait(&shop.more, &shop.lock);
		serve(container_of(shop.asking.next, struct weft_huge, link));
	}
	return NULL;
}

/* Signals are left to threads that wait for them. */
static void start(void)
{
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, work, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- writers ---------------------------------------------------------------------------------- */

static void ask(struct weft_huge *huge)
{
	pthread_mutex_lock(&shop.lock);
	if (!huge->asking++)
		weft_list_push(&shop.asking, &huge->link);
	pthread_cond_signal(&shop.more);
	pthread_mutex_unlock(&shop.lock);
}

/* A write across two extents counts for the first. */
void weft_huge_wrote(struct weft_huge *huge, uint64_t offset, uint64_t len)
{
	uint64_t extent = offset / WEFT_HUGE_BYTES;
	uint32_t before;

	if (extent >= extents_of(huge))
		return;
	before = count_of(huge, extent);
	if (before >= ASKS)
		return;
	if (len < ASKS - before) {
		set_count(huge, extent, before + (uint32_t)len);
		return;
	}
	set_count(huge, extent, ASKS);
	ask(huge);
}

void weft_huge_cleared(struct weft_huge *huge, uint64_t offset, uint64_t len)
{
	uint64_t end = (offset + len + WEFT_HUGE_BYTES - 1) / WEFT_HUGE_BYTES;

	for (uint64_t i = offset / WEFT_HUGE_BYTES; i < end && i < extents_of(huge); i++)
		set_count(huge, i, 0);
}

/* --- beginning and end ------------------------------------------------------------------------ */

void weft_huge_init(struct weft_huge *huge, char *base, uint64_t bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	*huge = (struct weft_huge){ .base = base };
	huge->written = calloc(bytes / WEFT_HUGE_BYTES, sizeof(*huge->written));
	if (huge->written)
		huge->room = bytes / WEFT_HUGE_BYTES;
}

void weft_huge_grow(struct weft_huge *huge, uint64_t bytes)
{
	uint64_t extents = bytes / WEFT_HUGE_BYTES;

	atomic_store(&huge->extents, extents < huge->room ? extents : huge->room);
}

void weft_huge_fini(struct weft_huge *huge)
{
	pthread_mutex_lock(&shop.lock);
	if (huge->asking)
		weft_list_remove(&huge->link);
	while (shop.at == huge)
		pthread_cond_wait(&shop.left, &shop.lock);
	pthread_mutex_unlock(&shop.lock);
	free(huge->written);
}
