/* cluster.h - a subsystem that several processes (members) serve, seen from one of them. All calls
 * are on the control reactor. */
#ifndef WEFT_TARGET_CLUSTER_CLUSTER_H
#define WEFT_TARGET_CLUSTER_CLUSTER_H

#include "target/cluster/owners.h"
#include "target/cluster/ports.h"
#include "target/cluster/remote_ccr.h"
#include "target/internal.h"

enum {
	TGT_CLUSTER_KEY = 32,
	TGT_CLUSTER_NAMESPACES_MAX = 32 + WEFT_NSID_MAX * sizeof("1024 18446744073709551615"),
	TGT_CLUSTER_RECORD_MAX = TGT_CLUSTER_NAMESPACES_MAX,
};
static_assert((int)OWNERS_RECORD <= (int)TGT_CLUSTER_RECORD_MAX &&
		      (int)PORTS_RECORD_MAX <= (int)TGT_CLUSTER_RECORD_MAX,
	      "every record fits");

/* A record that is to be committed. */
struct tgt_cluster_write {
	char key[TGT_CLUSTER_KEY];
	uint64_t version; /* of the record that it replaces */
	uint32_t len;
	char bytes[TGT_CLUSTER_RECORD_MAX];
};

struct tgt_cluster_nsids {
	bool has[WEFT_NSID_MAX]; /* by nsid - 1 */
};

struct tgt_cluster {
	struct weft_subsys *subsys;
	struct owners_view view;
	struct owners owners;
	uint64_t version, revision; /* of the table, of the store */
	bool started, busy;
	bool draining; /* as the user wants it; the table follows */
	struct weft_timer timer;
	uint64_t successor_since_ns; /* since when another member is to claim a group; 0: none is */
	struct weft_list migrations;
	uint64_t ports_seen[WEFT_NODES_MAX + 1]; /* by node: versions of their records */
	struct weft_store_txn txn;
	struct weft_store_write write;
	struct tgt_cluster_write next; /* what @write writes */

	/* member_namespaces.c: namespaces that each member lacks and another has, as of the last
	 * check. */
	struct tgt_cluster_nsids lacks[WEFT_NODES_MAX + 1];
	/* By nsid - 1: members that live have it in different sizes. */
	bool sizes_differ[WEFT_NSID_MAX];
	uint64_t lacks_revision, lacks_alive;

	/* residual_io.c: */
	uint64_t held_since_ns; /* since when we wait for storage that others hold; 0: we do not */
	/* By nsid - 1: the node whose process has held it for long; 0: none. */
	uint8_t held_by[WEFT_NSID_MAX];

	/* remote_ccr.c: */
	struct weft_list resets; /* requests of this member */
	struct weft_timer reset_timer;
	bool reset_writing;
	struct weft_store_txn reset_txn;
	struct weft_store_write reset_write;
	char reset_key[TGT_CLUSTER_KEY];
	uint8_t reset_bytes[REMOTE_CCR_RECORD];
};

/* With one node, s->cluster stays NULL, and every revision counts as consumed. */
int tgt_cluster_new(struct weft_subsys *s, const struct weft_subsys_options *options);
void tgt_cluster_free(struct weft_subsys *s);            /* its store is closed */
void tgt_cluster_store_moved(struct weft_subsys *s);     /* its store did */
void tgt_cluster_membership_lost(struct weft_subsys *s); /* we are no member any more */
/* A descriptor was closed of storage that we wait for. */
void tgt_cluster_storage_released(struct weft_subsys *s);
/* A member has joined or is gone, or a listener or namespace came or went. */
void tgt_cluster_reconcile(struct weft_subsys *s);
/* No commit, no ANA change and no request is under way. */
bool tgt_cluster_is_idle(const struct weft_subsys *s);
/* The first port id of this member: those of two members never overlap. */
uint16_t tgt_cluster_first_portid(struct weft_target *t);
/* For status. */
unsigned tgt_cluster_nodes(const struct weft_subsys *s);
void tgt_cluster_member_info(struct weft_subsys *s, unsigned node, struct weft_member_info *info);
/* False: the group has no namespaces. */
bool tgt_cluster_group_info(struct weft_subsys *s, uint32_t group, struct weft_group_info *info);
unsigned tgt_cluster_held_by(const struct tgt_ns *ns); /* see struct weft_target_ns_info */

