/* id_hash.h - a hash table for 32-bit ids that a peer chose. It grows with its contents; its key is
 * random, so a peer cannot choose ids that collide. */
#ifndef WEFT_BASE_ID_HASH_H
#define WEFT_BASE_ID_HASH_H

#include <stdint.h>

/* Embedded in the entry. */
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
/* The caller frees entries that are still in it. */
void weft_ids_free(struct weft_ids *ids);

/* @number must not be in the table. -ENOMEM: it was not added. */
int weft_ids_add(struct weft_ids *ids, struct weft_id *id, uint32_t number);
/* NULL: there is none. */
struct weft_id *weft_ids_find(const struct weft_ids *ids, uint32_t number);
void weft_ids_remove(struct weft_ids *ids, struct weft_id *id);

#endif
