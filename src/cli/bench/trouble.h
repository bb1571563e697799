/* trouble.h - what went wrong: I/Os that failed, by kind, and blocks that were not as they should
 * be.
 *
 * Everything is counted; of each kind of failure the first is kept as a sentence, of the blocks the
 * first few. */
#ifndef WEFT_CLI_BENCH_TROUBLE_H
#define WEFT_CLI_BENCH_TROUBLE_H

#include <weft/host.h>

#include "cli/bench/judge.h"

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

struct bench_trouble {
	uint64_t failed; /* read by other threads too */
	struct bench_failure kinds[BENCH_KINDS_MAX];
	unsigned nkinds;    /* what comes when they are full counts in the last */
	uint64_t unchecked; /* chunks that could not be read in the end */

	uint64_t found[BENCH_FINDINGS];
	struct bench_problem problems[BENCH_PROBLEMS_MAX];
	unsigned nproblems;
};

void bench_trouble_failed(struct bench_trouble *trouble, const struct weft_cmd *cmd);
void bench_trouble_found(struct bench_trouble *trouble, const struct bench_verdict *verdict);
void bench_trouble_merge(struct bench_trouble *into, const struct bench_trouble *from);
/* Blocks that were wrong. */
uint64_t bench_trouble_bad(const struct bench_trouble *trouble);

#endif
