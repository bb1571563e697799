/* keyed_hash.c - a polynomial of the bytes at a secret place, modulo a prime: two different inputs
 * of n words collide for at most n of 2^61 keys. */
#include "base/keyed_hash.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

static const uint64_t prime = (UINT64_C(1) << 61) - 1;

uint64_t weft_hash_key(void)
{
	uint64_t key;

	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
		key = weft_monotonic_ns();
	return key % (prime - 2) + 2;
}

static uint64_t step(uint64_t key, uint64_t hash, uint32_t word)
{
	unsigned __int128 product = (unsigned __int128)hash * key;
	uint64_t sum = (uint64_t)(product & prime) + (uint64_t)(product >> 61);

	return (sum % prime + word) % prime;
}

/* The length is a word, too: bytes that end in zeroes are not those without. */
uint64_t weft_keyed_hash(uint64_t key, uint64_t hash, const void *bytes, size_t len)
{
	const char *at = bytes;
	uint32_t word;

	hash = step(key, hash, (uint32_t)len + 1);
	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = step(key, hash, word);
	}
	word = 0;
	memcpy(&word, at, len);
	return len ? step(key, hash, word) : hash;
}
