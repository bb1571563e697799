/* watch.h - told when others write to a file, or close it. */
#ifndef WEFT_STORE_WATCH_H
#define WEFT_STORE_WATCH_H

#include <stdbool.h>

#include "reactor/reactor.h"

struct store_watch {
	/* Somebody, perhaps we, wrote to it; @closed: one who could is gone, or about to be. */
	void (*changed)(struct store_watch *watch, bool closed);
	void (*ended)(struct store_watch *watch); /* after store_watch_close() */
	/* Its own. */
	struct weft_sock sock;
	struct weft_op op;
	bool open, closing;
};

/* The file that @file has open, whatever became of its name. */
int store_watch_open(struct store_watch *watch, struct weft_reactor *home, int file);
void store_watch_close(struct store_watch *watch); /* ended() follows, not from inside this */

#endif
