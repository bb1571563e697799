/* addr_counts.c - how many (connections, queues …) each peer address has. */
#include "base/addr_counts.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

void weft_addr_counts_init(struct weft_addr_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	if (getrandom(&counts->key, sizeof(counts->key), GRND_NONBLOCK) < 0)
		counts->key = (uint64_t)time(NULL);
	counts->key |= 1;
}

static uint64_t addr_prefix(const struct sockaddr_storage *addr)
{
	uint64_t bits;

	if (addr->ss_family != AF_INET6)
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr;
	memcpy(&bits, &((const struct sockaddr_in6 *)addr)->sin6_addr, sizeof(bits));
	return bits;
}

unsigned weft_addr_counts_index(const struct weft_addr_counts *counts,
				const struct sockaddr_storage *addr)
{
	uint64_t hash = (addr_prefix(addr) ^ counts->key) * 0x9e3779b97f4a7c15;

	hash = (hash ^ hash >> 32) * counts->key;
	return (unsigned)(hash >> 56);
}

uint32_t *weft_addr_counts_at(struct weft_addr_counts *counts, const struct sockaddr_storage *addr)
{
	return &counts->counters[weft_addr_counts_index(counts, addr)];
}

uint32_t weft_addr_counts_max(const struct weft_addr_counts *counts)
{
	uint32_t most = 0;

	for (int i = 0; i < WEFT_ADDR_COUNTERS; i++)
		if (counts->counters[i] > most)
			most = counts->counters[i];
	return most;
}
