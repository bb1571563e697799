/* huge.h - large pages for memory that fills up.
 *
 * Where a page of 4 KiB lies, a processor remembers for some thousand of them; in memory that is
 * larger it is looked up for almost every block. With pages of 2 MiB it remembers gigabytes. */
#ifndef WEFT_BACKEND_HUGE_H
#define WEFT_BACKEND_HUGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/list.h"

#define WEFT_HUGE_BYTES (2ULL << 20)

/* Shared memory, in extents of a large page's size. */
struct weft_huge {
	char *base;
	uint64_t room;             /* extents that are counted, from @base on; 0: none */
	_Atomic uint64_t extents;  /* of these, those that can be written to */
	_Atomic uint32_t *written; /* bytes, in each, roughly; huge.c says what the largest mean */

	/* huge.c's, under its lock. */
	struct weft_list link;
	uint64_t asking, cursor;
};

/* @bytes from @base on, an address where a large page may begin. Without memory to count in, its
 * pages stay small. */
void weft_huge_init(struct weft_huge *huge, char *base, uint64_t bytes);
/* So many bytes can be written to. They stay where they are until weft_huge_fini(). */
void weft_huge_grow(struct weft_huge *huge, uint64_t bytes);
/* It may be unmapped when this returns. */
void weft_huge_fini(struct weft_huge *huge);

/* From any thread. */
void weft_huge_wrote(struct weft_huge *huge, uint64_t offset, uint64_t len);
void weft_huge_cleared(struct weft_huge *huge, uint64_t offset, uint64_t len);

#endif
