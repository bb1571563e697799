/* huge.h - huge pages (2 MiB) for memory namespaces that fill up.
 *
 * A TLB has some thousand entries: with 4 KiB pages, a large namespace misses it for almost every
 * block. With 2 MiB pages it covers gigabytes. */
#ifndef WEFT_BACKEND_HUGE_H
#define WEFT_BACKEND_HUGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/list.h"

#define WEFT_HUGE_BYTES (2ULL << 20)

/* Shared memory, in extents of a huge page's size. */
struct weft_huge {
	char *base;
	uint64_t room;            /* extents that are counted, from @base on; 0: none */
	_Atomic uint64_t extents; /* how many of these can be written */
	_Atomic uint32_t
		*written; /* bytes in each, roughly; huge.c says what the largest values mean */

	/* huge.c's, under its lock. */
	struct weft_list link;
	uint64_t asking, cursor;
};

/* @bytes from @base on, which is aligned to a huge page. Without memory for the counts, pages stay
 * small. */
void weft_huge_init(struct weft_huge *huge, char *base, uint64_t bytes);
/* So many bytes can be written. They stay where they are until weft_huge_fini(). */
void weft_huge_grow(struct weft_huge *huge, uint64_t bytes);
/* It may be unmapped when this returns. */
void weft_huge_fini(struct weft_huge *huge);

/* From any thread. */
void weft_huge_wrote(struct weft_huge *huge, uint64_t offset, uint64_t len);
void weft_huge_cleared(struct weft_huge *huge, uint64_t offset, uint64_t len);

#endif
