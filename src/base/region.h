/* region.h - memory that adapters may be told about: which there is, who has told whom.
 *
 *   declared ─▶ find ─▶ tied: an adapter knows it ─▶ … ─▶ removed: every tie undone
 *
 * One registry for the process. Who owns long-lived memory declares it here; a transport that has
 * to tell its adapter about memory before using it looks here, does that once, and leaves a tie so
 * that it hears when the memory goes. What a tie holds is the transport's affair: nothing here
 * knows of adapters.
 *
 * Looking is for many threads and takes no lock: each has a view of its own, a sorted copy, taken
 * again when the registry's generation has moved. A view reads nothing of a region but its pointer,
 * so that a region may go while others are looked for.
 *
 * An adapter keeps the pages that it was told about. Were they dropped from the mapping, it would
 * go on reading and writing the old ones: wrong data, and nobody notices. So a granule is pinned
 * before it is told about, and who gives pages back does it with weft_region_clear(), which leaves
 * pinned ones in place.
 *
 * Locks: the registry's, then a region's. To undo a tie may take long (an adapter forgets gigabytes
 * a granule at a time), so no lock is held then: who waits for one meanwhile is a reactor with I/O
 * of its own. */
#ifndef WEFT_BASE_REGION_H
#define WEFT_BASE_REGION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

enum weft_region_kind {
	WEFT_REGION_PLAIN,
	WEFT_REGION_DMABUF, /* a device's memory: not for the CPU to touch */
};

struct weft_region {
	char *base;
	size_t size;
	enum weft_region_kind kind;
	int fd; /* DMABUF: its own descriptor, and where in it @base is */
	uint64_t fd_offset;
	size_t granule; /* how much of it is tied at a time, from @base on: a power of two, or all */
	bool sink;      /* peers' data is placed here; set before it is first looked for */
	const void *declarer; /* the declarer's mark; base does not look */

	unsigned untying; /* ties that are off the list and not undone yet; the registry's lock */

	pthread_mutex_t lock;      /* for what follows */
	struct weft_list attached; /* struct weft_region_tie */
	size_t pinned;             /* granules that are */
	uint16_t *pins;            /* of each granule: how often */
};

static inline size_t weft_region_granules(const struct weft_region *region)
{
	return (region->size - 1) / region->granule + 1;
}

struct weft_region_tie {
	struct weft_list link;
	void *owner;
	/* It is off the list, and nothing of @region is in use: forget it, unpin what you pinned,
	 * free yourself. Runs under no lock. */
	void (*untie)(struct weft_region_tie *tie, struct weft_region *region);
};

/* @granule 0: all of it. -EEXIST: some of it is declared already. */
int weft_region_add(struct weft_region **out, void *base, size_t size, size_t granule,
		    struct weft_err *err);
/* @base is an address that means the buffer's byte @offset. Keeps a descriptor of its own. */
int weft_region_add_dmabuf(struct weft_region **out, void *base, size_t size, int fd,
			   uint64_t offset, struct weft_err *err);
/* The caller sees to it that no I/O uses the region, and none will. NULL is nothing. */
void weft_region_remove(struct weft_region *region);

/* The region that begins exactly there, for who declared it; NULL: none. */
struct weft_region *weft_region_at(const void *base);

/* --- looking ---------------------------------------------------------------------------------- */

struct weft_region_span {
	const char *base;
	size_t size;
	enum weft_region_kind kind;
	struct weft_region *region;
};

/* One thread's; starts as {}. */
struct weft_region_view {
	uint64_t generation;
	unsigned count, room;
	struct weft_region_span *sorted;
	unsigned last; /* where something was found last */
};

/* The region that holds all of [@at, @at + @len); NULL: none, or no memory to look. It stays for as
 * long as there is I/O on that memory: see weft_region_remove(). */
struct weft_region *weft_region_find(struct weft_region_view *view, const void *at, size_t len);
/* Whether some of [@at, @at + @len) lies in a DMABUF region; when in doubt (no memory), yes. */
bool weft_region_meets_dmabuf(struct weft_region_view *view, const void *at, size_t len);
void weft_region_view_end(struct weft_region_view *view);

extern atomic_uint weft_region_dmabufs; /* how many there are */

static inline bool weft_region_any_dmabuf(void)
{
	return atomic_load_explicit(&weft_region_dmabufs, memory_order_relaxed);
}

/* --- ties ------------------------------------------------------------------------------------- */

/* To tell an adapter of memory: lock; look for the owner's tie on @attached, or put one there; pin
 * the granules; tell the adapter; unlock. */
static inline void weft_region_lock(struct weft_region *region)
{
	pthread_mutex_lock(&region->lock);
}

static inline void weft_region_unlock(struct weft_region *region)
{
	pthread_mutex_unlock(&region->lock);
}

/* Locked. The owner's tie; NULL: it has none. */
struct weft_region_tie *weft_region_tie_of(struct weft_region *region, const void *owner);
/* Locked. The pages of every granule that [@at, @at + @len) meets stay, until they have been
 * unpinned as often as pinned. */
void weft_region_pin(struct weft_region *region, const void *at, size_t len);
void weft_region_unpin(struct weft_region *region, const void *at, size_t len);

/* A device goes: every tie of that owner is undone, also those that a removal has in hand. The
 * owner makes no new ones. */
void weft_regions_untie_owner(const void *owner);

/* --- giving memory back ----------------------------------------------------------------------- */

/* Whole pages of a shared mapping become zero. Those that nothing pins go back to the system, the
 * others are cleared in place. What lies behind the end of @region is not pinned; NULL: nothing
 * is. */
void weft_region_clear(struct weft_region *region, void *at, size_t len);

#endif
