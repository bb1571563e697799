/* errors.h - errors of a run: failed I/Os by kind, and wrong blocks.
 *
 * Everything is counted; of each kind of failure the first is kept as a sentence, of the blocks the
 * first few. */
#ifndef WEFT_CLI_BENCH_ERRORS_H
#define WEFT_CLI_BENCH_ERRORS_H

#include <weft/host.h>

#include "cli/bench/verify.h"

enum { BENCH_KINDS_MAX = 16, BENCH_PROBLEMS_MAX = 16 };

struct bench_failure {
	enum weft_op_code op;
	int rc;
	uint16_t status;
	uint64_t count;
	struct weft_err first;
};

struct bench_problem {
	enum bench_finding what;
	uint64_t offset;
	char text[200];
};

struct bench_errors {
	uint64_t failed; /* read by other threads too */
	struct bench_failure kinds[BENCH_KINDS_MAX];
	unsigned nkinds;    /* when they are full, further ones count in the last */
	uint64_t unchecked; /* chunks that could not be read in the end */

	uint64_t found[BENCH_FINDINGS];
	struct bench_problem problems[BENCH_PROBLEMS_MAX];
	unsigned nproblems;
};

void bench_errors_add_failed(struct bench_errors *trouble, const struct weft_cmd *cmd);
void bench_errors_add_bad_block(struct bench_errors *trouble,
				const struct bench_verify_result *verdict);
void bench_errors_merge(struct bench_errors *into, const struct bench_errors *from);
/* Blocks that were wrong. */
uint64_t bench_errors_bad_blocks(const struct bench_errors *trouble);

#endif
