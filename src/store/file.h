/* file.h - a store in a state file, and how it is opened. */
#ifndef WEFT_STORE_FILE_H
#define WEFT_STORE_FILE_H

#include "reactor/workers.h"
#include "store/cycle.h"
#include "store/watch.h"

struct file_store {
	struct weft_store store;
	int fd;
	char *path;
	struct weft_workers workers;
	struct weft_op op;
	struct store_cycle cycle;
	struct weft_list txns;
	struct weft_task start_cycle; /* deferred to the end of the turn */
	bool busy, rerun, failing, closing;
	unsigned fast_polls; /* cycles that are to follow soon */
	unsigned lock_waits; /* cycles in a row that did not get the lock */
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
