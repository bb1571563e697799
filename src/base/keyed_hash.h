/* keyed_hash.h - a hash of bytes that a peer chose. Without the key nobody can choose bytes that
 * collide. */
#ifndef WEFT_BASE_KEYED_HASH_H
#define WEFT_BASE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t weft_hash_key(void); /* a random one */
/* Start with @hash 0, feed the result back in to go on with other bytes. */
uint64_t weft_keyed_hash(uint64_t key, uint64_t hash, const void *bytes, size_t len);

#endif
