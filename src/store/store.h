/* store.h - small records that several processes share, or that outlive this one.
 *
 *   control reactor ── commit ──▶ store ── changed ──▶ every member ── ack ──▶ store ── settled ──▶ control reactor
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
	const char *spec;     /* "file:PATH", or "mem": this process's own, gone with it */
	unsigned node, nodes; /* who we are, 1 … nodes; with one node nobody else may open it */
	bool successor;       /* frozen and empty: weft_store_import() brings what it is */
};

/* Blocks, for seconds where locks may not be shared: for who serves nobody yet. -EBUSY: somebody
 * else is this node, or just leaves; -EXDEV: a member lives whose lock does not show here. */
int weft_store_open(struct weft_store **store, const struct weft_store_options *options,
		    struct weft_err *err);

struct weft_store_joining; /* gone when its done() runs */

/* The same on a thread of its own, while the control reactor goes on. done() runs on the control
 * reactor, later: with 0 @store is open and its owner's; with -errno @err says why, and nothing is
 * left of it. @options are read before this returns; on -errno done() does not run. */
int weft_store_join(struct weft_store_joining **joining, const struct weft_store_options *options,
		    void (*done)(void *arg, int rc, struct weft_store *store,
				 const struct weft_err *err),
		    void *arg, struct weft_err *err);
/* Nobody waits for it any more: done() runs soon, with -ECANCELED if it would have been 0. */
void weft_store_join_cancel(struct weft_store_joining *joining);
/* Commits and waits that are left end with -ECANCELED; @done runs when nothing is under way,
 * perhaps before this returns. Frees @store. */
void weft_store_close(struct weft_store *store, void (*done)(void *arg), void *arg);

struct weft_store_watcher {
	void (*changed)(void *arg); /* the copy is of a newer revision, by us or by others */
	void (*gone)(void *arg, unsigned node); /* it will do nothing any more (optional) */
	void (*file_closed)(void *arg); /* of a file of weft_store_watch_file()'s (optional) */
	/* Others do not count us as a member any more, though we live: @why. Commits and waits end
	 * with -EOWNERDEAD from now on, and nobody else is told of. (optional) */
	void (*lost)(void *arg, const char *why);
	void *arg;
};

/* One for all; before it is set nobody is told. */
void weft_store_watch(struct weft_store *store, const struct weft_store_watcher *watcher);
/* let_go() tells when somebody closes the file that @fd has open the next time, where the store can
 * find that out. Twice counts once. */
void weft_store_watch_file(struct weft_store *store, int fd);

/* --- the copy --------------------------------------------------------------------------------- */

struct weft_store_record {
	uint64_t version;
	uint32_t len;
	const void *value;
	const char *key;
};

uint64_t weft_store_revision(const struct weft_store *store);
/* Grows when somebody opens the store and nobody else has it: after a loss of power, or of all. */
uint64_t weft_store_session(const struct weft_store *store);
bool weft_store_persistent(const struct weft_store *store);
const char *weft_store_spec(const struct weft_store *store);
/* It is where members on other machines can be. A successor's is not asked for. */
bool weft_store_on_shared_fs(const struct weft_store *store);
/* NULL: there is none. Good until the next moved(). */
const struct weft_store_record *weft_store_get(const struct weft_store *store, const char *key);
/* The first behind @key, in their order; the same. */
const struct weft_store_record *weft_store_next(const struct weft_store *store, const char *key);

/* --- changing it ------------------------------------------------------------------------------ */

struct weft_store_write {
	const char *key;
	uint64_t version; /* what the record must be at; 0: there must be none */
	const void *value;
	uint32_t len; /* 0 with @value NULL: the record goes */
};

/* Embedded in its owner. */
struct weft_store_txn {
	const struct weft_store_write *writes; /* all of them, or none */
	unsigned nwrites;
	/* 0; -ESTALE: a version was another one, the copy is newer now, or one of @absent was
	 * there;
	 * -errno: it was not done, and if the storage fails may still be found done later. After
	 * moved(). */
	void (*done)(struct weft_store_txn *txn, int rc);
	uint64_t absent;       /* bits by node - 1: it holds only while none of these is a member */
	uint64_t revision;     /* on 0: what it made, perhaps together with others */
	struct weft_list link; /* the store's */
	int rc;                /* the store's */
};

/* The store owns @txn, and reads what it points to, until done(). */
void weft_store_commit(struct weft_store *store, struct weft_store_txn *txn);

/* --- members ---------------------------------------------------------------------------------- */

/* Everything here acts by @revision and those before it. */
void weft_store_ack(struct weft_store *store, uint64_t revision);

struct weft_store_wait {
	uint64_t revision;
	void (*done)(struct weft_store_wait *wait, int rc); /* 0: it is settled */
	struct weft_list link;                              /* the store's */
};

void weft_store_wait_settled(struct weft_store *store, struct weft_store_wait *wait);
void weft_store_wait_cancel(struct weft_store_wait *wait); /* done() will not run */
/* What every member that lives has acknowledged. */
uint64_t weft_store_settled_revision(const struct weft_store *store);
bool weft_store_alive(const struct weft_store *store, unsigned node);
/* There is proof that others do not count us as a member: lost() tells @why, from inside this. */
void weft_store_set_lost(struct weft_store *store, const char *why);
bool weft_store_is_lost(const struct weft_store *store);

/* Says to all members that live what @slot is for us: @as, counted modulo 2^40. May block.
 * -ENOTUNIQ: it is another thing for one of them. What a successor says was said before. */
int weft_store_agree(struct weft_store *store, unsigned topic, uint64_t as);
void weft_store_agree_end(struct weft_store *store, unsigned topic);

/* --- going on with it in another process ------------------------------------------------------ */

/* Another member that lives, as we saw it last. */
struct weft_store_member_state {
	uint32_t node;
	uint64_t incarnation, acked;
};

/* Where a store stands. Who goes on from there is the same member, for others without a break. */
struct weft_store_state {
	uint64_t revision, session, acked, incarnation;
	uint32_t nodes;
	struct weft_items members; /* struct weft_store_member_state */
	struct weft_items records; /* bytes */
	bool has_fd;
	int fd; /* that makes us a member */
};

/* From now on the store is left alone: others' changes are not looked at, and nothing is
 * committed. */
void weft_store_freeze(struct weft_store *store);
/* Frozen, and of what had begun nothing is under way. */
bool weft_store_is_quiesced(const struct weft_store *store);
void weft_store_thaw(struct weft_store *store);

/* Of one that is still; the descriptor stays the store's. */
int weft_store_export(const struct weft_store *store, struct weft_store_state *state);
void weft_store_state_free(struct weft_store_state *state); /* closes nothing */
/* Into one that was opened as successor and has told nobody of anything; it stays frozen. Owns the
 * descriptor, also when it fails. -EINVAL: that cannot be this store; -EBUSY: it is not that
 * member;
 * -EIDRM: its file is not where this one is. */
int weft_store_import(struct weft_store *store, struct weft_store_state *state,
		      struct weft_err *err);

#endif
