/* addr_counts.h - how many of a kind each peer's address has, for who must choose between them.
 *
 * Addresses share counters by a keyed hash: a peer cannot choose whom it shares one with. An IPv6
 * address counts by its first 64 bits, as many addresses as one machine can have. */
#ifndef WEFT_BASE_ADDR_COUNTS_H
#define WEFT_BASE_ADDR_COUNTS_H

#include <netinet/in.h>
#include <stdint.h>

enum { WEFT_ADDR_COUNTERS = 256 };

struct weft_addr_counts {
	uint64_t key;
	uint32_t counters[WEFT_ADDR_COUNTERS];
};

void weft_addr_counts_init(struct weft_addr_counts *counts);
/* Which one is that of @addr. */
unsigned weft_addr_index(const struct weft_addr_counts *counts,
			 const struct sockaddr_storage *addr);
/* The counter of @addr: the caller's to change. */
uint32_t *weft_addr_counter(struct weft_addr_counts *counts, const struct sockaddr_storage *addr);
uint32_t weft_addr_counts_most(const struct weft_addr_counts *counts);

#endif
