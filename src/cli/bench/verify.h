/* verify.h - classify what a read returned: fine, lost, torn, corrupt, misplaced, foreign or
 * empty. */
#ifndef WEFT_CLI_BENCH_VERIFY_H
#define WEFT_CLI_BENCH_VERIFY_H

#include <stdint.h>

enum bench_finding {
	BENCH_FINE,
	BENCH_LOST,      /* an older generation than the one that was acknowledged */
	BENCH_TORN,      /* parts of two generations, within a block or within one I/O */
	BENCH_CORRUPT,   /* the right block, with bytes that nobody wrote */
	BENCH_MISPLACED, /* this run wrote it, for another offset */
	BENCH_FOREIGN,   /* data that this run did not write */
	BENCH_EMPTY,     /* zeroes where this run had written */
	BENCH_FINDINGS,
};

/* One read: @length bytes of @block_size blocks that belong to @offset, in which @run may have left
 * the generations @low to @high; @low 0: or what was there before. */
struct bench_verify_case {
	const void *data;
	uint64_t length, offset, run;
	uint32_t block_size, low, high;
};

/* The worst finding of a read, with a sentence about it. */
struct bench_verify_result {
	enum bench_finding what;
	uint64_t offset;    /* of the block */
	uint32_t unstamped; /* blocks with nothing of this run in them, where that is all right */
	char text[200];
};

void bench_verify(const struct bench_verify_case *c, struct bench_verify_result *verdict);

/* "lost write" … */
const char *bench_finding_text(enum bench_finding what);

#endif
