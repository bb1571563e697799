/* buffers.h - memory for reads, kept for the next ones: telling an adapter of memory takes longer
 * than a read. */
#ifndef WEFT_CLI_MOUNT_BUFFERS_H
#define WEFT_CLI_MOUNT_BUFFERS_H

#include <pthread.h>
#include <stddef.h>

enum { WEFT_BUFFERS_IDLE = 16 }; /* are kept; who comes when there is none gets a new one */

struct weft_buffers {
	pthread_mutex_t lock;
	size_t size; /* of each */
	unsigned idle;
	void *stack[WEFT_BUFFERS_IDLE];
};

void weft_buffers_init(struct weft_buffers *buffers, size_t size);
/* All have been given back. */
void weft_buffers_destroy(struct weft_buffers *buffers);

/* At least @size bytes. NULL: there is no memory, or never that much. */
void *weft_buffers_take(struct weft_buffers *buffers, size_t size);
void weft_buffers_give(struct weft_buffers *buffers, void *buf); /* NULL is nothing */

#endif
