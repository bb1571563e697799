/* ns.h - namespaces: who holds one, who has one for itself, and how the control reactor hears of
 * it.
 *
 * A reactor counts its commands in ns->local[]; the control reactor waits for them with a barrier,
 * a visit to every reactor that each answers in its own time.
 *
 * Invariant: storage works for a command only between tgt_ns_try_enter(), or
 * tgt_ns_enter_quiesced() for a fused pair, and tgt_ns_leave() or tgt_ns_pin(). In between, and
 * only then, tgt_ns_at_work() names the namespace, and ns->local[].users counts the command.
 * Whoever must know that nothing goes on in a namespace asks one of the two: for certain commands
 * (a preempted host's, those of a controller that stops letting a group in) the first, for all (a
 * fence, a removal) the second. Nobody decides it another way (tests/static/at_work). A freeze
 * waits for every request, at work or not. */
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

/* Who has to wait for the namespace, and whom a barrier waits for. */
enum ns_quiesce_level { NS_QUIESCE_NONE, NS_QUIESCE_WRITERS, NS_QUIESCE_ALL, NS_QUIESCE_MEMORY };

/* What one reactor knows of a namespace. Touched by that reactor alone, but for the errors, which
 * the control reactor adds up. */
struct ns_local {
	uint32_t writers; /* commands at work that change data */
	uint32_t users;   /* commands at work, those included */
	uint32_t pins;    /* answers on their way out of the namespace's own memory */
	enum ns_quiesce_level level;
	struct weft_list waiting;    /* weft_req.link */
	struct tgt_barrier *barrier; /* answered when those that it waits for are gone */
	enum ns_quiesce_level barrier_awaits;
	_Atomic uint64_t read_errors, write_errors; /* of storage, whatever they were */
} __attribute__((aligned(64)));
static_assert(sizeof(struct ns_local) == 64, "a cache line");

struct tgt_ns {
	struct weft_subsys *subsys;
	struct weft_backend *be;
	uint64_t serial; /* unlike any other's, ever: the same nsid may be another namespace later */
	uint32_t nsid, ana_group;
	uint8_t lba_shift;
	_Atomic uint64_t blocks;
	uint8_t uuid[16], nguid[16];
	struct resv_view *_Atomic resv; /* NULL: nobody has reserved it */

	/* The control reactor's: those in line to have the namespace for themselves; the first has
	 * it. */
	struct weft_list quiesces;
	struct tgt_ns_quiesce *quiesced_by;
	struct weft_msg unquiesce_msg;
	struct tgt_barrier *barrier; /* one at a time: hold, release, drain */
	uint64_t resv_version;       /* of the record that @resv shows … */
	uint64_t resv_noticed;       /* … and how many of its notices hosts were told */
	atomic_bool removing;
	uint64_t removing_since_ns; /* since when */
	void (*removed)(void *arg);
	void *removed_arg;
	struct weft_offload closing; /* of @be */

	struct ns_local local[]; /* by group */
};

/* Has the namespace for itself, against writers or against all, between got() and release. */
struct tgt_ns_quiesce {
	struct weft_list link; /* ns->quiesces; the control reactor's */
	struct weft_msg msg;
	struct tgt_ns *ns; /* in got(), NULL: it is gone, there is nothing to release */
	enum ns_quiesce_level level;
	struct weft_reactor *reactor; /* where got() runs */
	void (*quiesced)(struct tgt_ns_quiesce *fence);
};

/* Published as a whole, replaced, never changed. */
struct ns_table {
	uint32_t nsid_max;
	struct tgt_ns *ns[]; /* by nsid - 1 */
};

/* ns.c: on a reactor */
struct tgt_ns *tgt_ns_find(struct weft_subsys *s, uint32_t nsid);
/* The command's namespace, with @req counted in. NULL: @req was answered because there is none or
 * it cannot be reached this way, or waits and comes back through @again. */
struct tgt_ns *tgt_ns_enter(struct weft_req *req, bool writer, void (*retry)(struct weft_req *req));
/* The same without an answer, for a namespace just looked up. false: @req waits. */
bool tgt_ns_try_enter(struct weft_req *req, struct tgt_ns *ns, bool writer,
		      void (*retry)(struct weft_req *req));
uint32_t tgt_nsid(const struct weft_req *req); /* as the command says */
/* The command's namespace in @ns: from the first look on, the same one or none; 0, or the status
 * to answer with. */
uint16_t tgt_ns_lookup(struct weft_req *req, struct tgt_ns **ns);
/* The same, and whether the command was aborted meanwhile, or its reservation keeps it out. */
uint16_t tgt_ns_check(struct weft_req *req, struct tgt_ns **ns);
/* For who holds the namespace by a fence: counted in, and not asked to wait for itself. */
void tgt_ns_enter_quiesced(struct weft_req *req, struct tgt_ns *ns, bool writer);
void tgt_ns_leave(struct weft_req *req);
/* Leaves, but keeps the namespace's memory from going until tgt_ns_leave(). */
void tgt_ns_pin(struct weft_req *req);
/* For weft_qpair_ops: the memory that @req pins is to go. */
uint64_t tgt_ns_awaited_since(struct weft_req *req);
/* Is somebody there whom @hold would wait for? */
bool tgt_ns_busy(const struct ns_local *local, enum ns_quiesce_level hold);

/* ns_add.c, on the control reactor: the table with @ns, or without any for NULL, is what reactors
 * see from now on. */
int tgt_ns_publish(struct weft_subsys *s, uint32_t nsid, struct tgt_ns *ns);
void tgt_ns_free(struct tgt_ns *ns);

/* ns.c, on the control reactor: how often storage failed it, and what that was before this
 * process. */
struct ns_errors {
	uint64_t reads, writes;
};
struct ns_errors tgt_ns_errors(const struct tgt_ns *ns);
void tgt_ns_import_errors(struct tgt_ns *ns, const struct ns_errors *errors);

/* ns_remove.c, on the control reactor. */
void tgt_ns_close_all(struct weft_subsys *s, void (*closed)(void *arg), void *arg);
/* Nobody is in line for the namespace: the last step of its removal, if it has one, can begin. */
void tgt_ns_drain_if_removed(struct tgt_ns *ns);

/* barrier.c: a visit to every reactor, each answered in its own time, and back to the control
 * reactor */
struct tgt_barrier {
	struct weft_target *target;
	struct tgt_ns *ns;
	enum ns_quiesce_level level;
	void (*on_reactor)(struct tgt_barrier *barrier, struct weft_poll_group *group);
	void (*done)(struct tgt_barrier *
			     barrier); /* on the control reactor; the barrier may be started again */
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
void tgt_barrier_arrive(struct tgt_barrier *barrier,
			struct weft_poll_group *group); /* once per visit */
void tgt_barrier_requeue(struct tgt_barrier *barrier,
			 struct weft_poll_group *group); /* or: in the next turn */
/* Frees @old when no reactor can be reading it any more. */
void tgt_free_after_barrier(struct weft_target *t, struct tgt_barrier *barrier, void *old);

/* ns_quiesce.c */
void tgt_ns_quiesce_begin(struct tgt_ns_quiesce *fence,
			  struct weft_target *t);                  /* from any reactor */
void tgt_ns_quiesce_end(struct tgt_ns *ns, struct weft_target *t); /* by the holder */
bool tgt_ns_quiesce_idle(const struct tgt_ns *ns);

#endif
