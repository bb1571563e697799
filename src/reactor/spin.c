/* spin.c - how long to spin before sleeping.
 *
 *            hit: budget = twice the mean gap
 *          ┌──────┐
 *          ▼      │  miss: skip 1, 2, 4 … 256 waits
 *       spinning ─┴─────────────────────────────▶ sleeping
 *          ▲                                         │
 *          └─────── one try with the full bound ◀────┘
 *
 * Sleeping and being woken costs microseconds; a spin that ends sooner than that is cheaper for
 * everybody. One that fails is paid for nothing, so the first failure ends the spinning, and a
 * reactor that keeps failing tries ever more rarely.
 * Invariant: no budget exceeds WEFT_SPIN_MAX_NS. */
#include "reactor/spin.h"

#include <assert.h>

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void weft_spin_init(struct weft_spin *spin)
{
	spin->gap_ns = WEFT_SPIN_MAX_NS;
	spin->skip = 0;
	spin->miss = 1;
}

uint64_t weft_spin_budget_ns(struct weft_spin *spin)
{
	if (spin->skip) {
		spin->skip--;
		return 0;
	}
	assert(spin->gap_ns <= WEFT_SPIN_MAX_NS);
	return min_u64(2 * spin->gap_ns, WEFT_SPIN_MAX_NS);
}

void weft_spin_hit(struct weft_spin *spin, uint64_t gap_ns)
{
	spin->gap_ns -= spin->gap_ns / 8;
	spin->gap_ns += min_u64(gap_ns, WEFT_SPIN_MAX_NS) / 8;
	spin->miss = 1;
}

void weft_spin_miss(struct weft_spin *spin)
{
	assert(!spin->skip && spin->miss && spin->miss <= WEFT_SPIN_SKIP_MAX);
	spin->gap_ns = WEFT_SPIN_MAX_NS;
	spin->skip = spin->miss;
	if (spin->miss < WEFT_SPIN_SKIP_MAX)
		spin->miss *= 2;
}
