/* mr_cache.c - the MR cache: from an address to a memory region (lkey, rkey) of an adapter.
 *
 *   address ─▶ region (memory/region.h) ─▶ its MRs in this MR domain ─▶ granule ─▶ MR
 *
 * Memory is registered on first use, a granule at a time, until its region or the adapter goes:
 * pools and namespaces pay for what they touch, and in a steady state nothing is registered. A hit
 * takes no lock.
 *
 * A refusal is remembered, or every I/O would try again; it is forgotten when the retry epoch
 * moves: a region or a connection came or went, or rdma_mr_cache_retry_refused(). Until then the
 * memory counts as not registered, and its pages are not pinned. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/log.h"
#include "transport/rdma/dev.h"

struct rdma_granule_mr {
	_Atomic(struct ibv_mr *) mr; /* NULL: none yet, or refused */
	_Atomic uint64_t refused;    /* retry epoch of the refusal, see retry_epoch_now() */
};

/* A region's registrations in one MR domain of one adapter. */
struct rdma_region_mrs {
	struct weft_region_registration reg;
	size_t count;
	struct rdma_granule_mr mrs[];
};

/* --- granules --------------------------------------------------------------------------------- */

static struct iovec granule_at(const struct weft_region *region, size_t index)
{
	size_t granule = region->granule, left = region->size - index * granule;

	assert(index * granule < region->size);
	return (struct iovec){ region->base + index * granule, left < granule ? left : granule };
}

static void deregister_region_mrs(struct weft_region_registration *reg, struct weft_region *region)
{
	struct rdma_region_mrs *rmrs = container_of(reg, struct rdma_region_mrs, reg);

	for (size_t i = 0; i < rmrs->count; i++) {
		struct iovec at = granule_at(region, i);

		if (!rmrs->mrs[i].mr)
			continue;
		rdma_verbs->dereg_mr(rmrs->mrs[i].mr);
		weft_region_lock(region);
		weft_region_unpin(region, at.iov_base, at.iov_len);
		weft_region_unlock(region);
	}
	free(rmrs);
}

static struct rdma_region_mrs *attach_region(struct weft_region *region,
					     struct rdma_mr_domain *side)
{
	struct weft_region_registration *known;
	struct rdma_region_mrs *rmrs = NULL;
	size_t count = weft_region_granules(region);

	weft_region_lock(region);
	known = weft_region_find_registration(region, side);
	if (known) {
		rmrs = container_of(known, struct rdma_region_mrs, reg);
	} else {
		rmrs = calloc(1, sizeof(*rmrs) + count * sizeof(rmrs->mrs[0]));
		if (rmrs) {
			rmrs->count = count;
			rmrs->reg = (struct weft_region_registration){
				.owner = side, .deregister = deregister_region_mrs
			};
			weft_list_push(&region->registrations, &rmrs->reg.link);
		}
	}
	weft_region_unlock(region);
	return rmrs;
}

/* --- lookup ----------------------------------------------------------------------------------- */

void rdma_mr_cache_init(struct rdma_mr_cache *mrs, struct rdma_mr_domain *side)
{
	*mrs = (struct rdma_mr_cache){ .side = side };
	rdma_mr_cache_retry_refused(mrs);
}

void rdma_mr_cache_destroy(struct rdma_mr_cache *mrs)
{
	weft_region_view_free(&mrs->view);
}

static unsigned cache_index(const struct weft_region *region)
{
	return (unsigned)(((uintptr_t)region >> 6) % RDMA_MR_CACHE_REGIONS);
}

static struct rdma_region_mrs *region_mrs_of(struct rdma_mr_cache *mrs, struct weft_region *region)
{
	unsigned slot = cache_index(region);

	if (mrs->generation != mrs->view.generation) {
		memset(mrs->recent, 0, sizeof(mrs->recent));
		mrs->generation = mrs->view.generation;
	}
	if (mrs->recent[slot].region != region) {
		mrs->recent[slot].rmrs = attach_region(region, mrs->side);
		mrs->recent[slot].region = mrs->recent[slot].rmrs ? region : NULL;
	}
	return mrs->recent[slot].rmrs;
}

