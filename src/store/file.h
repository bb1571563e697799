/* file.h - a store in a file, and how it is opened. */
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
	struct weft_task start_cycle; /* the cycle, when this turn has said all that it is for */
	bool busy, rerun, failing, closing;
	unsigned fast_polls; /* that follow soon */
	unsigned lock_waits; /* visits in a row that found somebody else at the file */
	struct weft_timer timer;

	struct store_watch watch; /* where others can change it */
};

/* Opens the file and joins, with what it holds as the copy. Blocks. */
int store_file_join(struct file_store *f, struct weft_err *err);
/* What a visit needs to know, of the file that f->fd has open. */
void store_file_init_cycle(struct file_store *f);
/* shared_fs.c */
bool store_file_on_shared_fs(const struct weft_store *store);

#endif
