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

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void weft_spin_init(struct weft_spin *idle)
{
	idle->gap_ns = WEFT_SPIN_MAX_NS;
	idle->skip = 0;
	idle->miss = 1;
}

uint64_t weft_spin_budget_ns(struct weft_spin *idle)
{
	if (idle->skip) {
		idle->skip--;
		return 0;
	}
	return min_u64(2 * idle->gap_ns, WEFT_SPIN_MAX_NS);
}

void weft_spin_hit(struct weft_spin *idle, uint64_t gap_ns)
{
	idle->gap_ns -= idle->gap_ns / 8;
	idle->gap_ns += min_u64(gap_ns, WEFT_SPIN_MAX_NS) / 8;
	idle->miss = 1;
}

void weft_spin_miss(struct weft_spin *idle)
{
	idle->gap_ns = WEFT_SPIN_MAX_NS;
	idle->skip = idle->miss;
	if (idle->miss < WEFT_SPIN_SKIP_MAX)
		idle->miss *= 2;
}
