/* watch.h - inotify: calls back when a process writes to a file, or closes it. */
#ifndef WEFT_STORE_WATCH_H
#define WEFT_STORE_WATCH_H

#include <stdbool.h>

#include "reactor/reactor.h"

/* Events of any process, perhaps ours. */
struct store_file_events {
	bool written; /* to the file */
	bool closed;  /* a process that could write to the file is gone, or about to be */
	bool let_go;  /* another file was closed */
};

enum store_watch_state {
	STORE_WATCH_CLOSED,  /* no inotify descriptor */
	STORE_WATCH_CREATED, /* it is there, and watches nothing yet */
	STORE_WATCH_ACTIVE,  /* events are reported as they come */
	STORE_WATCH_PAUSED,
	STORE_WATCH_MISSED,  /* paused, and events came */
	STORE_WATCH_CLOSING, /* ended() follows */
};

struct store_watch {
	void (*on_file_events)(struct store_watch *watch,
			       const struct store_file_events *file_events);
	void (*ended)(struct store_watch *watch); /* after store_watch_close() */
	/* Private. */
	struct weft_sock sock;
	struct weft_op op;
	enum store_watch_state state;
	int fd;   /* until it is open */
	int file; /* inotify's watch descriptor */
};

/* From store_watch_open() to store_watch_close(). */
static inline bool store_watch_is_open(const struct store_watch *watch)
{
	return watch->state >= STORE_WATCH_ACTIVE && watch->state < STORE_WATCH_CLOSING;
}

int store_watch_create(struct store_watch *watch); /* before the file is opened: see watch.c */
void store_watch_free(struct store_watch *watch);  /* if it is neither open nor closing */
/* Watches the file of the descriptor @file, also if it is renamed. */
int store_watch_open(struct store_watch *watch, struct weft_reactor *control_reactor, int file);
/* Watches another file, until it is closed the next time. */
void store_watch_next_close(struct store_watch *watch, int file);
/* While it is open. Paused, store_watch_drain() takes the events; the rest is reported after the pause. */
void store_watch_pause(struct store_watch *watch);
void store_watch_resume(struct store_watch *watch);
/* Adds events that were not reported yet to @file_events, and does not report them later. False:
 * there are none. From any thread, while paused. */
bool store_watch_drain(struct store_watch *watch, struct store_file_events *file_events);
void store_watch_close(struct store_watch *watch); /* ended() follows, not from inside this */

#endif
