/* addr_counts.c - how many (connections, queues …) each peer address has. */
#include "base/addr_counts.h"

#include <endian.h>
#include <string.h>

void weft_addr_counts_init(struct weft_addr_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	counts->key = weft_hash_key();
}

static uint64_t addr_prefix(const struct sockaddr_storage *addr)
{
	uint64_t bits;

	if (addr->ss_family != AF_INET6)
		return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr);
	memcpy(&bits, &((const struct sockaddr_in6 *)addr)->sin6_addr, sizeof(bits));
	return be64toh(bits);
}

unsigned weft_addr_counts_index(const struct weft_addr_counts *counts,
				const struct sockaddr_storage *addr)
{
	uint64_t prefix = addr_prefix(addr), network = prefix / WEFT_ADDR_COUNTERS;

	return (weft_keyed_hash(&counts->key, &network, sizeof(network)) + prefix) %
	       WEFT_ADDR_COUNTERS;
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
