/* channel_io.h - bytes and descriptors through a socket, all of them or none in time. */
#ifndef WEFT_DAEMON_TAKEOVER_CHANNEL_IO_H
#define WEFT_DAEMON_TAKEOVER_CHANNEL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/items.h"

/* The moment that is @ms from now, for the calls below. */
uint64_t channel_deadline(unsigned ms);

/* -ETIMEDOUT: not all went, or came, in time; -ECONNRESET: the other side is gone. Where receiving
 * was late, the other side can send nothing more. */
int channel_send(int fd, const void *from, size_t len, uint64_t deadline_ns);
int channel_send_fds(int fd, const int *fds, unsigned count, uint64_t deadline_ns);
int channel_recv(int fd, void *to, size_t len, uint64_t deadline_ns);
/* Up to @count of them into @items, which has room; those that came are in it also on -errno. */
int channel_recv_fds(int fd, struct weft_items *items, unsigned count, uint64_t deadline_ns);

#endif
