/* watch.c - told when others write to a file, or close it: inotify, on the home reactor.
 *
 * All processes of this kernel are seen, in whatever namespaces they are; those of other machines
 * that share the file system are not. */
#include "store/watch.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Whether one of them is a close. */
static bool drain(int fd)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *event;
	bool closed = false;
	ssize_t n;

	while ((n = read(fd, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + n; at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)at;
			closed |= !!(event->mask & IN_CLOSE_WRITE);
		}
	}
	return closed;
}

static void readable(struct weft_op *op, int res)
{
	struct store_watch *watch = container_of(op, struct store_watch, op);
	bool closed;

	(void)res;
	if (watch->closing) {
		watch->open = false;
		watch->ended(watch);
		return;
	}
	closed = drain(watch->sock.fd);
	weft_sock_poll(&watch->sock, &watch->op);
	watch->changed(watch, closed);
}

int store_watch_open(struct store_watch *watch, struct weft_reactor *home, int file)
{
	_cleanup_(weft_closep) int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char path[32];
	int rc;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY | IN_CLOSE_WRITE) < 0)
		return -errno;
	rc = weft_sock_open(home, &watch->sock, fd);
	if (rc < 0)
		return rc;
	take_fd(&fd);
	watch->open = true;
	watch->op.done = readable;
	weft_sock_poll(&watch->sock, &watch->op);
	return 0;
}

void store_watch_close(struct store_watch *watch)
{
	watch->closing = true;
	weft_sock_close(&watch->sock);
}
