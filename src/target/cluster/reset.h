/* reset.h - a host ends a controller of another member of a cluster: a request in the common
 * state. */
#ifndef WEFT_TARGET_CLUSTER_RESET_H
#define WEFT_TARGET_CLUSTER_RESET_H

#include <stddef.h>

#include "target/internal.h"

enum reset_state { RESET_ASKED = 1, RESET_OVER, RESET_DENIED };

/* As the store has it, one for each controller. */
struct reset {
	uint8_t state; /* enum reset_state */
	uint8_t asker; /* the node that asks for its host */
	uint16_t cntlid;
	uint8_t ciu; /* the instance of it that is meant */
	uint64_t cirn;
	uint64_t session;
	uint8_t hostid[16]; /* whose it must be */
	char hostnqn[WEFT_NQN_MAX + 1];
};

enum { RESET_RECORD = 40 + WEFT_NQN_MAX + 1 };

void reset_encode(const struct reset *reset, uint8_t bytes[RESET_RECORD]);
/* -EINVAL: these are not its bytes. */
int reset_decode(struct reset *reset, const void *bytes, size_t len);

struct tgt_cluster;

/* One that a controller here was asked for. */
struct tgt_reset {
	struct weft_list link; /* cluster->resets */
	struct tgt_cluster *cluster;
	struct reset what;
	struct weft_timer limit;
	/* 0: nothing of it is left; -EPERM: it is another host's. -ETIMEDOUT: not yet, and one of
	 * the others follows. */
	void (*done)(struct tgt_reset *reset, int rc);
};

void tgt_cluster_resets_init(struct tgt_cluster *c);
/* The member that gives this number; 0: none does, or we do. */
unsigned tgt_cluster_node_of(const struct weft_subsys *s, uint16_t cntlid);
/* done() follows, perhaps before this returns. -EBUSY: too many are under way. */
int tgt_cluster_reset(struct tgt_reset *reset, struct tgt_ctrl *asked,
		      const struct nvme_ccr_cmd *cmd, unsigned limit_ms);
void tgt_cluster_reset_forget(struct tgt_reset *reset); /* done() will not run */
/* The store moved, a member is gone, or a controller of ours. */
void tgt_cluster_look_at_resets(struct weft_subsys *s);

#endif
