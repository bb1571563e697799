/* store.h - the store: small records that several processes share, or that outlive this one.
 *
 *   control reactor ── commit ──▶ store ── changed ──▶ every member
 *   control reactor ◀─ settled ── store ◀── ack ──────┘
 *
 * A store has one revision, which each commit increments. A record has a key, a value and a
 * version: the revision that wrote it. Each member keeps a copy of all records, so a read is a
 * function call. A commit compares versions, and fails if the copy was old.
 *
 * A change is settled when every member that lives has called weft_store_ack() for its revision.
 * Members that are gone do not count.
 *
 * All calls and callbacks are on the control reactor's thread. No callback runs inside
 * weft_store_commit(), weft_store_ack() or weft_store_wait_settled(). */
#ifndef WEFT_STORE_STORE_H
#define WEFT_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/items.h"
#include "base/list.h"
#include "reactor/reactor.h"

enum {
	WEFT_STORE_KEY_MAX = 255,     /* bytes */
	WEFT_STORE_VALUE_MAX = 65536, /* bytes */
	WEFT_STORE_NODES_MAX = 64,
	WEFT_STORE_TOPICS_MAX = 1 << 16,
};

struct weft_store;
struct weft_store_ops;

struct weft_store_options {
	struct weft_reactor *control_reactor;
	const char *spec;     /* "file:PATH", or "mem": in memory, of this process alone */
	unsigned node, nodes; /* our node, 1 … nodes; with one node no other process may open it */
	bool successor;       /* a takeover: frozen and empty until weft_store_import() */
};

/* Blocks, for seconds if locks may not be shared: only while nobody is served. -EBUSY: another
 * process is this node, or just leaves; -EXDEV: a member lives whose lock does not show here. */
int weft_store_open(struct weft_store **store, const struct weft_store_options *options,
		    struct weft_err *err);

/* A record of a store that this process has not joined. */
struct weft_store_peek {
	uint64_t session;
	uint32_t len; /* 0: there is no such record */
	char value[WEFT_STORE_VALUE_MAX];
};

/* False: no process is @node of the cluster whose state @spec is, as far as we see. Blocks. For a
 * process that is this node itself, true. */
bool weft_store_peek(const char *spec, unsigned node, const char *key,
		     struct weft_store_peek *peek);

struct weft_store_joining; /* freed when its done() runs */

/* The same on a thread of its own, while the control reactor goes on. done() runs on the control
 * reactor, later: with 0 @store is open and its owner's; with -errno @err says why, and nothing is
 * left of it. @options are read before this returns; on -errno done() does not run. */
int weft_store_join(struct weft_store_joining **joining, const struct weft_store_options *options,
		    void (*done)(void *arg, int rc, struct weft_store *store,
				 const struct weft_err *err),
		    void *arg, struct weft_err *err);
/* Cancels the join: done() runs soon, with -ECANCELED if it would have been 0. */
void weft_store_join_cancel(struct weft_store_joining *joining);
/* Commits and waits that are left end with -ECANCELED; @done runs when nothing is under way,
 * perhaps before this returns. Frees @store. */
void weft_store_close(struct weft_store *store, void (*done)(void *arg), void *arg);

struct weft_store_watcher {
	void (*changed)(void *arg); /* our copy has a newer revision, by us or by others */
	void (*gone)(void *arg,
		     unsigned node); /* a member that will do nothing any more (optional) */
	/* A process that is a member now. What it has committed may have been changed() before
	 * (optional). */
	void (*joined)(void *arg, unsigned node);
	void (*file_closed)(void *arg); /* of weft_store_watch_file() (optional) */
	/* Others do not count us as a member any more, though we live: @why. Commits and waits end
	 * with -EOWNERDEAD from now on, and gone() is not called. (optional) */
	void (*lost)(void *arg, const char *why);
	void *arg;
};

/* One watcher for all; without one nobody is called. */
void weft_store_watch(struct weft_store *store, const struct weft_store_watcher *watcher);
/* Calls file_closed() when somebody closes the file of @fd the next time, where the store can find
 * that out. A file that is watched already is watched once. */
void weft_store_watch_file(struct weft_store *store, int fd);

/* --- our copy --------------------------------------------------------------------------------- */

struct weft_store_record {
	uint64_t version;
	uint32_t len;
	const void *value;
	const char *key;
};

uint64_t weft_store_revision(const struct weft_store *store);
/* Grows when a process opens the store and no other member lives: after a power loss, or the end of
 * all. */
