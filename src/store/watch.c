/* watch.c - told when others write to a file, or close it: inotify, on the home reactor.
 *
 * All processes of this kernel are seen, in whatever namespaces they are; those of other machines
 * that share the file system are not. Nor is ourselves told from others: who has just written, and
 * looks at the file all the same, takes the news of it away first.
 *
 * When a process is killed its descriptors were seen to end from the highest number down, and an
 * inotify to take some milliseconds. Files whose locks others wait for are to be opened behind
 * it. */
#include "store/watch.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"

static void note(const struct store_watch *watch, const struct inotify_event *event,
		 struct store_news *news)
{
	if (event->mask & IN_Q_OVERFLOW) { /* whatever it was */
		*news = (struct store_news){ true, true, true };
		return;
	}
	if (event->wd != watch->file) {
		news->let_go |= !!(event->mask & IN_CLOSE);
		return;
	}
	news->written |= !!(event->mask & IN_MODIFY);
	news->closed |= !!(event->mask & IN_CLOSE_WRITE);
}

bool store_watch_take(struct store_watch *watch, struct store_news *news)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *event;
	bool any = false;
	ssize_t n;

	while ((n = read(watch->sock.fd, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + n; at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)at;
			note(watch, event, news);
		}
		any = true;
	}
	return any;
}

static void look(struct store_watch *watch)
{
	struct store_news news = { false };
	bool any = store_watch_take(watch, &news);

	weft_sock_poll(&watch->sock, &watch->op);
	if (any)
		watch->told(watch, &news);
}

static void readable(struct weft_op *op, int res)
{
	struct store_watch *watch = container_of(op, struct store_watch, op);

	(void)res;
	if (watch->closing) {
		watch->open = false;
		watch->ended(watch);
	} else if (watch->held) {
		watch->due = true;
	} else {
		look(watch);
	}
}

void store_watch_hold(struct store_watch *watch)
{
	watch->held = true;
}

void store_watch_go_on(struct store_watch *watch)
{
	bool due = watch->due;

	watch->held = watch->due = false;
	if (due)
		look(watch);
}

static int add(int fd, int file, uint32_t what)
{
	char path[32];
	int watched;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	watched = inotify_add_watch(fd, path, what);
	return watched < 0 ? -errno : watched;
}

int store_watch_create(struct store_watch *watch)
{
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return watch->fd < 0 ? -errno : 0;
}

int store_watch_open(struct store_watch *watch, struct weft_reactor *home, int file)
{
	int rc;

	watch->file = add(watch->fd, file, IN_MODIFY | IN_CLOSE_WRITE);
	if (watch->file < 0)
		return watch->file;
	rc = weft_sock_open(home, &watch->sock, watch->fd);
	if (rc < 0)
		return rc;
	take_fd(&watch->fd);
	watch->open = true;
	watch->op.done = readable;
	weft_sock_poll(&watch->sock, &watch->op);
	return 0;
}

void store_watch_free(struct store_watch *watch)
{
	weft_closep(&watch->fd);
}

/* Once: a process that is killed while it has many of them takes longer to die. */
void store_watch_closing(struct store_watch *watch, int file)
{
	add(watch->sock.fd, file, IN_CLOSE | IN_ONESHOT);
}

void store_watch_close(struct store_watch *watch)
{
	watch->closing = true;
	weft_sock_close(&watch->sock);
}
