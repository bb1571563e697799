/* id_hash.h - a hash table for 32-bit ids that a peer chose. It grows with its contents, and a peer
 * cannot choose ids that meet in one chain (base/keyed_hash.h). */
#ifndef WEFT_BASE_ID_HASH_H
#define WEFT_BASE_ID_HASH_H

#include <stdint.h>

#include "base/keyed_hash.h"

/* Embedded in the entry. */
struct weft_id_node {
	struct weft_id_node *next; /* in its chain */
	uint32_t id;
};

struct weft_id_hash {
	struct weft_hash_key key;
	struct weft_id_node **chains; /* 1 << @bits of them; NULL: none yet */
	unsigned bits;
	uint32_t count;
};

void weft_id_hash_init(struct weft_id_hash *ids);
/* The caller frees entries that are still in it. */
void weft_id_hash_free(struct weft_id_hash *ids);

/* @number must not be in the table. -ENOMEM: it was not added. */
int weft_id_hash_add(struct weft_id_hash *ids, struct weft_id_node *id, uint32_t number);
/* NULL: there is none. */
struct weft_id_node *weft_id_hash_find(const struct weft_id_hash *ids, uint32_t number);
void weft_id_hash_remove(struct weft_id_hash *ids, struct weft_id_node *id);

#endif
