/* ns.h - namespaces: commands enter and leave them, one user may quiesce them, the control reactor
 * drains them.
 *
 * A reactor counts its commands in ns->local[]; the control reactor waits for the counts with a
 * barrier.
 *
 * Invariant: storage works for a command only between tgt_ns_try_enter(), or
 * tgt_ns_enter_quiesced() for a fused pair, and tgt_ns_leave() or tgt_ns_pin(). In between, and
 * only then, tgt_ns_at_work() names the namespace, and ns->local[].users counts the command.
 * Whoever must know that nothing goes on in a namespace asks one of the two: for certain commands
 * (a preempted host's, those of a controller that stops giving access to a group) the first, for
 * all (a quiesce, a removal) the second. Nobody decides it another way (tests/static/at_work). A
 * freeze waits for every request, at work or not. */
#ifndef WEFT_TARGET_NS_H
#define WEFT_TARGET_NS_H

#include <assert.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "reactor/offload.h"
#include "transport/transport.h"

struct resv_view;
struct weft_subsys;
struct weft_target;

/* Which commands must wait while a namespace is quiesced, and which ones a barrier waits for. */
enum ns_quiesce_level { NS_QUIESCE_NONE, NS_QUIESCE_WRITERS, NS_QUIESCE_ALL, NS_QUIESCE_MEMORY };

/* A namespace's part on one reactor. Only that reactor touches it, but for the errors, which the
 * control reactor adds up, and the writes, which a flush adds up on any reactor. */
struct ns_local {
	uint32_t writers; /* commands at work that change data */
	uint32_t users;   /* commands at work, those included */
	uint32_t pins;    /* replies that leave from the namespace's own memory */
	enum ns_quiesce_level level : 8;
	enum ns_quiesce_level barrier_awaits : 8;
	struct weft_list waiting;    /* weft_req.link */
	struct tgt_barrier *barrier; /* answered when the commands that it waits for have left */
	_Atomic uint64_t read_errors, write_errors; /* of storage, of any kind */
	_Atomic uint64_t cached_writes; /* commands that wrote without FUA, and have left */
} __attribute__((aligned(64)));
static_assert(sizeof(struct ns_local) == 64, "a cache line");

struct tgt_ns {
	struct weft_subsys *subsys;
	struct weft_backend *be;
	/* No other namespace of this process ever has it: the same nsid may be another namespace
	 * later. */
	uint64_t serial;
	uint32_t nsid, ana_group;
	uint8_t lba_shift;
	_Atomic uint64_t blocks;
	uint8_t uuid[16], nguid[16];
	struct resv_view *_Atomic resv; /* NULL: nobody has reserved it */

	/* The control reactor's: users that want the namespace quiesced; the first of them has
	 * it. */
	struct weft_list quiesces;
	struct tgt_ns_quiesce *quiesced_by;
	struct weft_msg unquiesce_msg;
	struct tgt_barrier *barrier; /* one at a time: quiesce, end of it, drain */
	uint64_t resv_version;       /* of the record that @resv shows … */
	uint64_t resv_noticed;       /* … and how many of its notices hosts were told */
	atomic_bool removing;
	uint64_t removing_since_ns;
	void (*removed)(void *arg);
	void *removed_arg;
	struct weft_offload closing; /* of @be */
	void *pair_buffer;           /* of the fused pair that is at work: see io/fused.c */
	_Atomic uint64_t flushed;    /* so many of all cached_writes are durable */

	struct ns_local local[]; /* by poll group */
};

/* A user of a namespace quiesce, against writers or against all: from quiesced() until
 * tgt_ns_quiesce_end(). */
struct tgt_ns_quiesce {
	struct weft_list link; /* ns->quiesces; the control reactor's */
	struct weft_msg msg;
	struct tgt_ns *ns; /* in quiesced(), NULL: the namespace is gone, there is nothing to end */
	enum ns_quiesce_level level;
	struct weft_reactor *reactor; /* where quiesced() runs */
	void (*quiesced)(struct tgt_ns_quiesce *quiesce);
};

/* All namespaces of a subsystem. Published as a whole, replaced, never changed. */
struct ns_table {
	uint32_t nsid_max;
	struct tgt_ns *ns[]; /* by nsid - 1 */
};

/* ns.c: on a reactor */
struct tgt_ns *tgt_ns_find(struct weft_subsys *s, uint32_t nsid);
/* The command's namespace, in which @req is counted from now on. NULL: @req was answered, because
 * there is no such namespace or this path gives no access to it, or @req waits and comes back
 * through @retry. */
