/* mutex.h - a mutex that knows who holds it, so that what needs it held can assert that.
 *
 * Where a function says assert_locked(&ctrl->lock), its caller has locked it, on this thread. */
#ifndef WEFT_LOCK_MUTEX_H
#define WEFT_LOCK_MUTEX_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct weft_mutex {
	pthread_mutex_t mutex;
	atomic_uintptr_t owner; /* the thread that holds it; 0: none does */
};

#define WEFT_MUTEX_INITIALIZER                     \
	{                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER \
	}

#define assert_locked(lock) assert(weft_mutex_is_mine(lock))

static inline void weft_mutex_init(struct weft_mutex *m)
{
	pthread_mutex_init(&m->mutex, NULL);
	atomic_init(&m->owner, 0);
}

static inline bool weft_mutex_is_mine(const struct weft_mutex *m)
{
	return atomic_load_explicit(&m->owner, memory_order_relaxed) == (uintptr_t)pthread_self();
}

static inline void weft_mutex_note_owner(struct weft_mutex *m, uintptr_t owner)
{
	atomic_store_explicit(&m->owner, owner, memory_order_relaxed);
}

static inline void weft_mutex_lock(struct weft_mutex *m)
{
	assert(!weft_mutex_is_mine(m));
	pthread_mutex_lock(&m->mutex);
	weft_mutex_note_owner(m, (uintptr_t)pthread_self());
}

static inline void weft_mutex_unlock(struct weft_mutex *m)
{
	assert_locked(m);
	weft_mutex_note_owner(m, 0);
	pthread_mutex_unlock(&m->mutex);
}

/* As pthread_cond_wait(): @m is held before and after, and not meanwhile. */
static inline void weft_mutex_wait(struct weft_mutex *m, pthread_cond_t *cond)
{
	assert_locked(m);
	weft_mutex_note_owner(m, 0);
	pthread_cond_wait(cond, &m->mutex);
	weft_mutex_note_owner(m, (uintptr_t)pthread_self());
}

static inline void weft_mutex_destroy(struct weft_mutex *m)
{
	pthread_mutex_destroy(&m->mutex);
}

#endif
