/* file.h - a store in a state file, and how it is opened. */
#ifndef WEFT_STORE_FILE_H
#define WEFT_STORE_FILE_H

#include "reactor/workers.h"
#include "store/cycle.h"
#include "store/watch.h"

enum store_file_state {
	STORE_FILE_IDLE,    /* a commit, an event or the timer starts the next cycle */
	STORE_FILE_CYCLE,   /* a cycle is on the worker */
	STORE_FILE_RERUN,   /* the same, and another one is to follow */
	STORE_FILE_CLOSING, /* closed by its owner, while a cycle is on the worker */
	STORE_FILE_CLOSED,  /* no cycle will run; freed when the watch has ended */
};

struct file_store {
	struct weft_store store;
	enum store_file_state state;
	int fd;
	char *path;
	struct weft_workers workers;
	struct weft_op op;
	struct store_cycle cycle;
	struct weft_list txns;
	struct weft_task start_cycle; /* deferred to the end of the turn */
	bool failing;                 /* the last cycle did; it was logged */
	unsigned fast_polls;          /* cycles that are to follow soon */
	unsigned lock_waits;          /* cycles in a row that did not get the lock */
	struct weft_timer timer;

	struct store_watch watch; /* if others can change the file */
};

/* Opens the file, joins and loads its records. Blocks. */
int store_file_join(struct file_store *f, struct weft_err *err);
/* Prepares a cycle on the file that f->fd has open. */
void store_file_init_cycle(struct file_store *f);
/* shared_fs.c */
bool store_file_on_shared_fs(const struct weft_store *store);

#endif
