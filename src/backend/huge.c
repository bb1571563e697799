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

#include "base/count.h"
#include "lock/mutex.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* An extent's count when it is full and waits for the thread, and afterwards. */
#define COLLAPSE_WANTED ((uint32_t)WEFT_HUGE_BYTES)
#define COLLAPSE_TRIED  UINT32_MAX

static struct {
	struct weft_mutex lock;
	pthread_cond_t more, left;
	struct weft_list asking; /* memory with extents that wait for the thread */
	struct weft_huge *at;    /* the memory that the thread works on */
} collapser = { .lock = { .mutex = PTHREAD_MUTEX_INITIALIZER },
		.more = PTHREAD_COND_INITIALIZER,
		.left = PTHREAD_COND_INITIALIZER,
		.asking = { &collapser.asking, &collapser.asking } };

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
	assert(extent < huge->room);
	atomic_store_explicit(&huge->written[extent], count, memory_order_relaxed);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Almost all of it is resident: the rest will cost memory. */
static bool is_resident(char *at)
{
	static unsigned char there[WEFT_HUGE_BYTES / 4096];
	size_t pages = WEFT_HUGE_BYTES / (size_t)sysconf(_SC_PAGESIZE), missing = 0;

	if (mincore(at, WEFT_HUGE_BYTES, there) < 0)
		return false;
	for (size_t i = 0; i < pages; i++)
		missing += !(there[i] & 1);
	return missing <= pages / 8;
}

static void collapse_extent(struct weft_huge *huge, uint64_t extent)
{
	char *at = huge->base + extent * WEFT_HUGE_BYTES;

	if (is_resident(at))
		madvise(at, WEFT_HUGE_BYTES, MADV_COLLAPSE);
	else
		set_count(huge, extent, 0);
}

/* The next extent of @huge that waits. There may be none: they come and go. */
static bool next_full_extent(struct weft_huge *huge, uint64_t *extent)
{
	assert_locked(&collapser.lock);
	for (uint64_t i = 0; i < extents_of(huge); i++) {
		huge->cursor = (huge->cursor + 1) % extents_of(huge);
		if (count_of(huge, huge->cursor) != COLLAPSE_WANTED)
			continue;
		set_count(huge, huge->cursor, COLLAPSE_TRIED);
		*extent = huge->cursor;
		return true;
	}
	huge->asking = 1;
	return false;
}

static void collapse_next(struct weft_huge *huge)
{
	uint64_t extent;
	bool found = next_full_extent(huge, &extent);

	assert(!collapser.at);
	weft_list_remove(&huge->link);
	if (weft_count_down(huge->asking))
		weft_list_push(&collapser.asking, &huge->link);
	if (!found)
		return;
	collapser.at = huge;
	weft_mutex_unlock(&collapser.lock);
	collapse_extent(huge, extent);
	weft_mutex_lock(&collapser.lock);
	collapser.at = NULL;
	pthread_cond_broadcast(&collapser.left);
}

static void *collapse_thread_main(void *arg)
{
	weft_mutex_lock(&collapser.lock);
	for (;;) {
		while (weft_list_empty(&collapser.asking))
			weft_mutex_wait(&collapser.lock, &collapser.more);
		collapse_next(container_of(collapser.asking.next, struct weft_huge, link));
	}
	return NULL;
}

/* Signals are left to threads that wait for them. */
static void start_collapse_thread(void)
{
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, collapse_thread_main, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- writers ---------------------------------------------------------------------------------- */

static void request_collapse(struct weft_huge *huge)
{
	weft_mutex_lock(&collapser.lock);
	if (!huge->asking++)
		weft_list_push(&collapser.asking, &huge->link);
	pthread_cond_signal(&collapser.more);
	weft_mutex_unlock(&collapser.lock);
}

/* A write across two extents counts for the first. */
void weft_huge_wrote(struct weft_huge *huge, uint64_t offset, uint64_t len)
{
	uint64_t extent = offset / WEFT_HUGE_BYTES;
	uint32_t before;

	if (extent >= extents_of(huge))
		return;
	before = count_of(huge, extent);
	if (before >= COLLAPSE_WANTED)
		return;
	if (len < COLLAPSE_WANTED - before) {
		set_count(huge, extent, before + (uint32_t)len);
		return;
	}
	set_count(huge, extent, COLLAPSE_WANTED);
	request_collapse(huge);
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

	assert(!((uintptr_t)base % WEFT_HUGE_BYTES));
	pthread_once(&once, start_collapse_thread);
	*huge = (struct weft_huge){ .base = base };
	huge->written = calloc(bytes / WEFT_HUGE_BYTES, sizeof(*huge->written));
	if (huge->written)
		huge->room = bytes / WEFT_HUGE_BYTES;
}

void weft_huge_grow(struct weft_huge *huge, uint64_t bytes)
{
	uint64_t extents = bytes / WEFT_HUGE_BYTES;

	assert(!huge->room || extents >= extents_of(huge));
	atomic_store(&huge->extents, extents < huge->room ? extents : huge->room);
}

void weft_huge_fini(struct weft_huge *huge)
{
	weft_mutex_lock(&collapser.lock);
	if (huge->asking)
		weft_list_remove(&huge->link);
	while (collapser.at == huge)
		weft_mutex_wait(&collapser.lock, &collapser.left);
	weft_mutex_unlock(&collapser.lock);
	free(huge->written);
}
