/* dev.h - adapters, and the memory that is registered with them. One of each for the process. */
#ifndef WEFT_TRANSPORT_RDMA_DEV_H
#define WEFT_TRANSPORT_RDMA_DEV_H

#include <stdatomic.h>

#include "memory/region.h"
#include "transport/rdma/verbs.h"

struct rdma_dev;

/* An MR domain: the target's or the host's registrations, each with its own access flags. */
struct rdma_mr_domain {
	struct rdma_dev *dev;
	int access;
};

struct rdma_dev {
	struct weft_list link;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	bool iwarp;
	atomic_bool invalidates; /* it can SEND with invalidate */
	unsigned refs;
	struct weft_list subscribers; /* see async_event.c */
	struct rdma_mr_domain target, host;
	_Atomic uint64_t
		retry_epoch; /* refused registrations are retried when it moves: mr_cache.c */
};

int rdma_dev_get(struct ibv_context *ctx, struct rdma_dev **dev, struct weft_err *err);
void rdma_dev_put(struct rdma_dev *dev); /* NULL is nothing */
/* An adapter is being removed, and its users end. After that, and after every id destroyed from
 * then on, call rdma_devs_release_removed(): the driver may wait for it. */
void rdma_devs_note_removal(void);
void rdma_devs_release_removed(void);

/* --- memory regions, see mr_cache.c ----------------------------------------------------------- */

enum { RDMA_MR_CACHE_REGIONS = 64 };

/* One thread's MR cache for an adapter. */
struct rdma_mr_cache {
	struct rdma_mr_domain *side;
	struct weft_region_view view;
	uint64_t generation; /* of the view, for @recent */
	struct {
		struct weft_region *region;
		struct rdma_region_mrs *rmrs;
	} recent[RDMA_MR_CACHE_REGIONS];
	uint64_t hits, registrations;
	int failed; /* -errno of the last refused registration */
};

void rdma_mr_cache_init(struct rdma_mr_cache *mrs, struct rdma_mr_domain *side);
void rdma_mr_cache_destroy(struct rdma_mr_cache *mrs);
/* The adapter may accept by now what it refused: moves the retry epoch. */
void rdma_mr_cache_retry_refused(struct rdma_mr_cache *mrs);
/* How many bytes of [@at, @at + @len), from @at on, *@mr covers. 0: this memory has no MR: it is in
 * no region, or the adapter refuses it. */
size_t rdma_mr_cache_find(struct rdma_mr_cache *mrs, const void *at, size_t len,
			  struct ibv_mr **mr);

#endif
