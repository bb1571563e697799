/* target.h - subsystems, their namespaces, the hosts that may use them, and where they listen.
 *
 *   control reactor   subsystems, hosts, listeners, controllers, every admin and fabrics command
 *   other reactors    queue pairs and their I/O; they read namespaces through a published table
 *
 * Every call here is made on the control reactor's thread. A call that must wait for the other
 * reactors (I/O to drain, queues to close) takes a callback, which runs on the control reactor,
 * once. */
#ifndef WEFT_TARGET_TARGET_H
#define WEFT_TARGET_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "base/err.h"
#include "proto/uri.h"
#include "reactor/reactor.h"
#include "store/store.h"

struct weft_target;
struct weft_subsys;

#define WEFT_NQN_DEFAULT   "nqn.2026-11.io.weft:default"
#define WEFT_MODEL_DEFAULT "Weft NVMe-oF Target"

struct weft_target_options {
	struct weft_reactor *control;
	struct weft_reactor **reactors; /* queue pairs go here; may be just @control */
	unsigned nreactors;
	uint32_t depth_max;     /* entries per queue, 2 … 65535 */
	uint32_t io_queues_max; /* per controller */
	uint32_t queues_max;    /* of the whole target */
};

int weft_target_create(struct weft_target **t, const struct weft_target_options *options,
		       struct weft_err *err);
/* The target is about to be stopped: waits for other members of a cluster end now. */
void weft_target_prepare_stop(struct weft_target *t);
/* Closes listeners and connections, waits for I/O, closes backends; then @done. Frees @t. */
void weft_target_stop(struct weft_target *t, void (*done)(void *arg), void *arg);

/* Node N of a cluster gives its listeners port ids from (N - 1) * WEFT_NODE_PORTS + 1 on. */
#define WEFT_NODE_PORTS 1000
/* Port 0 becomes a free one, and port id 0 the lowest free one; weft_target_visit() shows them. */
int weft_listener_add(struct weft_target *t, const struct weft_uri *uri, struct weft_err *err);
/* -ENOENT: no such listener. Connections made through it stay. */
int weft_listener_remove(struct weft_target *t, const struct weft_uri *uri, struct weft_err *err);

/* Asymmetric Namespace Access (ANA): how a group of namespaces is reached through a controller. */
#define WEFT_ANA_GROUP_MAX 1024
enum weft_ana_state {
	WEFT_ANA_OPTIMIZED,
	WEFT_ANA_NON_OPTIMIZED,
	WEFT_ANA_INACCESSIBLE,
	WEFT_ANA_PERSISTENT_LOSS,
	WEFT_ANA_CHANGE,
	WEFT_ANA_STATES,
};
extern const char *const weft_ana_names[]; /* by state; a NULL ends them */

struct weft_ana_rule {
	uint32_t group;                 /* 1 … WEFT_ANA_GROUP_MAX */
	unsigned state;                 /* enum weft_ana_state */
	uint32_t portid;                /* of the listener; 0: any */
	char hostnqn[WEFT_NQN_MAX + 1]; /* "": any */
};

/* Both are for the same group, port and host: a subsystem can have only one of them. */
bool weft_ana_rule_same(const struct weft_ana_rule *a, const struct weft_ana_rule *b);

struct weft_subsys_options {
	const char *nqn;
	const char *serial; /* NULL: derived, the same at every start */
	const char *model;  /* NULL: WEFT_MODEL_DEFAULT */
	bool allow_any_host;
	const struct weft_ana_rule *ana; /* its first rules; @nana of them */
	unsigned nana;
	struct weft_store *store; /* where its state is; NULL: in memory */
	unsigned node, nodes;     /* our node in the cluster that serves it; 0: we serve it alone */
};

/* Owns the store on success. */
int weft_subsys_add(struct weft_target *t, const struct weft_subsys_options *options,
		    struct weft_subsys **s, struct weft_err *err);
