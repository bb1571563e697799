/* region_internal.h - what the files of region.h share. */
#ifndef WEFT_MEMORY_REGION_INTERNAL_H
#define WEFT_MEMORY_REGION_INTERNAL_H

#include "memory/region.h"

/* region.c: copies the registry as it is now. -ENOMEM: the view is as before. */
int weft_region_view_refresh(struct weft_region_view *view);

/* region_view.c: makes room for so many. */
int weft_region_view_reserve(struct weft_region_view *view, unsigned count);
/* How many regions end at @at or before it: the next one is the first that may hold it. */
unsigned weft_region_view_lower_bound(const struct weft_region_view *view, const char *at);
/* Whether region @i, which does not end before @at, shares a byte with [@at, @at + @len). */
bool weft_region_view_overlaps(const struct weft_region_view *view, unsigned i, const char *at,
			       size_t len);

/* region_pin.c: takes a registration off the list, to be undone; @owner NULL: of any owner. NULL:
 * there is none. */
struct weft_region_registration *weft_region_detach_registration(struct weft_region *region,
								 const void *owner);

#endif