uint64_t weft_store_session(const struct weft_store *store);
bool weft_store_persistent(const struct weft_store *store);
const char *weft_store_spec(const struct weft_store *store);
/* Members may be on other machines. Not valid for a successor. */
bool weft_store_on_shared_fs(const struct weft_store *store);
/* NULL: there is none. Valid until the next changed(). */
const struct weft_store_record *weft_store_get(const struct weft_store *store, const char *key);
/* The first record behind @key; valid as long. */
const struct weft_store_record *weft_store_next(const struct weft_store *store, const char *key);

/* --- transactions ----------------------------------------------------------------------------- */

struct weft_store_write {
	const char *key;
	uint64_t version; /* that the record must have; 0: there must be none */
	const void *value;
	uint32_t len; /* 0 with @value NULL: remove the record */
};

/* A transaction; its owner embeds it. */
struct weft_store_txn {
	const struct weft_store_write *writes; /* all of them are done, or none */
	unsigned nwrites;
	/* 0; -ESTALE: a version differs and our copy is newer now, or one of @absent lives; -errno:
	 * it was not done, and will not be, unless it is @in_doubt. Runs after changed(). */
	void (*done)(struct weft_store_txn *txn, int rc);
	uint64_t absent;       /* bits by node - 1: fails if one of these is a member */
	uint64_t revision;     /* on 0: the revision that it is part of */
	struct weft_list link; /* the store's */
	int rc;                /* the store's */
	/* On -errno: the storage failed in the middle, and nobody knows whether it was done. Nothing
	 * else is committed before that is known; if it was, our copy has it then. */
	bool in_doubt;
};

/* The store owns @txn until done(), and reads what it points to. */
void weft_store_commit(struct weft_store *store, struct weft_store_txn *txn);

/* --- members ---------------------------------------------------------------------------------- */

/* This process acts by @revision and those before it. */
void weft_store_ack(struct weft_store *store, uint64_t revision);

struct weft_store_wait {
	uint64_t revision;
	void (*done)(struct weft_store_wait *wait, int rc); /* 0: settled */
	struct weft_list link;                              /* the store's */
};

void weft_store_wait_settled(struct weft_store *store, struct weft_store_wait *wait);
void weft_store_wait_cancel(struct weft_store_wait *wait); /* done() will not run */
/* The revision that every living member has acknowledged. */
uint64_t weft_store_settled_revision(const struct weft_store *store);
/* Nobody is node 0. */
bool weft_store_alive(const struct weft_store *store, unsigned node);
/* There is proof that others do not count us as a member: calls lost() with @why. */
void weft_store_set_lost(struct weft_store *store, const char *why);
bool weft_store_is_lost(const struct weft_store *store);

/* Locks our value @as of @topic, modulo 2^40, against those of other members. May block. -ENOTUNIQ:
 * another member has another value. A successor's locks came with the descriptor. */
int weft_store_agree(struct weft_store *store, unsigned topic, uint64_t as);
void weft_store_agree_end(struct weft_store *store, unsigned topic);

/* --- takeover --------------------------------------------------------------------------------- */

/* Another living member, as we saw it last. */
struct weft_store_member_state {
	uint32_t node;
	uint64_t incarnation, acked;
};

/* The state of a store for a takeover. The successor is the same member; others see no break. */
struct weft_store_state {
	uint64_t revision, session, acked, incarnation;
	uint32_t nodes;
	struct weft_items members; /* struct weft_store_member_state */
	struct weft_items records; /* bytes */
	bool has_fd;
	int fd; /* the descriptor that holds our lock */
};

/* From now on the file is neither read nor written. */
void weft_store_freeze(struct weft_store *store);
/* Frozen, and nothing is under way any more. */
bool weft_store_is_quiesced(const struct weft_store *store);
void weft_store_thaw(struct weft_store *store);

/* Of a quiesced store, which still owns the descriptor. */
int weft_store_export(const struct weft_store *store, struct weft_store_state *state);
void weft_store_state_free(struct weft_store_state *state); /* closes nothing */
/* Into a store that was opened as successor and has called nobody yet; it stays frozen. Owns the
 * descriptor, also when it fails. -EINVAL: the state is not of this store; -EBUSY: it is not that
 * member; -EIDRM: its file is not the one at our path. */
int weft_store_import(struct weft_store *store, struct weft_store_state *state,
		      struct weft_err *err);

#endif
