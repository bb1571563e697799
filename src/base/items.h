/* items.h - an array with its length, freed by its owner. */
#ifndef WEFT_BASE_ITEMS_H
#define WEFT_BASE_ITEMS_H

struct weft_items {
	void *at; /* NULL: no array, which may mean something else than an empty one */
	unsigned count;
};

#endif
