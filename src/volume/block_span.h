/* block_span.h - the blocks that a range of bytes touches.
 *
 *   ┌──────────┬──────────┬──────────┐  blocks
 *   │ head ████│██████████│███   tail│
 *   └──────────┴──────────┴──────────┘
 *   ▲ start                          ▲ start + length */
#ifndef WEFT_VOLUME_BLOCK_SPAN_H
#define WEFT_VOLUME_BLOCK_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct weft_block_span {
	uint64_t start, length; /* multiples of the block size */
	uint32_t head, tail;    /* bytes of the first and last block that the range leaves out */
};

/* Blocks are a power of two. */
static inline struct weft_block_span weft_block_span_of(uint64_t offset, uint64_t length,
							uint32_t block)
{
	uint64_t mask = block - 1, start = offset & ~mask;
	uint64_t end = (offset + length + mask) & ~mask;

	return (struct weft_block_span){ .start = start,
					 .length = end - start,
					 .head = (uint32_t)(offset - start),
					 .tail = (uint32_t)(end - offset - length) };
}

static inline bool weft_block_span_is_aligned(const struct weft_block_span *span)
{
	return !span->head && !span->tail;
}

#endif
