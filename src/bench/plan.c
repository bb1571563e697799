/* plan.c - the plan of a job: which I/O is next, and where. */
#include "bench/plan.h"

#include "bench/random.h"

enum { PROBES = 64 }; /* chunks to try for one that is not in flight */

void bench_plan_share(struct bench_plan *plan, uint64_t chunks, unsigned index, unsigned shares)
{
	plan->first = chunks / shares * index;
	plan->chunks = index + 1 == shares ? chunks - plan->first : chunks / shares;
}

static bool draw_write(struct bench_plan *plan)
{
	if (plan->read_pct == 0 || plan->read_pct == 100)
		return plan->read_pct == 0;
	return bench_random_below(&plan->rng, 100) >= plan->read_pct;
}

static uint64_t draw_chunk(struct bench_plan *plan)
{
	if (plan->random)
		return bench_random_below(&plan->rng, plan->chunks);
	return plan->cursor++ % plan->chunks;
}

/* The first of a few from @from on, of @count in a ring, that is not in flight. */
static bool find_idle(struct bench_plan *plan, const uint32_t *list, uint64_t count,
		      uint64_t *chunk)
{
	uint64_t from = bench_random_below(&plan->rng, count);

	for (uint64_t i = 0; i < PROBES && i < count; i++) {
		uint64_t at = (from + i) % count;

		*chunk = list ? list[at] : at;
		if (!plan->ledger->chunks[*chunk].busy)
			return true;
	}
	return false;
}

static bool next_random(struct bench_plan *plan, struct bench_next_io *step)
{
	struct bench_ledger *ledger = plan->ledger;

	if (!ledger->nwritten)
		step->write = true;
	if (step->write)
		return find_idle(plan, NULL, ledger->count, &step->chunk);
	return find_idle(plan, ledger->written, ledger->nwritten, &step->chunk);
}

static bool next_in_order(struct bench_plan *plan, struct bench_next_io *step)
{
	const struct bench_chunk *chunk;

	step->chunk = plan->cursor % plan->chunks;
	chunk = &plan->ledger->chunks[step->chunk];
	if (chunk->busy)
		return false;
	plan->cursor++;
	step->write |= !chunk->high;
	return true;
}

bool bench_plan_next(struct bench_plan *plan, struct bench_next_io *step)
{
	step->write = draw_write(plan);
	if (plan->ledger)
		return plan->random ? next_random(plan, step) : next_in_order(plan, step);
	step->chunk = draw_chunk(plan);
	return true;
}
