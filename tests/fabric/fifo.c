/* fifo.c - a queue that can be polled: its eventfd is 1 exactly while something is in it. */
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric/internal.h"

int fabric_fifo_open(struct fabric_fifo *fifo)
{
	weft_list_init(&fifo->items);
	fifo->fd = eventfd(0, EFD_CLOEXEC);
	return fifo->fd < 0 ? -1 : 0;
}

void fabric_fifo_close(struct fabric_fifo *fifo)
{
	if (!weft_list_empty(&fifo->items))
		fabric_misuse("a channel is destroyed with events in it");
	close(fifo->fd);
}

void fabric_fifo_push(struct fabric_fifo *fifo, struct weft_list *item)
{
	bool was_empty = weft_list_empty(&fifo->items);

	weft_list_push(&fifo->items, item);
	if (was_empty && eventfd_write(fifo->fd, 1) < 0)
		abort();
}

void fabric_fifo_remove(struct fabric_fifo *fifo, struct weft_list *item)
{
	eventfd_t value;

	weft_list_remove(item);
	if (weft_list_empty(&fifo->items) && eventfd_read(fifo->fd, &value) < 0)
		abort();
}

static bool blocks(const struct fabric_fifo *fifo)
{
	return !(fcntl(fifo->fd, F_GETFL) & O_NONBLOCK);
}

struct weft_list *fabric_fifo_take(struct fabric_fifo *fifo)
{
	struct weft_list *item;

	while (weft_list_empty(&fifo->items)) {
		struct pollfd poll_fd = { .fd = fifo->fd, .events = POLLIN };

		if (!blocks(fifo)) {
			errno = EAGAIN;
			return NULL;
		}
		pthread_mutex_unlock(&fabric_mutex);
		poll(&poll_fd, 1, -1);
		pthread_mutex_lock(&fabric_mutex);
	}
	item = fifo->items.next;
	fabric_fifo_remove(fifo, item);
	return item;
}
