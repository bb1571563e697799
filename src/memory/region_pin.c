/* region_pin.c - registrations of a region with adapters, and the pages that are pinned
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

/* --- registrations ---------------------------------------------------------------------------- */

struct weft_region_registration *weft_region_find_registration(struct weft_region *region,
							       const void *owner)
{
	struct weft_region_registration *reg;

	weft_list_for_each(reg, &region->registrations, link) {
		if (reg->owner == owner)
			return reg;
	}
	return NULL;
}

struct weft_region_registration *weft_region_detach_registration(struct weft_region *region,
								 const void *owner)
{
	struct weft_region_registration *reg = NULL;

	weft_region_lock(region);
	if (owner)
		reg = weft_region_find_registration(region, owner);
	else if (!weft_list_empty(&region->registrations))
		reg = container_of(region->registrations.next, struct weft_region_registration,
				   link);
	if (reg)
		weft_list_remove(&reg->link);
	weft_region_unlock(region);
	return reg;
}

/* --- giving memory back ----------------------------------------------------------------------- */

static bool is_pinned(const struct weft_region *region, const char *at)
{
	size_t i = granule_of(region, at);

	return at < region->base + region->size && region->pins[i];
}

/* The end of the run from @at on that is pinned, or not, as @at is; at most @end. */
static char *pin_run_end(const struct weft_region *region, char *at, char *end)
{
	size_t i = granule_of(region, at);
	bool first = is_pinned(region, at);

	if (!region->pinned)
		return end;
	while (at < end && is_pinned(region, at) == first)
		at = region->base + ++i * region->granule;
	return at < end ? at : end;
}

/* Pages that the system does not drop (they may be locked) are cleared. */
static void discard_pages(char *at, size_t len)
{
	if (madvise(at, len, MADV_REMOVE) < 0)
		memset(at, 0, len);
}

/* Clears the first run of [@at, @end), and returns its end. */
static char *clear_pin_run(struct weft_region *region, char *at, char *end)
{
	char *stop;
	bool stays;

	weft_region_lock(region);
	stop = pin_run_end(region, at, end);
	stays = is_pinned(region, at);
	if (!stays)
		discard_pages(at, (size_t)(stop - at));
	weft_region_unlock(region);
	if (stays)
		memset(at, 0, (size_t)(stop - at));
	return stop;
}

void weft_region_clear(struct weft_region *region, void *at, size_t len)
{
	char *from = at, *end = from + len;

	if (!region)
		discard_pages(from, len);
	while (region && from < end)
		from = clear_pin_run(region, from, end);
}
