/* dev.h - adapters, and the memory they were told about. One of each for the process. */
#ifndef WEFT_TRANSPORT_RDMA_DEV_H
#define WEFT_TRANSPORT_RDMA_DEV_H

#include <stdatomic.h>

#include "base/region.h"
#include "transport/rdma/verbs.h"

struct rdma_dev;

/* What the memory of one side may be used for: each side has registrations of its own. */
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
	atomic_bool invalidates; /* a SEND of its can invalidate a key of the peer's */
	unsigned refs;
	struct weft_list subscribers; /* see async_event.c */
	struct rdma_mr_domain target, host;
	_Atomic uint64_t retry_epoch; /* for registrations that were refused; see mr_cache.c */
};

int rdma_dev_get(struct ibv_context *ctx, struct rdma_dev **dev, struct weft_err *err);
void rdma_dev_put(struct rdma_dev *dev); /* NULL is nothing */
/* An adapter is being removed: what uses it goes; then, and after every id destroyed from there on,
 * rdma_devs_release_removed(). A driver may wait for that. */
void rdma_devs_note_removal(void);
void rdma_devs_release_removed(void);

/* --- keys, see mr_cache.c ------------------------------------------------------------------------- */

enum { RDMA_MR_CACHE_REGIONS = 64 };

/* One thread's way to the keys of an adapter. */
struct rdma_mr_cache {
	struct rdma_mr_domain *side;
	struct weft_region_view view;
	uint64_t generation; /* of the view, for @hot */
	struct {
		struct weft_region *region;
		struct rdma_region_mrs *tie;
	} recent[RDMA_MR_CACHE_REGIONS];
	uint64_t hits, registrations;
	int failed; /* the last registration that was refused: -errno */
};

void rdma_mr_cache_init(struct rdma_mr_cache *mrs, struct rdma_mr_domain *side);
void rdma_mr_cache_destroy(struct rdma_mr_cache *mrs);
/* The adapter may have room by now for what it refused. */
void rdma_mr_cache_retry_refused(struct rdma_mr_cache *mrs);
/* How many bytes of [@at, @at + @len), from @at on, *@mr covers. 0: this memory has no key: nobody
 * declared it, or the adapter refuses it. */
size_t rdma_mr_cache_find(struct rdma_mr_cache *mrs, const void *at, size_t len,
			  struct ibv_mr **mr);

#endif