/* residual_io.c: I/O of dead members that storage still has */
/* For a decision about all groups. Most groups have no namespaces, and are decided about all the
 * same. */
struct tgt_cluster_storage {
	struct weft_subsys *subsys;
	bool used[WEFT_ANA_GROUP_MAX]; /* by group - 1: those with namespaces */
	/* A dead member has residual I/O with one of them. */
	bool awaited;
};

void tgt_cluster_used_groups(struct weft_subsys *s, bool used[WEFT_ANA_GROUP_MAX]);
void tgt_cluster_scan_storage(struct tgt_cluster_storage *storage, struct weft_subsys *s,
			      const struct owners *o);
/* Residual I/O of @node, or of any dead one (0), with the storage of @group; @arg is a
 * tgt_cluster_storage. */
bool tgt_cluster_group_has_residual_io(void *arg, uint32_t group, unsigned node);
/* Residual I/O of @node with the storage of @group, or of any (0). */
bool tgt_cluster_has_residual_io(struct weft_subsys *s, uint32_t group, unsigned node);
/* How long until residual I/O that keeps groups unowned is checked again; warns if it lasts
 * long. */
unsigned tgt_cluster_residual_wait_ms(struct tgt_cluster *c);
void tgt_cluster_residual_wait_end(struct tgt_cluster *c);
/* -EBUSY: a dead member still has I/O under way with a new namespace's storage; -EOPNOTSUPP:
 * members cannot share it. */
int tgt_cluster_check_storage(struct weft_subsys *s, struct weft_backend *be, struct weft_err *err);

/* storage_identity.c */
/* -ENOTUNIQ: another member has @ns's storage as another namespace, or in another group, or other
 * storage as this namespace. */
int tgt_cluster_lock_identity(const struct tgt_ns *ns, struct weft_err *err);
void tgt_cluster_unlock_identity(const struct tgt_ns *ns);

/* member_ports.c: where members listen */
void tgt_cluster_check_ports(struct tgt_cluster *c);     /* the store changed */
void tgt_cluster_ports_mark_seen(struct tgt_cluster *c); /* hosts were notified of all records */
/* Does our record differ from what it should be? @w is what it should be. */
bool tgt_cluster_ports_record_is_stale(struct tgt_cluster *c, struct tgt_cluster_write *w);
void tgt_cluster_ports_of(const struct weft_subsys *s, unsigned node, struct ports *ports);

/* member_namespaces.c: which namespaces members have */
void tgt_cluster_ns_changed(struct weft_subsys *s); /* one came, went or has another size */
/* Warns of those that a member lacks or has in another size. */
void tgt_cluster_check_namespaces(struct tgt_cluster *c);
/* Sets info->other_size. */
void tgt_cluster_namespaces_info(struct tgt_cluster *c, struct weft_member_info *info);
/* The same for our list of namespaces. */
bool tgt_cluster_namespaces_record_is_stale(struct tgt_cluster *c, struct tgt_cluster_write *w);

/* migration.c: requests to move groups */
/* Completes requests that are fulfilled, so that they change the table no more: of two that
 * contradict each other, each gets its turn. */
void tgt_cluster_complete_moves(struct tgt_cluster *c);
/* Enters the requests into the table. */
void tgt_cluster_apply_migrations(struct tgt_cluster *c, struct owners *o);
void tgt_cluster_check_migrations(struct tgt_cluster *c); /* when nothing else can be done now */
void tgt_cluster_cancel_migrations(struct tgt_cluster *c, const char *why);

#endif
