/* plan.h - the plan of a job: which I/O is next, read or write, and where in the job's part of the
 * region. */
#ifndef WEFT_BENCH_PLAN_H
#define WEFT_BENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/ledger.h"

struct bench_plan {
	bool random;
	unsigned read_pct;
	uint64_t first, chunks; /* the job's part, in chunks of one I/O's size */
	uint64_t cursor, rng;
	/* NULL: blocks are not followed. Otherwise no chunk is used by two I/Os at once, and a read
	 * of what was not written yet becomes a write. */
	struct bench_ledger *ledger;
};

struct bench_next_io {
	bool write;
	uint64_t chunk; /* of the job's part */
};

/* Share @index of @shares of a region of @chunks. */
void bench_plan_share(struct bench_plan *plan, uint64_t chunks, unsigned index, unsigned shares);
/* false: not now, everything in reach is in flight. */
bool bench_plan_next(struct bench_plan *plan, struct bench_next_io *step);

#endif
