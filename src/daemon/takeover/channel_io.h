/* channel_io.h - send or receive all bytes and descriptors before a deadline. */
#ifndef WEFT_DAEMON_TAKEOVER_CHANNEL_IO_H
#define WEFT_DAEMON_TAKEOVER_CHANNEL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/items.h"

/* The moment that is @ms from now, for the calls below. */
uint64_t channel_deadline(unsigned ms);

/* -ETIMEDOUT: not all was sent, or received, in time; -ECONNRESET: the other side is gone. After a
 * timeout of a receive the other side can send nothing more. */
int channel_send(int fd, const void *from, size_t len, uint64_t deadline_ns);
int channel_send_fds(int fd, const int *fds, unsigned count, uint64_t deadline_ns);
int channel_recv(int fd, void *to, size_t len, uint64_t deadline_ns);
/* Receives up to @count into @items, which has room; those that came are in it also on -errno. */
int channel_recv_fds(int fd, struct weft_items *items, unsigned count, uint64_t deadline_ns);

#endif
