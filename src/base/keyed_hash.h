/* keyed_hash.h - a hash of what a peer chose. Without the key, which is random, nobody can choose
 * what collides, or what meets in one place of a table (hash % places). */
#ifndef WEFT_BASE_KEYED_HASH_H
#define WEFT_BASE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

struct weft_hash_key {
	uint64_t k0, k1;
};

/* A random one. */
struct weft_hash_key weft_hash_key(void);
uint64_t weft_keyed_hash(const struct weft_hash_key *key, const void *bytes, size_t len);

#endif
