/* addr_counts.h - how many (connections, queues …) each peer address has.
 *
 * Addresses share counters by a keyed hash: a peer cannot choose whom it shares one with
 * (base/keyed_hash.h). Neighbours, which differ in the last byte, never share one. An IPv6 address
 * counts by its first 64 bits, which one machine may have all addresses of. */
#ifndef WEFT_BASE_ADDR_COUNTS_H
#define WEFT_BASE_ADDR_COUNTS_H

#include <netinet/in.h>
#include <stdint.h>

#include "base/keyed_hash.h"

enum { WEFT_ADDR_COUNTERS = 256 };

struct weft_addr_counts {
	struct weft_hash_key key;
	uint32_t counters[WEFT_ADDR_COUNTERS];
};

void weft_addr_counts_init(struct weft_addr_counts *counts);
/* The index of @addr's counter. */
unsigned weft_addr_counts_index(const struct weft_addr_counts *counts,
				const struct sockaddr_storage *addr);
/* The counter of @addr, which the caller may change. */
uint32_t *weft_addr_counts_at(struct weft_addr_counts *counts, const struct sockaddr_storage *addr);
uint32_t weft_addr_counts_max(const struct weft_addr_counts *counts);

#endif