struct weft_subsys *weft_subsys_find(struct weft_target *t, const char *nqn); /* or NULL */
/* Hosts are disconnected, I/O drained, backends closed; then @done. */
void weft_subsys_remove(struct weft_subsys *s, void (*done)(void *arg), void *arg);

unsigned weft_subsys_node(const struct weft_subsys *s); /* of a cluster; 0: we serve it alone */

/* Without being a member: a process is @node of the cluster whose state @state is. @where: an
 * address on which it listens, "" if it says none. Blocks. */
bool weft_cluster_node_runs(const char *state, unsigned node, char where[WEFT_URI_MAX]);

/* From now on hosts may be served from its namespaces, and storage that was created for them stays.
 * Until then, closing a namespace removes such storage. */
void weft_subsys_keep_storage(struct weft_subsys *s);
/* Its namespaces are added. A subsystem of a cluster begins to take part: each group is served by
 * one member at a time. */
void weft_subsys_start(struct weft_subsys *s);
/* @drain: hands all groups to other members and takes none; false: takes groups again. @done:
 * nothing is served here any more. On 0, @done(arg, rc, err) follows, perhaps before this returns;
 * on -errno it does not. */
int weft_cluster_drain(struct weft_subsys *s, bool drain,
		       void (*done)(void *arg, int rc, const struct weft_err *err), void *arg,
		       struct weft_err *err);
/* The same for one group, or all (0), which go to a member that lives. */
int weft_cluster_move(struct weft_subsys *s, uint32_t group, unsigned node,
		      void (*done)(void *arg, int rc, const struct weft_err *err), void *arg,
		      struct weft_err *err);

/* The list of allowed hosts has changed: ends the associations of hosts that are not on it, and
 * changes the discovery log. */
void weft_subsys_hosts_changed(struct weft_subsys *s);
/* Calls weft_subsys_hosts_changed(). */
void weft_subsys_set_any_host(struct weft_subsys *s, bool allow);
int weft_subsys_allow(struct weft_subsys *s, const char *hostnqn, struct weft_err *err);
/* Disconnects that host. -ENOENT: it was not on the list. */
int weft_subsys_refuse(struct weft_subsys *s, const char *hostnqn, struct weft_err *err);

/* Adds rules, in the place of those that are weft_ana_rule_same(); @replace: removes all others.
 * Log pages show all of them at once. On 0, @done(arg, rc, err) follows when they are in force,
 * perhaps before this returns; on -errno it does not. */
int weft_ana_set(struct weft_subsys *s, const struct weft_ana_rule *rules, unsigned count,
		 bool replace, void (*done)(void *arg, int rc, const struct weft_err *err),
		 void *arg, struct weft_err *err);

struct weft_ns_options {
	uint32_t nsid;      /* 0: the lowest free one */
	uint32_t block;     /* 512 or 4096; 0: 4096 where the size allows, else 512 */
	const char *uuid;   /* NULL or "": derived from subsystem, nsid and backend */
	uint32_t ana_group; /* 0: 1 */
};

/* Owns @be on success. @nsid receives the id. Hosts are notified. */
int weft_ns_add(struct weft_subsys *s, const struct weft_ns_options *options,
		struct weft_backend *be, uint32_t *nsid, struct weft_err *err);
/* Without @shrink, a smaller size fails. On 0, @done(arg, rc, err) follows, perhaps before this
 * returns; on -errno it does not. */
int weft_ns_resize(struct weft_subsys *s, uint32_t nsid, uint64_t size, bool shrink,
		   void (*done)(void *arg, int rc, const struct weft_err *err), void *arg,
		   struct weft_err *err);
/* Every other member of the cluster that lives has the namespace as we do: in the same size, or not
 * at all. */
bool weft_ns_is_everywhere(struct weft_subsys *s, uint32_t nsid);
/* On 0, no new command sees the namespace. @done follows when the last one has ended and the
 * backend is closed, perhaps before this returns. */
int weft_ns_remove(struct weft_subsys *s, uint32_t nsid, void (*done)(void *arg), void *arg,
		   struct weft_err *err);

/* --- describe: a walk in order, listeners first, then each subsystem with what it has --------- */

