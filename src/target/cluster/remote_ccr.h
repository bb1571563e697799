/* remote_ccr.h - Cross-Controller Reset of a controller that another member of a cluster has: a
 * record in the store. */
#ifndef WEFT_TARGET_CLUSTER_REMOTE_CCR_H
#define WEFT_TARGET_CLUSTER_REMOTE_CCR_H

#include <stddef.h>

#include "target/internal.h"

enum remote_ccr_state { REMOTE_CCR_REQUESTED = 1, REMOTE_CCR_DONE, REMOTE_CCR_DENIED };

/* The record; one for each controller. */
struct remote_ccr_record {
	uint8_t state; /* enum remote_ccr_state */
	uint8_t asker; /* the node whose host asks */
	uint16_t cntlid;
	uint8_t ciu; /* the instance that is to end */
	uint64_t cirn;
	uint64_t session;
	uint8_t hostid[16]; /* the host that the controller must belong to */
	char hostnqn[WEFT_NQN_MAX + 1];
};

enum { REMOTE_CCR_RECORD = 40 + WEFT_NQN_MAX + 1 };

void remote_ccr_encode(const struct remote_ccr_record *reset, uint8_t bytes[REMOTE_CCR_RECORD]);
/* -EINVAL: these are not its bytes. */
int remote_ccr_decode(struct remote_ccr_record *reset, const void *bytes, size_t len);

struct tgt_cluster;

/* A request of a controller here. */
struct tgt_remote_ccr {
	struct weft_list link; /* cluster->resets */
	struct tgt_cluster *cluster;
	struct remote_ccr_record what;
	struct weft_timer limit;
	/* 0: nothing of the controller is left; -EPERM: it is another host's. -ETIMEDOUT: not yet,
	 * and another call follows. */
	void (*done)(struct tgt_remote_ccr *reset, int rc);
};

void tgt_cluster_ccr_init(struct tgt_cluster *c);
/* The member that gives this controller id; 0: none does, or we do. */
unsigned tgt_cluster_node_of_cntlid(const struct weft_subsys *s, uint16_t cntlid);
/* done() follows, perhaps before this returns. -EBUSY: too many are under way. */
int tgt_cluster_ccr_start(struct tgt_remote_ccr *reset, struct tgt_ctrl *asked,
			  const struct nvme_ccr_cmd *cmd, unsigned limit_ms);
void tgt_cluster_ccr_cancel(struct tgt_remote_ccr *reset); /* done() will not run */
/* The store changed, a member is gone, or a controller of ours. */
void tgt_cluster_ccr_reconcile(struct weft_subsys *s);

#endif
