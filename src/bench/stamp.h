/* stamp.h - the stamp in every block that --verify writes: a block says what it is.
 *
 *   0        8     16       24           32     36         40                      size
 *   ├ magic ─┼ run ─┼ offset ─┼ generation ─┼ size ─┼ CRC32C ──┼ body: from all of them ─┤
 *
 * The sum covers the whole block. Run, offset and generation determine every byte, so a wrong block
 * can be compared with those that could have been there. */
#ifndef WEFT_BENCH_STAMP_H
#define WEFT_BENCH_STAMP_H

#include <stdbool.h>
#include <stdint.h>

enum bench_stamp {
	BENCH_STAMP_GOOD,    /* whole; see where and which generation */
	BENCH_STAMP_DAMAGED, /* of this run, but the sum is wrong */
	BENCH_STAMP_OTHER,   /* whole, of another run */
	BENCH_STAMP_ZEROES,
	BENCH_STAMP_NONE,
};

struct bench_stamp_view {
	enum bench_stamp what;
	uint64_t run, offset;
	uint32_t generation;
};

void bench_stamp_fill(void *block, uint32_t size, uint64_t run, uint64_t offset,
		      uint32_t generation);
void bench_stamp_look(const void *block, uint32_t size, uint64_t run,
		      struct bench_stamp_view *view);

/* How much of the body is as that generation's would be, in words of 8 bytes. */
uint32_t bench_stamp_alike(const void *block, uint32_t size, uint64_t run, uint64_t offset,
			   uint32_t generation);
uint32_t bench_stamp_words(uint32_t size); /* of a body */
/* The first byte that is not as that generation's; @size: there is none. */
uint32_t bench_stamp_differs(const void *block, uint32_t size, uint64_t run, uint64_t offset,
			     uint32_t generation);

#endif
