/* verify.h - classify what a read returned: fine, lost, torn, corrupt, misplaced, foreign or
 * empty. */
#ifndef WEFT_BENCH_VERIFY_H
#define WEFT_BENCH_VERIFY_H

#include "bench/bench.h"

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

/* errors.c */
void bench_errors_add_failed(struct bench_errors *errors, const struct weft_cmd *cmd);
void bench_errors_add_bad_block(struct bench_errors *errors,
				const struct bench_verify_result *verdict);
void bench_errors_merge(struct bench_errors *into, const struct bench_errors *from);

#endif
