/* region_internal.h - what the parts of region.h share. */
#ifndef WEFT_BASE_REGION_INTERNAL_H
#define WEFT_BASE_REGION_INTERNAL_H

#include "base/region.h"

/* region.c: as the registry is now. -ENOMEM: as it was. */
int weft_view_refresh(struct weft_region_view *view);

/* region_view.c. Room for so many. */
int weft_view_room(struct weft_region_view *view, unsigned count);
/* How many regions end at @at or before it: the next is the first that may hold it. */
unsigned weft_view_before(const struct weft_region_view *view, const char *at);
/* Whether region @i, one that does not end before @at, shares a byte with [@at, @at + @len). */
bool weft_view_meets(const struct weft_region_view *view, unsigned i, const char *at, size_t len);

/* region_tie.c. Off the list, to be undone; @owner NULL: whosever it is. NULL: there is none. */
struct weft_region_tie *weft_region_take_tie(struct weft_region *region, const void *owner);

#endif
