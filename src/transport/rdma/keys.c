/* keys.c - memory as an adapter knows it.
 *
 *   address ─▶ region (base/region.h) ─▶ tie of this adapter's side ─▶ granule ─▶ key
 *
 * Memory is registered when it is first used, a granule at a time, and stays so until the region or
 * the adapter goes. So pools and namespaces pay for what they touch, and a steady state registers
 * nothing. What is found costs no lock: ties are remembered per thread, keys are read atomically.
 *
 * What the adapter refuses is remembered too, or every I/O of that memory would ask again. It is
 * asked again when there is reason to hope: a region came or went, a connection did, or somebody
 * who cannot do without has waited a while (rdma_keys_try_again()). Until then the memory is as if
 * nobody had declared it, and its pages are free to go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/log.h"
#include "transport/rdma/dev.h"

struct rdma_key {
	_Atomic(struct ibv_mr *) mr; /* NULL: none yet, or refused */
	_Atomic uint64_t refused;    /* when it was, see hope() */
};

/* A region's registrations on one side of one adapter. */
struct rdma_tie {
	struct weft_region_tie tie;
	size_t count;
	struct rdma_key keys[];
};

/* --- granules --------------------------------------------------------------------------------- */

static struct iovec granule_at(const struct weft_region *region, size_t index)
{
	size_t granule = region->granule, left = region->size - index * granule;

	return (struct iovec){ region->base + index * granule, left < granule ? left : granule };
}

static void untie(struct weft_region_tie *tie, struct weft_region *region)
{
	struct rdma_tie *rt = container_of(tie, struct rdma_tie, tie);

	for (size_t i = 0; i < rt->count; i++) {
		struct iovec at = granule_at(region, i);

		if (!rt->keys[i].mr)
			continue;
		rdma_verbs->dereg_mr(rt->keys[i].mr);
		weft_region_lock(region);
		weft_region_unpin(region, at.iov_base, at.iov_len);
		weft_region_unlock(region);
	}
	free(rt);
}

static struct rdma_tie *tie_to(struct weft_region *region, struct rdma_side *side)
{
	struct weft_region_tie *known;
	struct rdma_tie *rt = NULL;
	size_t count = weft_region_granules(region);

	weft_region_lock(region);
	known = weft_region_tie_of(region, side);
	if (known) {
		rt = container_of(known, struct rdma_tie, tie);
	} else {
		rt = calloc(1, sizeof(*rt) + count * sizeof(rt->keys[0]));
		if (rt) {
			rt->count = count;
			rt->tie = (struct weft_region_tie){ .owner = side, .untie = untie };
			weft_list_push(&region->attached, &rt->tie.link);
		}
	}
	weft_region_unlock(region);
	return rt;
}

/* --- looking ---------------------------------------------------------------------------------- */

void rdma_keys_init(struct rdma_keys *keys, struct rdma_side *side)
{
	*keys = (struct rdma_keys){ .side = side };
	rdma_keys_try_again(keys);
}

void rdma_keys_end(struct rdma_keys *keys)
{
	weft_region_view_end(&keys->view);
}

static unsigned hot_slot(const struct weft_region *region)
{
	return (unsigned)(((uintptr_t)region >> 6) % RDMA_KEYS_HOT);
}

static struct rdma_tie *tie_of(struct rdma_keys *keys, struct weft_region *region)
{
	unsigned slot = hot_slot(region);

	if (keys->generation != keys->view.generation) {
		memset(keys->hot, 0, sizeof(keys->hot));
		keys->generation = keys->view.generation;
	}
	if (keys->hot[slot].region != region) {
		keys->hot[slot].tie = tie_to(region, keys->side);
		keys->hot[slot].region = keys->hot[slot].tie ? region : NULL;
	}
	return keys->hot[slot].tie;
}

/* --- registering ------------------------------------------------------------------------------ */

/* iWARP writes what an RDMA READ brings as if the peer had written it. */
static int access_to(const struct rdma_side *side, const struct weft_region *region)
{
	return side->access | (side->dev->iwarp && region->sink ? IBV_ACCESS_REMOTE_WRITE : 0);
}

static struct ibv_mr *register_dmabuf(struct rdma_side *side, struct weft_region *region)
{
	return rdma_verbs->reg_dmabuf_mr(side->dev->pd, region->fd_offset, region->size,
					 (uint64_t)(uintptr_t)region->base, region->fd,
					 side->access);
}

static void tell_refusal(struct rdma_keys *keys, size_t size)
{
	if (keys->failed == -errno)
		return;
	keys->failed = -errno;
	weft_warn("%s does not register %zu bytes of memory: %s%s",
		  keys->side->dev->ctx->device->name, size, strerror(errno),
		  errno == ENOMEM ? "; see ulimit -l (LimitMEMLOCK)" : "");
}

static struct ibv_mr *ask_adapter(struct rdma_side *side, struct weft_region *region,
				  const struct iovec *at)
{
	if (region->kind == WEFT_REGION_DMABUF)
		return register_dmabuf(side, region);
	return rdma_verbs->reg_mr(side->dev->pd, at->iov_base, at->iov_len,
				  access_to(side, region));
}

/* Moves when what was refused may be had. Both of its parts only grow. */
static uint64_t hope(const struct rdma_keys *keys)
{
	return keys->view.generation + atomic_load(&keys->side->dev->chances);
}

void rdma_keys_try_again(struct rdma_keys *keys)
{
	atomic_fetch_add(&keys->side->dev->chances, 1);
}

/* Locked. */
static void register_key(struct rdma_keys *keys, struct weft_region *region, struct rdma_key *key,
			 const struct iovec *at)
{
	struct ibv_mr *mr;

	weft_region_pin(region, at->iov_base, at->iov_len);
	mr = ask_adapter(keys->side, region, at);
	if (mr) {
		keys->registrations++;
		key->mr = mr;
		return;
	}
	tell_refusal(keys, at->iov_len);
	key->refused = hope(keys);
	weft_region_unpin(region, at->iov_base, at->iov_len);
}

static struct ibv_mr *register_granule(struct rdma_keys *keys, struct weft_region *region,
				       struct rdma_tie *rt, size_t index)
{
	struct iovec at = granule_at(region, index);
	struct rdma_key *key = &rt->keys[index];

	if (key->refused >= hope(keys))
		return NULL;
	weft_region_lock(region);
	if (!key->mr && key->refused < hope(keys))
		register_key(keys, region, key, &at);
	weft_region_unlock(region);
	return key->mr;
}

size_t rdma_keys_find(struct rdma_keys *keys, const void *at, size_t len, struct ibv_mr **out)
{
	struct weft_region *region = weft_region_find(&keys->view, at, len);
	struct rdma_tie *rt = region ? tie_of(keys, region) : NULL;
	size_t offset, granule, index, left;
	struct ibv_mr *mr;

	if (!rt)
		return 0;
	offset = (size_t)((const char *)at - region->base);
	granule = region->granule;
	index = offset / granule;
	mr = atomic_load_explicit(&rt->keys[index].mr, memory_order_acquire);
	if (mr)
		keys->hits++;
	else
		mr = register_granule(keys, region, rt, index);
	if (!mr)
		return 0;
	*out = mr;
	left = (index + 1) * granule - offset;
	return len < left ? len : left;
}
