/* cluster.h - a subsystem that several processes serve, as one of them. On the control reactor. */
#ifndef WEFT_TARGET_CLUSTER_CLUSTER_H
#define WEFT_TARGET_CLUSTER_CLUSTER_H

#include "target/cluster/owners.h"
#include "target/cluster/ports.h"
#include "target/cluster/remote_ccr.h"
#include "target/internal.h"

enum { TGT_CLUSTER_KEY = 32 };

/* A record that is to be written. */
struct tgt_cluster_write {
	char key[TGT_CLUSTER_KEY];
	uint64_t version; /* that it has */
	uint32_t len;
	char bytes[PORTS_RECORD_MAX];
};
static_assert((int)OWNERS_RECORD <= (int)PORTS_RECORD_MAX, "the table fits");

struct tgt_cluster_nsids {
	bool has[WEFT_NSID_MAX]; /* by nsid - 1 */
};

struct tgt_cluster {
	struct weft_subsys *subsys;
	struct owners_view view;
	struct owners owners;
	uint64_t version, revision; /* of the table, of the store */
	bool started, busy;
	bool draining; /* as the user wants it; the table is told */
	struct weft_timer timer;
	uint64_t successor_since_ns; /* another member is to take a group; 0: none is */
	struct weft_list migrations;
	uint64_t ports_seen[WEFT_NODES_MAX + 1]; /* by node: versions of their records */
	struct weft_store_txn txn;
	struct weft_store_write write;
	struct tgt_cluster_write next; /* what @write is of */

	/* namespaces.c's: what each member lacks that another has, as of when it was looked for */
	struct tgt_cluster_nsids lacks[WEFT_NODES_MAX + 1];
	uint64_t lacks_revision, lacks_alive;

	/* storage.c's */
	uint64_t held_since_ns; /* storage that somebody else holds is awaited; 0: none is */
	uint8_t held_by[WEFT_NSID_MAX]; /* by nsid - 1: as which node; 0: it is not, or not for long */

	/* reset.c's */
	struct weft_list resets; /* that were asked for here */
	struct weft_timer reset_timer;
	bool reset_writing;
	struct weft_store_txn reset_txn;
	struct weft_store_write reset_write;
	char reset_key[TGT_CLUSTER_KEY];
	uint8_t reset_bytes[REMOTE_CCR_RECORD];
};

/* s->cluster is NULL where the subsystem has one node, and its store is followed at once. */
int tgt_cluster_new(struct weft_subsys *s, const struct weft_subsys_options *options);
void tgt_cluster_free(struct weft_subsys *s);            /* its store is closed */
void tgt_cluster_store_moved(struct weft_subsys *s);     /* its store did */
void tgt_cluster_membership_lost(struct weft_subsys *s); /* its store: we are no member any more */
void tgt_cluster_storage_released(
	struct weft_subsys *s); /* somebody did, of storage that is awaited */
/* A member is gone, or a listener or namespace came or went. */
void tgt_cluster_reconcile(struct weft_subsys *s);
/* Nothing is on its way, and nobody wants anything. */
bool tgt_cluster_is_idle(const struct weft_subsys *s);
/* Port ids are given from here on: those of members do not meet. */
uint16_t tgt_cluster_first_portid(struct weft_target *t);
/* For who looks. */
unsigned tgt_cluster_nodes(const struct weft_subsys *s);
void tgt_cluster_member_info(struct weft_subsys *s, unsigned node, struct weft_member_info *info);
unsigned tgt_cluster_held_by(const struct tgt_ns *ns); /* see struct weft_ns_info */

/* residual_io.c: what members that are gone have left */
/* For those who decide about groups. Most groups have no namespaces, and are asked about all the
 * same. */
struct tgt_cluster_storage {
	struct weft_subsys *subsys;
	bool used[WEFT_ANA_GROUP_MAX]; /* by group - 1: those with namespaces */
	bool awaited;                  /* something of who is gone is left with one of them */
};

void tgt_cluster_used_groups(struct weft_subsys *s, bool used[WEFT_ANA_GROUP_MAX]);
void tgt_cluster_scan_storage(struct tgt_cluster_storage *storage, struct weft_subsys *s,
			      const struct owners *o);
/* With the storage of @group, by @node, or by any (0); @arg is a tgt_cluster_storage. */
bool tgt_cluster_group_has_residual_io(void *arg, uint32_t group, unsigned node);
/* Something of @node is left with the storage of @group, or of any (0). */
bool tgt_cluster_has_residual_io(struct weft_subsys *s, uint32_t group, unsigned node);
/* Groups stay nobody's, or not, because of what is left: how long until the next look, and a
 * warning if it takes long. */
unsigned tgt_cluster_residual_wait_ms(struct tgt_cluster *c);
void tgt_cluster_residual_wait_end(struct tgt_cluster *c);
/* -EBUSY: a member that is gone still has something under way with a new namespace's storage;
 * -EOPNOTSUPP: members cannot share it. */
int tgt_cluster_check_storage(struct weft_subsys *s, struct weft_backend *be, struct weft_err *err);

/* storage_identity.c */
/* -ENOTUNIQ: another member has @ns's storage as another namespace, or in another group, or other
 * storage as this namespace. */
int tgt_cluster_lock_identity(const struct tgt_ns *ns, struct weft_err *err);
void tgt_cluster_unlock_identity(const struct tgt_ns *ns);

/* member_ports.c: where members listen */
void tgt_cluster_check_ports(struct tgt_cluster *c);     /* the store moved */
void tgt_cluster_ports_mark_seen(struct tgt_cluster *c); /* hosts were told of all that it has */
/* Is our record another one than it should be? @w is what it should be. */
bool tgt_cluster_ports_record_is_stale(struct tgt_cluster *c, struct tgt_cluster_write *w);
void tgt_cluster_ports_of(const struct weft_subsys *s, unsigned node, struct ports *ports);

/* member_namespaces.c: which of them members have */
void tgt_cluster_ns_changed(struct weft_subsys *s);       /* one came or went */
void tgt_cluster_check_namespaces(struct tgt_cluster *c); /* warns of those that one lacks */
/* As above, of our list. */
bool tgt_cluster_namespaces_record_is_stale(struct tgt_cluster *c, struct tgt_cluster_write *w);

/* migration.c: groups that somebody wants elsewhere */
/* Those that are fulfilled ask for nothing more: of two that contradict each other, each has its
 * turn. */
void tgt_cluster_complete_moves(struct tgt_cluster *c);
/* Puts what they say into the table. */
void tgt_cluster_apply_migrations(struct tgt_cluster *c, struct owners *o);
void tgt_cluster_check_migrations(struct tgt_cluster *c); /* nothing else can be done now */
void tgt_cluster_cancel_migrations(struct tgt_cluster *c, const char *why);

#endif
