/* watch.h - told when others write to a file, or close it. */
#ifndef WEFT_STORE_WATCH_H
#define WEFT_STORE_WATCH_H

#include <stdbool.h>

#include "reactor/reactor.h"

/* What somebody, perhaps we, did. */
struct store_file_events {
	bool written; /* to the file */
	bool closed;  /* the file: one who could write to it is gone, or about to be */
	bool let_go;  /* of another file */
};

struct store_watch {
	void (*on_file_events)(struct store_watch *watch,
			       const struct store_file_events *file_events);
	void (*ended)(struct store_watch *watch); /* after store_watch_close() */
	/* Its own. */
	struct weft_sock sock;
	struct weft_op op;
	int fd;   /* until it is open */
	int file; /* as inotify names it */
	bool open, closing;
	bool paused, pending; /* due: to look when it goes on */
};

int store_watch_create(struct store_watch *watch); /* before the file is opened: see watch.c */
void store_watch_free(struct store_watch *watch);  /* that is not open */
/* The file that @file has open, whatever became of its name. */
int store_watch_open(struct store_watch *watch, struct weft_reactor *control_reactor, int file);
/* Another one, of which only the next closing counts. */
void store_watch_next_close(struct store_watch *watch, int file);
/* In between news is for store_watch_drain(), and told() has what that left. */
void store_watch_pause(struct store_watch *watch);
void store_watch_resume(struct store_watch *watch);
/* Adds what nobody was told of to @news; told() will not tell it again. False: there is nothing.
 * From any thread, while it is held. */
bool store_watch_drain(struct store_watch *watch, struct store_file_events *file_events);
void store_watch_close(struct store_watch *watch); /* ended() follows, not from inside this */

#endif
