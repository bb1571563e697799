/* region_pin.c - ties: registrations of a region with adapters, and the pages that are pinned
 * because of them.
 *
 * There is a count per granule. It is incremented under the region's lock before an adapter
 * registers the granule, and decremented after it is deregistered; pages are dropped under the same
 * lock, if the count is 0. Clearing in place needs no lock: it is a write like any other. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "memory/region_internal.h"

/* --- pins ------------------------------------------------------------------------------------- */

static size_t granule_of(const struct weft_region *region, const void *at)
{
	return (size_t)((const char *)at - region->base) / region->granule;
}

void weft_region_pin(struct weft_region *region, const void *at, size_t len)
{
	size_t last = granule_of(region, (const char *)at + len - 1);

	for (size_t i = granule_of(region, at); i <= last; i++)
		region->pinned += !region->pins[i]++;
}

void weft_region_unpin(struct weft_region *region, const void *at, size_t len)
{
	size_t last = granule_of(region, (const char *)at + len - 1);

	for (size_t i = granule_of(region, at); i <= last; i++) {
		assert(region->pins[i]);
		region->pinned -= !--region->pins[i];
	}
}

/* --- ties ------------------------------------------------------------------------------------- */

struct weft_region_tie *weft_region_tie_of(struct weft_region *region, const void *owner)
{
	struct weft_region_tie *tie;

	weft_list_for_each(tie, &region->attached, link) {
		if (tie->owner == owner)
			return tie;
	}
	return NULL;
}

struct weft_region_tie *weft_region_take_tie(struct weft_region *region, const void *owner)
{
	struct weft_region_tie *tie = NULL;

	weft_region_lock(region);
	if (owner)
		tie = weft_region_tie_of(region, owner);
	else if (!weft_list_empty(&region->attached))
		tie = container_of(region->attached.next, struct weft_region_tie, link);
	if (tie)
		weft_list_remove(&tie->link);
	weft_region_unlock(region);
	return tie;
}

/* --- giving memory back ----------------------------------------------------------------------- */

static bool pinned(const struct weft_region *region, const char *at)
{
	size_t i = granule_of(region, at);

	return at < region->base + region->size && region->pins[i];
}

/* The end of the run from @at on that is pinned, or not, as @at is; at most @end. */
static char *run_end(const struct weft_region *region, char *at, char *end)
{
	size_t i = granule_of(region, at);
	bool first = pinned(region, at);

	if (!region->pinned)
		return end;
	while (at < end && pinned(region, at) == first)
		at = region->base + ++i * region->granule;
	return at < end ? at : end;
}

/* Pages that the system does not drop (they may be locked) are cleared. */
static void drop(char *at, size_t len)
{
	if (madvise(at, len, MADV_REMOVE) < 0)
		memset(at, 0, len);
}

/* Clears the first run of [@at, @end), and returns its end. */
static char *clear_run(struct weft_region *region, char *at, char *end)
{
	char *stop;
	bool stays;

	weft_region_lock(region);
	stop = run_end(region, at, end);
	stays = pinned(region, at);
	if (!stays)
		drop(at, (size_t)(stop - at));
	weft_region_unlock(region);
	if (stays)
		memset(at, 0, (size_t)(stop - at));
	return stop;
}

void weft_region_clear(struct weft_region *region, void *at, size_t len)
{
	char *from = at, *end = from + len;

	if (!region)
		drop(from, len);
	while (region && from < end)
		from = clear_run(region, from, end);
}
