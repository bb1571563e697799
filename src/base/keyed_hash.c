/* keyed_hash.c - SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF").
 *
 * Its output cannot be told from random numbers by who does not know the key. So all 64 bits serve,
 * and any of them: a simpler hash under a secret key may keep the order of what a peer chose, and
 * put numbers that are a table's size apart into one place. */
#include "base/keyed_hash.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

/* Early after the machine has started, it waits until the kernel has random bytes: never a key that
 * can be guessed. Where the call is refused (by a filter of system calls), there are the 16 bytes
 * that the kernel has given this process. */
struct weft_hash_key weft_hash_key(void)
{
	struct weft_hash_key key;

	while (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
		if (errno == EINTR)
			continue;
		memcpy(&key, (const void *)getauxval(AT_RANDOM), sizeof(key));
		break;
	}
	return key;
}

static uint64_t rotate(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void sip_compress(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

static uint64_t sip_finish(uint64_t v[4])
{
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t weft_keyed_hash(const struct weft_hash_key *key, const void *bytes, size_t len)
{
	uint64_t v[4] = { key->k0 ^ 0x736f6d6570736575, key->k1 ^ 0x646f72616e646f6d,
			  key->k0 ^ 0x6c7967656e657261, key->k1 ^ 0x7465646279746573 };
	uint64_t word, last = (uint64_t)len << 56;
	const char *at = bytes;

	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sip_compress(v, le64toh(word));
	}
	word = 0;
	memcpy(&word, at, len);
	sip_compress(v, last | le64toh(word));
	return sip_finish(v);
}
