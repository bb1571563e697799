/* region_view.c - a view: regions sorted by address, one thread's copy or the registry's own. */
#include <errno.h>
#include <stdlib.h>

#include "memory/region_internal.h"

int weft_region_view_reserve(struct weft_region_view *view, unsigned count)
{
	unsigned room = view->room ? view->room : 16;
	struct weft_region_span *sorted;

	while (room < count)
		room *= 2;
	if (room == view->room)
		return 0;
	sorted = reallocarray(view->sorted, room, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	view->sorted = sorted;
	view->room = room;
	return 0;
}

void weft_region_view_free(struct weft_region_view *view)
{
	free(view->sorted);
	*view = (struct weft_region_view){ 0 };
}

unsigned weft_region_view_lower_bound(const struct weft_region_view *view, const char *at)
{
	unsigned low = 0, high = view->count, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (view->sorted[mid].base + view->sorted[mid].size <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool span_contains(const struct weft_region_span *span, const char *at, size_t len)
{
	return at >= span->base && (size_t)(at - span->base) < span->size &&
	       len <= span->size - (size_t)(at - span->base);
}

struct weft_region *weft_region_find(struct weft_region_view *view, const void *at, size_t len)
{
	unsigned i;

	if (weft_region_view_refresh(view) < 0)
		return NULL;
	if (view->last < view->count && span_contains(&view->sorted[view->last], at, len))
		return view->sorted[view->last].region;
	i = weft_region_view_lower_bound(view, at);
	if (i == view->count || !span_contains(&view->sorted[i], at, len))
		return NULL;
	view->last = i;
	return view->sorted[i].region;
}

bool weft_region_view_overlaps(const struct weft_region_view *view, unsigned i, const char *at,
			       size_t len)
{
	const struct weft_region_span *span;

	if (i >= view->count || !len)
		return false;
	span = &view->sorted[i];
	return span->base < at || (size_t)(span->base - at) < len;
}

bool weft_region_overlaps_dmabuf(struct weft_region_view *view, const void *at, size_t len)
{
	if (weft_region_view_refresh(view) < 0)
		return true;
	for (unsigned i = weft_region_view_lower_bound(view, at);
	     weft_region_view_overlaps(view, i, at, len); i++) {
		if (view->sorted[i].kind == WEFT_REGION_DMABUF)
			return true;
	}
	return false;
}