/* --- registering ------------------------------------------------------------------------------ */

/* On iWARP the data of an RDMA READ needs remote write access. */
static int access_flags(const struct rdma_mr_domain *side, const struct weft_region *region)
{
	return side->access | (side->dev->iwarp && region->sink ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static struct ibv_mr *register_dmabuf(struct rdma_mr_domain *side, struct weft_region *region)
{
	return rdma_verbs->reg_dmabuf_mr(side->dev->pd, region->fd_offset, region->size,
					 (uint64_t)(uintptr_t)region->base, region->fd,
					 side->access);
}

static void warn_refusal(struct rdma_mr_cache *mrs, size_t size)
{
	if (mrs->failed == -errno)
		return;
	mrs->failed = -errno;
	weft_warn("%s does not register %zu bytes of memory: %s%s",
		  mrs->side->dev->ctx->device->name, size, strerror(errno),
		  errno == ENOMEM ? "; see ulimit -l (LimitMEMLOCK)" : "");
}

static struct ibv_mr *register_with_adapter(struct rdma_mr_domain *side, struct weft_region *region,
					    const struct iovec *at)
{
	if (region->kind == WEFT_REGION_DMABUF)
		return register_dmabuf(side, region);
	return rdma_verbs->reg_mr(side->dev->pd, at->iov_base, at->iov_len,
				  access_flags(side, region));
}

/* Moves when a refused registration may succeed. Both of its parts only grow. */
static uint64_t retry_epoch_now(const struct rdma_mr_cache *mrs)
{
	return mrs->view.generation + atomic_load(&mrs->side->dev->retry_epoch);
}

void rdma_mr_cache_retry_refused(struct rdma_mr_cache *mrs)
{
	atomic_fetch_add(&mrs->side->dev->retry_epoch, 1);
}

/* Locked. */
static void register_mr(struct rdma_mr_cache *mrs, struct weft_region *region,
			struct rdma_granule_mr *key, const struct iovec *at)
{
	struct ibv_mr *mr;

	assert(!key->mr);
	weft_region_pin(region, at->iov_base, at->iov_len);
	mr = register_with_adapter(mrs->side, region, at);
	if (mr) {
		mrs->registrations++;
		key->mr = mr;
		return;
	}
	warn_refusal(mrs, at->iov_len);
	key->refused = retry_epoch_now(mrs);
	weft_region_unpin(region, at->iov_base, at->iov_len);
}

static struct ibv_mr *register_granule(struct rdma_mr_cache *mrs, struct weft_region *region,
				       struct rdma_region_mrs *rmrs, size_t index)
{
	struct iovec at = granule_at(region, index);
	struct rdma_granule_mr *key = &rmrs->mrs[index];

	if (key->refused >= retry_epoch_now(mrs))
		return NULL;
	weft_region_lock(region);
	if (!key->mr && key->refused < retry_epoch_now(mrs))
		register_mr(mrs, region, key, &at);
	weft_region_unlock(region);
	return key->mr;
}

size_t rdma_mr_cache_find(struct rdma_mr_cache *mrs, const void *at, size_t len,
			  struct ibv_mr **out)
{
	struct weft_region *region = weft_region_find(&mrs->view, at, len);
	struct rdma_region_mrs *rmrs = region ? region_mrs_of(mrs, region) : NULL;
	size_t offset, granule, index, left;
	struct ibv_mr *mr;

	if (!rmrs)
		return 0;
	offset = (size_t)((const char *)at - region->base);
	granule = region->granule;
	index = offset / granule;
	mr = atomic_load_explicit(&rmrs->mrs[index].mr, memory_order_acquire);
	if (mr)
		mrs->hits++;
	else
		mr = register_granule(mrs, region, rmrs, index);
	if (!mr)
		return 0;
	*out = mr;
	left = (index + 1) * granule - offset;
	return len < left ? len : left;
}
