/* internal.h - the body of a store, and the ops of its types (file, mem). */
#ifndef WEFT_STORE_INTERNAL_H
#define WEFT_STORE_INTERNAL_H

#include <stdatomic.h>

#include "store/records.h"
#include "store/store.h"

struct weft_store_ops {
	const char *type;
	bool persistent;

	/* Makes a store of @arg, what follows "TYPE:", and does not touch the file. Sets ops and
	 * records, store.c the rest. After this close() undoes it. */
	int (*create)(struct weft_store **store, const char *arg);
	/* Opens the file and joins: our copy is complete then. A successor does not join. Blocks,
	 * on any thread, while nobody else knows @store; store->cancelled ends it soon, with
	 * -ECANCELED. NULL: there is nothing to join. */
	int (*join)(struct weft_store *store, struct weft_err *err);
	/* It has joined; on the control reactor. NULL: nothing is left to do. */
	int (*joined)(struct weft_store *store, struct weft_err *err);
	void (*commit)(struct weft_store *store, struct weft_store_txn *txn);
	void (*acked)(struct weft_store *store);              /* store->acked grew */
	bool (*on_shared_fs)(const struct weft_store *store); /* NULL: it is not */
	/* NULL: there are no other members. */
	int (*agree)(struct weft_store *store, unsigned topic, uint64_t as);
	void (*agree_end)(struct weft_store *store, unsigned topic);
	/* Calls store_file_closed() when somebody closes the file of @fd. NULL: not supported. */
	void (*watch_file)(struct weft_store *store, int fd);
	/* store->lost: releases our lock, and ends commits with -EOWNERDEAD. NULL: there are no
	 * other members. */
	void (*leave)(struct weft_store *store);
	/* While store->frozen nothing new begins; is nothing under way any more? */
	bool (*is_quiesced)(const struct weft_store *store);
	void (*thawed)(struct weft_store *store);
	/* The type's own state, for a takeover. NULL: it has none. */
	void (*export)(const struct weft_store *store, struct weft_store_state *state);
	int (*import)(struct weft_store *store, struct weft_store_state *state,
		      struct weft_err *err);
	/* Ends what is under way, frees the type's own parts and calls store_closed(). */
	void (*close)(struct weft_store *store);
};

struct store_member {
	bool alive;
	uint64_t incarnation; /* which process of those that had this node number */
	uint64_t acked;
};

struct weft_store {
	const struct weft_store_ops *ops;
	struct weft_reactor *control_reactor;
	unsigned node, nodes;
	bool frozen;
	atomic_bool cancelled; /* the join was cancelled */
	bool lost;             /* not a member any more, for good: nothing is read or written */
	char *spec;
	struct store_records *records;                         /* our copy; replaced as a whole */
	uint64_t acked;                                        /* our acknowledged revision */
	struct store_member members[WEFT_STORE_NODES_MAX + 1]; /* by node; the others */
	struct weft_list waits;
	struct weft_task settle_task; /* completes waits that are settled */
	struct weft_store_watcher watcher;
	void (*closed)(void *arg);
	void *closed_arg;
};

extern const struct weft_store_ops store_file_ops, store_mem_ops;

/* Makes a store that has not joined; does not touch the file. */
int store_create(struct weft_store **store, const struct weft_store_options *options,
		 struct weft_err *err);
/* Replaces our copy by @records, which are newer, and calls changed(). */
void store_records_changed(struct weft_store *store, struct store_records *records);
void store_file_closed(struct weft_store *store); /* calls file_closed() */
/* Which members live now. */
void store_members_update(struct weft_store *store, const struct store_member *members);
/* Frees @store, whose type has freed its own parts. */
void store_closed(struct weft_store *store);

#endif
