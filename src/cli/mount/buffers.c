/* buffers.c - buffers for reads, kept for the next ones. */
#include "cli/mount/buffers.h"

#include <weft/memory.h>

void weft_mount_buffers_init(struct weft_mount_buffers *buffers, size_t size)
{
	*buffers = (struct weft_mount_buffers){ .size = size };
	pthread_mutex_init(&buffers->lock, NULL);
}

void weft_mount_buffers_destroy(struct weft_mount_buffers *buffers)
{
	while (buffers->idle)
		weft_memory_free(buffers->stack[--buffers->idle]);
	pthread_mutex_destroy(&buffers->lock);
}

void *weft_mount_buffer_get(struct weft_mount_buffers *buffers, size_t size)
{
	void *buf = NULL;

	if (size > buffers->size)
		return NULL;
	pthread_mutex_lock(&buffers->lock);
	if (buffers->idle)
		buf = buffers->stack[--buffers->idle];
	pthread_mutex_unlock(&buffers->lock);
	return buf ? buf : weft_memory_alloc(buffers->size);
}

void weft_mount_buffer_put(struct weft_mount_buffers *buffers, void *buf)
{
	pthread_mutex_lock(&buffers->lock);
	if (buf && buffers->idle < WEFT_MOUNT_BUFFERS_IDLE) {
		buffers->stack[buffers->idle++] = buf;
		buf = NULL;
	}
	pthread_mutex_unlock(&buffers->lock);
	weft_memory_free(buf);
}
