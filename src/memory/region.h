/* region.h - the process-wide registry of memory (regions) that RDMA adapters may register.
 *
 *   add ─▶ find ─▶ registered with an adapter ─▶ … ─▶ remove: every registration is undone
 *
 * The owner of long-lived memory adds it here. A transport finds the region of a buffer, registers
 * it with its adapter once, and attaches a registration to the region, so that it is called when
 * the region goes. Nothing here knows verbs: what a registration holds belongs to the transport.
 *
 * Lookups come from many threads and take no lock: each thread has a view, a sorted copy that it
 * refreshes when the registry's generation has changed. A lookup reads only the copy, never the
 * region itself, so a region may go meanwhile.
 *
 * An adapter keeps the pages that it has registered. If they were dropped from the mapping, it
 * would go on reading and writing the old ones: wrong data, and nobody notices. So a granule is
 * pinned before it is registered, and memory is given back with weft_region_clear(), which leaves
 * pinned pages in place.
 *
 * Locks: the registry's, then a region's. Undoing a registration may take long (an adapter
 * deregisters gigabytes a granule at a time), so no lock is held then: a reactor with I/O might
 * wait for it. */
#ifndef WEFT_MEMORY_REGION_H
#define WEFT_MEMORY_REGION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

enum weft_region_kind {
	WEFT_REGION_PLAIN,
	WEFT_REGION_DMABUF, /* a device's memory: the CPU must not touch it */
};

struct weft_region {
	char *base;
	size_t size;
	enum weft_region_kind kind;
	int fd; /* DMABUF: its own descriptor, and where in it @base is */
	uint64_t fd_offset;
	/* How much is registered at a time, from @base on: a power of two, or all. */
	size_t granule;
	bool sink;            /* peers' data is placed here; set before the first lookup */
	const void *declarer; /* the declarer's mark; not used here */

	unsigned deregistering; /* registrations off the list that are not undone yet; the registry's lock */

	pthread_mutex_t lock;           /* for what follows */
	struct weft_list registrations; /* struct weft_region_registration */
	size_t pinned;                  /* how many granules are pinned */
	uint16_t *pins;                 /* of each granule: how often it is pinned */
};

static inline size_t weft_region_granules(const struct weft_region *region)
{
	return (region->size - 1) / region->granule + 1;
}

struct weft_region_registration {
	struct weft_list link;
	void *owner;
	/* The registration is off the list, and nothing of @region is in use: deregister, unpin,
	 * free the registration. Runs under no lock. */
	void (*deregister)(struct weft_region_registration *reg, struct weft_region *region);
};

/* @granule 0: all of it. -EEXIST: some of it was added already. */
int weft_region_add(struct weft_region **out, void *base, size_t size, size_t granule,
		    struct weft_err *err);
/* @base is the address of the buffer's byte @offset. Keeps a descriptor of its own. */
int weft_region_add_dmabuf(struct weft_region **out, void *base, size_t size, int fd,
			   uint64_t offset, struct weft_err *err);
/* The caller makes sure that no I/O uses the region, and none will. NULL is allowed. */
void weft_region_remove(struct weft_region *region);

/* The region that begins exactly there, for its owner; NULL: none. */
struct weft_region *weft_region_at(const void *base);

/* --- lookup ----------------------------------------------------------------------------------- */

struct weft_region_span {
	const char *base;
	size_t size;
	enum weft_region_kind kind;
	struct weft_region *region;
};

/* One thread's view; starts as {}. */
struct weft_region_view {
	uint64_t generation;
	unsigned count, room;
	struct weft_region_span *sorted;
	unsigned last; /* index of the last hit */
};

/* The region that holds all of [@at, @at + @len); NULL: none, or no memory to refresh the view. It
 * stays as long as there is I/O on that memory: see weft_region_remove(). */
struct weft_region *weft_region_find(struct weft_region_view *view, const void *at, size_t len);
/* Whether some of [@at, @at + @len) lies in a DMABUF region; when in doubt (no memory), yes. */
bool weft_region_overlaps_dmabuf(struct weft_region_view *view, const void *at, size_t len);
void weft_region_view_free(struct weft_region_view *view);

extern atomic_uint weft_region_dmabufs; /* how many there are */

static inline bool weft_region_any_dmabuf(void)
{
	return atomic_load_explicit(&weft_region_dmabufs, memory_order_relaxed);
}

/* --- registrations ---------------------------------------------------------------------------- */

/* To register memory: lock; find the owner's registration on @registrations, or add one; pin the
 * granules; register them; unlock. */
static inline void weft_region_lock(struct weft_region *region)
{
	pthread_mutex_lock(&region->lock);
}

static inline void weft_region_unlock(struct weft_region *region)
{
	pthread_mutex_unlock(&region->lock);
}

/* Locked. The owner's registration; NULL: it has none. */
struct weft_region_registration *weft_region_find_registration(struct weft_region *region,
							       const void *owner);
/* Locked. The pages of every granule that [@at, @at + @len) overlaps stay, until they were unpinned
 * as often as pinned. */
void weft_region_pin(struct weft_region *region, const void *at, size_t len);
void weft_region_unpin(struct weft_region *region, const void *at, size_t len);

/* A device goes: undoes every registration of that owner, also those that a removal is undoing. The
 * owner makes no new ones. */
void weft_regions_deregister_owner(const void *owner);

/* --- giving memory back ----------------------------------------------------------------------- */

/* Zeroes whole pages of a shared mapping. Pages that nothing pins go back to the system, the others
 * are cleared in place. Memory behind the end of @region is not pinned; @region NULL: nothing
 * is. */
void weft_region_clear(struct weft_region *region, void *at, size_t len);

#endif
