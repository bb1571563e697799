/* internal.h - a store's body, and what its kinds share. */
#ifndef WEFT_STORE_INTERNAL_H
#define WEFT_STORE_INTERNAL_H

#include <stdatomic.h>

#include "store/records.h"
#include "store/store.h"

struct weft_store_ops {
	const char *type;
	bool persistent;

	/* Makes a store of @arg, what follows "TYPE:", and leaves alone what that names. Sets ops
	 * and records of what it made, the rest is store.c's. From here on close() undoes it. */
	int (*create)(struct weft_store **store, const char *arg);
	/* Opens what is named, and joins: the copy is whole then. A successor does not join.
	 * Blocks, on any thread, while nobody else knows @store; store->given_up ends it soon, with
	 * -ECANCELED. NULL: there is nothing to join. */
	int (*join)(struct weft_store *store, struct weft_err *err);
	/* It has joined; on the control reactor. NULL: nothing is left to do. */
	int (*joined)(struct weft_store *store, struct weft_err *err);
	void (*commit)(struct weft_store *store, struct weft_store_txn *txn);
	void (*acked)(struct weft_store *store);              /* store->acked grew */
	bool (*on_shared_fs)(const struct weft_store *store); /* NULL: it does not */
	/* NULL: there are no others. */
	int (*agree)(struct weft_store *store, unsigned topic, uint64_t as);
	void (*agree_end)(struct weft_store *store, unsigned topic);
	/* Calls store_file_closed() when somebody closes that file. NULL: it cannot. */
	void (*watch_file)(struct weft_store *store, int fd);
	/* store->lost: lets go of what makes us a member, and ends commits with -EOWNERDEAD.
	 * NULL: it has no other members. */
	void (*leave)(struct weft_store *store);
	/* While store->frozen nothing new is begun; is there anything still under way? */
	bool (*is_quiesced)(const struct weft_store *store);
	void (*thawed)(struct weft_store *store);
	/* What the kind has of its own, for another process and from it. NULL: nothing. */
	void (*export)(const struct weft_store *store, struct weft_store_state *state);
	int (*import)(struct weft_store *store, struct weft_store_state *state,
		      struct weft_err *err);
	/* Ends what is under way, gives back @store's own parts and calls store_closed(). */
	void (*close)(struct weft_store *store);
};

struct store_member {
	bool alive;
	uint64_t incarnation; /* which of those that had this number */
	uint64_t acked;
};

struct weft_store {
	const struct weft_store_ops *ops;
	struct weft_reactor *control_reactor;
	unsigned node, nodes;
	bool frozen;
	atomic_bool cancelled; /* nobody wants it to join any more */
	bool lost; /* we are no member any more, and never again: nothing is read or written */
	char *spec;
	struct store_records *records;                         /* the copy; replaced as a whole */
	uint64_t acked;                                        /* by us */
	struct store_member members[WEFT_STORE_NODES_MAX + 1]; /* by node; the others */
	struct weft_list waits;
	struct weft_task settle_task; /* look through the waits */
	struct weft_store_watcher watcher;
	void (*closed)(void *arg);
	void *closed_arg;
};

extern const struct weft_store_ops store_file_ops, store_mem_ops;

/* Makes it, without touching what it is of: it has to join. */
int store_create(struct weft_store **store, const struct weft_store_options *options,
		 struct weft_err *err);
/* Takes over @records, which are newer, and tells. */
void store_records_changed(struct weft_store *store, struct store_records *records);
void store_file_closed(struct weft_store *store); /* tells */
/* What the members are now. */
void store_members_update(struct weft_store *store, const struct store_member *members);
/* Frees @store, whose kind has let go of everything else. */
void store_closed(struct weft_store *store);

#endif
