/* cleanup.h - locals that free themselves, pointers that change owner in the open. */
#ifndef WEFT_BASE_CLEANUP_H
#define WEFT_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

#define take_ptr(pp)                      \
	({                                \
		typeof(*(pp)) p_ = *(pp); \
		*(pp) = NULL;             \
		p_;                       \
	})

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void weft_freep(void *pp)
{
	free(*(void **)pp);
}

static inline void weft_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#endif