struct weft_subsys_info {
	const char *nqn, *serial, *model;
	const char *state;    /* SPEC of its store; NULL: in memory */
	unsigned node, nodes; /* of a cluster; 0: we serve it alone */
	bool allow_any_host;
	bool lost; /* not a member any more: it serves nothing */
};

struct weft_member_info {
	unsigned node;
	bool alive, draining;
	bool serves[WEFT_ANA_GROUP_MAX]; /* by group - 1, those with namespaces */
	bool lacks[WEFT_NSID_MAX];       /* by nsid - 1: another member has it, this one does not */
	/* By nsid - 1: this member's size of it, in bytes, if members differ about it; 0: they
	 * agree. */
	uint64_t other_size[WEFT_NSID_MAX];
};

/* An ANA group of a cluster. */
struct weft_group_info {
	uint32_t group;
	unsigned owner, next; /* nodes; 0: none */
	const char *state;    /* see enum owners_group_state */
};

struct weft_target_ns_info {
	uint32_t nsid, block;
	uint64_t size, used;
	bool read_only;
	uint32_t ana_group;
	const char *backend; /* SPEC that opens it again */
	int descriptor;      /* of its storage, for another process; -1: it has none */
	unsigned held_by;    /* a process that is no member has it open as this node; 0: none */
	bool sync_failed;    /* writes did not become durable, and flushes fail since then */
	uint64_t read_errors, write_errors; /* of its storage */
	char uuid[37], nguid[33];
	uint8_t reservation;  /* its type; 0: nobody has reserved it */
	unsigned registrants; /* hosts */
};

struct weft_target_ctrl_info {
	uint16_t cntlid, portid;
	const char *hostnqn;
	char hostid[37], peer[64];
	bool discovery;
	unsigned io_queues;
	uint32_t kato_ms;
	uint64_t reads, writes, read_bytes, write_bytes; /* of the I/O queues now connected */
};

/* Counters: see struct weft_qpair_stats. */
struct weft_queue_info {
	uint16_t qid;
	uint32_t depth;
	const char *state; /* "live", or how far its end has come */
	const char *transport;
	uint64_t posted, completed, flushed, retried, rnr, key_hits, registrations, copied_bytes;
};

struct weft_reactor_info {
	int cpu;
	unsigned queues;
	unsigned unknown, unknown_max; /* connections without Connect */
	uint64_t displaced; /* how many of them were closed because there were too many */
};

/* Queues, and which kinds of hosts have them. */
struct weft_admission_info {
	uint32_t max, taken, discovery;
};

struct weft_target_visitor {
	void (*listener)(void *arg, const char *uri, uint16_t portid);
	void (*subsys)(void *arg, const struct weft_subsys_info *info);
	void (*member)(void *arg, const struct weft_member_info *info); /* of a cluster */
	void (*group)(void *arg, const struct weft_group_info *info);   /* one with namespaces */
	void (*host)(void *arg, const char *hostnqn);
	void (*ana_rule)(void *arg, const struct weft_ana_rule *rule);
	void (*ns)(void *arg, const struct weft_target_ns_info *info);
	/* For each port that is listened on and each group that has namespaces: what hosts that no
	 * rule names see there. */
	void (*port_ana)(void *arg, uint16_t portid, uint32_t group, enum weft_ana_state state);
	void (*ctrl)(void *arg, const struct weft_target_ctrl_info *info);
	void (*queue)(void *arg, const struct weft_queue_info *info); /* behind its ctrl() */
	/* Behind its ctrl(), for each group that has namespaces. */
	void (*ana)(void *arg, uint32_t group, enum weft_ana_state state);
	void (*reactor)(void *arg, const struct weft_reactor_info *info);
	void (*admission)(void *arg, const struct weft_admission_info *info);
};

/* Callbacks may be NULL. Controllers of the discovery subsystem come last, under its own
 * subsys(). */
void weft_target_visit(struct weft_target *t, const struct weft_target_visitor *v, void *arg);

#endif
