/* ids.h - what is found by a number that a peer chose.
 *
 * A hash that grows with what is in it. Its key is random: a peer cannot choose numbers that all
 * meet in one chain. */
#ifndef WEFT_BASE_IDS_H
#define WEFT_BASE_IDS_H

#include <stdint.h>

/* Embedded in what is found. */
struct weft_id {
	struct weft_id *next; /* in its chain */
	uint32_t id;
};

struct weft_ids {
	uint64_t key;
	struct weft_id **chains; /* 1 << @bits of them; NULL: none yet */
	unsigned bits;
	uint32_t count;
};

void weft_ids_init(struct weft_ids *ids);
/* What is still in it is the caller's. */
void weft_ids_free(struct weft_ids *ids);

/* No other has this @number. -ENOMEM: it is not in it. */
int weft_ids_add(struct weft_ids *ids, struct weft_id *id, uint32_t number);
/* NULL: there is none. */
struct weft_id *weft_ids_find(const struct weft_ids *ids, uint32_t number);
void weft_ids_remove(struct weft_ids *ids, struct weft_id *id);

#endif
