/* region_tie.c - who has told an adapter of a region, and which pages stay because of that.
 *
 * A count per granule. It goes up under the region's lock before an adapter is told, and down when
 * that one has forgotten; pages are dropped under the same lock, after a look at it. Clearing in
 * place needs no lock: it is a write like any. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/region_internal.h"

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

/* From @at on, how far it goes on being pinned, or not, as it is at @at; at most to @end. */
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

/* Where the system keeps them (they may be locked) they are cleared. */
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