struct tgt_ns *tgt_ns_enter(struct weft_req *req, bool writer, void (*retry)(struct weft_req *req));
/* The same without an answer, for a namespace that was just looked up. false: @req waits. */
bool tgt_ns_try_enter(struct weft_req *req, struct tgt_ns *ns, bool writer,
		      void (*retry)(struct weft_req *req));
uint32_t tgt_nsid(const struct weft_req *req); /* as the command says */
/* Sets @ns to the command's namespace: the one that its first lookup found, or none. 0, or a status
 * to answer with. */
uint16_t tgt_ns_lookup(struct weft_req *req, struct tgt_ns **ns);
/* The same; a status, too, if the command was aborted meanwhile or a reservation forbids it. */
uint16_t tgt_ns_check(struct weft_req *req, struct tgt_ns **ns);
/* For the user of a quiesce: counts @req, which does not wait for itself. */
void tgt_ns_enter_quiesced(struct weft_req *req, struct tgt_ns *ns, bool writer);
void tgt_ns_leave(struct weft_req *req);
/* Leaves the namespace, whose memory stays until tgt_ns_leave(). */
void tgt_ns_pin(struct weft_req *req);
/* For weft_qpair_ops: since when somebody has waited for the memory that @req pins. */
uint64_t tgt_ns_awaited_since(struct weft_req *req);
/* Are there commands that level @level waits for? */
bool tgt_ns_busy(const struct ns_local *local, enum ns_quiesce_level level);

/* ns.c, on any reactor: which writes are durable. A flush makes those durable that were done when
 * storage got it, a number that tgt_ns_cached_writes() returns. */
uint64_t tgt_ns_cached_writes(const struct tgt_ns *ns);
void tgt_ns_flushed(struct tgt_ns *ns, uint64_t writes); /* such a flush has succeeded */
bool tgt_ns_is_flushed(const struct tgt_ns *ns);
/* An earlier process may have left writes that are not durable. */
void tgt_ns_import_unflushed(struct tgt_ns *ns);

/* ns_add.c, on the control reactor: publishes a table with @ns, or without a namespace (NULL),
 * under @nsid. */
int tgt_ns_publish(struct weft_subsys *s, uint32_t nsid, struct tgt_ns *ns);
void tgt_ns_free(struct tgt_ns *ns);

/* ns.c, on the control reactor: how often storage failed, and how often it had before a
 * takeover. */
struct ns_errors {
	uint64_t reads, writes;
};
struct ns_errors tgt_ns_errors(const struct tgt_ns *ns);
void tgt_ns_import_errors(struct tgt_ns *ns, const struct ns_errors *errors);

/* ns_remove.c, on the control reactor. */
/* All of a subsystem that is being removed; then tgt_subsys_namespaces_closed(). */
void tgt_ns_close_all(struct weft_subsys *s);
/* The quiesce queue of @ns is empty: if @ns is being removed, it drains now. */
void tgt_ns_drain_if_removed(struct tgt_ns *ns);

/* barrier.c: a message visits every reactor, and done() runs when all have answered */
struct tgt_barrier {
	struct weft_target *target;
	struct tgt_ns *ns;
	enum ns_quiesce_level level;
	void (*on_reactor)(struct tgt_barrier *barrier, struct weft_poll_group *group);
	/* On the control reactor; may start the barrier again. */
	void (*done)(struct tgt_barrier *barrier);
	void *arg;
	unsigned pending; /* the control reactor's */
	struct tgt_barrier_msg {
		struct weft_msg msg;
		struct tgt_barrier *barrier;
		struct weft_poll_group *group;
	} reactor_msgs[];
};
struct tgt_barrier *tgt_barrier_new(struct weft_target *t);
void tgt_barrier_start(struct tgt_barrier *barrier);
/* Each reactor calls one of these: it has arrived, or is called again in its next turn. */
void tgt_barrier_arrive(struct tgt_barrier *barrier, struct weft_poll_group *group);
void tgt_barrier_requeue(struct tgt_barrier *barrier, struct weft_poll_group *group);
/* Frees @old when no reactor can be reading it any more. */
void tgt_free_after_barrier(struct weft_target *t, struct tgt_barrier *barrier, void *old);

/* ns_quiesce.c */
void tgt_ns_quiesce_begin(struct tgt_ns_quiesce *quiesce,
			  struct weft_target *t); /* from any reactor */
/* By the user that has it, on the reactor where quiesced() ran. */
void tgt_ns_quiesce_end(struct tgt_ns *ns, struct weft_target *t);
bool tgt_ns_quiesce_idle(const struct tgt_ns *ns);
void tgt_ns_quiesces_refuse(struct tgt_ns *ns); /* those that wait; the namespace is removed */

#endif
