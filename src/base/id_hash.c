/* id_hash.c - a hash table for 32-bit ids that a peer chose.
 *
 * Invariant: there are as many chains as entries, unless there was no memory for more. */
#include "base/id_hash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { BITS_FIRST = 4, BITS_MAX = 24 };

void weft_id_hash_init(struct weft_id_hash *ids)
{
	*ids = (struct weft_id_hash){ .key = weft_hash_key() };
}

void weft_id_hash_free(struct weft_id_hash *ids)
{
	free(ids->chains);
	ids->chains = NULL;
	ids->bits = ids->count = 0;
}

static struct weft_id_node **chain_of(const struct weft_id_hash *ids, uint32_t number)
{
	uint64_t hash = weft_keyed_hash(&ids->key, &number, sizeof(number));

	return &ids->chains[hash >> (64 - ids->bits)];
}

static void chain_insert(struct weft_id_hash *ids, struct weft_id_node *id)
{
	struct weft_id_node **chain = chain_of(ids, id->id);

	id->next = *chain;
	*chain = id;
}

static int grow_chains(struct weft_id_hash *ids)
{
	struct weft_id_node **before = ids->chains, *id, *next;
	size_t count = before ? (size_t)1 << ids->bits : 0;
	unsigned bits = before ? ids->bits + 1 : BITS_FIRST;
	struct weft_id_node **chains = calloc((size_t)1 << bits, sizeof(*chains));

	if (!chains)
		return -ENOMEM;
	ids->chains = chains;
	ids->bits = bits;
	for (size_t i = 0; i < count; i++) {
		for (id = before[i]; id; id = next) {
			next = id->next;
			chain_insert(ids, id);
		}
	}
	free(before);
	return 0;
}

int weft_id_hash_add(struct weft_id_hash *ids, struct weft_id_node *id, uint32_t number)
{
	int rc = 0;

	if (!ids->chains || (ids->count >> ids->bits && ids->bits < BITS_MAX))
		rc = grow_chains(ids);
	if (!ids->chains)
		return rc;
	id->id = number;
	chain_insert(ids, id);
	ids->count++;
	return 0;
}

struct weft_id_node *weft_id_hash_find(const struct weft_id_hash *ids, uint32_t number)
{
	struct weft_id_node *id = ids->chains ? *chain_of(ids, number) : NULL;

	while (id && id->id != number)
		id = id->next;
	return id;
}

void weft_id_hash_remove(struct weft_id_hash *ids, struct weft_id_node *id)
{
	struct weft_id_node **at = chain_of(ids, id->id);

	while (*at != id)
		at = &(*at)->next;
	*at = id->next;
	assert(ids->count);
	ids->count--;
}
