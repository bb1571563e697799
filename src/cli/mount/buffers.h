/* buffers.h - buffers for reads, kept for the next ones: to register memory with an RDMA adapter
 * takes longer than a read. */
#ifndef WEFT_CLI_MOUNT_BUFFERS_H
#define WEFT_CLI_MOUNT_BUFFERS_H

#include <pthread.h>
#include <stddef.h>

enum {
	WEFT_MOUNT_BUFFERS_IDLE = 16
}; /* so many are kept; if all are in use a new one is allocated */

struct weft_mount_buffers {
	pthread_mutex_t lock;
	size_t size; /* of each */
	unsigned idle;
	void *stack[WEFT_MOUNT_BUFFERS_IDLE];
};

void weft_mount_buffers_init(struct weft_mount_buffers *buffers, size_t size);
/* All have been given back. */
void weft_mount_buffers_destroy(struct weft_mount_buffers *buffers);

/* At least @size bytes. NULL: there is no memory, or never that much. */
void *weft_mount_buffer_get(struct weft_mount_buffers *buffers, size_t size);
void weft_mount_buffer_put(struct weft_mount_buffers *buffers, void *buf); /* NULL is nothing */

#endif
