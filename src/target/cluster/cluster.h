/* cluster.h - a subsystem that several processes serve, as one of them. On home. */
#ifndef WEFT_TARGET_CLUSTER_CLUSTER_H
#define WEFT_TARGET_CLUSTER_CLUSTER_H

#include "target/cluster/owners.h"
#include "target/internal.h"

struct tgt_cluster {
	struct weft_subsys *subsys;
	struct owners_view view;
	struct owners owners;
	uint64_t version, revision; /* of the table, of the store */
	bool started, busy;
	bool draining; /* as the user wants it; the table is told */
	struct weft_timer timer;
	struct weft_list wishes;
	struct weft_txn txn;
	struct weft_store_write write;
	uint8_t bytes[OWNERS_RECORD];
};

/* s->cluster is NULL where the subsystem has one node, and its store is followed at once. */
int tgt_cluster_new(struct weft_subsys *s, const struct weft_subsys_options *options);
void tgt_cluster_free(struct weft_subsys *s); /* its store is closed */
/* The store moved, or a member of it is gone. */
void tgt_cluster_act(struct weft_subsys *s);
/* Nothing is on its way, and nobody wants anything. */
bool tgt_cluster_is_idle(const struct weft_subsys *s);
/* A controller of a member that is gone, with nothing of it left with the storage. */
bool tgt_cluster_is_over(struct weft_subsys *s, uint16_t cntlid);
/* For who looks. */
unsigned tgt_cluster_nodes(const struct weft_subsys *s);
void tgt_cluster_member(struct weft_subsys *s, unsigned node, struct weft_member_info *info);
/* -EBUSY: a member that is gone still has something under way with a new namespace's storage. */
int tgt_cluster_check_storage(struct weft_subsys *s, struct weft_backend *be, struct weft_err *err);

/* wish.c: groups that somebody wants elsewhere */
/* Those that are fulfilled ask for nothing more: of two that contradict each other, each has its turn. */
void tgt_cluster_grant_moves(struct tgt_cluster *c);
/* Puts what they say into the table. */
void tgt_cluster_wish_for(struct tgt_cluster *c, struct owners *o);
void tgt_cluster_look_at_wishes(struct tgt_cluster *c); /* nothing else is to be done */
void tgt_cluster_drop_wishes(struct tgt_cluster *c);

#endif
